//===- BufferAssignment.cpp - Where each tensor value lives ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "BufferAssignment.h"
#include "nd/Codegen/Kernels/KernelEmitter.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/IR/Signature.h"

using namespace mlir;
using namespace nd;

bool Place::mayOverlap(const Place &other) const {
  if (storage != other.storage)
    return false;
  for (auto [mine, theirs] : llvm::zip(path, other.path)) {
    if (mine.first != theirs.first)
      return true;
    if (mine.second != theirs.second)
      return false;
  }
  return true;
}

Value nd::rootOf(Value value) {
  while (isViewOp(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

BufferAssignment::BufferAssignment(func::FuncOp function) : function(function) {
  number(function.getBody().front());
  findLastReads();
  placeTensors();
  assignBlock(function.getBody().front());
  for (Operation *op : sequence)
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      place(constant, wholeOf(addStorage({tensorTypeOf(constant), std::nullopt, std::nullopt, constant})));
}

//===----------------------------------------------------------------------===//
// Order and liveness
//===----------------------------------------------------------------------===//

void BufferAssignment::number(Block &block) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<RepeatOp>(op)) {
      loopStarts[loop] = sequence.size();
      sequence.push_back(nullptr);
      number(loop.getBody().front());
    }
    order[&op] = sequence.size();
    sequence.push_back(&op);
  }
}

void BufferAssignment::findLastReads() {
  auto readsOf = [&](Value value) {
    Order last = -1;
    for (Operation *user : value.getUsers())
      last = std::max(last, isViewOp(user) ? lastReads.lookup(user->getResult(0)) : order.lookup(user));
    return last;
  };
  // Views come after what they view, so backwards each view's reads are known before those of its operand.
  for (Operation *op : llvm::reverse(sequence)) {
    if (!op)
      continue;
    for (Value result : op->getResults())
      lastReads[result] = std::max(readsOf(result), order.lookup(op));
    if (auto loop = dyn_cast<RepeatOp>(op))
      loops.push_back(loop);
  }
  for (Value argument : function.getArguments())
    lastReads[argument] = readsOf(argument);
  for (RepeatOp loop : loops)
    for (Value argument : loop.getBody().getArguments())
      lastReads[argument] = std::max(readsOf(argument), loopStarts.lookup(loop));
}

BufferAssignment::Order BufferAssignment::definedAt(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<RepeatOp>(argument.getOwner()->getParentOp());
    return loop ? loopStarts.lookup(loop) : Order(-1);
  }
  Operation *op = value.getDefiningOp();
  return isa<RepeatOp>(op) ? loopStarts.lookup(op) : order.lookup(op);
}

BufferAssignment::Order BufferAssignment::lastRead(Value value) const { return lastReads.lookup(value); }

//===----------------------------------------------------------------------===//
// Storages and places
//===----------------------------------------------------------------------===//

unsigned BufferAssignment::addStorage(Storage storage) {
  storages.push_back(std::move(storage));
  return storages.size() - 1;
}

unsigned BufferAssignment::addTemporary(RankedTensorType type) {
  return addStorage({type, std::nullopt, std::nullopt});
}

Place BufferAssignment::wholeOf(unsigned storage) const {
  return {storage, contiguousLayout(storages[storage].type.getShape()), {}};
}

Place BufferAssignment::partOf(ConcatOp concat, unsigned index, const Place &whole) const {
  Place part = whole;
  part.path.emplace_back(concat, index);
  for (Value before : concat.getInputs().take_front(index))
    part.layout.offset += tensorTypeOf(before).getDimSize(concat.getDim()) * whole.layout.strides[concat.getDim()];
  part.layout = normalized(tensorTypeOf(concat.getInputs()[index]).getShape(), std::move(part.layout));
  return part;
}

