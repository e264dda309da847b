//===- CopyDecompositions.cpp - Sums over copies: definitions -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Both directions go through [before, shards, groups, units, unit, behind]: a unit counts where its group is this one.
// The sum over shards, or over groups, then has one summand that is not zero for each holder, so copies are exact.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "nd/Dialect/ND/IR/Copies.h"

using namespace mlir;
using namespace nd;

using Values = FailureOr<SmallVector<Value>>;

namespace {

class Copies {
public:
  template <typename CopiesOp>
  Copies(OpBuilder &builder, CopiesOp op, RankedTensorType stored, RankedTensorType summed)
      : emit(builder, op.getLoc()), stored(stored), summed(summed), units(op.getUnits()), groups(op.getGroups()),
        shardAxes(op.getShardAxesAttr()), unitAxes(op.getUnitAxesAttr()) {
    int64_t dim = op.getDim(), size = summed.getDimSize(dim + 1), unit = op.getUnit();
    shape = {llvm::product_of(stored.getShape().take_front(dim)),
             stored.getDimSize(dim) / size,
             summed.getDimSize(dim),
             size / unit,
             unit,
             llvm::product_of(stored.getShape().drop_front(dim + 1))};
  }

  Value sum(Value input) {
    Value spread = emit.broadcast(emit.reshape(input, without(kGroups)), shape, dimsWithout(kGroups));
    return emit.reshape(emit.sum(select(spread), {kShards}), summed.getShape());
  }

  Value make(Value input) {
    Value spread = emit.broadcast(emit.reshape(input, without(kShards)), shape, dimsWithout(kShards));
    return emit.reshape(emit.sum(select(spread), {kGroups}), stored.getShape());
  }

private:
  enum Dim : int64_t { kBefore, kShards, kGroups, kUnits, kUnit, kBehind };

  SmallVector<int64_t> without(Dim dim) const {
    SmallVector<int64_t> result(shape);
    result.erase(result.begin() + dim);
    return result;
  }
  static SmallVector<int64_t> dimsWithout(Dim dim) {
    SmallVector<int64_t> result = sequence(6);
    result.erase(result.begin() + dim);
    return result;
  }

  /// Groups of the units that this rank has, [shards, units].
  Value ownGroups() {
    OpBuilder &builder = emit.builder;
    Type integer = builder.getI64Type();
    SmallVector<int64_t> own = {shape[kShards], shape[kUnits]};
    if (!shardAxes && !unitAxes)
      return arith::ConstantOp::create(builder, emit.loc,
                                       DenseElementsAttr::get(RankedTensorType::get(own, integer), groups));
    auto places = [&](int64_t dim, ArrayAttr axes) {
      return IotaOp::create(builder, emit.loc, RankedTensorType::get(own, integer), dim, axes).getResult();
    };
    Value shard = places(0, shardAxes), unit = places(1, unitAxes);
    Value first = arith::MulIOp::create(builder, emit.loc, shard, intSplatLike(builder, emit.loc, shard, units));
    Value place = arith::AddIOp::create(builder, emit.loc, first, unit);
    auto tableType = RankedTensorType::get({static_cast<int64_t>(groups.size())}, integer);
    Value table = arith::ConstantOp::create(builder, emit.loc, DenseElementsAttr::get(tableType, groups));
    return TakeOp::create(builder, emit.loc, RankedTensorType::get(own, integer), table, place, IntegerAttr(),
                          ArrayAttr());
  }

  /// What is there for its group, and zeros.
  Value select(Value spread) {
    Value group = emit.broadcast(ownGroups(), shape, {kShards, kUnits});
    Value wanted = iota(emit.builder, emit.loc, emit.builder.getI64Type(), shape, kGroups);
    return emit.select(emit.compare(arith::CmpIPredicate::eq, group, wanted), spread, emit.number(0, spread));
  }

  Emitter emit;
  RankedTensorType stored, summed;
  int64_t units;
  ArrayRef<int64_t> groups;
  ArrayAttr shardAxes, unitAxes;
  SmallVector<int64_t> shape;
};

} // namespace

Values SumCopiesOp::decompose(OpBuilder &builder) {
  return SmallVector<Value>{Copies(builder, *this, getInput().getType(), getType()).sum(getInput())};
}

Values MakeCopiesOp::decompose(OpBuilder &builder) {
  return SmallVector<Value>{Copies(builder, *this, getType(), getInput().getType()).make(getInput())};
}
