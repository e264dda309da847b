//===- ProgramCollectives.cpp - Collectives on buffers ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A collective starts where the operation stands; its wait comes before the first operation that reads what it writes
// or writes what it reads or writes. Operands are contiguous memory of the arena, which the transport reads and writes
// in place: it knows how shards lie in them.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

/// `a`, or `a, b and 3 more`.
static std::string listOf(ArrayAttr names) {
  constexpr size_t shown = 2;
  std::string text;
  for (auto [index, name] : llvm::enumerate(names.getAsRange<StringAttr>())) {
    if (index == shown)
      return text + " and " + std::to_string(names.size() - shown) + " more";
    text += (index ? ", " : "") + name.str();
  }
  return text;
}

void ProgramBuilder::startCollective(Operation *op, rt::CollectiveKind kind, ArrayAttr names, ArrayRef<Value> sources,
                                     ArrayRef<Value> targets, Pending storages, ArrayRef<int64_t> dims,
                                     ArrayRef<int64_t> permutation) {
  auto reduction = op->getAttrOfType<ReductionKindAttr>("kind");
  auto reason = op->getAttrOfType<StringAttr>("reason");
  bool isScalar = kind == rt::CollectiveKind::all_reduce &&
                  llvm::all_of(op->getOperands(), [](Value operand) { return tensorTypeOf(operand).getRank() == 0; });
  storages.event = rt::CollectiveStartOp::create(
      builder, loc, rt::EventType::get(builder.getContext()), kind, sources, targets,
      op->getAttrOfType<ArrayAttr>("axes"), builder.getDenseI64ArrayAttr(dims),
      builder.getDenseI64ArrayAttr(permutation),
      reduction ? static_cast<rt::Reduction>(reduction.getValue()) : rt::Reduction::sum,
      builder.getStringAttr(listOf(names)), reason.empty() ? StringAttr() : reason, isScalar);
  for (StringRef name : {names::kUnit, names::kOnce})
    if (Attribute value = op->getAttr(name))
      storages.event.getDefiningOp()->setAttr(name, value);
  pending.push_back(std::move(storages));
}

void ProgramBuilder::waitBefore(unsigned storage, Access access) {
  llvm::erase_if(pending, [&](const Pending &collective) {
    bool sees = llvm::is_contained(collective.written, storage) ||
                (access == Access::Write && llvm::is_contained(collective.read, storage));
    if (sees)
      rt::WaitOp::create(builder, loc, collective.event);
    return sees;
  });
}

/// Peers read operands, so they are in the arena: constant data is copied.
FailureOr<Value> ProgramBuilder::readForCollective(Value value, Pending &storages) {
  FailureOr<Value> buffer = readContiguous(value);
  if (failed(buffer))
    return failure();
  Place place = *locate(value);
  if (isa<rt::ConstantOp>(rt::getRoot(*buffer).getDefiningOp())) {
    RankedTensorType type = tensorTypeOf(value);
    Place fresh = assignment.wholeOf(assignment.addTemporary(type));
    if (failed(copy(place, fresh, type)))
      return failure();
    place = copies[value] = fresh;
    buffer = bufferAt(place, type);
  }
  storages.read.push_back(place.storage);
  return buffer;
}

void ProgramBuilder::waitForAll() {
  for (const Pending &collective : pending)
    rt::WaitOp::create(builder, loc, collective.event);
  pending.clear();
}

LogicalResult ProgramBuilder::lowerAllReduce(AllReduceOp op) {
  Pending storages;
  SmallVector<Value> buffers;
  for (auto [input, result] : llvm::zip_equal(op.getInputs(), op.getResults())) {
    Place place = *assignment.find(result);
    if (failed(moveInto(input, place)))
      return failure();
    buffers.push_back(target(result));
    storages.written.push_back(place.storage);
  }
  startCollective(op, rt::CollectiveKind::all_reduce, op.getNames(), buffers, buffers, std::move(storages));
  return success();
}

LogicalResult ProgramBuilder::lowerCollective(ArrayRef<Operation *> ops, rt::CollectiveKind kind, ArrayAttr names,
                                              ArrayRef<int64_t> dims, ArrayRef<int64_t> permutation) {
  Pending storages;
  SmallVector<Value> sources, targets;
  for (Operation *op : ops)
    for (auto [input, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
      FailureOr<Value> source = readForCollective(input, storages);
      if (failed(source))
        return failure();
      sources.push_back(*source);
      targets.push_back(target(result));
      storages.written.push_back(assignment.find(result)->storage);
    }
  startCollective(ops.front(), kind, names, sources, targets, std::move(storages), dims, permutation);
  return success();
}

LogicalResult ProgramBuilder::lowerPermutes(ArrayRef<Operation *> permutes) {
  SmallVector<StringRef> names =
      llvm::map_to_vector(permutes, [](Operation *op) { return cast<PermuteOp>(op).getName(); });
  return lowerCollective(permutes, rt::CollectiveKind::permute, builder.getStrArrayAttr(names), {},
                         cast<PermuteOp>(permutes.front()).getSources());
}

LogicalResult ProgramBuilder::lowerAllSlice(AllSliceOp op) {
  FailureOr<Value> source = readContiguous(op.getInput());
  if (failed(source))
    return failure();
  rt::AllSliceOp::create(builder, loc, *source, target(op.getResult()), op.getAxes(), op.getDim());
  return success();
}
