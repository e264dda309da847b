//===- KernelProgram.cpp - Pulling a region into expressions --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelProgram.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace nd;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static int64_t numElements(Value value) { return tensorType(value).getNumElements(); }

bool nd::isElementwise(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) && op->getNumResults() == 1 &&
         op->getNumRegions() == 0 && OpTrait::hasElementwiseMappableTraits(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           auto type = dyn_cast<RankedTensorType>(operand.getType());
           return type && type.getShape() == cast<RankedTensorType>(op->getResult(0).getType()).getShape();
         });
}

bool nd::isSplatConstant(Operation *op) {
  DenseElementsAttr elements;
  return isa<arith::ConstantOp>(op) && matchPattern(op, m_Constant(&elements)) && elements.isSplat();
}

bool nd::isSpecial(Operation *op) { return isa<ScatterAddOp, ScatterAddAlongOp, TopKOp, CumSumOp, ArgMaxOp>(op); }

unsigned nd::costOf(Operation *op) {
  if (isa<arith::DivFOp, math::SqrtOp, math::RsqrtOp, arith::DivSIOp, arith::RemSIOp>(op))
    return 8;
  if (isa<math::MathDialect>(op->getDialect()) &&
      !isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::FmaOp, math::CopySignOp>(op))
    return 16;
  return 1;
}

std::optional<ReduceShape> nd::reduceShape(ReduceOp op) {
  ArrayRef<int64_t> shape = tensorType(op.getInput()).getShape();
  SmallVector<bool> reduced(shape.size());
  for (int64_t dim : op.getDims())
    reduced[dim] = true;
  ReduceShape result{1, 1, 1};
  int part = 0; // 0 outer, 1 reduced, 2 inner
  for (auto [size, isReduced] : llvm::zip(shape, reduced)) {
    if (size == 1)
      continue;
    if (isReduced && part == 2)
      return std::nullopt;
    part = isReduced ? 1 : part == 0 ? 0 : 2;
    (part == 0 ? result.outer : part == 1 ? result.reduced : result.inner) *= size;
  }
  return result;
}

KernelBody KernelBody::of(KernelOp op) {
  KernelBody body;
  Block &block = op.getBody().front();
  for (Operation &inner : block.without_terminator())
    body.ops.insert(&inner);
  llvm::append_range(body.inputs, block.getArguments());
  llvm::append_range(body.results, block.getTerminator()->getOperands());
  return body;
}

namespace nd {

/// Builds a program; every function returns null or false after `error` or `split` has been set.
class ProgramBuilder {
public:
  ProgramBuilder(const KernelBody &body, KernelProgram &program, std::string &error)
      : body(body), program(program), error(error), context(body.results.front().getContext()) {
    for (auto [number, input] : llvm::enumerate(body.inputs))
      inputs[input] = number;
    program.numInputs = body.inputs.size();
  }

  bool build(bool flat) {
    if (flat ? !chooseFlatDomain() : !chooseDomain())
      return false;
    std::set<int64_t> bounds = {0, program.columns};
    while (true) {
      reset(bounds);
      if (pullRoots())
        return true;
      if (!split)
        return false;
      bounds.insert(*split);
    }
  }

private:
  bool fail(const Twine &message) {
    error = message.str();
    return false;
  }
  Node *failNode(const Twine &message) {
    fail(message);
    return nullptr;
  }

  bool chooseFlatDomain();
  bool chooseDomain();
  void reset(const std::set<int64_t> &bounds);
  bool pullRoots();
  bool pullRoot(unsigned result);

  std::optional<Indices> digits(ArrayRef<int64_t> shape, int64_t columns, int64_t rowStride) const;
  std::optional<Indices> fullIndices(Value value) const {
    return digits(tensorType(value).getShape(), program.columns, 1);
  }

  Node *pull(Value value, const Indices &index);
  Node *pullOp(Operation *op, const Indices &index);
  Node *pullReduce(ReduceOp op, const Indices &index);
  Node *pullConcat(ConcatOp op, const Indices &index);
  Node *pullPad(PadOp op, const Indices &index);
  bool reshapeIndices(ArrayRef<int64_t> from, ArrayRef<int64_t> to, const Indices &index, Indices &out);

  Node *create(Node::Kind kind, Type type, ArrayRef<Node *> operands);
  Node *primitive(Primitive op, ArrayRef<Node *> operands, Type type = {});
  Node *integer(int64_t value);
  Node *toNode(const Index &index);
  Node *toInteger(Node *node);
  bool isColumn(const Index &index) const {
    return index.kind == Index::Column && index.stride == 1 && index.size == program.columns && index.mul == 1;
  }

