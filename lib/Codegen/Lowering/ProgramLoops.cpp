//===- ProgramLoops.cpp - Loops on buffers ---------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A turn starts and ends with no collective in flight. What it copies for its own use (a row in another layout) belongs
// to the turn.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

LogicalResult ProgramBuilder::lowerRepeat(RepeatOp op) {
  waitForAll();
  for (auto [init, result] : llvm::zip_equal(op.getCarried(), op.getResults())) {
    Place place = *assignment.find(result);
    if (!isZeroSplat(init)) {
      if (failed(moveInto(init, place)))
        return failure();
    } else {
      rt::FillZeroOp::create(builder, loc, bufferAt(place, tensorTypeOf(result), Access::Write));
    }
  }
  SmallVector<Value> sliced;
  for (Value operand : op.getSliced()) {
    FailureOr<Value> buffer = readContiguous(operand);
    if (failed(buffer))
      return failure();
    sliced.push_back(*buffer);
  }
  waitForAll();
  auto loop = rt::RepeatOp::create(builder, loc, op.getCount(), sliced);
  for (auto [row, argument] : llvm::zip_equal(op.getSlices(), loop.getBody().getArguments()))
    buffers[assignment.find(row)->storage] = argument;

  auto outerCopies = copies;
  auto outerViews = views;
  Location outerLoc = loc;
  phase = std::nullopt;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&loop.getBody().front());
    if (failed(lowerBlock(op.getBody().front())))
      return failure();
    loc = op.getYield().getLoc();
    SmallVector<Move, 0> moves;
    for (auto [value, result] : llvm::zip_equal(op.getYield().getOperands(), op.getResults())) {
      FailureOr<Place> source = locate(value);
      if (failed(source))
        return failure();
      Place place = *assignment.find(result);
      if (*source != place)
        moves.push_back({*source, place, tensorTypeOf(result)});
    }
    if (failed(moveAll(moves)))
      return failure();
    waitForAll();
  }
  loc = outerLoc;
  copies = std::move(outerCopies);
  views = std::move(outerViews);
  phase = std::nullopt;
  return success();
}
