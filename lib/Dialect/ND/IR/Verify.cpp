//===- Verify.cpp - What the verifiers of the dialect share ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include <cmath>

using namespace mlir;
using namespace nd;

std::string verify::text(ArrayRef<int64_t> list) {
  std::string result = "[";
  llvm::interleave(list, [&](int64_t value) { result += std::to_string(value); }, [&] { result += ", "; });
  return result + "]";
}

std::optional<int64_t> verify::elementCount(ArrayRef<int64_t> shape) {
  std::optional<int64_t> count = 1;
  for (int64_t size : shape)
    if (count)
      count = llvm::checkedMul(*count, size);
  return count;
}

SmallVector<int64_t> verify::without(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> rest;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      rest.push_back(size);
  return rest;
}

LogicalResult verify::dimInRange(Operation *op, StringRef name, int64_t dim, int64_t rank) {
  if (dim >= 0 && dim < rank)
    return success();
  return op->emitOpError() << "expected " << name << " in [0, " << rank << ") but found " << dim;
}

LogicalResult verify::distinctDims(Operation *op, StringRef name, ArrayRef<int64_t> dims, int64_t rank) {
  llvm::SmallBitVector seen(rank);
  for (int64_t dim : dims) {
    if (failed(dimInRange(op, name, dim, rank)))
      return failure();
    if (seen.test(dim))
      return op->emitOpError() << "expected distinct dimensions in " << name << " but found " << text(dims);
    seen.set(dim);
  }
  return success();
}

LogicalResult verify::increasingDims(Operation *op, StringRef name, ArrayRef<int64_t> dims, int64_t rank) {
  if (failed(distinctDims(op, name, dims, rank)))
    return failure();
  if (!llvm::is_sorted(dims))
    return op->emitOpError() << "expected increasing dimensions in " << name << " but found " << text(dims);
  return success();
}

LogicalResult verify::rank(Operation *op, StringRef name, Type type, int64_t expected, StringRef meaning) {
  int64_t found = cast<RankedTensorType>(type).getRank();
  if (found == expected)
    return success();
  return op->emitOpError() << "expected " << name << " of rank " << expected << " (" << meaning << ") but found rank "
                           << found;
}

LogicalResult verify::shape(Operation *op, StringRef name, Type type, ArrayRef<int64_t> expected) {
  ArrayRef<int64_t> found = cast<RankedTensorType>(type).getShape();
  if (found == expected)
    return success();
  return op->emitOpError() << "expected " << name << " of shape " << text(expected) << " but found " << text(found);
}

LogicalResult verify::elementType(Operation *op, StringRef name, Type type, Type expected) {
  Type found = cast<RankedTensorType>(type).getElementType();
  if (found == expected)
    return success();
  return op->emitOpError() << "expected " << name << " of element type " << expected << " but found " << found;
}

LogicalResult verify::sameTensor(Operation *op, StringRef name, Type type, StringRef otherName, Type other) {
  auto found = cast<RankedTensorType>(type), expected = cast<RankedTensorType>(other);
  if (found.getShape() != expected.getShape())
    return op->emitOpError() << "expected " << name << " of the shape of " << otherName << ", "
                             << text(expected.getShape()) << ", but found " << text(found.getShape());
  if (found.getElementType() != expected.getElementType())
    return op->emitOpError() << "expected " << name << " of the element type of " << otherName << ", "
                             << expected.getElementType() << ", but found " << found.getElementType();
  return success();
}

LogicalResult verify::numeric(Operation *op, StringRef name, Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  if (isa<FloatType>(element) || (element.isSignlessInteger() && !element.isInteger(1)))
    return success();
  return op->emitOpError() << "expected " << name << " of floats or integers but found " << element
                           << "; convert it first";
}

LogicalResult verify::inRange(Operation *op, StringRef name, double value, double low, double high) {
  if (std::isfinite(value) && value >= low && value <= high)
    return success();
  InFlightDiagnostic error = op->emitOpError() << "expected " << name;
  if (std::isfinite(low) && std::isfinite(high))
    error << " in [" << low << ", " << high << "]";
  else if (std::isfinite(low))
    error << " to be finite and at least " << low;
  else
    error << " to be finite";
  return error << " but found " << value;
}
