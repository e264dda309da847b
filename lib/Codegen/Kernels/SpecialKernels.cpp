//===- SpecialKernels.cpp - Scatters, scans and selections ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Operations whose elements depend on the order of other elements. Each is a kernel by itself: a unit of work owns all
// that it writes, and visits what it reads in one fixed order.
//
//===----------------------------------------------------------------------===//

#include "KernelFunction.h"
#include "KernelLayout.h"
#include "NodeEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace nd;

namespace {

/// An operand or result: strides over its dimensions.
struct Buffer {
  Value pointer;
  Type element;
  SmallVector<int64_t> shape, strides;

  /// The dimensions in `dims`, in that order.
  Buffer only(ArrayRef<int64_t> dims) const {
    Buffer part{pointer, element, {}, {}};
    for (int64_t dim : dims)
      part.shape.push_back(shape[dim]), part.strides.push_back(strides[dim]);
    return part;
  }
  int64_t count() const {
    int64_t product = 1;
    for (int64_t size : shape)
      product *= size;
    return product;
  }
  bool isContiguous() const {
    int64_t expected = 1;
    for (int64_t dim = shape.size() - 1; dim >= 0; expected *= shape[dim--])
      if (shape[dim] != 1 && strides[dim] != expected)
        return false;
    return true;
  }
};

class SpecialEmitter {
public:
  SpecialEmitter(LaneBuilder &builder, const KernelSpec &spec, KernelFunction &function)
      : b(builder), spec(spec), function(function) {}

  void emit(ScatterAddOp op);
  void emit(ScatterAddAlongOp op);
  void emit(TopKOp op);
  void emit(CumSumOp op);
  void emit(ArgMaxOp op);

private:
  Buffer buffer(Value pointer, MemRefType type) {
    Buffer result{pointer, type.getElementType(), SmallVector<int64_t>(type.getShape()), {}};
    int64_t offset;
    (void)type.getStridesAndOffset(result.strides, offset);
    return result;
  }
  Buffer input(Value value) {
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    return buffer(function.inputs[number], spec.inputTypes[number]);
  }
  Buffer result(unsigned number) { return buffer(function.results[number], spec.resultTypes[number]); }

  /// The offset of element `number` in row-major order.
  Value offsetOf(Value number, const Buffer &buffer);
  Value plus(Value a, Value c) { return b.create<arith::AddIOp>(a, c); }
  Value times(Value a, int64_t factor) { return b.create<arith::MulIOp>(a, b.i64(factor)); }
  Value address(const Buffer &buffer, Value offset) {
    return b.create<LLVM::GEPOp>(LLVM::LLVMPointerType::get(b.getContext()), memoryType(buffer.element), buffer.pointer,
                                 ArrayRef<LLVM::GEPArg>{offset}, LLVM::GEPNoWrapFlags::inbounds);
  }
  Value load(const Buffer &buffer, Value offset, int64_t lanes = 1) {
    Value value = b.create<LLVM::LoadOp>(laneType(memoryType(buffer.element), lanes), address(buffer, offset),
                                         elementBytes(buffer.element));
    if (buffer.element.isInteger(1))
      value = b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, value, b.integer(value.getType(), 0));
    return buffer.element.isBF16() ? b.unpackBF16(value) : value;
  }
  void store(Value value, const Buffer &buffer, Value offset) {
    if (buffer.element.isBF16())
      value = b.packBF16(b.roundToBF16(value));
    b.create<LLVM::StoreOp>(value, address(buffer, offset), elementBytes(buffer.element));
  }
  Value loadIndex(const Buffer &buffer, Value offset) {
    Value index = load(buffer, offset);
    return index.getType().isInteger(64) ? index : b.create<arith::ExtSIOp>(b.getI64Type(), index).getResult();
  }
  /// Larger, where a NaN is larger than all numbers.
  Value isLarger(Value a, Value c) {
    if (!isa<FloatType>(a.getType()))
      return b.create<arith::CmpIOp>(arith::CmpIPredicate::sgt, a, c);
    Value larger = b.compare(arith::CmpFPredicate::UGT, a, c);
    return b.create<arith::AndIOp>(larger, b.compare(arith::CmpFPredicate::ORD, c, c));
  }

