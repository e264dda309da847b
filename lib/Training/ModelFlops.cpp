//===- ModelFlops.cpp - What a model costs by its definition --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ModelFlops.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

/// Elements times elements: beyond 64 bits at the sizes of large models.
using Wide = __int128;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

Wide product(ArrayRef<int64_t> sizes) {
  Wide result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

Wide multiplications(DotGeneralOp dot) {
  Wide result = product(shapeOf(dot.getResult()));
  for (int64_t dim : dot.getLhsContract())
    result *= shapeOf(dot.getLhs())[dim];
  return result;
}

/// Scores over the one width, values over the other.
Wide multiplications(AttentionOp attention) {
  ArrayRef<int64_t> query = shapeOf(attention.getQuery()), value = shapeOf(attention.getValue());
  return product(query.drop_back()) * value[2] * (query[3] + value[3]);
}

class Counter {
public:
  explicit Counter(func::FuncOp function) : function(function) {
    for (BlockArgument argument : function.getArguments())
      if (names::argKind(function, argument.getArgNumber()) == names::kind::kWeight)
        weights.insert(argument);
    learned.insert(weights.begin(), weights.end());
  }

  Wide count(int64_t tokens) {
    function.walk([&](Operation *op) {
      // What no parameter is part of (angles of a rotary embedding) has no backward and is none of the model's work.
      if (llvm::none_of(op->getOperands(), [&](Value operand) { return learned.contains(operand); }))
        return;
      learned.insert(op->result_begin(), op->result_end());
      if (auto dot = dyn_cast<DotGeneralOp>(op))
        total += multiplications(dot);
      else if (auto attention = dyn_cast<AttentionOp>(op))
        total += multiplications(attention);
    });
    for (Value weight : weights)
      if (!isMultiplied(weight) && !isTable(weight))
        total += product(shapeOf(weight)) * tokens;
    return 6 * total;
  }

private:
  static bool isCopy(Operation *op) { return isa<ReshapeOp, TransposeOp, SliceOp, arith::TruncFOp, arith::ExtFOp>(op); }

  static bool isMultiplied(Value weight) {
    return llvm::any_of(weight.getUsers(), [](Operation *user) {
      return isa<DotGeneralOp>(user) || (isCopy(user) && isMultiplied(user->getResult(0)));
    });
  }

  static bool isTable(Value weight) {
    return llvm::all_of(weight.getUsers(), [&](Operation *user) {
      return isa<TakeOp>(user) || (isCopy(user) && isTable(user->getResult(0)));
    });
  }

  func::FuncOp function;
  llvm::SetVector<Value> weights;
  llvm::DenseSet<Value> learned;
  Wide total = 0;
};

} // namespace

int64_t nd::flopsPerToken(func::FuncOp forward, int64_t tokens) {
  return static_cast<int64_t>(Counter(forward).count(tokens) / tokens);
}
