//===- PullOperations.cpp - Operations of a region as expressions ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelProgramBuilder.h"

using namespace mlir;
using namespace nd;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

Node *KernelProgramBuilder::create(Node::Kind kind, Type type, ArrayRef<Node *> operands) {
  Node &node = program.nodes.emplace_back();
  node.kind = kind, node.type = type;
  node.operands.assign(operands.begin(), operands.end());
  for (Node *operand : operands) {
    node.onRow |= operand->onRow, node.onColumn |= operand->onColumn;
    node.level = std::max(node.level, operand->level);
    node.cost = std::min(node.cost + operand->cost, 1000000u);
  }
  return &node;
}

Node *KernelProgramBuilder::primitive(Primitive op, ArrayRef<Node *> operands, Type type) {
  Node *node = create(Node::Primitive, type ? type : operands.front()->type, operands);
  node->primitive = op, ++node->cost;
  return node;
}

Node *KernelProgramBuilder::integer(int64_t value) {
  Node *&node = integers[value];
  if (!node) {
    node = create(Node::Constant, IntegerType::get(context, 64), {});
    node->constant = IntegerAttr::get(node->type, value);
  }
  return node;
}

Node *KernelProgramBuilder::toNode(const Index &index) {
  Node *node = index.node;
  if (index.kind == Index::Zero)
    return integer(index.add);
  if (index.kind != Index::Computed) {
    Index digit = Index::digit(index.kind, index.stride, index.size);
    Node *&known = digitNodes[digit];
    if (!known) {
      known = create(Node::Digit, IntegerType::get(context, 64), {});
      known->index = {digit}, known->cost = 1;
      known->onRow = digit.kind == Index::Row, known->onColumn = digit.kind == Index::Column;
    }
    node = known;
  }
  if (index.mul != 1)
    node = primitive(Primitive::Mul, {node, integer(index.mul)});
  if (index.add != 0)
    node = primitive(Primitive::Add, {node, integer(index.add)});
  return node;
}

Node *KernelProgramBuilder::toInteger(Node *node) {
  Type i64 = IntegerType::get(context, 64);
  return node->type == i64 ? node : primitive(Primitive::Convert, {node}, i64);
}

Node *KernelProgramBuilder::pull(Value value, const Indices &index) {
  auto key = std::make_tuple(value.getAsOpaquePointer(), segment, std::vector<Index>(index.begin(), index.end()));
  if (auto known = memo.find(key); known != memo.end())
    return known->second;
  Node *node = nullptr;
  Operation *op = value.getDefiningOp();
  if (op && body.ops.contains(op)) {
    node = pullOp(op, index);
  } else if (auto input = inputs.find(value); input != inputs.end()) {
    node = create(Node::Load, tensorType(value).getElementType(), {});
    node->input = input->second, node->index = index, node->cost = 1;
    for (const Index &part : index) {
      node->onRow |= part.kind == Index::Row, node->onColumn |= part.kind == Index::Column;
      if (part.kind != Index::Computed)
        continue;
      node->onRow |= part.node->onRow, node->onColumn |= part.node->onColumn;
      node->level = std::max(node->level, part.node->level);
      node->cost += part.node->cost;
      node->operands.push_back(part.node);
    }
  } else {
    return failNode("a value comes from outside");
  }
  if (node)
    memo[key] = node;
  return node;
}

