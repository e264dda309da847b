//===- TokenTiles.cpp - A region in chunks of tokens ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TokenTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

bool isConstant(Operation *op) { return isa_and_nonnull<arith::ConstantOp>(op); }

std::string named(Operation *op, const Twine &what) { return ("'" + op->getName().getStringRef() + "' " + what).str(); }

} // namespace

TokenTiles::TokenTiles(Value logits) : tokenSizes(tensorTypeOf(logits).getShape().drop_back()) {}

bool TokenTiles::isWide(const Roles &roles) const {
  return hasTokens(roles) && llvm::is_contained(roles, static_cast<int64_t>(tokenSizes.size()));
}

std::optional<TokenTiles> TokenTiles::find(Value logits, Obstacle &obstacle) {
  TokenTiles tiles(logits);
  if (failed(tiles.findWide(logits, obstacle)) || failed(tiles.findBetween(obstacle)))
    return std::nullopt;
  return tiles;
}

FailureOr<TokenTiles::OpRoles> TokenTiles::rolesOf(Operation *op, const DenseMap<Value, Roles> &known,
                                                   Obstacle &obstacle) const {
  if (!isa<AllReduceOp>(op))
    return rolesByRule(op, known, obstacle);
  // Element by element, each operand on its own.
  OpRoles found;
  for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
    auto it = known.find(operand);
    Roles same = it != known.end() ? it->second : Roles(tensorTypeOf(operand).getRank(), -1);
    if (!hasTokens(same)) {
      obstacle = {op, named(op, "combines a value of all tokens with others")};
      return failure();
    }
    found.operands.push_back(same);
    found.results.push_back(same);
    found.sums.push_back(false);
  }
  return found;
}

FailureOr<TokenTiles::OpRoles> TokenTiles::rolesByRule(Operation *op, const DenseMap<Value, Roles> &known,
                                                       Obstacle &obstacle) const {
  auto refuse = [&](const Twine &reason) {
    obstacle = {op, named(op, reason)};
    return failure();
  };
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return refuse("reads or makes logits, and has no rule that says how its dimensions relate");
  ShardingRule rule = interface.getShardingRule();
  auto factorsOf = [&](const ShardingRule::DimFactors &dim) {
    SmallVector<int64_t> factors;
    llvm::copy_if(dim, std::back_inserter(factors), [&](int64_t factor) { return rule.factors[factor].size > 1; });
    return factors;
  };
  DenseMap<int64_t, int64_t> roleOfFactor;
  auto learn = [&](Value value, const ShardingRule::TensorFactors &tensor) -> LogicalResult {
    auto it = known.find(value);
    if (it == known.end())
      return success();
    for (auto [role, dim] : llvm::zip_equal(it->second, tensor)) {
      SmallVector<int64_t> factors = factorsOf(dim);
      if (role < 0 || factors.empty())
        continue;
      if (factors.size() > 1)
        return refuse("divides tokens or the vocabulary into several dimensions");
      auto [known, inserted] = roleOfFactor.try_emplace(factors[0], role);
      if (!inserted && known->second != role)
        return refuse("joins different dimensions of the logits");
    }
    return success();
  };
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    if (failed(learn(operand, tensor)))
      return failure();
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule.results))
    if (failed(learn(result, tensor)))
      return failure();

  OpRoles found;
  auto apply = [&](const ShardingRule::TensorFactors &tensor, SmallVector<Roles> &into) -> LogicalResult {
    Roles &roles = into.emplace_back();
    for (const ShardingRule::DimFactors &dim : tensor) {
      SmallVector<int64_t> factors = factorsOf(dim);
      auto role = [&](int64_t factor) {
        auto it = roleOfFactor.find(factor);
        return it == roleOfFactor.end() ? -1 : it->second;
      };
      if (factors.size() > 1 && llvm::any_of(factors, [&](int64_t factor) { return role(factor) >= 0; }))
        return refuse("merges tokens or the vocabulary with another dimension");
      roles.push_back(factors.size() == 1 ? role(factors[0]) : -1);
    }
    return success();
  };
  for (const ShardingRule::TensorFactors &tensor : rule.operands)
    if (failed(apply(tensor, found.operands)))
      return failure();
  for (const ShardingRule::TensorFactors &tensor : rule.results)
    if (failed(apply(tensor, found.results)))
      return failure();

  int64_t tokenFactors = 0;
  for (auto [factor, role] : roleOfFactor) {
    if (!isToken(role))
      continue;
    ++tokenFactors;
    if (rule.factors[factor].kind == FactorKind::NeedReplication)
      return refuse("needs all tokens at once");
  }
  for (unsigned result : llvm::seq(op->getNumResults())) {
    int64_t summed = llvm::count_if(
        roleOfFactor, [&](auto &entry) { return isToken(entry.second) && rule.isPartialOver(result, entry.first); });
    // What is equal for all tokens along a dimension would be summed once per chunk.
    int64_t all = llvm::count_if(tokenSizes, [](int64_t size) { return size > 1; });
    if (summed && (summed != all || tokenFactors != all || hasTokens(found.results[result])))
      return refuse("sums over a part of the dimensions of tokens");
    for (auto [factor, role] : roleOfFactor)
      if (isToken(role) && rule.factors[factor].kind == FactorKind::Reduction &&
          rule.factors[factor].reduction != ReductionKind::sum)
        return refuse("combines tokens by something else than a sum");
    found.sums.push_back(summed > 0);
  }
  return found;
}

