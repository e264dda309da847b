//===- LocalVerifier.cpp - States of a rank's program, followed -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify/LocalVerifier.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isCollective(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp, AllSliceOp>(op);
}

/// The dimension that the axis shards, if any.
std::optional<int64_t> dimShardedOver(const TensorSharding &sharding, unsigned axis) {
  for (auto [dim, axes] : llvm::enumerate(sharding.dims))
    if (llvm::is_contained(axes, axis))
      return dim;
  return std::nullopt;
}

} // namespace

std::string LocalVerifier::State::str() const {
  switch (kind) {
  case Kind::Same:
    return "equal on all ranks";
  case Kind::Shard: {
    std::string text = "sharded in dimension ";
    llvm::interleave(dims.set_bits(), [&](unsigned dim) { text += std::to_string(dim); }, [&] { text += " or "; });
    if (copies != Copies::None)
      text += copies == Copies::Equal ? ", some shards copies of others" : ", some shards parts of one sum";
    return shift ? text + ", each rank with the shard of the one " + std::to_string(shift) + " before it" : text;
  }
  case Kind::Partial:
    return "a partial " + stringifyReductionKind(reduction).str();
  case Kind::Unknown:
    return "in an unknown state";
  }
  llvm_unreachable("unknown kind of state");
}

InFlightDiagnostic LocalVerifier::error(Operation *op, unsigned axis) {
  return op->emitError() << "along " << mesh.str({axis}) << ": ";
}

LogicalResult LocalVerifier::verifyInstance(Operation *op) {
  int64_t instance = op->getAttrOfType<IntegerAttr>("instance").getInt();
  auto [it, inserted] = instances.try_emplace(instance, op);
  if (inserted)
    return success();
  InFlightDiagnostic diagnostic = op->emitError()
                                  << "two collectives have instance " << instance << "; CSE could merge them";
  diagnostic.attachNote(it->second->getLoc()) << "the other one is here";
  return diagnostic;
}

FailureOr<TensorSharding> LocalVerifier::readBoundary(ShardingAttr attr, DenseI64ArrayAttr global,
                                                      RankedTensorType local, DictionaryAttr attributes,
                                                      const std::string &tensor) {
  auto emitError = [&] { return program.function.emitError(); };
  if (attr.getRank() != local.getRank() || global.size() != local.getRank())
    return emitError() << tensor << " has local type " << local << ", which does not fit its nd.global_shape and "
                       << attr;
  SmallVector<int64_t> padded(local.getShape());
  for (auto [dim, size] : llvm::enumerate(padded))
    for (StringAttr name : attr.getDimAxes(dim))
      if (MeshAxisAttr axis = program.mesh.findAxis(name))
        size *= axis.getSize();
  // Where blocks, chunks or copies say what a shard holds, there may be padding behind the logical size.
  bool mayPad = attributes && (attributes.contains(names::kBlocks) || attributes.contains(names::kChunks) ||
                               attributes.contains(names::kCopies));
  for (auto [size, logical] : llvm::zip_equal(padded, global.asArrayRef()))
    if (mayPad ? size < logical : size != logical)
      return emitError() << tensor << " has local type " << local << ", which is no shard of its nd.global_shape by "
                         << attr;
  return mesh.fromAttr(attr, padded, tensor, emitError);
}

LogicalResult LocalVerifier::readBoundaries() {
  func::FuncOp function = program.function;
  auto read = [&](ShardingAttr attr, DenseI64ArrayAttr global, Type local, DictionaryAttr attributes,
                  const std::string &tensor, std::vector<TensorSharding> &shardings) -> LogicalResult {
    if (!attr || !global)
      return function.emitError() << tensor << " has no nd.sharding and nd.global_shape; run nd-partition first";
    FailureOr<TensorSharding> sharding = readBoundary(attr, global, cast<RankedTensorType>(local), attributes, tensor);
    if (succeeded(sharding))
      shardings.push_back(std::move(*sharding));
    return sharding;
  };
  for (BlockArgument argument : program.getBody().getArguments()) {
    unsigned index = argument.getArgNumber();
    if (failed(read(function.getArgAttrOfType<ShardingAttr>(index, names::kSharding),
                    function.getArgAttrOfType<DenseI64ArrayAttr>(index, names::kGlobalShape), argument.getType(),
                    function.getArgAttrDict(index), describe(argument), arguments)))
      return failure();
  }
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(read(function.getResultAttrOfType<ShardingAttr>(index, names::kSharding),
                    function.getResultAttrOfType<DenseI64ArrayAttr>(index, names::kGlobalShape), type,
                    function.getResultAttrDict(index), describeResult(function, index), results)))
      return failure();
  return success();
}

