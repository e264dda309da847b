//===- ProgramEmitter.cpp - Loop nests of kernels -------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ColumnLoop.h"
#include "KernelFunction.h"
#include "LaneReductions.h"
#include "NodeEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace nd;

namespace {

class ProgramEmitter {
public:
  ProgramEmitter(LaneBuilder &builder, const KernelLayout &layout, KernelFunction &function)
      : b(builder), layout(layout), program(*layout.program), schedule(*layout.schedule), function(function),
        nodes(builder, layout, function.inputs, function.results), lanes(layout.lanes) {}

  void emitMain();
  void emitFinish();

private:
  using Range = ColumnRange;
  using Accumulators = SmallVector<Value>;

  Accumulators overColumns(const Range &range, ValueRange initial, ColumnBody body, int64_t count) {
    return loopOverColumns(b, lanes, range, initial, body, count);
  }
  void overUnits(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body);

  void emitBlock(ArrayRef<RowScope *> rows, Value chunk);
  void emitStage(unsigned stage, ArrayRef<RowScope *> rows, Value chunk, std::optional<Range> range = std::nullopt);
  Accumulators emitStageBody(unsigned stage, ArrayRef<RowScope *> rows, Value chunk, const nd::Columns &at,
                             ValueRange accumulators);
  void accumulateColumns(ArrayRef<RowScope *> rows, Value chunk, const nd::Columns &at);
  void keepValues(unsigned stage, ArrayRef<RowScope *> rows);
  void emitRows();
  void emitChunk(Value chunk);
  void emitColumns();
  void emitColumnsOf(Value outer, const Range &range, int64_t jam);
  void emitTotal();

  Value combine(ReductionKind kind, Value x, Value y) { return combineLanes(b, kind, x, y); }
  Value identity(ReductionKind kind, Type type) { return identityLanes(b, kind, type); }
  Value horizontal(ReductionKind kind, Value vector) { return acrossLanes(b, kind, vector); }
  Value masked(ReductionKind kind, Value value, const nd::Columns &at) {
    return at.mask ? b.select(at.mask, value, identity(kind, value.getType())) : value;
  }
  Value partialRow(const Root &root, Value chunk);
  /// What a reduction in sums of bf16 has come to is rounded at its end.
  Value rounded(Type type, Value sum) { return type.isBF16() ? b.roundToBF16(sum) : sum; }
  Value rounded(const Root &root, Value sum) { return rounded(root.nodes.front()->type, sum); }
  SmallVector<const Node *> reductionsOf(unsigned stage) {
    SmallVector<const Node *> here;
    for (const Node *reduction : program.reductions)
      if (reduction->level == stage + 1)
        here.push_back(reduction);
    return here;
  }

  LaneBuilder &b;
  const KernelLayout &layout;
  const KernelProgram &program;
  const KernelSchedule &schedule;
  KernelFunction &function;
  NodeEmitter nodes;
  int64_t lanes;
};

} // namespace

