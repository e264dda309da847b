//===- LocalVerifierCopies.cpp - Irregular copies, followed ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Copies come from arguments with `nd.copies` and from nd.make_copies, parts from attention's gradients of keys and
// values that are copies; shards of the heads alone are neither. Along the tensor axes the following holds, or is
// refused:
//
//   - an operation on copies yields copies; one that is linear in a part yields parts; other shards do not join either;
//   - a sum over the sharded dimension has a part among its summands: of copies each head would count as often as it
//     lies on ranks;
//   - nd.sum_copies sums parts, by the table of the copies that they belong to; nd.make_copies hands out what a sum by
//     the same groups gave; so a parameter, which is updated from copies alone, stays equal on all that hold it;
//   - results are copies exactly where `nd.copies` says so, by the same table.
//
// Where a plan of the user's moves copies to other ranks, or gathers all, that is no longer followed.
// Which head an attention's `kv_map` lets a query read is not compared with the table.
//
//===----------------------------------------------------------------------===//

#include "Verify/LocalVerifier.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Names.h"
#include <numeric>

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Makes one entry of as many elements as lie together in every row, as those of a head do: a table of heads is then
/// the same in whatever tensor they are, a norm's weight with one element of each or a projection with many.
void joinElements(MutableArrayRef<SmallVector<int64_t>> table) {
  int64_t most = 0;
  for (ArrayRef<int64_t> row : table)
    most = std::gcd(most, row.size());
  auto areTogether = [&](int64_t count) {
    return llvm::all_of(table, [&](ArrayRef<int64_t> row) {
      return llvm::all_of(llvm::seq<int64_t>(row.size()), [&](int64_t at) {
        int64_t first = row[at - at % count];
        return row[at] == (first < 0 ? first : first + at % count) && (first < 0 || first % count == 0);
      });
    });
  };
  int64_t count = most;
  while (count > 1 && (most % count != 0 || !areTogether(count)))
    --count;
  if (count <= 1)
    return;
  for (SmallVector<int64_t> &row : table) {
    for (size_t entry = 0; entry < row.size() / count; ++entry)
      row[entry] = row[entry * count] < 0 ? -1 : row[entry * count] / count;
    row.truncate(row.size() / count);
  }
}

bool lists(std::optional<ArrayAttr> axes, StringAttr axis) {
  return axes && llvm::is_contained(*axes, Attribute(axis));
}

/// Whether an operation on parts, the other operands being copies or whole, yields parts. Rounding a part is no more
/// than rounding what a rank computes.
bool isLinear(Operation *op, const ShardingRule &rule, ArrayRef<unsigned> parts) {
  if (isa<arith::TruncFOp>(op))
    return true;
  if (isa<arith::MulFOp>(op))
    return parts.size() == 1;
  if (isa<arith::DivFOp>(op))
    return parts.size() == 1 && parts.front() == 0;
  return llvm::is_contained(rule.linear, SmallVector<unsigned, 2>(parts));
}

} // namespace