LogicalResult TokenTiles::findWide(Value logits, Obstacle &obstacle) {
  DenseMap<Value, Roles> wide;
  DenseSet<Operation *> found;
  Block *block = logits.getParentBlock();
  SmallVector<Value> worklist = {logits};
  wide[logits] = sequence(tensorTypeOf(logits).getRank());
  auto visit = [&](Operation *op) -> LogicalResult {
    if (!op || isConstant(op))
      return success();
    if (op->hasTrait<OpTrait::IsTerminator>() || op->getBlock() != block) {
      obstacle = {op, "they are a result of the program"};
      return failure();
    }
    FailureOr<OpRoles> opRoles = rolesOf(op, wide, obstacle);
    if (failed(opRoles))
      return failure();
    auto add = [&](Value value, const Roles &valueRoles) {
      if (!isWide(valueRoles) || isConstant(value.getDefiningOp()) || !wide.try_emplace(value, valueRoles).second)
        return;
      worklist.push_back(value);
    };
    for (auto [operand, operandRoles] : llvm::zip_equal(op->getOperands(), opRoles->operands))
      add(operand, operandRoles);
    for (auto [result, resultRoles] : llvm::zip_equal(op->getResults(), opRoles->results))
      add(result, resultRoles);
    found.insert(op);
    return success();
  };
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (failed(visit(value.getDefiningOp())))
      return failure();
    for (Operation *user : value.getUsers())
      if (failed(visit(user)))
        return failure();
    if (isa<BlockArgument>(value)) {
      obstacle = {block->getParentOp(), "they are an argument of the program"};
      return failure();
    }
  }
  for (Operation &op : *block)
    if (found.contains(&op)) {
      FailureOr<OpRoles> opRoles = rolesOf(&op, wide, obstacle);
      if (failed(opRoles))
        return failure();
      roles[&op] = *opRoles;
      region.push_back(&op);
    }
  return success();
}

