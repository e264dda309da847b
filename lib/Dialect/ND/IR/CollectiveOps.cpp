//===- CollectiveOps.cpp - Meshes, reshards and collectives: verifiers ----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDCollectiveOps.cpp.inc"

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

MeshAxisAttr MeshOp::findAxis(StringAttr name) {
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    if (axis.getName() == name)
      return axis;
  return {};
}

int64_t MeshOp::getNumRanks() {
  int64_t ranks = 1;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    ranks *= axis.getSize();
  return ranks;
}

LogicalResult MeshOp::verify() {
  llvm::SmallPtrSet<Attribute, 8> names;
  std::optional<int64_t> ranks = 1;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>()) {
    if (!names.insert(axis.getName()).second)
      return emitOpError() << "names axis " << axis.getName() << " twice";
    if (ranks)
      ranks = llvm::checkedMul(*ranks, axis.getSize());
  }
  if (!ranks)
    return emitOpError() << "has more ranks than fit in 64 bits";
  return success();
}

//===----------------------------------------------------------------------===//
// ReshardOp, ScaleOp
//===----------------------------------------------------------------------===//

LogicalResult ReshardOp::verify() {
  auto from = dyn_cast_or_null<ShardingAttr>(getInput().getType().getEncoding());
  auto to = dyn_cast_or_null<ShardingAttr>(getResult().getType().getEncoding());
  if (!from || !to)
    return emitOpError() << "expected a #nd.sharding on the types of operand and result";
  if (from.getMesh() != to.getMesh())
    return emitOpError() << "cannot move a tensor from mesh " << from.getMesh() << " to " << to.getMesh();
  for (StringAttr axis : to.getUnreducedAxes())
    if (!llvm::is_contained(from.getUnreducedAxes(), axis))
      return emitOpError() << "result is unreduced over axis " << axis << " but the operand is not; a reshard can only "
                           << "reduce";
  if (to.isUnreduced() && to.getKind() != from.getKind())
    return emitOpError() << "changes the reduction of an unreduced tensor from "
                         << stringifyReductionKind(from.getKind()) << " to " << stringifyReductionKind(to.getKind());
  return success();
}

LogicalResult ScaleOp::verify() {
  auto factor = cast<RankedTensorType>(getFactor().getType());
  if (failed(verify::rank(*this, "factor", factor, 0, "a number")))
    return failure();
  return verify::elementType(*this, "factor", factor, getInput().getType().getElementType());
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {

/// The number of ranks in a group, after checks of the mesh and the axes.
FailureOr<int64_t> verifyGroup(Operation *op, FlatSymbolRefAttr meshName, ArrayAttr axes,
                               SymbolTableCollection &symbols) {
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(op, meshName);
  if (!mesh)
    return op->emitOpError() << "refers to " << meshName << ", which is no nd.mesh of this module";
  if (axes.empty())
    return op->emitOpError() << "needs at least one axis of " << meshName;
  llvm::SmallPtrSet<Attribute, 8> used;
  int64_t size = 1;
  for (auto name : axes.getAsRange<StringAttr>()) {
    MeshAxisAttr axis = mesh.findAxis(name);
    if (!axis) {
      InFlightDiagnostic diagnostic = op->emitOpError() << "axis " << name << " is not in mesh " << meshName;
      diagnostic.attachNote(mesh.getLoc()) << "its axes are " << mesh.getAxes();
      return diagnostic;
    }
    if (!used.insert(name).second)
      return op->emitOpError() << "names axis " << name << " twice";
    size *= axis.getSize();
  }
  return size;
}

/// `whole` equals `part` but for dimension `dim`, which is `ranks` times as large.
LogicalResult verifyShard(Operation *op, StringRef wholeName, RankedTensorType whole, RankedTensorType part,
                          int64_t dim, int64_t ranks) {
  if (failed(verify::dimInRange(op, "dim", dim, part.getRank())))
    return failure();
  SmallVector<int64_t> expected(part.getShape());
  std::optional<int64_t> size = llvm::checkedMul(expected[dim], ranks);
  if (!size)
    return op->emitOpError() << "size of dimension " << dim << " does not fit in 64 bits";
  expected[dim] = *size;
  return verify::shape(op, wholeName, whole, expected);
}

} // namespace

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  llvm::append_range(results, operands.getTypes());
  return success();
}

int64_t AllReduceOp::getPayloadBytes() {
  int64_t bits = 0;
  for (Value input : getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    bits += type.getNumElements() * std::max<int64_t>(8, type.getElementTypeBitWidth());
  }
  return bits / 8;
}

LogicalResult AllReduceOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "needs an operand";
  if (getNames().size() != getInputs().size())
    return emitOpError() << "expected one name per operand but found " << getNames().size() << " for "
                         << getInputs().size();
  Type elementType = cast<RankedTensorType>(getInputs().front().getType()).getElementType();
  for (Value input : getInputs())
    if (failed(verify::elementType(*this, "every operand", input.getType(), elementType)))
      return failure();
  return success();
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks = verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
  if (failed(ranks))
    return failure();
  return verifyShard(*this, "result", getResult().getType(), getInput().getType(), getDim(), *ranks);
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks = verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
  if (failed(ranks))
    return failure();
  return verifyShard(*this, "operand", getInput().getType(), getResult().getType(), getDim(), *ranks);
}
