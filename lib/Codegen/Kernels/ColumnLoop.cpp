//===- ColumnLoop.cpp - A loop over the columns of a row ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ColumnLoop.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace nd;

using Accumulators = SmallVector<Value>;

Accumulators nd::loopOverColumns(LaneBuilder &b, int64_t lanes, const ColumnRange &range, ValueRange initial,
                                 ColumnBody body, int64_t count) {
  Accumulators state(initial);
  auto loop = [&](Value lo, Value hi, int64_t step) {
    auto forOp = b.create<scf::ForOp>(lo, hi, b.i64(step), state);
    OpBuilder::InsertionGuard guard(b);
    // A loop without accumulators has its terminator already.
    if (state.empty())
      b.setInsertionPointToStart(forOp.getBody());
    else
      b.setInsertionPointToEnd(forOp.getBody());
    Accumulators next =
        body({forOp.getInductionVar(), Value(), range.aligned, range.segment}, forOp.getRegionIterArgs());
    if (!state.empty())
      b.create<scf::YieldOp>(next);
    return Accumulators(forOp.getResults());
  };
  if (!range.lo) {
    int64_t size = range.end - range.begin, whole = size / lanes * lanes;
    if (whole == lanes)
      state = body({b.i64(range.begin), Value(), range.aligned, range.segment}, state);
    else if (whole > 0)
      state = loop(b.i64(range.begin), b.i64(range.begin + whole), lanes * count);
    if (whole == size)
      return state;
    SmallVector<bool> bits(lanes);
    std::fill_n(bits.begin(), size - whole, true);
    Value mask = b.create<arith::ConstantOp>(DenseElementsAttr::get(VectorType::get({lanes}, b.getI1Type()), bits));
    return body({b.i64(range.begin + whole), mask, range.aligned, range.segment}, state);
  }
  Value size = b.create<arith::SubIOp>(range.hi, range.lo);
  Value rest = b.create<arith::RemUIOp>(size, b.i64(lanes));
  Value border = b.create<arith::SubIOp>(range.hi, rest);
  state = loop(range.lo, border, lanes * count);
  if (lanes == 1)
    return state;
  Value ragged = b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, rest, b.i64(0));
  SmallVector<Type> types;
  for (Value value : state)
    types.push_back(value.getType());
  auto ifOp = b.create<scf::IfOp>(types, ragged, /*withElseRegion=*/!state.empty());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  Value numbers = b.laneNumbers(b.getI32Type(), lanes);
  Value limit = b.splat(b.create<arith::TruncIOp>(b.getI32Type(), rest), lanes);
  Value mask = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, numbers, limit);
  Accumulators next = body({border, mask, range.aligned, range.segment}, state);
  if (state.empty())
    return state;
  b.create<scf::YieldOp>(next);
  b.setInsertionPointToStart(ifOp.elseBlock());
  b.create<scf::YieldOp>(state);
  return Accumulators(ifOp.getResults());
}