LogicalResult TokenTiles::findBetween(Obstacle &obstacle) {
  Operation *first = region.front(), *last = region.back();
  auto range = llvm::make_range(first->getIterator(), std::next(last->getIterator()));
  DenseSet<Operation *> behind, ahead;
  for (Operation &op : range)
    if (roles.contains(&op) ||
        llvm::any_of(op.getOperands(), [&](Value operand) { return behind.contains(operand.getDefiningOp()); }))
      behind.insert(&op);
  for (Operation *op = last;; op = op->getPrevNode()) {
    if (roles.contains(op) || ahead.contains(op)) {
      ahead.insert(op);
      for (Value operand : op->getOperands())
        if (Operation *source = operand.getDefiningOp())
          ahead.insert(source);
    }
    if (op == first)
      break;
  }
  // In program order, so that the roles of what an operation reads from the region are known.
  DenseMap<Value, Roles> known, outside;
  SmallVector<Operation *> after;
  region.clear();
  for (Operation &op : range) {
    if (!behind.contains(&op))
      continue;
    if (!ahead.contains(&op)) {
      after.push_back(&op);
      continue;
    }
    if (!roles.contains(&op)) {
      FailureOr<OpRoles> opRoles = rolesOf(&op, known, obstacle);
      if (failed(opRoles))
        return failure();
      roles[&op] = *opRoles;
    }
    const OpRoles &opRoles = roles[&op];
    for (auto [operand, operandRoles] : llvm::zip_equal(op.getOperands(), opRoles.operands)) {
      auto it = known.find(operand);
      // What comes from outside is cut once per chunk, so all have to read it alike.
      const Roles &same = it != known.end() ? it->second : outside.try_emplace(operand, operandRoles).first->second;
      if (same == operandRoles && (it == known.end() || hasTokens(same)))
        continue;
      obstacle = {&op, named(&op, "needs a value of all tokens")};
      return failure();
    }
    for (auto [result, resultRoles] : llvm::zip_equal(op.getResults(), opRoles.results))
      known[result] = resultRoles;
    region.push_back(&op);
  }
  for (Operation *op : llvm::reverse(after))
    op->moveAfter(last);
  return success();
}

TokenTiles::Grid TokenTiles::gridOf(int64_t tokens) const {
  Grid grid;
  int64_t inner = 1;
  for (int64_t size : llvm::reverse(tokenSizes)) {
    int64_t chunk = std::clamp<int64_t>(tokens / inner, 1, size);
    grid.counts.push_back(llvm::divideCeil(size, chunk));
    inner *= size;
  }
  std::reverse(grid.counts.begin(), grid.counts.end());
  grid.boxes.emplace_back();
  for (auto [size, count] : llvm::zip_equal(tokenSizes, grid.counts)) {
    SmallVector<Box> finer;
    for (const Box &box : grid.boxes)
      for (int64_t index : llvm::seq(count)) {
        Box &part = finer.emplace_back(box);
        part.starts.push_back(index * size / count);
        part.sizes.push_back((index + 1) * size / count - index * size / count);
      }
    grid.boxes = std::move(finer);
  }
  return grid;
}

SmallVector<int64_t> TokenTiles::partOf(ArrayRef<int64_t> shape, const Roles &valueRoles, const Box &box) const {
  SmallVector<int64_t> part(shape);
  for (auto [size, role] : llvm::zip_equal(part, valueRoles))
    if (isToken(role))
      size = box.sizes[role];
  return part;
}

Value TokenTiles::cut(OpBuilder &builder, Value value, const Roles &valueRoles, const Box &box) const {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  SmallVector<int64_t> shape(tensorTypeOf(value).getShape());
  for (auto [dim, role] : llvm::enumerate(valueRoles)) {
    if (!isToken(role))
      continue;
    shape[dim] = box.sizes[role];
    if (!splat)
      value = slice(builder, value.getLoc(), value, dim, box.starts[role], box.sizes[role]);
  }
  if (!splat)
    return value;
  return arith::ConstantOp::create(builder, constant.getLoc(), splat.resizeSplat(splat.getType().clone(shape)));
}

Value TokenTiles::join(OpBuilder &builder, SmallVector<Value> parts, const Roles &valueRoles,
                       ArrayRef<int64_t> counts) const {
  for (int64_t role = counts.size() - 1; role >= 0; --role) {
    int64_t count = counts[role];
    if (count == 1)
      continue;
    // A value without this dimension is the same in all boxes along it.
    const int64_t *dim = llvm::find(valueRoles, role);
    SmallVector<Value> joined;
    for (size_t start = 0; start < parts.size(); start += count)
      joined.push_back(dim == valueRoles.end() ? parts[start]
                                               : concat(builder, parts.front().getLoc(),
                                                        ArrayRef(parts).slice(start, count), dim - valueRoles.begin()));
    parts = std::move(joined);
  }
  return parts.front();
}

