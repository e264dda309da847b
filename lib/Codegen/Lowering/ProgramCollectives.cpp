//===- ProgramCollectives.cpp - Collectives on buffers ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A collective starts where its operands are ready; its wait comes before the first operation that touches its memory.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

namespace {

/// `a`, or `a, b and 3 more`.
std::string listOf(ArrayAttr names) {
  constexpr size_t shown = 2;
  std::string text;
  for (auto [index, name] : llvm::enumerate(names.getAsRange<StringAttr>())) {
    if (index == shown)
      return text + " and " + std::to_string(names.size() - shown) + " more";
    text += (index ? ", " : "") + name.str();
  }
  return text;
}

/// The runtime numbers a group's ranks in the order of the mesh, outer axes first.
LogicalResult checkAxisOrder(Operation *op, FlatSymbolRefAttr meshName, ArrayAttr axes) {
  auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(op, meshName);
  if (!mesh)
    return op->emitOpError("there is no nd.mesh named ") << meshName;
  const Attribute *next = axes.begin();
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    if (next != axes.end() && axis.getName() == *next)
      ++next;
  if (next == axes.end())
    return success();
  return op->emitOpError("axes ") << axes << " are not in the order of the mesh, " << mesh.getAxes()
                                  << "; a group in another order needs a permutation that is not built";
}

/// [outer, size, inner] of a tensor around one dimension.
SmallVector<int64_t, 3> aroundDim(RankedTensorType type, int64_t dim) {
  auto product = [](ArrayRef<int64_t> sizes) { return ShapedType::getNumElements(sizes); };
  return {product(type.getShape().take_front(dim)), type.getDimSize(dim), product(type.getShape().drop_front(dim + 1))};
}

} // namespace

void ProgramBuilder::startCollective(rt::CollectiveKind kind, ReductionKind reduction, Value source, Value target,
                                     ArrayAttr axes, StringRef name, StringRef reason, unsigned pendingStorage,
                                     bool isScalar) {
  auto start =
      rt::CollectiveStartOp::create(builder, loc, rt::EventType::get(builder.getContext()), kind, source, target, axes,
                                    static_cast<rt::Reduction>(reduction), builder.getStringAttr(name),
                                    reason.empty() ? StringAttr() : builder.getStringAttr(reason), isScalar);
  pending[pendingStorage] = start;
}

void ProgramBuilder::waitFor(unsigned storage) {
  auto *it = pending.find(storage);
  if (it == pending.end())
    return;
  rt::WaitOp::create(builder, loc, it->second);
  pending.erase(it);
}

LogicalResult ProgramBuilder::lowerAllReduce(AllReduceOp op) {
  SmallVector<Place> places;
  for (auto [input, result] : llvm::zip_equal(op.getInputs(), op.getResults())) {
    places.push_back(*assignment.find(result));
    if (failed(moveInto(input, places.back())))
      return failure();
  }
  bool isBucket = op.getNumResults() > 1 && llvm::all_of(places, [&](const Place &place) {
                    return !place.path.empty() && place.path.back().first == op;
                  });
  if (isBucket) {
    unsigned storage = places.front().storage;
    Value bucket = bufferAt(assignment.wholeOf(storage), assignment.getStorages()[storage].type);
    startCollective(rt::CollectiveKind::all_reduce, op.getKind(), bucket, bucket, op.getAxes(), listOf(op.getNames()),
                    op.getReason(), storage, /*isScalar=*/false);
    return success();
  }
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    Value buffer = target(result);
    startCollective(rt::CollectiveKind::all_reduce, op.getKind(), buffer, buffer, op.getAxes(),
                    cast<StringAttr>(op.getNames()[index]).getValue(), op.getReason(), places[index].storage,
                    tensorTypeOf(result).getRank() == 0);
  }
  return success();
}

LogicalResult ProgramBuilder::lowerAllGather(AllGatherOp op) {
  if (failed(checkAxisOrder(op, op.getMeshAttr(), op.getAxes())))
    return failure();
  FailureOr<Value> source = readContiguous(op.getInput());
  if (failed(source))
    return failure();
  RankedTensorType type = tensorTypeOf(op.getResult());
  Place result = *assignment.find(op.getResult());
  auto around = aroundDim(type, op.getDim());
  int64_t outer = around[0], inner = around[2], size = tensorTypeOf(op.getInput()).getDimSize(op.getDim());
  if (outer == 1) {
    startCollective(rt::CollectiveKind::all_gather, ReductionKind::sum, *source, target(op.getResult()), op.getAxes(),
                    op.getName(), op.getReason(), result.storage, /*isScalar=*/false);
    waitFor(result.storage);
    return success();
  }
  // Ranks' parts arrive one after the other: [ranks, outer, size, inner] is rearranged to [outer, ranks, size, inner].
  int64_t ranks = type.getDimSize(op.getDim()) / size;
  Place arrived = assignment.wholeOf(assignment.addTemporary(withShape(type, {ranks, outer, size, inner})));
  startCollective(rt::CollectiveKind::all_gather, ReductionKind::sum, *source,
                  bufferAt(arrived, withShape(type, {ranks, outer, size, inner})), op.getAxes(), op.getName(),
                  op.getReason(), arrived.storage, /*isScalar=*/false);
  std::swap(arrived.layout.strides[0], arrived.layout.strides[1]);
  RankedTensorType joined = withShape(type, {outer, ranks, size, inner});
  arrived.layout = normalized(joined.getShape(), std::move(arrived.layout));
  result.layout = *reshapeLayout(type.getShape(), result.layout, joined.getShape());
  return copy(arrived, result, joined);
}

LogicalResult ProgramBuilder::lowerReduceScatter(ReduceScatterOp op) {
  if (failed(checkAxisOrder(op, op.getMeshAttr(), op.getAxes())))
    return failure();
  FailureOr<Value> source = readContiguous(op.getInput());
  if (failed(source))
    return failure();
  RankedTensorType type = tensorTypeOf(op.getInput());
  auto around = aroundDim(type, op.getDim());
  int64_t outer = around[0], inner = around[2], size = tensorTypeOf(op.getResult()).getDimSize(op.getDim());
  Place result = *assignment.find(op.getResult());
  Value from = *source;
  if (outer != 1) {
    // The transport takes ranks' parts one after the other: [outer, ranks, size, inner] becomes [ranks, outer, size,
    // inner].
    int64_t ranks = type.getDimSize(op.getDim()) / size;
    RankedTensorType apart = withShape(type, {outer, ranks, size, inner});
    Place whole = *locate(op.getInput());
    whole.layout = *reshapeLayout(type.getShape(), whole.layout, apart.getShape());
    RankedTensorType sent = withShape(type, {ranks, outer, size, inner});
    Place leaving = assignment.wholeOf(assignment.addTemporary(sent));
    Place permuted = leaving;
    std::swap(permuted.layout.strides[0], permuted.layout.strides[1]);
    permuted.layout = normalized(apart.getShape(), std::move(permuted.layout));
    if (failed(copy(whole, permuted, apart)))
      return failure();
    from = bufferAt(leaving, sent);
  }
  startCollective(rt::CollectiveKind::reduce_scatter, op.getKind(), from, target(op.getResult()), op.getAxes(),
                  op.getName(), op.getReason(), result.storage, /*isScalar=*/false);
  waitFor(result.storage);
  return success();
}
