//===- DimensionFlowOperations.cpp - Dimensions through operations --------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "DimensionFlow.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

using Piece = DimensionFlow::Piece;

void DimensionFlow::visit(Block &block) {
  for (Operation &op : block.without_terminator())
    visit(&op);
}

void DimensionFlow::visit(Operation *op) {
  if (op->getNumOperands() == 0) {
    for (Value result : op->getResults())
      introduce(result, /*isFree=*/true);
  } else if (op->hasTrait<OpTrait::Elementwise>()) {
    visitElementwise(op);
  } else if (auto kernel = dyn_cast<KernelOp>(op)) {
    Block &body = kernel.getBody().front();
    for (auto [argument, input] : llvm::zip_equal(body.getArguments(), kernel.getInputs()))
      alias(argument, input);
    visit(body);
    for (auto [result, yielded] : llvm::zip_equal(kernel.getResults(), body.getTerminator()->getOperands()))
      alias(result, yielded);
  } else if (auto repeat = dyn_cast<RepeatOp>(op)) {
    visitRepeat(repeat);
  } else if (auto gemm = dyn_cast<GemmOp>(op)) {
    visitGemm(gemm);
  } else if (auto view = dyn_cast<ReshapeOp>(op)) {
    set(view, regroup(get(view.getInput()), view.getType().getShape()));
  } else if (isa<SliceOp, PadOp, AllGatherOp, ReduceScatterOp, AllToAllOp, AllSliceOp, AllReduceOp, PermuteOp>(op)) {
    // Of a padding, the number that it consists of has no dimensions.
    for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults()))
      resizeInto(operand, result);
  } else if (auto concat = dyn_cast<ConcatOp>(op)) {
    visitConcat(concat);
  } else if (isa<AttentionOp, AttentionGradOp>(op)) {
    visitAttention(op);
  } else if (auto interface = dyn_cast<ShardingRuleOpInterface>(op)) {
    visitByRule(op, interface.getShardingRule());
  } else {
    for (Value result : op->getResults())
      introduce(result, /*isFree=*/false);
  }
}

void DimensionFlow::visitElementwise(Operation *op) {
  Value result = op->getResult(0), first;
  int64_t rank = tensorTypeOf(result).getRank();
  Buffer list;
  for (Value operand : op->getOperands()) {
    // Operands of rank 0 are numbers.
    if (tensorTypeOf(operand).getRank() != rank)
      continue;
    if (first)
      list = join(list, get(operand));
    else
      list = Buffer(get(operand));
    first = first ? first : operand;
  }
  if (!first)
    return introduce(result, /*isFree=*/true);
  bool isSame = llvm::equal(list, get(first), [&](const Piece &a, const Piece &b) {
    return a.id == b.id && a.extent == b.extent && a.isPart == b.isPart && isBound(a);
  });
  if (isSame)
    return alias(result, first);
  for (Piece &piece : list)
    piece = carry(piece);
  set(result, list);
}

void DimensionFlow::visitByRule(Operation *op, const ShardingRule &rule) {
  SmallVector<std::optional<Buffer>> known(rule.factors.size());
  auto sizesOf = [&](ArrayRef<int64_t> factors) {
    return llvm::map_to_vector(factors, [&](int64_t factor) { return rule.factors[factor].size; });
  };
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      Buffer list = piecesOf(operand, dim);
      if (factors.size() != 1)
        list = regroup(list, sizesOf(factors));
      for (size_t index = 0; index < factors.size(); ++index) {
        bool isWhole = factors.size() == 1;
        int64_t factor = factors[index];
        Buffer own;
        llvm::copy_if(list, std::back_inserter(own), [&](const Piece &piece) { return isWhole || piece.dim == index; });
        known[factor] = known[factor] ? join(*known[factor], own) : own;
      }
    }
  for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results)) {
    Buffer list;
    for (auto [dim, factors] : llvm::enumerate(dims))
      for (int64_t factor : factors) {
        Buffer own = known[factor] ? *known[factor] : Buffer();
        if (!known[factor] && rule.factors[factor].size != 1)
          own.push_back({create(/*isFree=*/true), 0, rule.factors[factor].size, false});
        for (Piece piece : own) {
          piece.dim = dim;
          list.push_back(carry(piece));
        }
      }
    set(result, list);
  }
}

void DimensionFlow::visitGemm(GemmOp op) {
  // Dimensions from the end, so that a batch may be absent.
  auto dimsOf = [&](Value value, int64_t fromEnd) {
    int64_t dim = value ? tensorTypeOf(value).getRank() - fromEnd : -1;
    return dim >= 0 ? piecesOf(value, dim) : Buffer();
  };
  auto joined = [&](Buffer a, const Buffer &b) { return b.empty() ? a : a.empty() ? b : join(a, b); };
  bool left = op.getTransposeLhs(), right = op.getTransposeRhs();
  join(dimsOf(op.getLhs(), left ? 2 : 1), dimsOf(op.getRhs(), right ? 1 : 2));
  Buffer batch = joined(joined(dimsOf(op.getLhs(), 3), dimsOf(op.getRhs(), 3)), dimsOf(op.getAccumulator(), 3));
  Buffer rows = joined(dimsOf(op.getLhs(), left ? 1 : 2), dimsOf(op.getAccumulator(), 2));
  Buffer columns =
      joined(joined(dimsOf(op.getRhs(), right ? 2 : 1), dimsOf(op.getBias(), 1)), dimsOf(op.getAccumulator(), 1));
  int64_t rank = op.getType().getRank();
  Buffer list;
  for (auto [fromEnd, from] : {std::pair(3, &batch), std::pair(2, &rows), std::pair(1, &columns)})
    for (Piece piece : *from) {
      piece.dim = rank - fromEnd;
      list.push_back(carry(piece));
    }
  set(op.getResult(), list);
}