Value TokenTiles::tileIota(OpBuilder &builder, IotaOp iota, const Roles &valueRoles, const Box &box) const {
  RankedTensorType type = iota.getType();
  int64_t dim = iota.getDim(), role = valueRoles[dim];
  Location loc = iota.getLoc();
  // All tokens' numbers, in one dimension: what a chunk or a rank would count by itself starts at zero.
  auto all = RankedTensorType::get({type.getDimSize(dim)}, type.getElementType());
  Value numbers = IotaOp::create(builder, loc, all, 0, iota.getShardAxesAttr());
  SmallVector<int64_t> shape = partOf(type.getShape(), valueRoles, box);
  return broadcastTo(builder, loc, slice(builder, loc, numbers, 0, box.starts[role], box.sizes[role]), shape, {dim});
}

void TokenTiles::tileOp(OpBuilder &builder, Operation *op, const Box &box, DenseMap<Value, Value> &parts,
                        int64_t &instance) const {
  const OpRoles &opRoles = roles.find(op)->second;
  if (auto iota = dyn_cast<IotaOp>(op); iota && isToken(opRoles.results[0][iota.getDim()])) {
    parts[iota] = tileIota(builder, iota, opRoles.results[0], box);
    return;
  }
  SmallVector<Value> operands;
  for (auto [operand, operandRoles] : llvm::zip_equal(op->getOperands(), opRoles.operands)) {
    Value &part = parts[operand];
    if (!part)
      part = cut(builder, operand, operandRoles, box);
    operands.push_back(part);
  }
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  for (auto [result, resultRoles] : llvm::zip_equal(copy->getResults(), opRoles.results))
    result.setType(tensorTypeOf(result).clone(partOf(tensorTypeOf(result).getShape(), resultRoles, box)));
  for (auto [result, part] : llvm::zip_equal(op->getResults(), copy->getResults()))
    parts[result] = part;
  if (copy->hasAttr("instance"))
    copy->setAttr("instance", builder.getI64IntegerAttr(instance++));
}

void TokenTiles::tile(int64_t tokens, int64_t &instance) {
  Grid grid = gridOf(tokens);
  DenseSet<Operation *> inside(region.begin(), region.end());
  SmallVector<std::pair<Value, SmallVector<Value>>> outputs;
  for (Operation *op : region)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        outputs.push_back({result, {}});
  OpBuilder builder(region.back());
  builder.setInsertionPointAfter(region.back());
  Operation *start = region.back();
  for (const auto &[number, box] : llvm::enumerate(grid.boxes)) {
    DenseMap<Value, Value> parts;
    for (Operation *op : region)
      tileOp(builder, op, box, parts, instance);
    for (auto &[result, chunks] : outputs) {
      Value part = parts.lookup(result);
      auto owner = cast<OpResult>(result);
      bool sums = roles.find(owner.getOwner())->second.sums[owner.getResultNumber()];
      if (!sums) {
        chunks.push_back(part);
      } else if (chunks.empty()) {
        chunks = {part};
      } else {
        bool isFloat = isa<FloatType>(tensorTypeOf(part).getElementType());
        chunks = {isFloat ? Value(arith::AddFOp::create(builder, result.getLoc(), chunks[0], part))
                          : Value(arith::AddIOp::create(builder, result.getLoc(), chunks[0], part))};
      }
    }
    IntegerAttr chunk = builder.getI64IntegerAttr(number);
    for (Operation *op = start->getNextNode(); op != &*builder.getInsertionPoint(); op = op->getNextNode()) {
      op->setAttr(names::kChunk, chunk);
      start = op;
    }
  }
  for (auto &[result, chunks] : outputs) {
    auto owner = cast<OpResult>(result);
    const OpRoles &opRoles = roles.find(owner.getOwner())->second;
    Value whole = opRoles.sums[owner.getResultNumber()]
                      ? chunks[0]
                      : join(builder, chunks, opRoles.results[owner.getResultNumber()], grid.counts);
    result.replaceUsesWithIf(whole, [&](OpOperand &use) { return !inside.contains(use.getOwner()); });
  }
  for (Operation *op = start->getNextNode(); op != &*builder.getInsertionPoint(); op = op->getNextNode())
    op->setAttr(names::kChunk, builder.getI64IntegerAttr(grid.boxes.size()));
  for (Operation *op : llvm::reverse(region))
    op->erase();
  region.clear();
  roles.clear();
}