std::optional<Place> BufferAssignment::find(Value value) const {
  if (auto it = places.find(value); it != places.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  if (!isViewOp(op))
    return std::nullopt;
  std::optional<Place> source = find(op->getOperand(0));
  if (!source)
    return std::nullopt;
  std::optional<rt::Layout> layout = viewLayout(op, source->layout);
  if (!layout)
    return std::nullopt;
  source->layout = std::move(*layout);
  return source;
}

void BufferAssignment::place(Value value, Place where) {
  occupants[where.storage].push_back(value);
  places[value] = std::move(where);
}

void BufferAssignment::placeTensors() {
  for (BlockArgument argument : function.getArguments()) {
    addStorage({tensorTypeOf(argument), argument.getArgNumber(), std::nullopt});
    place(argument, wholeOf(argument.getArgNumber()));
  }
  Operation *ret = function.getBody().front().getTerminator();
  SignatureIndex signature(function);
  for (auto [index, value] : llvm::enumerate(ret->getOperands())) {
    StringRef kind = names::resultKind(function, index), name = names::resultName(function, index);
    std::optional<unsigned> updated;
    if (!kind.empty() && !name.empty())
      updated = signature.findArg(kind, name);
    if (updated) {
      storages[*updated].result = index;
      resultStorages.push_back(*updated);
    } else {
      resultStorages.push_back(addStorage({tensorTypeOf(value), std::nullopt, index}));
    }
  }
  for (auto [index, value] : llvm::enumerate(ret->getOperands()))
    request(value, wholeOf(resultStorages[index]));
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

bool BufferAssignment::request(Value value, const Place &where, Value inPlaceResult) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<arith::ConstantOp>(op) || places.contains(value))
    return false;
  if (isViewOp(op)) {
    std::optional<rt::Layout> layout = sourceLayout(op, where.layout);
    return layout && request(op->getOperand(0), {where.storage, std::move(*layout), where.path}, inPlaceResult);
  }
  if (!canWrite(value, where.layout) || hasConflict(value, where, inPlaceResult))
    return false;
  place(value, where);
  return true;
}

bool BufferAssignment::hasConflict(Value value, const Place &where, Value inPlaceResult) const {
  Order first = definedAt(value), last = lastRead(value);
  auto it = occupants.find(where.storage);
  if (it == occupants.end())
    return false;
  for (Value other : it->second) {
    const Place &taken = places.find(other)->second;
    if (!where.mayOverlap(taken))
      continue;
    // A part of a concatenation is the concatenation's data.
    if (where.path.size() > taken.path.size() && where.path[taken.path.size()].first == other.getDefiningOp())
      continue;
    // In the loop, its result's place is that of the carried value, which occupies it too.
    if (auto loop = other.getDefiningOp<RepeatOp>(); loop && loop->isProperAncestor(value.getDefiningOp()))
      continue;
    Order otherFirst = definedAt(other), otherLast = lastRead(other);
    if (otherLast < first || last < otherFirst)
      continue;
    if (otherLast == first && overwritesAtDefinition(value, where, other))
      continue;
    if (otherFirst == last && other == inPlaceResult)
      continue;
    return true;
  }
  return false;
}

/// Whether the operation that defines `value` computes it in place of `dying`, which it reads as one operand at just
/// that place.
bool BufferAssignment::overwritesAtDefinition(Value value, const Place &where, Value dying) const {
  auto result = cast<OpResult>(value);
  OpOperand *overwritten = nullptr;
  for (OpOperand &operand : result.getOwner()->getOpOperands())
    if (rootOf(operand.get()) == dying) {
      if (overwritten)
        return false;
      overwritten = &operand;
    }
  if (!overwritten || find(overwritten->get()) != where)
    return false;
  unsigned index = overwritten->getOperandNumber();
  return llvm::TypeSwitch<Operation *, bool>(result.getOwner())
      .Case([&](KernelOp kernel) {
        MemRefType type = bufferType(tensorTypeOf(value), where.layout);
        return tensorTypeOf(overwritten->get()) == tensorTypeOf(value) &&
               canComputeInPlace(kernel, result.getResultNumber(), index, type, type);
      })
      .Case([&](GemmOp gemm) { return overwritten->get() == gemm.getAccumulator(); })
      .Case([&](AllReduceOp) { return index == result.getResultNumber(); })
      .Default(false);
}

//===----------------------------------------------------------------------===//
// Assignment
//===----------------------------------------------------------------------===//

void BufferAssignment::assignBlock(Block &block) {
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (!isViewOp(&op) && !isa<arith::ConstantOp>(op))
      assign(&op);
}