  SmallVector<Value> loop(Value lo, Value hi, int64_t step, ValueRange initial,
                          llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void loop(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body) {
    loop(lo, hi, step, {}, [&](Value number, ValueRange) {
      body(number);
      return SmallVector<Value>();
    });
  }
  /// Vectors, then single elements.
  void overColumns(bool contiguous, llvm::function_ref<void(Value, int64_t)> body);

  LaneBuilder &b;
  const KernelSpec &spec;
  KernelFunction &function;
};

SmallVector<int64_t> allBut(int64_t rank, int64_t dim) {
  SmallVector<int64_t> dims;
  for (int64_t other = 0; other < rank; ++other)
    if (other != dim)
      dims.push_back(other);
  return dims;
}

SmallVector<int64_t> range(int64_t begin, int64_t end) { return llvm::to_vector(llvm::seq(begin, end)); }

} // namespace

SmallVector<Value> SpecialEmitter::loop(Value lo, Value hi, int64_t step, ValueRange initial,
                                        llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto forOp = b.create<scf::ForOp>(lo, hi, b.i64(step), initial);
  OpBuilder::InsertionGuard guard(b);
  if (initial.empty())
    b.setInsertionPointToStart(forOp.getBody());
  else
    b.setInsertionPointToEnd(forOp.getBody());
  SmallVector<Value> next = body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  if (!initial.empty())
    b.create<scf::YieldOp>(next);
  return llvm::to_vector_of<Value>(forOp.getResults());
}

void SpecialEmitter::overColumns(bool contiguous, llvm::function_ref<void(Value, int64_t)> body) {
  constexpr int64_t lanes = 32;
  Value border = function.lo;
  if (contiguous) {
    Value size = b.create<arith::SubIOp>(function.hi, function.lo);
    border = b.create<arith::SubIOp>(function.hi, b.create<arith::RemUIOp>(size, b.i64(lanes)));
    loop(function.lo, border, lanes, [&](Value column) { body(column, lanes); });
  }
  loop(border, function.hi, 1, [&](Value column) { body(column, 1); });
}

Value SpecialEmitter::offsetOf(Value number, const Buffer &buffer) {
  Value total = b.i64(0);
  int64_t stride = 1, count = buffer.count();
  for (int64_t dim = buffer.shape.size() - 1; dim >= 0;) {
    // Dimensions that follow each other in memory are one digit.
    int64_t size = buffer.shape[dim], step = buffer.strides[dim];
    for (--dim; dim >= 0 && (buffer.shape[dim] == 1 || buffer.strides[dim] == step * size); --dim)
      size *= buffer.shape[dim];
    if (size == 1)
      continue;
    Value digit = number;
    if (stride != 1)
      digit = b.create<arith::DivUIOp>(digit, b.i64(stride));
    if (stride * size != count)
      digit = b.create<arith::RemUIOp>(digit, b.i64(size));
    total = plus(total, times(digit, step));
    stride *= size;
  }
  return total;
}