  const KernelBody &body;
  KernelProgram &program;
  std::string &error;
  MLIRContext *context;
  DenseMap<Value, unsigned> inputs;
  unsigned segment = 0;
  std::optional<int64_t> split;
  std::map<std::tuple<void *, unsigned, std::vector<Index>>, Node *> memo;
  std::map<Index, Node *> digitNodes;
  std::map<int64_t, Node *> integers;
  DenseMap<Operation *, Node *> reduceNodes;
};

} // namespace nd

bool ProgramBuilder::chooseFlatDomain() {
  program.form = KernelProgram::Flat;
  program.columns = numElements(body.results.front());
  for (Value result : body.results)
    if (numElements(result) != program.columns)
      return fail("its results differ in size");
  for (Operation *op : body.ops)
    if (!isElementwise(op) && !isSplatConstant(op) && !isa<BroadcastOp, ReshapeOp>(op))
      return fail("it is not elementwise");
  return true;
}

bool ProgramBuilder::chooseDomain() {
  std::optional<std::pair<int64_t, int64_t>> domain; // of row reductions
  SmallVector<std::pair<ReduceOp, ReduceShape>> columnReduces;
  SmallVector<ReduceOp> totals;
  unsigned rowReduces = 0;
  for (Operation *op : body.ops) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce)
      continue;
    std::optional<ReduceShape> shape = reduceShape(reduce);
    if (!shape)
      return fail("a reduction is over dimensions that are not adjacent");
    if (shape->inner > 1) {
      columnReduces.push_back({reduce, *shape});
      continue;
    }
    ++rowReduces;
    if (shape->outer == 1)
      totals.push_back(reduce);
    auto here = std::make_pair(shape->outer, shape->reduced);
    if (domain && *domain != here)
      return fail("its reductions run over different rows");
    domain = here;
  }

  auto isResult = [&](Operation *op) { return llvm::is_contained(body.results, op->getResult(0)); };
  if (columnReduces.empty() && !totals.empty() && totals.size() == rowReduces &&
      llvm::all_of(body.results,
                   [&](Value result) { return llvm::is_contained(totals, result.getDefiningOp<ReduceOp>()); }) &&
      llvm::all_of(totals, [&](ReduceOp op) {
        return isResult(op) && llvm::none_of(op->getUsers(), [&](Operation *user) { return body.ops.contains(user); });
      })) {
    program.form = KernelProgram::Total;
    program.columns = domain->second;
    return true;
  }
  if (!columnReduces.empty() && rowReduces == 0 && body.results.size() == columnReduces.size() &&
      llvm::all_of(body.results, [](Value result) { return isa_and_nonnull<ReduceOp>(result.getDefiningOp()); })) {
    ReduceShape shape = columnReduces.front().second;
    for (auto [op, other] : columnReduces)
      if (other.outer != shape.outer || other.reduced != shape.reduced || other.inner != shape.inner)
        return fail("its reductions run over different columns");
    program.form = KernelProgram::Columns;
    program.outer = shape.outer;
    program.rows = shape.outer * shape.reduced;
    program.columns = shape.inner;
    return true;
  }

  program.form = KernelProgram::Rows;
  if (!domain && !columnReduces.empty())
    domain = std::make_pair(columnReduces.front().second.reduced, columnReduces.front().second.inner);
  for (auto [op, shape] : columnReduces)
    if (shape.outer != 1 || shape.reduced != domain->first || shape.inner != domain->second)
      return fail("a reduction over rows does not fit the other operations");
  if (!domain) {
    Value largest = body.results.front();
    for (Value result : body.results)
      if (numElements(result) > numElements(largest))
        largest = result;
    ArrayRef<int64_t> shape = tensorType(largest).getShape();
    int64_t columns = shape.empty() ? 1 : shape.back();
    domain = std::make_pair(numElements(largest) / std::max<int64_t>(columns, 1), columns);
  }
  std::tie(program.rows, program.columns) = *domain;
  return program.rows > 0 && program.columns > 0 ? true : fail("a tensor has no elements");
}

void ProgramBuilder::reset(const std::set<int64_t> &bounds) {
  split.reset();
  memo.clear(), digitNodes.clear(), integers.clear(), reduceNodes.clear();
  program.nodes.clear(), program.roots.clear(), program.reductions.clear(), program.segments.clear();
  for (auto it = bounds.begin(); std::next(it) != bounds.end(); ++it)
    program.segments.push_back({*it, *std::next(it)});
}

/// The digits of the row-major element number over rows and columns, for each dimension of a shape: the innermost
/// dimensions are columns. Row digits count from `rowStride`. Fails when no border between dimensions is the border
/// between rows and columns.
std::optional<Indices> ProgramBuilder::digits(ArrayRef<int64_t> shape, int64_t columns, int64_t rowStride) const {
  Indices index(shape.size());
  int64_t columnStride = 1;
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    if (shape[dim] == 1)
      continue;
    if (columnStride < columns) {
      index[dim] = Index::digit(Index::Column, columnStride, shape[dim]);
      columnStride *= shape[dim];
      if (columnStride > columns)
        return std::nullopt;
      continue;
    }
    index[dim] = Index::digit(Index::Row, rowStride, shape[dim]);
    rowStride *= shape[dim];
  }
  if (columnStride != columns)
    return std::nullopt;
  return index;
}