FailureOr<unsigned> LocalVerifier::readTable(DictionaryAttr copies, const std::string &tensor) {
  auto refuse = [&]() -> FailureOr<unsigned> {
    return program.function.emitError()
           << "nd.copies of " << tensor << " is " << copies
           << "; expected {dim = 0, unit = 64, table = [[0], [0], [1], [-1]]} with a row "
              "of units for each shard, the same number for each rank along the tensor axes";
  };
  auto unit = copies.getAs<IntegerAttr>("unit");
  auto rows = copies.getAs<ArrayAttr>("table");
  int64_t ranks = 1;
  for (unsigned axis : llvm::seq<unsigned>(mesh.getSizes().size()))
    if (mesh.getRole(axis) == AxisRole::tensor)
      ranks *= mesh.getSizes()[axis];
  if (!unit || unit.getInt() < 1 || !rows)
    return refuse();
  SmallVector<int64_t> elements;
  for (Attribute row : rows) {
    auto units = dyn_cast<ArrayAttr>(row);
    if (!units || !llvm::all_of(units, llvm::IsaPred<IntegerAttr>))
      return refuse();
    for (auto entry : units.getAsRange<IntegerAttr>())
      for (int64_t place : llvm::seq(unit.getInt()))
        elements.push_back(entry.getInt() < 0 ? -1 : entry.getInt() * unit.getInt() + place);
  }
  if (elements.empty() || elements.size() % ranks != 0)
    return refuse();
  int64_t places = elements.size() / ranks;
  SmallVector<SmallVector<int64_t>> table;
  for (int64_t rank : llvm::seq(ranks)) {
    auto &row = table.emplace_back(ArrayRef<int64_t>(elements).slice(rank * places, places));
    while (!row.empty() && row.back() < 0) // what is unused or padding at the end says nothing
      row.pop_back();
  }
  joinElements(table);
  auto it = llvm::find(tables, table);
  if (it == tables.end())
    it = tables.insert(it, std::move(table));
  return it - tables.begin();
}

LogicalResult LocalVerifier::readCopies(DictionaryAttr attributes, unsigned axis, function_ref<std::string()> tensor,
                                        State &state) {
  auto copies = attributes ? attributes.getAs<DictionaryAttr>(names::kCopies) : DictionaryAttr();
  if (!copies)
    return success();
  auto dim = copies.getAs<IntegerAttr>("dim");
  FailureOr<unsigned> table = readTable(copies, tensor());
  if (failed(table))
    return failure();
  if (!dim || dim.getInt() < 0 || mesh.getRole(axis) != AxisRole::tensor || state.kind != State::Kind::Shard ||
      dim.getInt() >= static_cast<int64_t>(state.dims.size()) || !state.dims.test(dim.getInt()))
    return success();
  state.copies = State::Copies::Equal;
  state.table = *table;
  return success();
}

LogicalResult LocalVerifier::verifyCopies(DictionaryAttr attributes, unsigned axis, function_ref<std::string()> tensor,
                                          const State &state) {
  State expected = state;
  expected.copies = State::Copies::None;
  if (failed(readCopies(attributes, axis, tensor, expected)))
    return failure();
  if (expected.copies == state.copies && (state.copies == State::Copies::None || expected.table == state.table))
    return success();
  InFlightDiagnostic diagnostic = error(program.getReturn(), axis);
  diagnostic << tensor() << " is " << state.str() << ", but by nd.copies it has to be " << expected.str();
  if (expected.copies == state.copies)
    diagnostic << " by another table";
  return diagnostic;
}

LogicalResult LocalVerifier::throughCopies(Operation *op, const ShardingRule &rule, unsigned axis) {
  SmallVector<unsigned> parts;
  std::optional<unsigned> copies, shard; // operands that are copies or parts, and that are neither
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    const State &state = states.find(operand)->second;
    if (state.kind != State::Kind::Shard || llvm::is_contained(rule.addends, index))
      continue;
    if (state.copies == State::Copies::None) {
      shard = index;
      continue;
    }
    if (state.copies == State::Copies::Parts)
      parts.push_back(index);
    copies = index;
  }
  if (!copies)
    return success();
  auto describeOperand = [&](unsigned index) {
    return "operand " + std::to_string(index) + ", which is " + states.find(op->getOperand(index))->second.str();
  };
  bool isAttention = isa<AttentionOp, AttentionGradOp>(op);
  if (isAttention ? !parts.empty() : !parts.empty() && !isLinear(op, rule, parts))
    return error(op, axis) << "'" << op->getName() << "' needs the sum over all parts of "
                           << describeOperand(parts.front());
  if (isAttention) {
    if (isa<AttentionGradOp>(op))
      for (unsigned index : {1, 2}) // keys and values, as operands and as results
        if (const State key = states.find(op->getOperand(index))->second; key.copies == State::Copies::Equal) {
          State &gradient = states[op->getResult(index)];
          if (gradient.kind == State::Kind::Shard)
            gradient.copies = State::Copies::Parts, gradient.table = key.table;
        }
    return success();
  }
  unsigned table = states.find(op->getOperand(*copies))->second.table;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (const State &state = states.find(operand)->second; state.copies != State::Copies::None && state.table != table)
      return error(op, axis) << "'" << op->getName()
                             << "' joins copies by different tables: " << describeOperand(*copies) << ", and "
                             << describeOperand(index);
  if (shard)
    return error(op, axis) << "'" << op->getName() << "' joins " << describeOperand(*copies) << ", with "
                           << describeOperand(*shard) << ": no rank has the part of it that belongs to its copies";
  for (Value result : op->getResults()) {
    State &state = states[result];
    if (state.kind == State::Kind::Partial && parts.empty())
      return error(op, axis) << "'" << op->getName() << "' adds up " << describeOperand(*copies)
                             << ": what several ranks hold would count several times";
    if (state.kind != State::Kind::Shard)
      continue;
    state.copies = parts.empty() ? State::Copies::Equal : State::Copies::Parts;
    state.table = table;
  }
  return success();
}