LogicalResult LocalVerifier::readArguments(unsigned axis) {
  for (BlockArgument argument : program.getBody().getArguments()) {
    unsigned index = argument.getArgNumber();
    State &state = states[argument];
    if (std::optional<int64_t> dim = dimShardedOver(arguments[index], axis))
      state = {State::Kind::Shard, onlyDim(typeOf(argument).getRank(), *dim), {}};
    if (failed(readCopies(program.function.getArgAttrDict(index), axis, [&] { return describe(argument); }, state)))
      return failure();
  }
  return success();
}

LogicalResult LocalVerifier::verifyResults(unsigned axis) {
  func::FuncOp function = program.function;
  for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands())) {
    const State &state = states.find(value)->second;
    std::optional<int64_t> dim = dimShardedOver(results[index], axis);
    // A constant part of a sharded result is equal on all ranks.
    bool fits = (state.kind == State::Kind::Same && (!dim || uniform.isAlong(value, *dim))) ||
                state.kind == State::Kind::Unknown ||
                (state.kind == State::Kind::Shard && dim && state.dims.test(*dim) && state.shift == 0);
    if (!fits)
      return error(program.getReturn(), axis)
             << describeResult(function, index) << " is " << state.str() << ", but has to be "
             << (dim ? "sharded in dimension " + std::to_string(*dim) : "equal on all ranks");
    auto tensor = [&, index = index] { return describeResult(function, index); };
    if (failed(verifyCopies(function.getResultAttrDict(index), axis, tensor, state)))
      return failure();
  }
  return success();
}

FailureOr<LocalVerifier::State> LocalVerifier::throughPartial(Operation *op, const ShardingRule &rule,
                                                              ArrayRef<unsigned> partial, unsigned axis) {
  auto stateOf = [&](unsigned index) -> const State & { return states.find(op->getOperand(index))->second; };
  const State &first = stateOf(partial.front());
  // nd.scale has become a product by a number.
  bool isScale = isa<arith::MulFOp>(op) && partial.size() == 1;
  bool linear = isScale || llvm::is_contained(rule.linear, SmallVector<unsigned, 2>(partial));
  for (unsigned index : llvm::seq(op->getNumOperands())) {
    if (llvm::is_contained(rule.addends, index))
      continue;
    if (llvm::is_contained(partial, index))
      linear &= stateOf(index).reduction == ReductionKind::sum;
    else if (stateOf(index).kind == State::Kind::Shard)
      return error(op, axis) << "'" << op->getName() << "' joins operand " << partial.front() << ", which is "
                             << first.str() << ", with operand " << index << ", which is " << stateOf(index).str();
  }
  if (!linear)
    return error(op, axis) << "operand " << partial.front() << " of '" << op->getName() << "' is " << first.str()
                           << ", but the operation needs its reduced value";
  return first;
}

/// Block-wise shards of a dimension stay shards of the dimension that starts at the same place in memory.
void LocalVerifier::throughReshape(ReshapeOp op) {
  auto startsOf = [](ArrayRef<int64_t> shape) {
    SmallVector<int64_t> starts;
    int64_t product = 1;
    for (int64_t size : shape) {
      starts.push_back(product);
      product *= size;
    }
    return starts;
  };
  const State &state = states.find(op.getInput())->second;
  SmallVector<int64_t> from = startsOf(op.getInput().getType().getShape()), to = startsOf(op.getType().getShape());
  llvm::SmallBitVector dims(to.size());
  for (unsigned dim : state.dims.set_bits())
    for (auto [target, start] : llvm::enumerate(to))
      if (start == from[dim])
        dims.set(target);
  states[op.getResult()] = dims.any() ? State{State::Kind::Shard, dims, {}, state.shift, state.copies, state.table}
                                      : State{State::Kind::Unknown, {}, {}};
}