bool ProgramBuilder::pullRoots() {
  for (unsigned result = 0; result < body.results.size(); ++result)
    if (!pullRoot(result))
      return false;
  for (auto [number, node] : llvm::enumerate(program.nodes))
    node.id = number;
  return true;
}

bool ProgramBuilder::pullRoot(unsigned result) {
  Value value = body.results[result];
  Root root;
  root.result = result;
  auto reduce = value.getDefiningOp<ReduceOp>();
  if (reduce && !body.ops.contains(reduce))
    reduce = nullptr;
  Value source = value;
  std::optional<Indices> at;
  if (reduce && program.form == KernelProgram::Total) {
    root.kind = Root::Total, root.reduction = reduce.getKind();
    root.index = Indices(tensorType(value).getRank());
    source = reduce.getInput(), at = fullIndices(source);
  } else if (reduce && reduceShape(reduce)->inner > 1) {
    root.kind = Root::ColumnReduce, root.reduction = reduce.getKind();
    std::optional<Indices> index = digits(tensorType(value).getShape(), program.columns, program.rows / program.outer);
    if (!index)
      return fail("a reduction over rows does not fit the other operations");
    root.index = *index;
    source = reduce.getInput(), at = fullIndices(source);
  } else if (program.columns > 1 && numElements(value) == program.rows * program.columns) {
    root.kind = Root::Full;
    at = fullIndices(value);
    root.index = at ? *at : Indices();
  } else if (numElements(value) == program.rows) {
    root.kind = Root::Row;
    at = digits(tensorType(value).getShape(), 1, 1);
    root.index = *at;
  }
  if (!at)
    return fail("a result does not have the rows and columns of the others");
  if (reduce && root.kind != Root::Row && !(root.kind == Root::Full))
    if (llvm::any_of(reduce->getUsers(), [&](Operation *user) { return body.ops.contains(user); }))
      return fail("a reduction over rows is used where it is computed");
  unsigned count = root.kind == Root::Row ? 1 : program.segments.size();
  for (segment = 0; segment < count; ++segment) {
    Node *node = pull(source, *at);
    if (!node)
      return false;
    if (root.kind == Root::Row && node->onColumn)
      return fail("a value per row depends on the column");
    root.nodes.push_back(node);
  }
  program.roots.push_back(std::move(root));
  return true;
}

Node *ProgramBuilder::create(Node::Kind kind, Type type, ArrayRef<Node *> operands) {
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

Node *ProgramBuilder::primitive(Primitive op, ArrayRef<Node *> operands, Type type) {
  Node *node = create(Node::Primitive, type ? type : operands.front()->type, operands);
  node->primitive = op, ++node->cost;
  return node;
}

Node *ProgramBuilder::integer(int64_t value) {
  Node *&node = integers[value];
  if (!node) {
    node = create(Node::Constant, IntegerType::get(context, 64), {});
    node->constant = IntegerAttr::get(node->type, value);
  }
  return node;
}

Node *ProgramBuilder::toNode(const Index &index) {
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

Node *ProgramBuilder::toInteger(Node *node) {
  Type i64 = IntegerType::get(context, 64);
  return node->type == i64 ? node : primitive(Primitive::Convert, {node}, i64);
}

Node *ProgramBuilder::pull(Value value, const Indices &index) {
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

Node *ProgramBuilder::pullOp(Operation *op, const Indices &index) {
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

Node *ProgramBuilder::pullReduce(ReduceOp op, const Indices &index) {
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

Node *ProgramBuilder::pullConcat(ConcatOp op, const Indices &index) {
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

Node *ProgramBuilder::pullPad(PadOp op, const Indices &index) {
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
bool ProgramBuilder::reshapeIndices(ArrayRef<int64_t> from, ArrayRef<int64_t> to, const Indices &index, Indices &out) {
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

static std::unique_ptr<KernelProgram> buildProgram(const KernelBody &body, std::string &error, bool flat) {
  if (body.results.empty()) {
    error = "it has no results";
    return nullptr;
  }
  auto program = std::make_unique<KernelProgram>();
  if (!ProgramBuilder(body, *program, error).build(flat))
    return nullptr;
  return program;
}

std::unique_ptr<KernelProgram> KernelProgram::build(const KernelBody &body, std::string &error) {
  return buildProgram(body, error, /*flat=*/false);
}

std::unique_ptr<KernelProgram> KernelProgram::buildFlat(const KernelBody &body, std::string &error) {
  return buildProgram(body, error, /*flat=*/true);
}
