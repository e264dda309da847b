//===- ConvertOnnx.cpp - nd-convert-onnx ----------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Locations.h"
#include "NodeConversion.h"

#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Import/ONNX/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace nd::onnx {
#define GEN_PASS_DEF_NDCONVERTONNX
#include "nd/Import/ONNX/Passes.h.inc"
} // namespace nd::onnx

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

OpTable buildTable() {
  OpTable table;
  populateAttention(table);
  populateContraction(table);
  populateElementwise(table);
  populateIndex(table);
  populateLogic(table);
  populateLoss(table);
  populateNorm(table);
  populateReduction(table);
  populateScatter(table);
  populateSequence(table);
  populateShape(table);
  populateSource(table);
  return table;
}

/// Builds the converted function beside the verbatim one, node by node. Only what results need is kept at the end.
class FunctionConverter {
public:
  FunctionConverter(func::FuncOp source, const OpTable &table) : source(source), table(table) {}

  LogicalResult run() {
    if (failed(checkSupported()))
      return failure();
    OpBuilder builder(source);
    SmallVector<Type> types;
    for (Type type : source.getArgumentTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.hasStaticShape())
        return emitError(source.getLoc())
               << "an argument of type " << type << " has no static shape; bind sizes with --batch and --seq";
      types.push_back(tensor.clone(computeType(tensor.getElementType())));
    }
    func::FuncOp result =
        func::FuncOp::create(builder, source.getLoc(), source.getName(), builder.getFunctionType(types, {}));
    result.setAllArgAttrs(source.getArgAttrsAttr());
    builder.setInsertionPointToEnd(result.addEntryBlock());
    for (auto [from, to] : llvm::zip(source.getArguments(), result.getArguments()))
      values[from].tensor = to;
    for (Operation &op : source.front()) {
      LogicalResult converted = success();
      if (auto node = dyn_cast<NodeOp>(op))
        converted = convert(node, builder);
      else if (auto constant = dyn_cast<ConstantOp>(op))
        values[constant.getResult()].tensor = convertConstant(constant, builder);
      else if (isa<AbsentOp>(op))
        values[op.getResult(0)];
      else if (isa<func::ReturnOp>(op))
        converted = convertReturn(op, result, builder);
      else
        converted = emitError(op.getLoc()) << "'" << op.getName() << "' is not an operation of a verbatim model";
      if (failed(converted)) {
        result.erase();
        return failure();
      }
    }
    source.erase();
    return success();
  }

private:
  /// One error for all node types that have no conversion.
  LogicalResult checkSupported() {
    struct Missing {
      unsigned count = 0;
      std::string first;
      Location loc;
    };
    llvm::MapVector<StringRef, Missing> missing;
    SmallVector<std::unique_ptr<std::string>> names;
    for (NodeOp node : source.getOps<NodeOp>()) {
      if (table.lookup(node.getOpType(), node.getDomain(), node.getVersion()))
        continue;
      std::string name = (node.getDomain().empty() ? "" : node.getDomain() + "::").str() + node.getOpType().str() +
                         " (opset " + std::to_string(node.getVersion()) + ")";
      names.push_back(std::make_unique<std::string>(std::move(name)));
      auto [entry, isNew] = missing.insert({*names.back(), Missing{0, describe(node.getLoc()), node.getLoc()}});
      ++entry->second.count;
    }
    if (missing.empty())
      return success();
    InFlightDiagnostic error = emitError(missing.front().second.loc);
    error << "the model uses " << missing.size()
          << (missing.size() == 1 ? " node type that is" : " node types that are") << " not supported:";
    for (auto &[name, entry] : missing) {
      error << "\n  " << name << ": " << entry.count << (entry.count == 1 ? " node" : " nodes");
      if (!entry.first.empty())
        error << ", first in " << entry.first;
    }
    error << "\nexpress these parts of the model by supported operations";
    return error;
  }

  LogicalResult convert(NodeOp node, OpBuilder &builder) {
    SmallVector<const Converted *> operands;
    for (Value operand : node.getInputs())
      operands.push_back(&values.find(operand)->second);
    NodeConversion conversion(node, builder, operands, evaluator);
    Handler handler = table.lookup(node.getOpType(), node.getDomain(), node.getVersion());
    if (failed(handler(conversion)))
      return failure();
    if (conversion.results().size() < node.getNumResults() && failed(checkUnused(conversion)))
      return failure();
    for (auto [from, to] : llvm::zip(node.getOutputs(), conversion.results()))
      values[from] = to;
    return success();
  }

  /// A handler may leave out results at the end that nothing uses.
  LogicalResult checkUnused(NodeConversion &conversion) {
    for (Value result : conversion.getNode().getOutputs().drop_front(conversion.results().size())) {
      if (!result.use_empty())
        return conversion.error() << "its result " << cast<OpResult>(result).getResultNumber() << " is not supported";
      values[result];
    }
    return success();
  }

  Value convertConstant(ConstantOp constant, OpBuilder &builder) {
    TensorBuilder tensors(builder, constant.getLoc());
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    return tensors.constant(toComputeType(elements));
  }

  LogicalResult convertReturn(Operation &op, func::FuncOp result, OpBuilder &builder) {
    SmallVector<Value> results;
    for (Value operand : op.getOperands()) {
      Value value = values.find(operand)->second.tensor;
      if (!value)
        return emitError(op.getLoc()) << "a sequence of tensors is a result; return its tensors";
      results.push_back(value);
    }
    func::ReturnOp::create(builder, op.getLoc(), results);
    result.setType(builder.getFunctionType(result.getArgumentTypes(), ValueRange(results).getTypes()));
    result.setAllResultAttrs(source.getResAttrsAttr());
    return success();
  }

  func::FuncOp source;
  const OpTable &table;
  ConstantEvaluator evaluator;
  llvm::DenseMap<Value, Converted> values;
};

struct NDConvertOnnxPass : onnx::impl::NDConvertOnnxBase<NDConvertOnnxPass> {
  using NDConvertOnnxBase::NDConvertOnnxBase;

  void runOnOperation() override {
    static const OpTable table = buildTable();
    for (func::FuncOp function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (failed(FunctionConverter(function, table).run()))
        return signalPassFailure();
  }
};

} // namespace
