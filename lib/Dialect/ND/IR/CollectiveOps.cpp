//===- CollectiveOps.cpp - Meshes, reshards and collectives: verifiers ----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/CheckedArithmetic.h"
#include <numeric>

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

std::string MeshOp::getGroupLabel(ArrayAttr axes) {
  // Parts of a split axis follow each other in the mesh; those of size 1 tell no ranks apart.
  auto wholeName = [](MeshAxisAttr axis) {
    auto [name, part] = axis.getName().getValue().rsplit('.');
    int64_t number;
    return part.getAsInteger(10, number) ? axis.getName().getValue() : name;
  };
  auto parts = llvm::filter_to_vector(getAxes().getAsRange<MeshAxisAttr>(),
                                      [](MeshAxisAttr axis) { return axis.getSize() > 1; });
  auto isUsed = [&](MeshAxisAttr axis) { return llvm::is_contained(axes, Attribute(axis.getName())); };
  std::string label;
  auto add = [&](const Twine &name) { label += ((label.empty() ? "" : "+") + name).str(); };
  for (auto *begin = parts.begin(), *end = begin; begin != parts.end(); begin = end) {
    end = std::find_if(begin, parts.end(), [&](MeshAxisAttr axis) { return wholeName(axis) != wholeName(*begin); });
    auto *used = std::find_if(begin, end, isUsed);
    bool isTail = std::all_of(used, end, isUsed);
    if (used == begin && isTail)
      add(wholeName(*begin));
    else if (used != end && isTail)
      add(wholeName(*begin) + "[" +
          Twine(std::accumulate(used, end, int64_t(1),
                                [](int64_t size, MeshAxisAttr axis) { return size * axis.getSize(); })) +
          "]");
    else
      for (MeshAxisAttr axis : llvm::make_filter_range(llvm::make_range(used, end), isUsed))
        add(axis.getName().getValue());
  }
  return label;
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
  if (static_cast<int64_t>(getNodes()) < 1 || *ranks % static_cast<int64_t>(getNodes()) != 0)
    return emitOpError() << "has " << *ranks << " ranks, which do not fill " << static_cast<int64_t>(getNodes())
                         << " nodes evenly";
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
LogicalResult verifyShard(Operation *op, StringRef wholeName, Type whole, RankedTensorType part, StringRef dimName,
                          int64_t dim, int64_t ranks) {
  if (failed(verify::dimInRange(op, dimName, dim, part.getRank())))
    return failure();
  SmallVector<int64_t> expected(part.getShape());
  std::optional<int64_t> size = llvm::checkedMul(expected[dim], ranks);
  if (!size)
    return op->emitOpError() << "size of dimension " << dim << " does not fit in 64 bits";
  expected[dim] = *size;
  return verify::shape(op, wholeName, whole, expected);
}

/// One name per operand, and one element type.
LogicalResult verifyOperands(Operation *op, ValueRange inputs, ArrayAttr names) {
  if (inputs.empty())
    return op->emitOpError() << "needs an operand";
  if (names.size() != inputs.size())
    return op->emitOpError() << "expected one name per operand but found " << names.size() << " for " << inputs.size();
  Type elementType = cast<RankedTensorType>(inputs.front().getType()).getElementType();
  for (Value input : inputs)
    if (failed(verify::elementType(op, "every operand", input.getType(), elementType)))
      return failure();
  return success();
}

/// Besides, one result and one dimension per operand, and its element type.
template <typename OpTy> LogicalResult verifyShardedOperands(OpTy op) {
  if (failed(verifyOperands(op, op.getInputs(), op.getNames())))
    return failure();
  size_t operands = op.getInputs().size();
  if (op.getResults().size() != operands)
    return op.emitOpError() << "expected one result per operand but found " << op.getResults().size() << " for "
                            << operands;
  if (op.getDims().size() != operands)
    return op.emitOpError() << "expected one dimension per operand but found " << op.getDims().size() << " for "
                            << operands;
  for (auto [input, result] : llvm::zip_equal(op.getInputs(), op.getResults()))
    if (failed(verify::elementType(op, "result", result.getType(),
                                   cast<RankedTensorType>(input.getType()).getElementType())))
      return failure();
  return success();
}

int64_t payloadBytes(ValueRange tensors) {
  int64_t bytes = 0;
  for (Value tensor : tensors) {
    auto type = cast<RankedTensorType>(tensor.getType());
    bytes += type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return bytes;
}

} // namespace

//===----------------------------------------------------------------------===//
// AllReduceOp, AllGatherOp, ReduceScatterOp
//===----------------------------------------------------------------------===//

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  llvm::append_range(results, operands.getTypes());
  return success();
}

