//===- Partition.cpp - From the global view to one rank -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "MeshView.h"
#include "Program.h"
#include "Reshard/ReshardPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "nd/Dialect/ND/IR/Copies.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/IR/Signature.h"
#include "nd/Sharding/Passes.h"

namespace nd {
#define GEN_PASS_DEF_PARTITION
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Rewrites the function in place, operation by operation, so that operands are local when their operation is reached.
class Partitioner {
public:
  Partitioner(Program &program) : program(program), mesh(program.mesh), planner(mesh.getSizes(), Cuts::Even) {}

  LogicalResult run() {
    if (failed(describeBoundary()) || failed(readReshards()))
      return failure();
    for (BlockArgument argument : program.getBody().getArguments())
      if (failed(localize(argument, program.function)))
        return failure();
    for (Operation &op : llvm::make_early_inc_range(program.getBody().without_terminator()))
      if (failed(visit(&op)))
        return failure();
    program.function.setFunctionType(FunctionType::get(
        program.function.getContext(), program.getBody().getArgumentTypes(), program.getReturn()->getOperandTypes()));
    return success();
  }

private:
  /// What the runtime needs to know of arguments and results, before types become local.
  LogicalResult describeBoundary() {
    func::FuncOp function = program.function;
    Builder builder(function.getContext());
    SignatureAttrs attributes(function);
    // A padded tensor has its logical shape already.
    for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
      if (!attributes.getArg(index, names::kGlobalShape))
        attributes.setArg(index, names::kGlobalShape,
                          builder.getDenseI64ArrayAttr(cast<RankedTensorType>(type).getShape()));
    for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands())) {
      auto sharding = dyn_cast_or_null<ShardingAttr>(typeOf(value).getEncoding());
      if (!sharding || sharding.isUnreduced())
        return function.emitError() << describeResult(function, index) << " leaves the function "
                                    << (sharding ? "unreduced" : "without a sharding")
                                    << "; run nd-insert-reshards first";
      attributes.setResult(index, names::kSharding, sharding);
      if (!attributes.getResult(index, names::kGlobalShape))
        attributes.setResult(index, names::kGlobalShape, builder.getDenseI64ArrayAttr(typeOf(value).getShape()));
    }
    return success();
  }

  LogicalResult readReshards() {
    for (Operation &op : program.getBody())
      if (isa<SumCopiesOp, MakeCopiesOp>(op) && failed(readCopies(&op)))
        return failure();
    for (auto take : program.getBody().getOps<TakeOp>()) {
      FailureOr<TensorSharding> sharding = mesh.fromType(take.getTable(), take);
      if (failed(sharding))
        return failure();
      tableAxes[take] = sharding->dims[0];
    }
    for (auto reshard : program.getBody().getOps<ReshardOp>()) {
      FailureOr<TensorSharding> from = mesh.fromType(reshard.getInput(), reshard);
      FailureOr<TensorSharding> to = mesh.fromType(reshard.getResult(), reshard);
      if (failed(from) || failed(to))
        return failure();
      reshards[reshard] = {*from, *to};
    }
    return success();
  }

  /// The axes over which a rank has some of the shards of a stored dimension, and those over which it has some of the
  /// places in each.
  LogicalResult readCopies(Operation *op) {
    bool isSum = isa<SumCopiesOp>(op);
    FailureOr<TensorSharding> stored = mesh.fromType(isSum ? op->getOperand(0) : op->getResult(0), op);
    FailureOr<TensorSharding> summed = mesh.fromType(isSum ? op->getResult(0) : op->getOperand(0), op);
    if (failed(stored) || failed(summed))
      return failure();
    auto dim = op->getAttrOfType<IntegerAttr>("dim").getInt();
    const AxisList &all = stored->dims[dim], &places = summed->dims[dim + 1];
    copiesAxes[op] = {AxisList(ArrayRef<unsigned>(all).drop_back(places.size())), places};
    return success();
  }

  LogicalResult visit(Operation *op) {
    if (auto reshard = dyn_cast<ReshardOp>(op))
      return partition(reshard);
    if (auto scale = dyn_cast<ScaleOp>(op))
      return partition(scale);
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      return partition(constant);
    if (auto attention = dyn_cast<AttentionOp>(op); attention && failed(place(attention, attention.getResult())))
      return failure();
    if (auto gradient = dyn_cast<AttentionGradOp>(op); gradient && failed(place(gradient, gradient.getQueryGrad())))
      return failure();
    if (failed(markShards(op)))
      return failure();
    // By its rule an operation on shards is the same operation: dimensions that it does not treat alike are whole.
    for (Value result : op->getResults())
      if (failed(localize(result, op)))
        return failure();
    return success();
  }

  /// Says to attention which part of the sequence and of the heads this rank has: visibility depends on places.
  template <typename AttentionLike> LogicalResult place(AttentionLike op, Value likeQuery) {
    FailureOr<TensorSharding> sharding = mesh.fromType(likeQuery, op);
    if (failed(sharding))
      return failure();
    const AxisList &heads = sharding->dims[1], &sequence = sharding->dims[2];
    if (!heads.empty() && op.getKvMap())
      op.setHeadAxesAttr(mesh.toArray(heads));
    if (sequence.empty())
      return success();
    op.setSeqAxesAttr(mesh.toArray(sequence));
    if (op.isRing()) // queries and keys are shards of one sequence
      op.setKeyShards(numShards(mesh.getSizes(), sequence));
    return success();
  }

  /// Operations that know places along a dimension learn that they have a shard of it.
  LogicalResult markShards(Operation *op) {
    if (isa<TakeOp>(op)) {
      setShardAxes(op, tableAxes.lookup(op));
      return success();
    }
    if (auto it = copiesAxes.find(op); it != copiesAxes.end()) {
      setShardAxes(op, it->second.first);
      setShardAxes(op, it->second.second, "unit_axes");
      return success();
    }
    Value tensor;
    int64_t dim = 0;
    if (auto iota = dyn_cast<IotaOp>(op))
      tensor = iota.getResult(), dim = iota.getDim();
    else if (auto scatter = dyn_cast<ScatterAddOp>(op))
      tensor = scatter.getResult();
    else
      return success();
    FailureOr<TensorSharding> sharding = mesh.fromType(tensor, op);
    if (failed(sharding))
      return failure();
    setShardAxes(op, sharding->dims[dim]);
    return success();
  }

  void setShardAxes(Operation *op, const AxisList &axes, StringRef name = "shard_axes") {
    if (!axes.empty())
      op->setAttr(name, mesh.toArray(axes));
  }

  LogicalResult localize(Value value, Operation *op) {
    FailureOr<TensorSharding> sharding = mesh.fromType(value, op);
    if (failed(sharding))
      return failure();
    value.setType(localType(typeOf(value), *sharding));
    return success();
  }

  RankedTensorType localType(RankedTensorType type, const TensorSharding &sharding) const {
    return RankedTensorType::get(mesh.localShape(type.getShape(), sharding), type.getElementType());
  }

  LogicalResult partition(arith::ConstantOp constant) {
    FailureOr<TensorSharding> sharding = mesh.fromType(constant.getResult(), constant);
    if (failed(sharding))
      return failure();
    RankedTensorType global = typeOf(constant.getResult()), local = localType(global, *sharding);
    constant.getResult().setType(local);
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue())) {
      // Its rule lets no dimension be sharded.
      constant.setValueAttr(DenseResourceElementsAttr::get(local, resource.getRawHandle()));
      return success();
    }
    auto elements = cast<DenseElementsAttr>(constant.getValue());
    constant.setValueAttr(elements.isSplat() ? elements.resizeSplat(local) : firstShard(elements, local));
    return success();
  }

  /// Along a sharded dimension all elements are equal, so the first shard is every shard.
  DenseElementsAttr firstShard(DenseElementsAttr elements, RankedTensorType local) {
    if (elements.getType().getShape() == local.getShape())
      return elements.reshape(local);
    ArrayRef<int64_t> globalShape = elements.getType().getShape();
    auto values = elements.getValues<Attribute>();
    SmallVector<Attribute> shard;
    SmallVector<int64_t> index(local.getRank(), 0);
    for (int64_t count = 0; count < local.getNumElements(); ++count) {
      int64_t linear = 0;
      for (auto [position, size] : llvm::zip_equal(index, globalShape))
        linear = linear * size + position;
      shard.push_back(values[linear]);
      for (int64_t dim = local.getRank() - 1; dim >= 0 && ++index[dim] == local.getDimSize(dim); --dim)
        index[dim] = 0;
    }
    return DenseElementsAttr::get(local, shard);
  }

  LogicalResult partition(ScaleOp scale) {
    OpBuilder builder(scale);
    auto local = typeOf(scale.getInput());
    Value factor = scale.getFactor();
    if (local.getRank() != 0)
      factor = BroadcastOp::create(builder, scale.getLoc(), local, factor, ArrayRef<int64_t>());
    scale.getResult().replaceAllUsesWith(arith::MulFOp::create(builder, scale.getLoc(), scale.getInput(), factor));
    scale.erase();
    return success();
  }

  LogicalResult partition(ReshardOp reshard) {
    const auto &[from, to] = reshards.find(reshard)->second;
    Value value = reshard.getInput();
    ArrayRef<int64_t> shape = typeOf(reshard.getResult()).getShape();
    for (const ReshardStep &step : planner.plan(shape, from, to)) {
      value = createCollective(reshard, value, shape, step);
      value.getDefiningOp()->setDiscardableAttrs(reshard->getDiscardableAttrDictionary());
    }
    reshard.getResult().replaceAllUsesWith(value);
    reshard.erase();
    return success();
  }

  Value createCollective(ReshardOp reshard, Value value, ArrayRef<int64_t> shape, const ReshardStep &step) {
    OpBuilder builder(reshard);
    Location loc = reshard.getLoc();
    ArrayAttr axes = mesh.toArray(step.axes);
    auto type = RankedTensorType::get(mesh.localShape(shape, step.after), typeOf(value).getElementType());
    int64_t instance = nextInstance++;
    StringRef symbol = mesh.getSymbol().getValue(), reason = reshard.getReason(), name = reshard.getName();
    ArrayAttr names = builder.getStrArrayAttr(name);
    switch (step.kind) {
    case ReshardStep::Kind::AllSlice:
      return AllSliceOp::create(builder, loc, type, value, symbol, axes, instance, reason, step.dim, name);
    case ReshardStep::Kind::Permute:
      return PermuteOp::create(builder, loc, value, symbol, axes, instance, reason, step.sources, name,
                               mesh.toAttr(step.before), mesh.toAttr(step.after));
    case ReshardStep::Kind::AllToAll:
      return AllToAllOp::create(builder, loc, type, value, symbol, axes, instance, reason, step.dim, step.concatDim,
                                name);
    case ReshardStep::Kind::AllGather:
      return AllGatherOp::create(builder, loc, TypeRange(type), value, symbol, axes, instance, reason, step.dim, names)
          .getResult(0);
    case ReshardStep::Kind::ReduceScatter:
      return ReduceScatterOp::create(builder, loc, TypeRange(type), step.reduction, value, symbol, axes, instance,
                                     reason, step.dim, names)
          .getResult(0);
    case ReshardStep::Kind::AllReduce:
      return AllReduceOp::create(builder, loc, step.reduction, value, symbol, axes, instance, reason, names)
          .getResult(0);
    }
    llvm_unreachable("unknown kind of step");
  }

  Program &program;
  MeshView mesh;
  ReshardPlanner planner;
  /// From what to what, read while the operands' types still said it.
  DenseMap<Operation *, std::pair<TensorSharding, TensorSharding>> reshards;
  DenseMap<Operation *, AxisList> tableAxes;                       ///< what shards the rows of a table, by its lookup
  DenseMap<Operation *, std::pair<AxisList, AxisList>> copiesAxes; ///< of sums over copies: shards, and places in one
  int64_t nextInstance = 1;
};

struct Partition : nd::impl::PartitionBase<Partition> {
  void runOnOperation() override {
    FailureOr<Program> program = Program::getWithMesh(getOperation());
    if (failed(program) || failed(Partitioner(*program).run()))
      signalPassFailure();
  }
};

} // namespace
