//===- NodeConversion.cpp - What the conversion of one node sees ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeConversion.h"
#include "ModelFile.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

InFlightDiagnostic NodeConversion::error() {
  InFlightDiagnostic diagnostic = emitError(loc());
  diagnostic << node.getOpType() << " node '" << node.getNodeName() << "' (opset " << node.getVersion() << "): ";
  return diagnostic;
}

InFlightDiagnostic NodeConversion::warning() {
  InFlightDiagnostic diagnostic = emitWarning(loc());
  diagnostic << node.getOpType() << " node '" << node.getNodeName() << "': ";
  return diagnostic;
}

LogicalResult NodeConversion::requireOperands(unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (failed(requireOperand(i)))
      return failure();
  return success();
}

LogicalResult NodeConversion::requireOperand(unsigned i) {
  if (!has(i))
    return error() << "operand " << i << " is missing or not a tensor; the file is damaged, export the model again";
  return success();
}

int64_t NodeConversion::intAttr(StringRef name, int64_t otherwise) const {
  auto value = dyn_cast_or_null<IntegerAttr>(attr(name));
  return value ? value.getInt() : otherwise;
}

double NodeConversion::floatAttr(StringRef name, double otherwise) const {
  auto value = dyn_cast_or_null<FloatAttr>(attr(name));
  return value ? value.getValueAsDouble() : otherwise;
}

StringRef NodeConversion::stringAttr(StringRef name, StringRef otherwise) const {
  auto value = dyn_cast_or_null<StringAttr>(attr(name));
  return value ? value.getValue() : otherwise;
}

std::optional<SmallVector<int64_t>> NodeConversion::intsAttr(StringRef name) const {
  auto value = dyn_cast_or_null<DenseI64ArrayAttr>(attr(name));
  return value ? std::optional(SmallVector<int64_t>(value.asArrayRef())) : std::nullopt;
}

FailureOr<SmallVector<int64_t>> NodeConversion::constantInts(unsigned i, StringRef what) {
  if (failed(requireOperand(i)))
    return failure();
  std::optional<ConstantTensor> value = evaluator.evaluate(operand(i));
  if (!value || value->isFloat)
    return error() << what << " depends on data or is too large; only values known at import are supported";
  return std::move(value->ints);
}

FailureOr<int64_t> NodeConversion::constantInt(unsigned i, StringRef what) {
  FailureOr<SmallVector<int64_t>> values = constantInts(i, what);
  if (failed(values))
    return failure();
  if (values->size() != 1)
    return error() << what << " has " << values->size() << " elements where one is needed; export the model again";
  return values->front();
}

FailureOr<double> NodeConversion::constantFloat(unsigned i, StringRef what) {
  if (failed(requireOperand(i)))
    return failure();
  std::optional<ConstantTensor> value = evaluator.evaluate(operand(i));
  if (!value || value->size() != 1)
    return error() << what << " is not one number known at import; only such are supported";
  return value->isFloat ? value->floats.front() : static_cast<double>(value->ints.front());
}

FailureOr<std::optional<SmallVector<int64_t>>> NodeConversion::intsFrom(unsigned i, StringRef name) {
  if (!has(i))
    return intsAttr(name);
  FailureOr<SmallVector<int64_t>> values = constantInts(i, name);
  if (failed(values))
    return failure();
  return std::optional(std::move(*values));
}

FailureOr<int64_t> NodeConversion::axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return error() << "axis " << axis << " is outside a tensor of rank " << rank << "; export the model again";
  return axis < 0 ? axis + rank : axis;
}

FailureOr<SmallVector<int64_t>> NodeConversion::axes(ArrayRef<int64_t> values, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : values) {
    FailureOr<int64_t> checked = axis(value, rank);
    if (failed(checked))
      return failure();
    if (llvm::is_contained(result, *checked))
      return error() << "axis " << value << " is given twice; export the model again";
    result.push_back(*checked);
  }
  llvm::sort(result);
  return result;
}

LogicalResult NodeConversion::replace(ArrayRef<Value> values) {
  for (Value value : values) {
    if (value && !checkedElements(tensorTypeOf(value).getShape()))
      return error() << "its result " << tensorTypeOf(value) << " is too large; export the model again";
    converted.push_back({value, {}});
  }
  return success();
}

LogicalResult NodeConversion::replaceBySequence(ArrayRef<Value> values) {
  converted.push_back({Value(), SmallVector<Value, 0>(values.begin(), values.end())});
  return success();
}

void OpTable::onOp(StringRef name, int64_t sinceVersion, Handler handler, StringRef domain) {
  auto &versions = table[(domain + "::" + name).str()];
  versions.push_back({sinceVersion, handler});
  llvm::sort(versions, [](const auto &a, const auto &b) { return a.first > b.first; });
}

Handler OpTable::lookup(StringRef name, StringRef domain, int64_t version) const {
  auto found = table.find((domain + "::" + name).str());
  if (found == table.end())
    return nullptr;
  for (auto [since, handler] : found->second)
    if (since <= version)
      return handler;
  return nullptr;
}