Node *KernelProgramBuilder::pullOp(Operation *op, const Indices &index) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  if (isSplatConstant(op)) {
    auto elements = cast<DenseElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    Node *node = create(Node::Constant, result.getElementType(), {});
    node->constant = elements.getSplatValue<TypedAttr>();
    return node;
  }
  if (isElementwise(op)) {
    SmallVector<Node *, 3> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(pull(operand, index));
      if (!operands.back())
        return nullptr;
    }
    Node *node = create(Node::Elementwise, result.getElementType(), operands);
    node->op = op, node->cost += costOf(op);
    return node;
  }
  return TypeSwitch<Operation *, Node *>(op)
      .Case([&](BroadcastOp op) {
        Indices operand;
        for (int64_t dim : op.getDims())
          operand.push_back(index[dim]);
        return pull(op.getInput(), operand);
      })
      .Case([&](TransposeOp op) {
        Indices operand(index.size());
        for (auto [dim, source] : llvm::enumerate(op.getPermutation()))
          operand[source] = index[dim];
        return pull(op.getInput(), operand);
      })
      .Case([&](SliceOp op) {
        Indices operand;
        for (auto [dim, part] : llvm::enumerate(index))
          operand.push_back(part.scaled(op.getStrides()[dim], op.getStarts()[dim]));
        return pull(op.getInput(), operand);
      })
      .Case([&](ReshapeOp op) -> Node * {
        Indices operand;
        if (!reshapeIndices(result.getShape(), tensorType(op.getInput()).getShape(), index, operand))
          return nullptr;
        return pull(op.getInput(), operand);
      })
      .Case([&](IotaOp op) -> Node * {
        Node *node = toNode(index[op.getDim()]);
        return node->type == result.getElementType() ? node
                                                     : primitive(Primitive::Convert, {node}, result.getElementType());
      })
      .Case([&](TakeOp op) -> Node * {
        // A table is gathered from as it is stored, or rounded row by row.
        if (!inputs.count(op.getTable()) && !op.getTable().getDefiningOp<arith::TruncFOp>())
          return failNode("a table that is gathered from is computed where it is read");
        int64_t rank = tensorType(op.getIndices()).getRank();
        Node *row = pull(op.getIndices(), Indices(index.begin(), index.begin() + rank));
        if (!row)
          return nullptr;
        Indices operand = {Index::computed(toInteger(row))};
        operand.append(index.begin() + rank, index.end());
        return pull(op.getTable(), operand);
      })
      .Case([&](TakeAlongOp op) -> Node * {
        Node *position = pull(op.getIndices(), index);
        if (!position)
          return nullptr;
        Indices operand = index;
        operand[op.getDim()] = Index::computed(toInteger(position));
        return pull(op.getInput(), operand);
      })
      .Case([&](ReduceOp op) { return pullReduce(op, index); })
      .Case([&](ConcatOp op) { return pullConcat(op, index); })
      .Case([&](PadOp op) { return pullPad(op, index); })
      .Default([&](Operation *op) -> Node * {
        return failNode("'" + op->getName().getStringRef() + "' cannot be part of a loop nest");
      });
}

Node *KernelProgramBuilder::pullReduce(ReduceOp op, const Indices &index) {
  ReduceShape shape = *reduceShape(op);
  if (shape.inner > 1 || shape.outer != program.rows || shape.reduced != program.columns)
    return failNode("a reduction over rows is used where it is computed");
  if (index != *digits(tensorType(op.getResult()).getShape(), 1, 1))
    return failNode("the result of a reduction is read at another row");
  if (Node *known = reduceNodes.lookup(op))
    return known;
  std::optional<Indices> at = fullIndices(op.getInput());
  if (!at)
    return failNode("a reduction does not have the columns of the others");
  SmallVector<Node *> operands;
  unsigned here = segment;
  for (segment = 0; segment < program.segments.size(); ++segment) {
    operands.push_back(pull(op.getInput(), *at));
    if (!operands.back())
      return nullptr;
  }
  segment = here;
  Node *node = create(Node::RowReduce, tensorType(op.getResult()).getElementType(), operands);
  node->op = op, node->onColumn = false, node->onRow = true, ++node->level;
  program.reductions.push_back(node);
  return reduceNodes[op] = node;
}

Node *KernelProgramBuilder::pullConcat(ConcatOp op, const Indices &index) {
  int64_t dim = op.getDim();
  const Index &position = index[dim];
  auto partIndex = [&](int64_t offset) {
    Indices operand = index;
    operand[dim] = position.scaled(1, -offset);
    return operand;
  };
  int64_t offset = 0;
  if (position.kind == Index::Zero || isColumn(position)) {
    // The part is known once the segment lies within one.
    int64_t first = position.add, last = position.add;
    if (position.kind == Index::Column) {
      first += program.segments[segment].begin;
      last += program.segments[segment].end - 1;
    }
    for (Value part : op.getInputs()) {
      int64_t size = tensorType(part).getDimSize(dim);
      if (first < offset + size) {
        if (last < offset + size)
          return pull(part, partIndex(offset));
        split = offset + size - position.add;
        return nullptr;
      }
      offset += size;
    }
    return failNode("a concatenation is read beyond its end");
  }
  Node *at = toNode(position), *result = nullptr;
  for (Value part : op.getInputs()) {
    int64_t size = tensorType(part).getDimSize(dim);
    Indices operand = index;
    Node *local = primitive(Primitive::Add, {at, integer(-offset)});
    local = primitive(Primitive::Max, {local, integer(0)});
    operand[dim] = Index::computed(primitive(Primitive::Min, {local, integer(size - 1)}));
    Node *value = pull(part, operand);
    if (!value)
      return nullptr;
    if (result) {
      Node *before = primitive(Primitive::Less, {at, integer(offset)}, IntegerType::get(context, 1));
      value = primitive(Primitive::Select, {before, result, value}, value->type);
    }
    result = value;
    offset += size;
  }
  return result;
}