/// A unit owns a column of the table and adds the updates of all indices to it: no atomics, and one order.
void SpecialEmitter::emit(ScatterAddOp op) {
  Buffer indices = input(op.getIndices()), updates = input(op.getUpdates()), table = result(0);
  int64_t leading = indices.shape.size(), rank = updates.shape.size();
  Buffer tokens = updates.only(range(0, leading)), columns = updates.only(range(leading, rank));
  Buffer tableColumns = table.only(range(1, table.shape.size()));
  bool contiguous = columns.isContiguous() && tableColumns.isContiguous();
  int64_t rows = table.shape[0], rowStride = table.strides[0];

  if (!op.getInit()) {
    loop(b.i64(0), b.i64(rows), 1, [&](Value row) {
      overColumns(contiguous, [&](Value column, int64_t lanes) {
        store(b.number(laneType(registerType(table.element), lanes), 0), table,
              plus(times(row, rowStride), offsetOf(column, tableColumns)));
      });
    });
  } else if (!spec.inPlaceOf[0]) {
    Buffer init = input(op.getInit());
    Buffer initColumns = init.only(range(1, init.shape.size()));
    loop(b.i64(0), b.i64(rows), 1, [&](Value row) {
      overColumns(contiguous && initColumns.isContiguous(), [&](Value column, int64_t lanes) {
        Value value = load(init, plus(times(row, init.strides[0]), offsetOf(column, initColumns)), lanes);
        store(value, table, plus(times(row, rowStride), offsetOf(column, tableColumns)));
      });
    });
  }
  loop(b.i64(0), b.i64(indices.count()), 1, [&](Value token) {
    Value row = loadIndex(indices, offsetOf(token, indices));
    auto addRow = [&] {
      Value from = offsetOf(token, tokens), to = times(row, rowStride);
      overColumns(contiguous, [&](Value column, int64_t lanes) {
        Value at = plus(to, offsetOf(column, tableColumns));
        Value update = load(updates, plus(from, offsetOf(column, columns)), lanes);
        store(b.add(load(table, at, lanes), update), table, at);
      });
    };
    if (!op.getPaddingIdx())
      return addRow();
    Value counts = b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, row, b.i64(*op.getPaddingIdx()));
    auto ifOp = b.create<scf::IfOp>(counts, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    addRow();
  });
}

void SpecialEmitter::emit(ScatterAddAlongOp op) {
  Buffer indices = input(op.getIndices()), updates = input(op.getUpdates()), sums = result(0);
  int64_t dim = op.getDim(), rank = sums.shape.size();
  Buffer outerIndices = indices.only(allBut(rank, dim)), outerUpdates = updates.only(allBut(rank, dim)),
         outerSums = sums.only(allBut(rank, dim));
  loop(function.lo, function.hi, 1, [&](Value unit) {
    Value sumsAt = offsetOf(unit, outerSums), indicesAt = offsetOf(unit, outerIndices),
          updatesAt = offsetOf(unit, outerUpdates);
    loop(b.i64(0), b.i64(sums.shape[dim]), 1, [&](Value position) {
      store(b.number(registerType(sums.element), 0), sums, plus(sumsAt, times(position, sums.strides[dim])));
    });
    loop(b.i64(0), b.i64(indices.shape[dim]), 1, [&](Value position) {
      Value index = loadIndex(indices, plus(indicesAt, times(position, indices.strides[dim])));
      Value at = plus(sumsAt, times(index, sums.strides[dim]));
      Value update = load(updates, plus(updatesAt, times(position, updates.strides[dim])));
      store(b.add(load(sums, at), update), sums, at);
    });
  });
}

/// Each element sinks into the sorted list of the largest so far; slots beyond the number of elements seen are free.
void SpecialEmitter::emit(TopKOp op) {
  Buffer elements = input(op.getInput()), values = result(0), positions = result(1);
  int64_t last = elements.shape.size() - 1;
  Buffer rows = elements.only(range(0, last)), valueRows = values.only(range(0, last)),
         positionRows = positions.only(range(0, last));
  loop(function.lo, function.hi, 1, [&](Value unit) {
    Value elementsAt = offsetOf(unit, rows), valuesAt = offsetOf(unit, valueRows),
          positionsAt = offsetOf(unit, positionRows);
    loop(b.i64(0), b.i64(elements.shape[last]), 1, [&](Value number) {
      Value element = load(elements, plus(elementsAt, times(number, elements.strides[last])));
      Value position = number;
      if (!positions.element.isInteger(64))
        position = b.create<arith::TruncIOp>(positions.element, position);
      loop(b.i64(0), b.i64(values.shape[last]), 1, {element, position}, [&](Value slot, ValueRange carried) {
        Value valueAt = plus(valuesAt, times(slot, values.strides[last]));
        Value positionAt = plus(positionsAt, times(slot, positions.strides[last]));
        Value other = load(values, valueAt), otherPosition = load(positions, positionAt);
        Value isFree = b.create<arith::CmpIOp>(arith::CmpIPredicate::sge, slot, number);
        Value takes = b.create<arith::OrIOp>(isFree, isLarger(carried[0], other));
        store(b.select(takes, carried[0], other), values, valueAt);
        store(b.select(takes, carried[1], otherPosition), positions, positionAt);
        return SmallVector<Value>{b.select(takes, other, carried[0]), b.select(takes, otherPosition, carried[1])};
      });
    });
  });
}

