//===- DimensionFlow.cpp - What a rank's dimensions are -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "DimensionFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

using Piece = DimensionFlow::Piece;

DimensionFlow::DimensionFlow(func::FuncOp function)
    : function(function), module(function->getParentOfType<ModuleOp>()) {
  for (BlockArgument argument : function.getArguments()) {
    introduce(argument, /*isFree=*/false);
    mark(argument);
  }
  visit(function.getBody().front());
  resolve();
}

void DimensionFlow::mark(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  if (std::optional<int64_t> dim = names::argInt(function, index, names::kVocabulary))
    mark(argument, *dim, DimensionKind::Vocabulary);
  if (names::argKind(function, index) != names::kind::kInput)
    return;
  RankedTensorType type = tensorTypeOf(argument);
  int64_t first = llvm::any_of(argument.getUses(), [](OpOperand &use) {
    auto repeat = dyn_cast<RepeatOp>(use.getOwner());
    return isa<MicrobatchOp>(use.getOwner()) || (repeat && use.getOperandNumber() < repeat.getSliced().size());
  });
  // As the plan of a mesh sees inputs.
  auto logical = function.getArgAttrOfType<DenseI64ArrayAttr>(index, names::kGlobalShape);
  ArrayRef<int64_t> shape = (logical ? logical.asArrayRef() : type.getShape()).drop_front(first);
  std::optional<int64_t> batch = names::moduleInt(module, names::kModel, "batch"),
                         length = names::moduleInt(module, names::kModel, "seq");
  std::optional<int64_t> dim = names::argInt(function, index, names::kSequence);
  if (!dim && shape.size() >= 2 && shape[0] == batch && shape[1] == length && isa<IntegerType>(type.getElementType()))
    dim = first + 1;
  if (!dim)
    return;
  mark(argument, *dim, DimensionKind::Sequence);
  longest = std::max(longest, type.getDimSize(*dim) * shardsOf(argument, *dim));
  if (*dim <= first)
    return;
  mark(argument, first, DimensionKind::Batch);
  // An input that every rank has whole says nothing of a rank's tokens.
  int64_t own = type.getDimSize(first) * type.getDimSize(*dim);
  tokens = tokens == 1 ? own : std::min(tokens, own);
}

void DimensionFlow::mark(BlockArgument argument, int64_t dim, DimensionKind kind) {
  for (const Piece &piece : get(argument))
    if (piece.dim == dim)
      classes[piece.id].kind |= kind;
}

/// Ranks that share a dimension of an argument.
int64_t DimensionFlow::shardsOf(BlockArgument argument, int64_t dim) {
  auto sharding = function.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(), names::kSharding);
  auto meshes = module.getOps<MeshOp>();
  int64_t shards = 1;
  if (sharding && !meshes.empty())
    for (StringAttr axis : sharding.getDimAxes(dim))
      if (MeshAxisAttr known = (*meshes.begin()).findAxis(axis))
        shards *= known.getSize();
  return shards;
}