int64_t AllReduceOp::getPayloadBytes() { return payloadBytes(getInputs()); }
int64_t AllGatherOp::getPayloadBytes() { return payloadBytes(getResults()); }
int64_t ReduceScatterOp::getPayloadBytes() { return payloadBytes(getInputs()); }

LogicalResult AllReduceOp::verify() { return verifyOperands(*this, getInputs(), getNames()); }
LogicalResult AllGatherOp::verify() { return verifyShardedOperands(*this); }
LogicalResult ReduceScatterOp::verify() { return verifyShardedOperands(*this); }

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks = verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
  if (failed(ranks))
    return failure();
  for (auto [input, result, dim] : llvm::zip_equal(getInputs(), getResults(), getDims()))
    if (failed(verifyShard(*this, "result", result.getType(), cast<RankedTensorType>(input.getType()), "dim", dim,
                           *ranks)))
      return failure();
  return success();
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks = verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
  if (failed(ranks))
    return failure();
  for (auto [input, result, dim] : llvm::zip_equal(getInputs(), getResults(), getDims()))
    if (failed(verifyShard(*this, "operand", input.getType(), cast<RankedTensorType>(result.getType()), "dim", dim,
                           *ranks)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// AllToAllOp, PermuteOp, AllSliceOp
//===----------------------------------------------------------------------===//

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks = verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
  RankedTensorType type = getInput().getType();
  int64_t split = getSplitDim(), concat = getConcatDim();
  if (failed(ranks) || failed(verify::dimInRange(*this, "split_dim", split, type.getRank())) ||
      failed(verify::dimInRange(*this, "concat_dim", concat, type.getRank())))
    return failure();
  if (split == concat)
    return emitOpError() << "split_dim and concat_dim are both " << split << "; use nd.permute to move shards of one "
                         << "dimension";
  if (type.getDimSize(split) % *ranks != 0)
    return emitOpError() << "cuts dimension " << split << " of size " << type.getDimSize(split) << " into " << *ranks
                         << " parts";
  SmallVector<int64_t> part(type.getShape());
  part[split] /= *ranks;
  return verifyShard(*this, "result", getResult().getType(), type.clone(part), "concat_dim", concat, *ranks);
}

LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks = verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
  if (failed(ranks))
    return failure();
  if (static_cast<int64_t>(getSources().size()) != *ranks)
    return emitOpError() << "expected one source for each of " << *ranks << " positions but found "
                         << getSources().size();
  llvm::SmallBitVector used(*ranks);
  for (int64_t source : getSources()) {
    if (source < 0 || source >= *ranks)
      return emitOpError() << "expected sources in [0, " << *ranks << ") but found " << source;
    if (used.test(source))
      return emitOpError() << "sends position " << source << " twice; sources are a permutation";
    used.set(source);
  }
  if (getBefore().has_value() != getAfter().has_value())
    return emitOpError() << "expected both shardings, before and after, or none";
  for (std::optional<ShardingAttr> sharding : {getBefore(), getAfter()})
    if (sharding && sharding->getRank() != getInput().getType().getRank())
      return emitOpError() << "names a sharding of " << sharding->getRank() << " dimensions, but the tensor has "
                           << getInput().getType().getRank();
  return success();
}

LogicalResult AllSliceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<int64_t> ranks = verifyGroup(*this, getMeshAttr(), getAxes(), symbols);
  if (failed(ranks))
    return failure();
  return verifyShard(*this, "operand", getInput().getType(), getResult().getType(), "dim", getDim(), *ranks);
}