void SpecialEmitter::emit(CumSumOp op) {
  Buffer elements = input(op.getInput()), sums = result(0);
  int64_t dim = op.getDim(), rank = sums.shape.size(), size = sums.shape[dim];
  Buffer outerElements = elements.only(allBut(rank, dim)), outerSums = sums.only(allBut(rank, dim));
  loop(function.lo, function.hi, 1, [&](Value unit) {
    Value elementsAt = offsetOf(unit, outerElements), sumsAt = offsetOf(unit, outerSums);
    loop(b.i64(0), b.i64(size), 1, {b.number(registerType(sums.element), 0)}, [&](Value number, ValueRange sum) {
      Value position = op.getReverse() ? b.create<arith::SubIOp>(b.i64(size - 1), number).getResult() : number;
      Value element = load(elements, plus(elementsAt, times(position, elements.strides[dim])));
      Value next = b.add(sum[0], element);
      store(op.getExclusive() ? sum[0] : next, sums, plus(sumsAt, times(position, sums.strides[dim])));
      return SmallVector<Value>{next};
    });
  });
}

void SpecialEmitter::emit(ArgMaxOp op) {
  Buffer elements = input(op.getInput()), positions = result(0);
  int64_t dim = op.getDim(), rank = elements.shape.size();
  Buffer outer = elements.only(allBut(rank, dim));
  loop(function.lo, function.hi, 1, [&](Value unit) {
    Value at = offsetOf(unit, outer);
    SmallVector<Value> best = loop(
        b.i64(1), b.i64(elements.shape[dim]), 1, {load(elements, at), b.i64(0)}, [&](Value number, ValueRange best) {
          Value element = load(elements, plus(at, times(number, elements.strides[dim])));
          Value isBetter = isLarger(element, best[0]);
          return SmallVector<Value>{b.select(isBetter, element, best[0]), b.select(isBetter, number, best[1])};
        });
    Value position = best[1];
    if (!positions.element.isInteger(64))
      position = b.create<arith::TruncIOp>(positions.element, position);
    store(position, positions, offsetOf(unit, positions));
  });
}

Operation *nd::specialOf(KernelOp op) {
  Block &body = op.getBody().front();
  for (Operation &inner : body.without_terminator())
    if (isSpecial(&inner))
      return &inner;
  return nullptr;
}

KernelPlan nd::planSpecial(Operation *op, const KernelSpec &spec) {
  KernelPlan plan;
  int64_t all = spec.resultTypes.front().getNumElements();
  if (isa<ScatterAddOp>(op)) {
    plan.extent = all / spec.resultTypes.front().getDimSize(0);
    plan.grain = elementGrain;
    return plan;
  }
  int64_t along = 1;
  if (auto scatter = dyn_cast<ScatterAddAlongOp>(op))
    along = spec.resultTypes.front().getDimSize(scatter.getDim());
  else if (auto cumsum = dyn_cast<CumSumOp>(op))
    along = spec.resultTypes.front().getDimSize(cumsum.getDim());
  else if (isa<TopKOp>(op))
    along = spec.resultTypes.front().getShape().back();
  plan.extent = all / along;
  plan.grain = std::min<int64_t>(plan.extent, 16);
  return plan;
}

void nd::emitSpecial(OpBuilder &builder, Operation *op, const KernelSpec &spec, StringRef name) {
  emitFunction(builder, spec, /*hasWorkspace=*/false, name, [&](LaneBuilder &b, KernelFunction &function) {
    SpecialEmitter emitter(b, spec, function);
    TypeSwitch<Operation *>(op).Case<ScatterAddOp, ScatterAddAlongOp, TopKOp, CumSumOp, ArgMaxOp>(
        [&](auto op) { emitter.emit(op); });
  });
}
