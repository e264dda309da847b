//===- LowerShardAxes.cpp - Places of a shard, from coordinates -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Copies.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Sharding/Passes.h"

namespace nd {
#define GEN_PASS_DEF_LOWERSHARDAXES
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

class Lowering {
public:
  Lowering(Program &program) : program(program) {}

  LogicalResult run() {
    // Their definitions ask for places of shards.
    for (Operation &op : llvm::make_early_inc_range(program.getBody().without_terminator()))
      if (isa<SumCopiesOp, MakeCopiesOp>(op) && failed(replaceByDefinition(&op)))
        return failure();
    for (Operation &op : llvm::make_early_inc_range(program.getBody().without_terminator())) {
      if (auto part = dyn_cast<AsPartialOp>(op)) {
        lower(part);
        continue;
      }
      auto axes = op.getAttrOfType<ArrayAttr>("shard_axes");
      if (!axes)
        continue;
      if (failed(checkAxes(&op, axes)))
        return failure();
      if (auto iota = dyn_cast<IotaOp>(op))
        lower(iota, axes);
      else if (auto take = dyn_cast<TakeOp>(op))
        lower(take, axes);
      else if (auto scatter = dyn_cast<ScatterAddOp>(op))
        lower(scatter, axes);
    }
    return success();
  }

private:
  static LogicalResult replaceByDefinition(Operation *op) {
    OpBuilder builder(op);
    FailureOr<SmallVector<Value>> values = cast<DecomposableOpInterface>(op).decompose(builder);
    if (failed(values))
      return failure();
    op->replaceAllUsesWith(*values);
    op->erase();
    return success();
  }

  LogicalResult checkAxes(Operation *op, ArrayAttr axes) {
    if (!program.mesh)
      return op->emitOpError() << "is a shard over " << axes << ", but the module has no nd.mesh";
    for (auto name : axes.getAsRange<StringAttr>())
      if (!program.mesh.findAxis(name))
        return op->emitOpError() << "is a shard over axis " << name << ", which mesh @" << program.mesh.getSymName()
                                 << " does not have";
    return success();
  }

  /// This rank's coordinate along an axis, an argument that the runtime fills.
  Value coordinate(StringAttr axis) {
    func::FuncOp function = program.function;
    if (std::optional<unsigned> index = names::findArg(function, names::kind::kCoordinate, axis))
      return function.getArgument(*index);
    unsigned index = function.getNumArguments();
    auto type = RankedTensorType::get({}, IntegerType::get(function.getContext(), 64));
    (void)function.insertArgument(index, type, {}, function.getLoc()); // appending to a body cannot fail
    names::setArg(function, index, names::kind::kCoordinate, axis);
    return function.getArgument(index);
  }

  /// Index of the first of `size` elements of this rank, 0-d.
  Value offset(OpBuilder &builder, Location loc, ArrayAttr axes, int64_t size) {
    Value position;
    for (auto name : axes.getAsRange<StringAttr>()) {
      Value own = coordinate(name);
      if (position) {
        Value parts = intSplatLike(builder, loc, position, program.mesh.findAxis(name).getSize());
        own = arith::AddIOp::create(builder, loc, arith::MulIOp::create(builder, loc, position, parts), own);
      }
      position = own;
    }
    return arith::MulIOp::create(builder, loc, position, intSplatLike(builder, loc, position, size));
  }

  void lower(AsPartialOp part) {
    OpBuilder builder(part);
    Value share = splatLike(builder, part.getLoc(), part.getInput(), 1.0 / static_cast<double>(part.getParts()));
    part.getResult().replaceAllUsesWith(arith::MulFOp::create(builder, part.getLoc(), part.getInput(), share));
    part.erase();
  }

  void lower(IotaOp iota, ArrayAttr axes) {
    OpBuilder builder(iota);
    Location loc = iota.getLoc();
    auto type = tensorTypeOf(iota.getResult());
    Value first = offset(builder, loc, axes, type.getDimSize(iota.getDim()));
    if (type.getElementTypeBitWidth() < 64)
      first = arith::TruncIOp::create(builder, loc, RankedTensorType::get({}, type.getElementType()), first);
    Value local = nd::iota(builder, loc, type.getElementType(), type.getShape(), iota.getDim());
    Value global = arith::AddIOp::create(builder, loc, local, broadcastScalar(builder, loc, first, type.getShape()));
    iota.getResult().replaceAllUsesWith(global);
    iota.erase();
  }

  struct LocalIndices {
    Value indices; ///< 0 where the row is another rank's
    Value isOwn;
  };
  LocalIndices localize(OpBuilder &builder, Location loc, Value indices, ArrayAttr axes, int64_t rows) {
    auto type = tensorTypeOf(indices);
    Value first = offset(builder, loc, axes, rows);
    if (type.getElementTypeBitWidth() < 64)
      first = arith::TruncIOp::create(builder, loc, RankedTensorType::get({}, type.getElementType()), first);
    Value local = arith::SubIOp::create(builder, loc, indices, broadcastScalar(builder, loc, first, type.getShape()));
    Value zero = intSplatLike(builder, loc, local, 0);
    Value above = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, local, zero);
    Value below =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, local, intSplatLike(builder, loc, local, rows));
    Value isOwn = arith::AndIOp::create(builder, loc, above, below);
    return {select(builder, loc, isOwn, local, zero), isOwn};
  }

  /// `value` where the index in front of it is of this rank, else zero.
  Value keepOwn(OpBuilder &builder, Location loc, Value isOwn, Value value) {
    Value spread =
        broadcastTo(builder, loc, isOwn, tensorTypeOf(value).getShape(), sequence(tensorTypeOf(isOwn).getRank()));
    return select(builder, loc, spread, value, splatLike(builder, loc, value, 0.0));
  }

  void lower(TakeOp take, ArrayAttr axes) {
    OpBuilder builder(take);
    Location loc = take.getLoc();
    LocalIndices local = localize(builder, loc, take.getIndices(), axes, tensorTypeOf(take.getTable()).getDimSize(0));
    Value rows =
        TakeOp::create(builder, loc, take.getType(), take.getTable(), local.indices, IntegerAttr(), ArrayAttr());
    take.getResult().replaceAllUsesWith(keepOwn(builder, loc, local.isOwn, rows));
    take.erase();
  }

  void lower(ScatterAddOp scatter, ArrayAttr axes) {
    OpBuilder builder(scatter);
    Location loc = scatter.getLoc();
    LocalIndices local =
        localize(builder, loc, scatter.getIndices(), axes, tensorTypeOf(scatter.getResult()).getDimSize(0));
    // The padding row is a global index.
    if (std::optional<uint64_t> padding = scatter.getPaddingIdx()) {
      Value counts = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, scatter.getIndices(),
                                           intSplatLike(builder, loc, scatter.getIndices(), *padding));
      local.isOwn = arith::AndIOp::create(builder, loc, local.isOwn, counts);
    }
    Value updates = keepOwn(builder, loc, local.isOwn, scatter.getUpdates());
    Value result = ScatterAddOp::create(builder, loc, scatter.getType(), local.indices, updates, scatter.getInit(),
                                        IntegerAttr(), ArrayAttr());
    scatter.getResult().replaceAllUsesWith(result);
    scatter.erase();
  }

  Program &program;
};

struct LowerShardAxes : nd::impl::LowerShardAxesBase<LowerShardAxes> {
  void runOnOperation() override {
    FailureOr<Program> program = Program::get(getOperation());
    if (failed(program) || failed(Lowering(*program).run()))
      signalPassFailure();
  }
};

} // namespace