/// A carried value, what is yielded for it and the result of the loop share a place, where the body allows.
void BufferAssignment::assignLoop(RepeatOp loop) {
  for (auto [row, operand] : llvm::zip_equal(loop.getSlices(), loop.getSliced())) {
    Storage storage{tensorTypeOf(row), std::nullopt, std::nullopt};
    storage.row = row;
    place(row, wholeOf(addStorage(storage)));
  }
  for (auto [argument, result] : llvm::zip_equal(loop.getCarriedArguments(), loop.getResults()))
    place(argument, places[result]);
  for (auto [value, result] : llvm::zip_equal(loop.getYield().getOperands(), loop.getResults()))
    request(value, places[result]);
  assignBlock(loop.getBody().front());
}

void BufferAssignment::assign(Operation *op) {
  auto isPlaced = [&](Value value) { return places.contains(value); };
  for (Value result : op->getResults())
    if (!isPlaced(result))
      place(result, {addTemporary(tensorTypeOf(result)), chooseLayout(result), {}});
  if (auto loop = dyn_cast<RepeatOp>(op))
    return assignLoop(loop);
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    for (auto [index, input] : llvm::enumerate(op->getOperands()))
      request(input, partOf(concat, index, places[op->getResult(0)]));
    return;
  }
  for (OpResult result : op->getResults())
    offerOperands(result);
}

/// Asks that an operand which dies here be written to the place of the result, if the result can be computed in place
/// of it.
void BufferAssignment::offerOperands(OpResult result) {
  Operation *op = result.getOwner();
  if (!isa<KernelOp, GemmOp, AllReduceOp>(op))
    return;
  const Place where = places[result];
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get(), root = rootOf(value);
    if (places.contains(root) || lastRead(root) != order.lookup(op) || tensorTypeOf(value) != tensorTypeOf(result))
      continue;
    if (llvm::count_if(op->getOperands(), [&](Value other) { return rootOf(other) == root; }) != 1)
      continue;
    if (auto kernel = dyn_cast<KernelOp>(op)) {
      MemRefType type = bufferType(tensorTypeOf(value), where.layout);
      if (!canComputeInPlace(kernel, result.getResultNumber(), operand.getOperandNumber(), type, type))
        continue;
    } else if (auto gemm = dyn_cast<GemmOp>(op); gemm && value != gemm.getAccumulator()) {
      continue;
    } else if (isa<AllReduceOp>(op) && operand.getOperandNumber() != result.getResultNumber()) {
      continue;
    }
    // Sharing must not cost the operand's other users copies.
    std::optional<rt::Layout> layout = where.layout;
    for (Value v = value; layout && v != root; v = v.getDefiningOp()->getOperand(0))
      layout = sourceLayout(v.getDefiningOp(), *layout);
    if (!layout || costOfLayout(root, *layout) > costOfLayout(root, chooseLayout(root)))
      continue;
    if (request(value, where, result))
      return;
  }
}

/// Row-major, unless another order of dimensions saves copies: that which makes a transpose among the views contiguous.
rt::Layout BufferAssignment::chooseLayout(Value value) const {
  ArrayRef<int64_t> shape = tensorTypeOf(value).getShape();
  rt::Layout best = contiguousLayout(shape);
  double bestCost = costOfLayout(value, best);
  SmallVector<Value> views{value};
  for (size_t i = 0; i < views.size() && bestCost > 0; ++i) {
    for (Operation *user : views[i].getUsers()) {
      if (!isViewOp(user))
        continue;
      views.push_back(user->getResult(0));
      if (!isa<TransposeOp>(user))
        continue;
      std::optional<rt::Layout> layout = contiguousLayout(tensorTypeOf(user->getResult(0)).getShape());
      for (Operation *view = user; layout && isViewOp(view); view = view->getOperand(0).getDefiningOp()) {
        layout = sourceLayout(view, *layout);
        if (view->getOperand(0) == value)
          break;
      }
      if (!layout || !canWrite(value, *layout))
        continue;
      if (double cost = costOfLayout(value, *layout); cost < bestCost) {
        best = std::move(*layout);
        bestCost = cost;
      }
    }
  }
  return best;
}