LogicalResult LocalVerifier::throughShards(Operation *op, const ShardingRule &rule, unsigned axis) {
  // The factors that the axis can shard: those that every sharded operand allows.
  llvm::SmallBitVector factors(rule.factors.size(), true);
  std::optional<unsigned> sharded;
  int64_t shift = 0;
  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    const State &state = states.find(op->getOperand(index))->second;
    if (state.kind != State::Kind::Shard || llvm::is_contained(rule.addends, index))
      continue;
    if (sharded && state.shift != shift)
      return error(op, axis) << "operands " << *sharded << " and " << index << " of '" << op->getName()
                             << "' are shards of different ranks: operand " << index << " is " << state.str();
    shift = state.shift;
    llvm::SmallBitVector allowed(rule.factors.size());
    for (unsigned dim : state.dims.set_bits())
      for (int64_t factor : tensor[dim])
        allowed.set(factor);
    if (!factors.anyCommon(allowed))
      return error(op, axis) << "operands " << *sharded << " and " << index << " of '" << op->getName()
                             << "' are sharded in dimensions that do not belong together (" << state.str()
                             << "): " << rule.str();
    factors &= allowed;
    sharded = index;
  }
  ReductionKind reduction = ReductionKind::sum;
  for (unsigned factor : llvm::SmallBitVector(factors).set_bits()) {
    FactorKind kind = rule.factors[factor].kind;
    if (kind == FactorKind::NeedReplication)
      factors.reset(factor);
    if (kind == FactorKind::Reduction)
      reduction = rule.factors[factor].reduction;
  }
  if (factors.none())
    return error(op, axis) << "'" << op->getName() << "' needs the whole of operand " << *sharded << ", which is "
                           << states.find(op->getOperand(*sharded))->second.str();
  // The part of a whole operand that belongs to the shard is the whole itself only where its slices are all equal.
  // Attention's mask may have a size of 1 for any, which says the same where a rank has a batch or head of one.
  auto broadcasts = [&](unsigned index, unsigned dim) {
    return isa<AttentionOp, AttentionGradOp>(op) && typeOf(op->getOperand(index)).getDimSize(dim) == 1;
  };
  std::optional<unsigned> whole;
  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    if (states.find(op->getOperand(index))->second.kind != State::Kind::Same || llvm::is_contained(rule.addends, index))
      continue;
    for (auto [dim, dimFactors] : llvm::enumerate(tensor))
      for (int64_t factor : dimFactors)
        if (factors.test(factor) && !broadcasts(index, dim) && !uniform.isAlong(op->getOperand(index), dim)) {
          factors.reset(factor);
          whole = index;
        }
  }
  if (factors.none())
    return error(op, axis) << "'" << op->getName() << "' joins operand " << *sharded << ", which is "
                           << states.find(op->getOperand(*sharded))->second.str() << ", with operand " << *whole
                           << ", which is equal on all ranks: no rank has its own part of it";
  for (auto [index, tensor] : llvm::enumerate(rule.results)) {
    State &state = states[op->getResult(index)];
    bool sums = false, passes = false;
    for (unsigned factor : factors.set_bits())
      (rule.isPartialOver(index, factor) ? sums : passes) = true;
    llvm::SmallBitVector dims(tensor.size());
    for (auto [dim, dimFactors] : llvm::enumerate(tensor))
      if (llvm::any_of(dimFactors, [&](int64_t factor) { return factors.test(factor); }))
        dims.set(dim);
    if (sums && !passes)
      state = {State::Kind::Partial, {}, reduction};
    else if (!sums && dims.any())
      state = {State::Kind::Shard, dims, {}, shift};
    else
      state = {State::Kind::Unknown, {}, {}};
  }
  return throughCopies(op, rule, axis);
}

LogicalResult LocalVerifier::verifyAddends(Operation *op, const ShardingRule &rule, unsigned axis) {
  const State &result = states.find(op->getResult(0))->second;
  for (unsigned index : rule.addends) {
    const State &addend = states.find(op->getOperand(index))->second;
    if (result.kind != State::Kind::Unknown && addend.kind != State::Kind::Unknown &&
        (result.kind == State::Kind::Partial) != (addend.kind == State::Kind::Partial))
      return error(op, axis) << "'" << op->getName() << "' adds operand " << index << ", which is " << addend.str()
                             << ", to a result that is " << result.str();
  }
  return success();
}

/// An operation that makes a shard of its own accord, or reads one and knows it.
FailureOr<bool> LocalVerifier::visitShardMaker(Operation *op, unsigned axis) {
  auto list = op->getAttrOfType<ArrayAttr>("shard_axes");
  bool overAxis = list && llvm::is_contained(list, Attribute(mesh.getName(axis)));
  if (auto take = dyn_cast<TakeOp>(op)) {
    State &table = states.find(take.getTable())->second;
    // Where dimensions of one could be it (a rank's one kv head), it is the one that the operation says.
    if (table.kind == State::Kind::Shard && table.dims.test(0) && table.dims.count() > 1) {
      table.dims.flip(0);
      if (overAxis)
        table.dims = onlyDim(table.dims.size(), 0);
    }
    bool rowsAreSharded = table.kind == State::Kind::Shard && table.dims.test(0);
    if (rowsAreSharded != overAxis && table.kind != State::Kind::Unknown)
      return error(op, axis) << "the rows of the table are " << table.str() << ", but shard_axes "
                             << (overAxis ? "names" : "does not name") << " the axis";
    return false;
  }
  if (!overAxis)
    return false;
  if (auto iota = dyn_cast<IotaOp>(op)) {
    states[iota.getResult()] = {State::Kind::Shard, onlyDim(iota.getType().getRank(), iota.getDim()), {}};
    return true;
  }
  auto scatter = cast<ScatterAddOp>(op);
  for (Value operand : {Value(scatter.getIndices()), Value(scatter.getUpdates())})
    if (const State &state = states.find(operand)->second; state.kind != State::Kind::Same)
      return error(op, axis) << "a shard of the rows needs all indices and updates, but " << describe(operand) << " is "
                             << state.str();
  states[scatter.getResult()] = {State::Kind::Shard, onlyDim(scatter.getType().getRank(), 0), {}};
  if (Value init = scatter.getInit())
    if (const State &state = states.find(init)->second; state.kind != State::Kind::Shard || !state.dims.test(0))
      return error(op, axis) << "the rows of the initial value are " << state.str()
                             << ", but those of the result are sharded";
  return true;
}

