//===- DimensionFlow.cpp - What a rank's dimensions are -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "DimensionFlow.h"
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
  if (!dim || *dim < 0 || *dim >= type.getRank())
    return;
  mark(argument, *dim, DimensionKind::Sequence);
  longest = std::max(longest, type.getDimSize(*dim) * shardsOf(argument, *dim));
  if (*dim <= first || shape.front() != batch.value_or(shape.front()))
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
  // A tensor without elements takes no memory.
  if (llvm::any_of(list, [](const Piece &piece) { return piece.extent == 0; }))
    list = {};
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
    while (leftProduct != rightProduct && (leftProduct < rightProduct ? i < left.size() : j < right.size()))
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
        while (inProduct != outProduct && (inProduct > outProduct ? dim + 1 < sizes.size() : next < from.size())) {
          if (inProduct < outProduct) {
            inProduct *= from[next++].extent;
            continue;
          }
          outProduct *= sizes[++dim];
          if (sizes[dim] != 1)
            result.push_back(unknown(dim, sizes[dim]));
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