void ProgramEmitter::overUnits(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body) {
  auto forOp = b.create<scf::ForOp>(lo, hi, b.i64(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  body(forOp.getInductionVar());
}

Value ProgramEmitter::partialRow(const Root &root, Value chunk) {
  Type type = LLVM::LLVMPointerType::get(b.getContext());
  int64_t bytes = elementBytes(sumType(root));
  int64_t rowBytes = root.kind == Root::Total ? bytes : bytes * llvm::alignTo(program.columns, 64);
  Value offset = b.create<arith::MulIOp>(chunk, b.i64(rowBytes));
  offset = b.create<arith::AddIOp>(offset, b.i64(layout.partialOffset(root)));
  return b.create<LLVM::GEPOp>(type, b.getI8Type(), function.workspace, ArrayRef<LLVM::GEPArg>{offset},
                               LLVM::GEPNoWrapFlags::inbounds);
}

void ProgramEmitter::emitMain() {
  nodes.emitUniform();
  switch (program.form) {
  case KernelProgram::Flat: {
    RowScope row;
    RowScope *rows[] = {&row};
    emitStage(0, rows, Value(), Range::between(function.lo, function.hi));
    return;
  }
  case KernelProgram::Rows:
    return emitRows();
  case KernelProgram::Columns:
    return emitColumns();
  case KernelProgram::Total:
    return emitTotal();
  }
}

void ProgramEmitter::emitRows() {
  if (layout.chunks) {
    overUnits(function.lo, function.hi, 1, [&](Value chunk) { emitChunk(chunk); });
    return;
  }
  overUnits(function.lo, function.hi, 1, [&](Value number) {
    RowScope row;
    row.row = number, row.scratch = function.scratch;
    RowScope *rows[] = {&row};
    emitBlock(rows, Value());
  });
}

/// Rows of one chunk into its own partial sums, `rowsPerBlock` rows at a time and the rest one by one.
void ProgramEmitter::emitChunk(Value chunk) {
  for (const Root &root : program.roots) {
    if (root.kind != Root::ColumnReduce)
      continue;
    Type type = sumType(root);
    Value sums = partialRow(root, chunk);
    overColumns(
        Range::between(0, program.columns), {},
        [&](const nd::Columns &at, ValueRange) {
          nodes.enterBody(at, 0);
          nodes.storeTo(sums, type, at.column, identity(root.reduction, laneType(type, lanes)));
          return Accumulators();
        },
        1);
  }
  Value first = b.create<arith::MulIOp>(chunk, b.i64(layout.chunkRows));
  Value last = b.create<arith::AddIOp>(first, b.i64(layout.chunkRows));
  last = b.create<arith::MinSIOp>(last, b.i64(program.rows));
  int64_t scratchBytes = layout.scratchRowBytes();
  auto block = [&](Value number, int64_t count) {
    SmallVector<RowScope, 4> scopes(count);
    SmallVector<RowScope *> rows;
    for (int64_t k = 0; k < count; ++k) {
      scopes[k].row = k == 0 ? number : b.create<arith::AddIOp>(number, b.i64(k)).getResult();
      scopes[k].scratch = b.create<LLVM::GEPOp>(function.scratch.getType(), b.getI8Type(), function.scratch,
                                                ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(k * scratchBytes)});
      rows.push_back(&scopes[k]);
    }
    emitBlock(rows, chunk);
  };
  Value border = first;
  if (program.rows >= rowsPerBlock) {
    Value size = b.create<arith::SubIOp>(last, first);
    Value rest = b.create<arith::RemUIOp>(size, b.i64(rowsPerBlock));
    border = b.create<arith::SubIOp>(last, rest);
    overUnits(first, border, rowsPerBlock, [&](Value number) { block(number, rowsPerBlock); });
  }
  if (program.rows % rowsPerBlock != 0)
    overUnits(border, last, 1, [&](Value number) { block(number, 1); });
}

/// All stages of some rows: the last one for all rows together, so that column sums are loaded and stored once.
void ProgramEmitter::emitBlock(ArrayRef<RowScope *> rows, Value chunk) {
  unsigned last = schedule.numStages == 0 ? 0 : schedule.numStages - 1;
  for (RowScope *row : rows)
    for (unsigned stage = 0; stage < last; ++stage) {
      nodes.emitRowNodes(*row, stage);
      emitStage(stage, row, chunk);
    }
  if (schedule.numStages != 0) {
    for (RowScope *row : rows)
      nodes.emitRowNodes(*row, last);
    emitStage(last, rows, chunk);
  }
  for (RowScope *row : rows) {
    nodes.emitRowNodes(*row, schedule.numStages);
    nodes.enterBody({}, schedule.numStages);
    for (const Root &root : program.roots)
      if (root.kind == Root::Row)
        nodes.store(nodes.emit(root.nodes.front(), *row), root, *row);
  }
}

void ProgramEmitter::emitStage(unsigned stage, ArrayRef<RowScope *> rows, Value chunk, std::optional<Range> range) {
  SmallVector<const Node *> reductions = reductionsOf(stage);
  Accumulators state;
  for (size_t k = 0; k < rows.size(); ++k)
    for (const Node *reduction : reductions)
      state.push_back(
          identity(cast<ReduceOp>(reduction->op).getKind(), laneType(registerType(reduction->type), lanes)));
  auto body = [&](const nd::Columns &at, ValueRange accumulators) {
    return emitStageBody(stage, rows, chunk, at, accumulators);
  };
  if (range)
    state = overColumns(*range, state, body, 1);
  else
    for (auto [number, segment] : llvm::enumerate(program.segments))
      state = overColumns(Range::of(segment, number, lanes), state, body, 1);
  size_t next = 0;
  for (RowScope *row : rows)
    for (const Node *reduction : reductions)
      row->values[reduction] =
          rounded(reduction->type, horizontal(cast<ReduceOp>(reduction->op).getKind(), state[next++]));
}

ProgramEmitter::Accumulators ProgramEmitter::emitStageBody(unsigned stage, ArrayRef<RowScope *> rows, Value chunk,
                                                           const nd::Columns &at, ValueRange accumulators) {
  nodes.enterBody(at, stage);
  Accumulators next;
  for (RowScope *row : rows)
    for (const Node *reduction : reductionsOf(stage)) {
      ReductionKind kind = cast<ReduceOp>(reduction->op).getKind();
      Value value = masked(kind, nodes.emitLanes(reduction->operands[at.segment], *row), at);
      next.push_back(combine(kind, accumulators[next.size()], value));
    }
  // All loads come before all stores: a result may be in place of an operand.
  SmallVector<std::tuple<Value, const Root *, RowScope *>> stores;
  for (RowScope *row : rows)
    for (const Root &root : program.roots)
      if (root.kind == Root::Full && schedule.storeStage.lookup(&root) == stage)
        stores.push_back({nodes.emitLanes(root.nodes[at.segment], *row), &root, row});
  if (stage + 1 == schedule.numStages && chunk)
    accumulateColumns(rows, chunk, at);
  keepValues(stage, rows);
  for (auto [value, root, row] : stores)
    nodes.store(value, *root, *row);
  return next;
}

void ProgramEmitter::accumulateColumns(ArrayRef<RowScope *> rows, Value chunk, const nd::Columns &at) {
  for (const Root &root : program.roots) {
    if (root.kind != Root::ColumnReduce)
      continue;
    Type type = sumType(root);
    Value sums = partialRow(root, chunk);
    Value sum = nodes.loadFrom(sums, type, at.column, lanes);
    for (RowScope *row : rows)
      sum = combine(root.reduction, sum, nodes.emitLanes(root.nodes[at.segment], *row));
    nodes.storeTo(sums, type, at.column, sum);
  }
}

/// Stores what later stages load, except for results that this stage stores anyway.
void ProgramEmitter::keepValues(unsigned stage, ArrayRef<RowScope *> rows) {
  for (const Node &node : program.nodes) {
    auto kept = schedule.kept.find(&node);
    if (kept == schedule.kept.end() || kept->second.stage != stage)
      continue;
    const Root *root = kept->second.root;
    if (root && llvm::is_contained(root->nodes, &node))
      continue;
    for (RowScope *row : rows)
      if (Value value = nodes.lookup(&node, *row))
        nodes.keep(value, &node, *row);
  }
}

void ProgramEmitter::emitColumns() {
  if (program.outer > 1) {
    overUnits(function.lo, function.hi, 1,
              [&](Value outer) { emitColumnsOf(outer, Range::between(0, program.columns), 1); });
    return;
  }
  // Four vectors side by side touch whole neighbouring cache lines of a row; then what is left, vector by vector.
  constexpr int64_t jam = 4;
  Value size = b.create<arith::SubIOp>(function.hi, function.lo);
  Value rest = b.create<arith::RemUIOp>(size, b.i64(lanes * jam));
  Value border = b.create<arith::SubIOp>(function.hi, rest);
  emitColumnsOf(b.i64(0), Range::between(function.lo, border), jam);
  emitColumnsOf(b.i64(0), Range::between(border, function.hi), 1);
}

/// Each column's reduction over the rows of one outer index, in blocks of 64 rows for the sake of rounding.
void ProgramEmitter::emitColumnsOf(Value outer, const Range &range, int64_t jam) {
  constexpr int64_t blockRows = 64;
  int64_t reduced = program.rows / program.outer;
  auto reduceRows = [&](ArrayRef<nd::Columns> vectors, Value from, Value to) {
    Accumulators initial;
    for (size_t k = 0; k < vectors.size(); ++k)
      for (const Root &root : program.roots)
        initial.push_back(identity(root.reduction, laneType(sumType(root), lanes)));
    auto forOp = b.create<scf::ForOp>(from, to, b.i64(1), initial);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(forOp.getBody());
    RowScope row;
    row.row = forOp.getInductionVar();
    nodes.emitRowNodes(row, 0);
    Accumulators next;
    for (const nd::Columns &at : vectors) {
      nodes.enterBody(at, 0);
      for (const Root &root : program.roots)
        next.push_back(
            combine(root.reduction, forOp.getRegionIterArg(next.size()), nodes.emitLanes(root.nodes[at.segment], row)));
    }
    b.create<scf::YieldOp>(next);
    return Accumulators(forOp.getResults());
  };
  Value first = b.create<arith::MulIOp>(outer, b.i64(reduced));
  Value last = b.create<arith::AddIOp>(first, b.i64(reduced));
  auto body = [&](const nd::Columns &at, ValueRange) {
    SmallVector<nd::Columns> vectors;
    for (int64_t k = 0; k < jam; ++k) {
      vectors.push_back(at);
      if (k > 0)
        vectors.back().column = b.create<arith::AddIOp>(at.column, b.i64(k * lanes));
    }
    Accumulators sums;
    if (reduced <= blockRows) {
      sums = reduceRows(vectors, first, last);
    } else {
      Accumulators initial;
      for (size_t k = 0; k < vectors.size(); ++k)
        for (const Root &root : program.roots)
          initial.push_back(identity(root.reduction, laneType(sumType(root), lanes)));
      auto forOp = b.create<scf::ForOp>(first, last, b.i64(blockRows), initial);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(forOp.getBody());
      Value end = b.create<arith::AddIOp>(forOp.getInductionVar(), b.i64(blockRows));
      Accumulators block = reduceRows(vectors, forOp.getInductionVar(), b.create<arith::MinSIOp>(end, last));
      for (auto [number, value] : llvm::enumerate(block))
        value = combine(program.roots[number % program.roots.size()].reduction, forOp.getRegionIterArg(number), value);
      b.create<scf::YieldOp>(block);
      sums.assign(forOp.result_begin(), forOp.result_end());
    }
    RowScope row;
    row.row = first;
    for (auto [number, sum] : llvm::enumerate(sums)) {
      nodes.enterBody(vectors[number / program.roots.size()], 0);
      const Root &root = program.roots[number % program.roots.size()];
      nodes.store(rounded(root, sum), root, row);
    }
    return Accumulators();
  };
  if (range.lo) {
    overColumns(range, {}, body, jam);
    return;
  }
  for (auto [number, segment] : llvm::enumerate(program.segments))
    overColumns(Range::of(segment, number, lanes), {}, body, jam);
}

void ProgramEmitter::emitTotal() {
  overUnits(function.lo, function.hi, 1, [&](Value chunk) {
    Value first = b.create<arith::MulIOp>(chunk, b.i64(totalChunk));
    Value last = b.create<arith::AddIOp>(first, b.i64(totalChunk));
    last = b.create<arith::MinSIOp>(last, b.i64(program.columns));
    RowScope row;
    Accumulators initial;
    for (const Root &root : program.roots)
      initial.push_back(identity(root.reduction, laneType(sumType(root), lanes)));
    Accumulators sums = overColumns(
        Range::between(first, last), initial,
        [&](const nd::Columns &at, ValueRange sums) {
          nodes.enterBody(at, 0);
          Accumulators next;
          for (const Root &root : program.roots)
            next.push_back(combine(root.reduction, sums[next.size()],
                                   masked(root.reduction, nodes.emitLanes(root.nodes.front(), row), at)));
          return next;
        },
        1);
    nodes.enterBody({}, 0);
    for (auto [root, sum] : llvm::zip(program.roots, sums)) {
      Value total = horizontal(root.reduction, sum);
      if (layout.chunks == 1)
        nodes.store(rounded(root, total), root, row);
      else
        nodes.storeTo(partialRow(root, chunk), total.getType(), b.i64(0), total);
    }
  });
}

/// Sums the chunks' partial results, in the order of the chunks.
void ProgramEmitter::emitFinish() {
  RowScope row;
  if (program.form == KernelProgram::Total) {
    for (const Root &root : program.roots) {
      Type type = sumType(root);
      Value partials = partialRow(root, b.i64(0));
      Accumulators sum = overColumns(
          Range::between(0, layout.chunks), {identity(root.reduction, laneType(type, lanes))},
          [&](const nd::Columns &at, ValueRange sums) {
            nodes.enterBody(at, 0);
            Value value = nodes.loadFrom(partials, type, at.column, lanes);
            return Accumulators{combine(root.reduction, sums.front(), masked(root.reduction, value, at))};
          },
          1);
      nodes.enterBody({}, 0);
      nodes.store(rounded(root, horizontal(root.reduction, sum.front())), root, row);
    }
    return;
  }
  overColumns(
      Range::between(function.lo, function.hi), {},
      [&](const nd::Columns &at, ValueRange) {
        for (const Root &root : program.roots) {
          if (root.kind != Root::ColumnReduce)
            continue;
          Type type = sumType(root);
          auto forOp = b.create<scf::ForOp>(b.i64(0), b.i64(layout.chunks), b.i64(1),
                                            ValueRange{identity(root.reduction, laneType(type, lanes))});
          {
            OpBuilder::InsertionGuard guard(b);
            b.setInsertionPointToEnd(forOp.getBody());
            nodes.enterBody(at, 0);
            Value value = nodes.loadFrom(partialRow(root, forOp.getInductionVar()), type, at.column, lanes);
            b.create<scf::YieldOp>(ValueRange{combine(root.reduction, forOp.getRegionIterArg(0), value)});
          }
          nodes.enterBody(at, 0);
          nodes.store(rounded(root, forOp.getResult(0)), root, row);
        }
        return Accumulators();
      },
      1);
}

void nd::emitProgram(OpBuilder &builder, const KernelLayout &layout, const KernelSpec &spec, const KernelPlan &plan,
                     StringRef name) {
  auto emit = [&](StringRef name, void (ProgramEmitter::*part)()) {
    emitFunction(builder, spec, plan.workspaceBytes != 0, name, [&](LaneBuilder &b, KernelFunction &function) {
      ProgramEmitter emitter(b, layout, function);
      (emitter.*part)();
    });
  };
  emit(name, &ProgramEmitter::emitMain);
  if (plan.finish)
    emit((name + "_finish").str(), &ProgramEmitter::emitFinish);
}