Node *KernelProgramBuilder::pullPad(PadOp op, const Indices &index) {
  ArrayRef<int64_t> shape = tensorType(op.getInput()).getShape();
  Type boolean = IntegerType::get(context, 1);
  Indices operand = index;
  Node *inside = nullptr;
  auto require = [&](Node *condition) { inside = inside ? primitive(Primitive::And, {inside, condition}) : condition; };
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim) {
    int64_t low = op.getLow()[dim], step = op.getInterior()[dim] + 1, extent = (shape[dim] - 1) * step + 1;
    if (low == 0 && op.getHigh()[dim] == 0 && step == 1)
      continue;
    if (isColumn(index[dim]) && step == 1) {
      const Segment &here = program.segments[segment];
      int64_t first = here.begin + index[dim].add, last = here.end - 1 + index[dim].add;
      for (int64_t bound : {low, low + extent})
        if (first < bound && last >= bound) {
          split = bound - index[dim].add;
          return nullptr;
        }
      if (last < low || first >= low + extent)
        return pull(op.getValue(), {});
      operand[dim] = index[dim].scaled(1, -low);
      continue;
    }
    Node *at = primitive(Primitive::Add, {toNode(index[dim]), integer(-low)});
    require(primitive(Primitive::Less, {integer(-1), at}, boolean));
    require(primitive(Primitive::Less, {at, integer(extent)}, boolean));
    Node *local = primitive(Primitive::Max, {at, integer(0)});
    if (step > 1) {
      require(primitive(Primitive::Equal, {primitive(Primitive::Rem, {local, integer(step)}), integer(0)}, boolean));
      local = primitive(Primitive::Div, {local, integer(step)});
    }
    operand[dim] = Index::computed(primitive(Primitive::Min, {local, integer(shape[dim] - 1)}));
  }
  Node *value = pull(op.getInput(), operand);
  if (!value || !inside)
    return value;
  Node *padding = pull(op.getValue(), {});
  return padding ? primitive(Primitive::Select, {inside, value, padding}, value->type) : nullptr;
}

/// Indices into `to` of the element that `index` names in `from`: adjacent digits are merged and split, anything else
/// goes through the element's number.
bool KernelProgramBuilder::reshapeIndices(ArrayRef<int64_t> from, ArrayRef<int64_t> to, const Indices &index,
                                          Indices &out) {
  out.assign(to.size(), Index());
  int64_t i = from.size() - 1, k = to.size() - 1;
  while (true) {
    while (i >= 0 && from[i] == 1)
      --i;
    while (k >= 0 && to[k] == 1)
      --k;
    if (i < 0 || k < 0)
      return true;
    // The smallest groups (iEnd, i] and (kEnd, k] of equal products.
    int64_t iEnd = i - 1, kEnd = k - 1, left = from[i], right = to[k];
    while (left != right)
      left < right ? left *= from[iEnd--] : right *= to[kEnd--];
    auto sized = [&](int64_t begin, int64_t end, ArrayRef<int64_t> shape) {
      SmallVector<int64_t> dims;
      for (int64_t dim = end; dim > begin; --dim)
        if (shape[dim] != 1)
          dims.push_back(dim);
      return dims;
    };
    SmallVector<int64_t> sources = sized(iEnd, i, from), targets = sized(kEnd, k, to);
    if (sources.size() == 1 && targets.size() == 1) {
      out[targets[0]] = index[sources[0]];
    } else {
      const Index &inner = index[sources[0]];
      int64_t stride = inner.stride;
      bool merges = inner.kind == Index::Row || inner.kind == Index::Column;
      for (int64_t source : sources) {
        merges &= index[source].kind == inner.kind && index[source].isPlain() && index[source].stride == stride &&
                  index[source].size == from[source];
        stride *= from[source];
      }
      Node *number = nullptr;
      int64_t scale = 1;
      if (!merges)
        for (int64_t source : sources) {
          Node *term = toNode(index[source].scaled(scale, 0));
          number = number ? primitive(Primitive::Add, {number, term}) : term;
          scale *= from[source];
        }
      stride = merges ? inner.stride : 1;
      for (int64_t target : targets) {
        if (merges) {
          out[target] = Index::digit(inner.kind, stride, to[target]);
        } else {
          Node *digit = stride == 1 ? number : primitive(Primitive::Div, {number, integer(stride)});
          if (stride * to[target] != left)
            digit = primitive(Primitive::Rem, {digit, integer(to[target])});
          out[target] = Index::computed(digit);
        }
        stride *= to[target];
      }
    }
    i = iEnd, k = kEnd;
  }
}