/// Two elements have to be summed to one place exactly where the table says that they are one.
LogicalResult LocalVerifier::verifyGroups(SumCopiesOp op, unsigned table) {
  int64_t unit = op.getUnit(), units = op.getUnits(), places = unit * units;
  if (!verifiedGroups.insert({op.getGroupsAttr(), unit, units, table}).second)
    return success();
  ArrayRef<int64_t> groups = op.getGroups();
  int64_t ranks = tables[table].size(), all = groups.size() * unit, own = all / ranks;
  auto placeAt = [&](int64_t index) {
    int64_t group = groups[index / unit];
    return group < 0 ? -1 : group * places + index % places;
  };
  llvm::DenseSet<int64_t> heads, sums;
  for (ArrayRef<int64_t> row : tables[table])
    heads.insert(row.begin(), row.end());
  heads.erase(-1);
  for (int64_t index : llvm::seq(all))
    sums.insert(placeAt(index));
  sums.erase(-1);
  // Elements of an entry of the table. Any other number than that which fits is refused below.
  int64_t size = std::max<int64_t>(1, sums.size() / std::max<int64_t>(1, heads.size()));
  llvm::DenseMap<int64_t, int64_t> placeOf, elementAt;
  bool fits = all % ranks == 0;
  for (int64_t index = 0; fits && index < all; ++index) {
    ArrayRef<int64_t> row = tables[table][index / own];
    int64_t entry = index % own / size, place = placeAt(index);
    int64_t head = entry < static_cast<int64_t>(row.size()) ? row[entry] : -1;
    fits = (head < 0) == (place < 0) && static_cast<int64_t>(row.size()) * size <= own;
    if (head < 0 || !fits)
      continue;
    int64_t element = head * size + index % own % size;
    fits = placeOf.try_emplace(element, place).first->second == place &&
           elementAt.try_emplace(place, element).first->second == element;
  }
  return fits ? success()
              : op.emitError() << "sums shards by groups that are not those of nd.copies: elements of different heads "
                                  "would be added, or not all of one";
}