LogicalResult LocalVerifier::visit(Operation *op, unsigned axis) {
  if (isCollective(op))
    return visitCollective(op, axis);
  if (auto part = dyn_cast<AsPartialOp>(op)) {
    State state = states.find(part.getInput())->second;
    if (llvm::is_contained(part.getAxes(), Attribute(mesh.getName(axis)))) {
      if (state.kind != State::Kind::Same)
        return error(op, axis) << "makes a sum of a number that is " << state.str();
      state = {State::Kind::Partial, {}, ReductionKind::sum};
    }
    states[part.getResult()] = state;
    return success();
  }
  if (auto sum = dyn_cast<SumCopiesOp>(op))
    return visitSum(sum, axis);
  if (auto make = dyn_cast<MakeCopiesOp>(op))
    return visitMake(make, axis);
  if (isa<TakeOp, IotaOp, ScatterAddOp>(op)) {
    FailureOr<bool> done = visitShardMaker(op, axis);
    if (failed(done) || *done)
      return failed(done) ? failure() : success();
  }
  // Chunks of tokens: parts of a rank's own tensor, and what they are joined to, are distributed as it is.
  if (isa<SliceOp, ConcatOp>(op) && op->hasAttr(names::kChunk)) {
    State state = states.find(op->getOperand(0))->second;
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (State other = states.find(operand)->second; other.str() != state.str())
        return error(op, axis) << "joins operand 0, which is " << state.str() << ", with operand " << index
                               << ", which is " << other.str();
    states[op->getResult(0)] = state;
    return success();
  }
  if (FailureOr<bool> done = visitAttention(op, axis); failed(done) || *done)
    return success(succeeded(done));
  // What is the same everywhere stays so, whatever the rule.
  bool isSame = llvm::all_of(op->getOperands(),
                             [&](Value operand) { return states.find(operand)->second.kind == State::Kind::Same; });
  if (isSame && isa<ShardingRuleOpInterface>(op)) {
    for (Value result : op->getResults())
      states[result] = State();
    return success();
  }
  const ShardingRule *rule = rules.get(op);
  if (!rule)
    return failure();
  SmallVector<unsigned> partial;
  bool unknown = false, sharded = false;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    State::Kind kind = states.find(operand)->second.kind;
    if (llvm::is_contained(rule->addends, index))
      continue;
    if (kind == State::Kind::Partial)
      partial.push_back(index);
    unknown |= kind == State::Kind::Unknown;
    sharded |= kind == State::Kind::Shard;
  }
  State state;
  if (unknown) {
    state.kind = State::Kind::Unknown;
  } else if (!partial.empty()) {
    FailureOr<State> carried = throughPartial(op, *rule, partial, axis);
    if (failed(carried))
      return failure();
    state = *carried;
  } else if (auto reshape = dyn_cast<ReshapeOp>(op); reshape && sharded) {
    throughReshape(reshape);
    return success();
  }
  if (sharded && partial.empty() && !unknown) {
    if (failed(throughShards(op, *rule, axis)))
      return failure();
  } else {
    for (Value result : op->getResults())
      states[result] = state;
  }
  return verifyAddends(op, *rule, axis);
}

LogicalResult LocalVerifier::runAlong(unsigned axis) {
  states.clear();
  if (failed(readArguments(axis)))
    return failure();
  for (Operation &op : program.getBody().without_terminator())
    if (failed(visit(&op, axis)))
      return failure();
  return verifyResults(axis);
}

LogicalResult LocalVerifier::run() {
  for (Operation &op : program.getBody()) {
    if (isCollective(&op) && failed(verifyInstance(&op)))
      return failure();
    if (auto permute = dyn_cast<PermuteOp>(op); permute && failed(verifyPermutation(permute)))
      return failure();
  }
  if (failed(verifyOrder()) || failed(verifyRings()) || failed(readBoundaries()))
    return failure();
  for (unsigned axis : llvm::seq<unsigned>(mesh.getSizes().size()))
    if (mesh.getSizes()[axis] > 1 && failed(runAlong(axis)))
      return failure();
  return success();
}
