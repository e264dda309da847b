//===- KernelProgram.cpp - The form and the results of a loop nest ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelProgramBuilder.h"

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

bool KernelProgramBuilder::chooseFlatDomain() {
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

bool KernelProgramBuilder::chooseDomain() {
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

void KernelProgramBuilder::reset(const std::set<int64_t> &bounds) {
  split.reset();
  memo.clear(), digitNodes.clear(), integers.clear(), reduceNodes.clear();
  program.nodes.clear(), program.roots.clear(), program.reductions.clear(), program.segments.clear();
  for (auto it = bounds.begin(); std::next(it) != bounds.end(); ++it)
    program.segments.push_back({*it, *std::next(it)});
}

/// The digits of the row-major element number over rows and columns, for each dimension of a shape: the innermost
/// dimensions are columns. Row digits count from `rowStride`. Fails when no border between dimensions is the border
/// between rows and columns.
std::optional<Indices> KernelProgramBuilder::digits(ArrayRef<int64_t> shape, int64_t columns, int64_t rowStride) const {
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

bool KernelProgramBuilder::pullRoots() {
  for (unsigned result = 0; result < body.results.size(); ++result)
    if (!pullRoot(result))
      return false;
  for (auto [number, node] : llvm::enumerate(program.nodes))
    node.id = number;
  return true;
}

bool KernelProgramBuilder::pullRoot(unsigned result) {
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

static std::unique_ptr<KernelProgram> buildProgram(const KernelBody &body, std::string &error, bool flat) {
  if (body.results.empty()) {
    error = "it has no results";
    return nullptr;
  }
  auto program = std::make_unique<KernelProgram>();
  if (!KernelProgramBuilder(body, *program, error).build(flat))
    return nullptr;
  return program;
}

std::unique_ptr<KernelProgram> KernelProgram::build(const KernelBody &body, std::string &error) {
  return buildProgram(body, error, /*flat=*/false);
}

std::unique_ptr<KernelProgram> KernelProgram::buildFlat(const KernelBody &body, std::string &error) {
  return buildProgram(body, error, /*flat=*/true);
}