DimensionFlow::Pieces DimensionFlow::get(Value value) const {
  Range range = values.lookup(value);
  return Pieces(pieces).slice(range.begin, range.size);
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

unsigned DimensionFlow::create(bool isFree) {
  unsigned id = classes.size();
  classes.push_back({DimensionKind::None, isFree, 0});
  relations.grow(id + 1);
  return id;
}

Piece DimensionFlow::carry(Piece piece) {
  if (isBound(piece))
    return piece;
  Piece result = piece;
  result.id = create(/*isFree=*/true);
  uses.push_back({result.id, std::exchange(classes[piece.id].firstUse, uses.size())});
  return result;
}

Piece DimensionFlow::meet(Piece a, Piece b) {
  bool isPart = a.isPart || b.isPart;
  if (isBound(a) && isBound(b)) {
    unsigned first = leaderOf(a.id), second = leaderOf(b.id);
    if (first != second) {
      DimensionKind kind = classes[first].kind | classes[second].kind;
      classes[relations.join(first, second)].kind = kind;
    }
    a.isPart = isPart;
    return a;
  }
  Piece result = isBound(a) ? a : isBound(b) ? b : Piece{create(/*isFree=*/true), a.dim, a.extent, false};
  for (const Piece &piece : {a, b})
    if (!isBound(piece))
      uses.push_back({result.id, std::exchange(classes[piece.id].firstUse, uses.size())});
  return {result.id, a.dim, a.extent, isPart};
}

void DimensionFlow::resolve() {
  for (unsigned id = classes.size(); id-- > 0;)
    for (unsigned use = classes[id].firstUse; use != 0; use = uses[use].next)
      classes[id].kind |= classes[leaderOf(uses[use].user)].kind;
}

//===----------------------------------------------------------------------===//
// Lists of pieces
//===----------------------------------------------------------------------===//

void DimensionFlow::set(Value value, Pieces list) {
  values[value] = {static_cast<unsigned>(pieces.size()), static_cast<unsigned>(list.size())};
  pieces.insert(pieces.end(), list.begin(), list.end());
}

void DimensionFlow::introduce(Value value, bool isFree) {
  Buffer list;
  for (auto [dim, size] : llvm::enumerate(tensorTypeOf(value).getShape()))
    if (size != 1)
      list.push_back({create(isFree), static_cast<unsigned>(dim), size, false});
  set(value, list);
}

DimensionFlow::Buffer DimensionFlow::piecesOf(Value value, int64_t dim) const {
  Buffer list;
  llvm::copy_if(get(value), std::back_inserter(list), [&](const Piece &piece) { return piece.dim == dim; });
  return list;
}

DimensionFlow::Buffer DimensionFlow::join(Pieces a, Pieces b) {
  Buffer left(a), right(b), result;
  size_t i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    Piece &x = left[i], &y = right[j];
    if (x.extent == y.extent) {
      result.push_back(meet(x, y));
      ++i, ++j;
      continue;
    }
    bool leftIsSmall = x.extent < y.extent;
    Piece &small = leftIsSmall ? x : y, &large = leftIsSmall ? y : x;
    if (large.extent % small.extent == 0) {
      large.isPart = true;
      Piece major = large;
      major.extent = small.extent;
      large.extent /= small.extent;
      result.push_back(leftIsSmall ? meet(small, major) : meet(major, small));
      ++(leftIsSmall ? i : j);
      continue;
    }
    int64_t leftProduct = x.extent, rightProduct = y.extent;
    unsigned dim = x.dim;
    ++i, ++j;
    while (leftProduct != rightProduct && (i < left.size() || j < right.size()))
      (leftProduct < rightProduct ? leftProduct : rightProduct) *=
          leftProduct < rightProduct ? left[i++].extent : right[j++].extent;
    result.push_back(unknown(dim, leftProduct));
  }
  return result;
}

DimensionFlow::Buffer DimensionFlow::regroup(Pieces list, ArrayRef<int64_t> sizes) {
  Buffer from(list), result;
  size_t next = 0;
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    int64_t rest = sizes[dim];
    while (rest != 1 && next < from.size()) {
      Piece &piece = from[next];
      Piece taken = piece;
      taken.dim = dim;
      if (rest % piece.extent == 0) {
        ++next;
      } else if (piece.extent % rest == 0) {
        taken.extent = rest;
        taken.isPart = piece.isPart = true;
        piece.extent /= rest;
      } else {
        // Neither divides the other: nothing is known up to where both sides meet again.
        int64_t inProduct = piece.extent, outProduct = rest;
        result.push_back(unknown(dim, rest));
        ++next;
        while (inProduct != outProduct) {
          if (inProduct < outProduct) {
            inProduct *= from[next++].extent;
          } else {
            outProduct *= sizes[++dim];
            if (sizes[dim] != 1)
              result.push_back(unknown(dim, sizes[dim]));
          }
        }
        rest = 1;
        break;
      }
      result.push_back(carry(taken));
      rest /= taken.extent;
    }
  }
  return result;
}

DimensionFlow::Buffer DimensionFlow::resize(Pieces list, unsigned dim, int64_t size) {
  Buffer result;
  if (size == 1)
    return result;
  int64_t minor = 1;
  for (const Piece &piece : list.drop_front(list.empty() ? 0 : 1))
    minor *= piece.extent;
  if (list.empty() || size % minor != 0)
    return {unknown(dim, size)};
  for (auto [index, piece] : llvm::enumerate(list)) {
    Piece same = piece;
    same.dim = dim;
    // The major piece grows or shrinks.
    same.extent = index == 0 ? size / minor : piece.extent;
    if (same.extent != 1)
      result.push_back(carry(same));
  }
  return result;
}

void DimensionFlow::tie(Value a, int64_t dim, Value b, int64_t otherDim) {
  Buffer left = piecesOf(a, dim), right = piecesOf(b, otherDim);
  // Extents differ where one of them is a shard.
  if (left.size() == 1 && right.size() == 1)
    meet(left.front(), right.front());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

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