LogicalResult LocalVerifier::visitSum(SumCopiesOp op, unsigned axis) {
  const State state = states.find(op.getInput())->second;
  int64_t dim = op.getDim(), rank = typeOf(op.getResult()).getRank();
  State &result = states[op.getResult()];
  bool sums = lists(op.getShardAxes(), mesh.getName(axis)), places = lists(op.getUnitAxes(), mesh.getName(axis));
  if (state.kind == State::Kind::Unknown) {
    result = state;
    return success();
  }
  bool isSharded = state.kind == State::Kind::Shard && state.dims.test(dim) && state.shift == 0;
  if (sums) {
    // Shards that are no copies have elements of their own, which are added as the groups say.
    if (!isSharded || state.copies == State::Copies::Equal)
      return error(op, axis) << "sums copies of a tensor that is " << state.str()
                             << ", but has to be sharded in dimension " << dim << ", no shard a copy of another";
    if (state.copies == State::Copies::Parts) {
      if (failed(verifyGroups(op, state.table)))
        return failure();
      tableOfSum[op] = state.table;
    }
    result = {State::Kind::Partial, {}, ReductionKind::sum};
    return success();
  }
  if (places) {
    if (!isSharded || state.copies != State::Copies::None)
      return error(op, axis) << "has parts of each shard along the axis, but the tensor is " << state.str();
    result = {State::Kind::Shard, onlyDim(rank, dim + 1), {}};
    return success();
  }
  result = state;
  if (state.kind == State::Kind::Partial && state.reduction != ReductionKind::sum)
    return error(op, axis) << "sums copies of a tensor that is " << state.str();
  if (state.kind != State::Kind::Shard)
    return success();
  result.dims = llvm::SmallBitVector(rank);
  for (unsigned sharded : state.dims.set_bits())
    if (sharded != dim)
      result.dims.set(sharded < dim ? sharded : sharded + 1);
  if (result.dims.none())
    return error(op, axis) << "sums copies of a tensor that is " << state.str() << ", but does not name the axis";
  return success();
}

LogicalResult LocalVerifier::visitMake(MakeCopiesOp op, unsigned axis) {
  const State state = states.find(op.getInput())->second;
  int64_t dim = op.getDim(), rank = typeOf(op.getResult()).getRank();
  State &result = states[op.getResult()];
  bool hands = lists(op.getShardAxes(), mesh.getName(axis)), places = lists(op.getUnitAxes(), mesh.getName(axis));
  if (state.kind == State::Kind::Partial)
    return error(op, axis) << "hands out a tensor that is " << state.str() << ": copies would not be whole";
  if (state.kind == State::Kind::Unknown) {
    result = state;
    return success();
  }
  if (hands) {
    // Behind the reduction.
    Value source = op.getInput();
    while (isa_and_nonnull<AllReduceOp, AllGatherOp, AllSliceOp, ReduceScatterOp>(source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(cast<OpResult>(source).getResultNumber());
    auto sum = source.getDefiningOp<SumCopiesOp>();
    if (!sum || sum.getGroups() != op.getGroups() || sum.getUnit() != op.getUnit() || sum.getUnits() != op.getUnits() ||
        sum.getDim() != op.getDim())
      return error(op, axis) << "hands out what nd.sum_copies of the same groups has not summed";
    if (state.kind != State::Kind::Same)
      return error(op, axis) << "hands out a tensor that is " << state.str() << ", but has to be equal on all ranks";
    auto table = tableOfSum.find(sum);
    if (table == tableOfSum.end()) {
      result = {State::Kind::Unknown, {}, {}};
      return success();
    }
    result = {State::Kind::Shard, onlyDim(rank, dim), {}, 0, State::Copies::Equal, table->second};
    return success();
  }
  bool isSharded = state.kind == State::Kind::Shard && state.shift == 0;
  if (places) {
    if (!isSharded || !state.dims.test(dim + 1))
      return error(op, axis) << "has parts of each shard along the axis, but the tensor is " << state.str();
    result = {State::Kind::Shard, onlyDim(rank, dim), {}};
    return success();
  }
  result = state;
  if (state.kind != State::Kind::Shard)
    return success();
  result.dims = llvm::SmallBitVector(rank);
  for (unsigned sharded : state.dims.set_bits())
    if (sharded < dim || sharded > dim + 1)
      result.dims.set(sharded < dim ? sharded : sharded - 1);
  if (result.dims.none())
    return error(op, axis) << "hands out a tensor that is " << state.str() << ", but does not name the axis";
  return success();
}