void DimensionFlow::visitRepeat(RepeatOp op) {
  for (auto [operand, argument] : llvm::zip_equal(op.getSliced(), op.getSlices())) {
    Buffer row;
    for (Piece piece : get(operand))
      if (piece.dim != 0) {
        --piece.dim;
        row.push_back(piece);
      }
    set(argument, row);
  }
  // What a turn reads is what the one before yielded.
  auto tieAll = [&](Value a, Value b) { join(get(a), get(b)); };
  for (auto [operand, argument] : llvm::zip_equal(op.getCarried(), op.getCarriedArguments())) {
    introduce(argument, /*isFree=*/false);
    tieAll(argument, operand);
  }
  for (auto [operand, argument] : llvm::zip_equal(op.getCaptured(), op.getCapturedArguments()))
    alias(argument, operand);
  visit(op.getBody().front());
  for (auto [argument, yielded, result] :
       llvm::zip_equal(op.getCarriedArguments(), op.getYield()->getOperands(), op.getResults())) {
    tieAll(argument, yielded);
    alias(result, argument);
  }
}

void DimensionFlow::resizeInto(Value operand, Value result) {
  Buffer list;
  for (auto [dim, from, to] : llvm::enumerate(tensorTypeOf(operand).getShape(), tensorTypeOf(result).getShape())) {
    Buffer same = piecesOf(operand, dim);
    if (from != to) {
      llvm::append_range(list, resize(same, dim, to));
      continue;
    }
    for (const Piece &piece : same)
      list.push_back(carry(piece));
  }
  set(result, list);
}

void DimensionFlow::visitConcat(ConcatOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Buffer list;
  for (int64_t dim : llvm::seq(type.getRank())) {
    Buffer joined = piecesOf(op.getInputs().front(), dim);
    if (dim != static_cast<int64_t>(op.getDim())) {
      for (Value input : op.getInputs().drop_front())
        joined = join(joined, piecesOf(input, dim));
    } else {
      joined = concatenate(op, dim, type.getDimSize(dim));
    }
    for (const Piece &piece : joined)
      list.push_back(carry(piece));
  }
  set(op.getResult(), list);
}

/// Parts of one class make that class again. Words beside something else are no vocabulary, but what stands in front of
/// a sequence is part of it.
DimensionFlow::Buffer DimensionFlow::concatenate(ConcatOp op, int64_t dim, int64_t size) {
  Buffer first = piecesOf(op.getInputs().front(), dim);
  DimensionKind kind = DimensionKind::None;
  bool isOne = true;
  for (Value input : op.getInputs()) {
    Buffer list = piecesOf(input, dim);
    isOne &= llvm::equal(list, first, [&](const Piece &a, const Piece &b) {
      return isBound(a) && isBound(b) && leaderOf(a.id) == leaderOf(b.id);
    });
    for (const Piece &piece : list)
      kind |= classes[leaderOf(piece.id)].kind;
  }
  if (isOne)
    return resize(first, dim, size);
  Piece result = {create(/*isFree=*/false), static_cast<unsigned>(dim), size, false};
  classes[result.id].kind = kind & ~DimensionKind::Vocabulary;
  return {result};
}

void DimensionFlow::visitAttention(Operation *op) {
  auto visitBoth = [&](auto attention) {
    Value query = attention.getQuery(), key = attention.getKey(), value = attention.getValue();
    tie(query, 0, key, 0);
    tie(key, 0, value, 0);
    tie(key, 1, value, 1);
    tie(key, 2, value, 2);
    tie(query, 3, key, 3);
    if (Value mask = attention.getMask()) {
      tie(mask, 0, query, 0);
      tie(mask, 1, query, 1);
      tie(mask, 2, query, 2);
      tie(mask, 3, key, 2);
    }
  };
  auto take = [&](Value result, ArrayRef<std::pair<Value, int64_t>> dims) {
    Buffer list;
    for (auto [dim, source] : llvm::enumerate(dims))
      for (Piece piece : piecesOf(source.first, source.second)) {
        piece.dim = dim;
        list.push_back(carry(piece));
      }
    set(result, list);
  };
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    visitBoth(attention);
    Value query = attention.getQuery();
    take(attention.getResult(), {{query, 0}, {query, 1}, {query, 2}, {attention.getValue(), 3}});
    take(attention.getLse(), {{query, 0}, {query, 1}, {query, 2}});
    return;
  }
  auto gradient = cast<AttentionGradOp>(op);
  visitBoth(gradient);
  resizeInto(gradient.getQuery(), gradient.getQueryGrad());
  resizeInto(gradient.getKey(), gradient.getKeyGrad());
  resizeInto(gradient.getValue(), gradient.getValueGrad());
}
