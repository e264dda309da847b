//===- FormGemms.cpp - Turns nd.dot_general into nd.gemm -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Codegen/Gemm/Passes.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

namespace nd {
#define GEN_PASS_DEF_NDFORMGEMMS
#include "nd/Codegen/Gemm/Passes.h.inc"
} // namespace nd

namespace {

/// One side of a contraction: a value and its dimensions by role. Batch and free dimensions are in the order in which
/// the result has them; contracted dimensions pair up with the other side's by index. Transposes are folded into the
/// lists.
struct Side {
  Value value;
  SmallVector<int64_t> batch, free, contract;

  int64_t size(ArrayRef<int64_t> dims) const {
    int64_t product = 1;
    for (int64_t dim : dims)
      product *= tensorTypeOf(value).getDimSize(dim);
    return product;
  }
  int64_t size(int64_t dim) const { return tensorTypeOf(value).getDimSize(dim); }
};

/// Replaces a transposed value by what it is the transpose of.
void lookThroughTransposes(Side &side) {
  while (auto transpose = side.value.getDefiningOp<TransposeOp>()) {
    for (SmallVector<int64_t> *dims : {&side.batch, &side.free, &side.contract})
      for (int64_t &dim : *dims)
        dim = transpose.getPermutation()[dim];
    side.value = transpose.getInput();
  }
}

SmallVector<int64_t> join(ArrayRef<int64_t> a, ArrayRef<int64_t> b, ArrayRef<int64_t> c) {
  SmallVector<int64_t> all(a);
  all.append(b.begin(), b.end());
  all.append(c.begin(), c.end());
  return all;
}

/// Whether reading the dimensions in this order is reading memory in order; dimensions of size 1 may be anywhere.
bool isMemoryOrder(const Side &side, ArrayRef<int64_t> order) {
  int64_t last = -1;
  for (int64_t dim : order) {
    if (side.size(dim) == 1)
      continue;
    if (dim < last)
      return false;
    last = dim;
  }
  return true;
}

bool isMatrix(const Side &side) {
  return isMemoryOrder(side, join(side.batch, side.free, side.contract)) ||
         isMemoryOrder(side, join(side.batch, side.contract, side.free));
}

/// A product of one pair of operands, ready to be emitted.
class Contraction {
public:
  explicit Contraction(DotGeneralOp dot) : location(dot.getLoc()), resultType(tensorTypeOf(dot.getResult())) {
    lhs = {dot.getLhs(), llvm::to_vector(dot.getLhsBatch()), dot.getLhsFree(), llvm::to_vector(dot.getLhsContract())};
    rhs = {dot.getRhs(), llvm::to_vector(dot.getRhsBatch()), dot.getRhsFree(), llvm::to_vector(dot.getRhsContract())};
    lookThroughTransposes(lhs);
    lookThroughTransposes(rhs);
  }

  /// Exchanges the operands if that is what transposing the result by `permutation` means.
  bool absorbResultTranspose(ArrayRef<int64_t> permutation, RankedTensorType transposedType) {
    int64_t batch = lhs.batch.size(), left = lhs.free.size(), right = rhs.free.size();
    SmallVector<int64_t> swapped = join(sequence(batch), sequence(right, batch + left), sequence(left, batch));
    if (permutation != ArrayRef(swapped))
      return false;
    std::swap(lhs, rhs);
    resultType = transposedType;
    return true;
  }

  /// The order of contracted dimensions is free: takes the one in which more operands are matrices as they lie.
  void chooseContractOrder() {
    auto sortBy = [](Side &leader, Side &follower) {
      SmallVector<int64_t> order = sequence(leader.contract.size());
      llvm::sort(order, [&](int64_t a, int64_t b) { return leader.contract[a] < leader.contract[b]; });
      for (SmallVector<int64_t> *dims : {&leader.contract, &follower.contract}) {
        SmallVector<int64_t> sorted = llvm::map_to_vector(order, [&](int64_t i) { return (*dims)[i]; });
        *dims = std::move(sorted);
      }
      return isMatrix(leader) + isMatrix(follower);
    };
    int byLeft = sortBy(lhs, rhs);
    if (byLeft < 2 && sortBy(rhs, lhs) < byLeft)
      sortBy(lhs, rhs);
  }

  /// Whether a row of `width` elements along the last dimension of the result is a bias row.
  bool hasRowsOf(int64_t width) const { return rhs.size(rhs.free) == width; }

  Value emit(OpBuilder &builder, Value bias, Value accumulator) {
    bool transposeLhs = false, transposeRhs = false;
    int64_t batch = lhs.size(lhs.batch), m = lhs.size(lhs.free), n = rhs.size(rhs.free);
    Value a = emitMatrix(builder, lhs, /*freeFirst=*/true, transposeLhs);
    Value b = emitMatrix(builder, rhs, /*freeFirst=*/false, transposeRhs);
    // Libraries take the bias in f32.
    if (bias)
      bias = convertFloat(builder, location, bias, builder.getF32Type());
    SmallVector<int64_t> shape = batch == 1 ? SmallVector<int64_t>{m, n} : SmallVector<int64_t>{batch, m, n};
    if (accumulator)
      accumulator = reshape(builder, location, accumulator, shape);
    Value product = GemmOp::create(builder, location, withShape(resultType, shape), a, b, bias, accumulator,
                                   transposeLhs, transposeRhs);
    return reshape(builder, location, product, resultType.getShape());
  }

private:
  /// [G, free, contract] with `freeFirst`, else [G, contract, free]; `transposed` when the two are the other way around
  /// in memory.
  Value emitMatrix(OpBuilder &builder, const Side &side, bool freeFirst, bool &transposed) {
    ArrayRef<int64_t> first = freeFirst ? side.free : side.contract, second = freeFirst ? side.contract : side.free;
    Value value = side.value;
    int64_t batch = side.size(side.batch), rows = side.size(first), columns = side.size(second);
    transposed = false;
    if (!isMemoryOrder(side, join(side.batch, first, second))) {
      transposed = isMemoryOrder(side, join(side.batch, second, first));
      if (!transposed)
        value = transpose(builder, location, value, join(side.batch, first, second));
    }
    if (transposed)
      std::swap(rows, columns);
    SmallVector<int64_t> shape{rows, columns};
    if (batch != 1)
      shape.insert(shape.begin(), batch);
    return reshape(builder, location, value, shape);
  }

  Location location;
  RankedTensorType resultType;
  Side lhs, rhs;
};

/// The row that a broadcast along the last dimension repeats.
Value matchBiasRow(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  int64_t rank = tensorTypeOf(value).getRank();
  return broadcast.getDims() == ArrayRef<int64_t>{rank - 1} ? broadcast.getInput() : Value();
}

/// The bias that is added to a rounded product in f32 and rounded again: one rounding is enough.
struct RoundedBias {
  Value row;
  Operation *end; ///< the second rounding
};

std::optional<RoundedBias> matchRoundedBias(Value product) {
  if (!product.hasOneUse())
    return std::nullopt;
  auto widened = dyn_cast<arith::ExtFOp>(*product.user_begin());
  if (!widened || !widened->hasOneUse())
    return std::nullopt;
  auto add = dyn_cast<arith::AddFOp>(*widened->user_begin());
  if (!add || !add->hasOneUse())
    return std::nullopt;
  auto rounded = dyn_cast<arith::TruncFOp>(*add->user_begin());
  Value row = matchBiasRow(add.getLhs() == widened.getResult() ? add.getRhs() : add.getLhs());
  if (!rounded || rounded.getType() != product.getType() || !row)
    return std::nullopt;
  return RoundedBias{row, rounded};
}

/// Whether a value is a loop's carried sum, which `next` becomes the next value of, with nothing but scatters on top.
bool isCarriedSum(Value value, Value next) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<RepeatOp>(argument.getOwner()->getParentOp()) : RepeatOp();
  if (!loop || !value.hasOneUse() || !llvm::is_contained(loop.getCarriedArguments(), value))
    return false;
  while (next.hasOneUse()) {
    auto scatter = dyn_cast<ScatterAddOp>(*next.user_begin());
    if (!scatter || scatter.getInit() != next)
      break;
    next = scatter;
  }
  unsigned index = argument.getArgNumber() - loop.getSliced().size();
  return next.hasOneUse() && loop.getYield().getOperand(index) == next;
}

/// Whether a value is a product of its own, which a later product may overwrite.
bool isFreshProduct(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    if (!value.hasOneUse())
      return false;
    value = reshape.getInput();
  }
  return value.hasOneUse() && value.getDefiningOp<GemmOp>();
}

/// Forms the product of one contraction and what follows it; all earlier contractions of the block are products
/// already.
void formGemm(DotGeneralOp dot) {
  Contraction contraction(dot);
  Operation *last = dot;
  Value bias, accumulator;
  if (dot->hasOneUse())
    if (auto transpose = dyn_cast<TransposeOp>(*dot->user_begin()))
      if (contraction.absorbResultTranspose(transpose.getPermutation(), tensorTypeOf(transpose.getResult())))
        last = transpose;
  contraction.chooseContractOrder();

  if (std::optional<RoundedBias> rounded = matchRoundedBias(last->getResult(0));
      rounded && contraction.hasRowsOf(tensorTypeOf(rounded->row).getDimSize(0))) {
    bias = rounded->row;
    last = rounded->end;
  }
  while (last->hasOneUse()) {
    auto add = dyn_cast<arith::AddFOp>(*last->user_begin());
    if (!add || add.getLhs() == add.getRhs())
      break;
    Value other = add.getLhs() == last->getResult(0) ? add.getRhs() : add.getLhs();
    Value row = matchBiasRow(other);
    // The bias is added before the accumulator, as it was.
    if (row && !bias && !accumulator && contraction.hasRowsOf(tensorTypeOf(row).getDimSize(0)))
      bias = row;
    else if (!accumulator && (isFreshProduct(other) || isCarriedSum(other, add)))
      accumulator = other;
    else
      break;
    last = add;
  }

  OpBuilder builder(last);
  last->getResult(0).replaceAllUsesWith(contraction.emit(builder, bias, accumulator));
  // The chain from the last addition back to the contraction is dead, and so may be the transposes and broadcasts that
  // it read.
  SmallVector<Operation *> worklist{last};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (!isOpTriviallyDead(op))
      continue;
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      if (Operation *def = operand.getDefiningOp(); def && !llvm::is_contained(worklist, def))
        worklist.push_back(def);
  }
}

/// Libraries multiply f32 and bf16; f16 is multiplied in f32 and rounded once.
LogicalResult widenHalf(DotGeneralOp dot) {
  Type element = dot.getLhs().getType().getElementType();
  if (element.isF32() || element.isBF16())
    return success();
  if (!element.isF16())
    return dot.emitOpError() << "a product of " << element
                             << " cannot be computed; cast its operands to f32, bf16 or f16";
  OpBuilder builder(dot);
  Location loc = dot.getLoc();
  Type f32 = builder.getF32Type();
  Value product = dotGeneral(builder, loc, convertFloat(builder, loc, dot.getLhs(), f32),
                             convertFloat(builder, loc, dot.getRhs(), f32), dot.getLhsBatch(), dot.getRhsBatch(),
                             dot.getLhsContract(), dot.getRhsContract(), f32);
  dot.replaceAllUsesWith(convertFloat(builder, loc, product, tensorTypeOf(dot.getResult()).getElementType()));
  dot.erase();
  return success();
}

/// The products of a function and of the loops in it.
SmallVector<DotGeneralOp> productsOf(func::FuncOp function) {
  SmallVector<DotGeneralOp> products;
  function.walk([&](DotGeneralOp product) { products.push_back(product); });
  return products;
}

struct FormGemms : nd::impl::NDFormGemmsBase<FormGemms> {
  void runOnOperation() override {
    for (DotGeneralOp dot : productsOf(getOperation()))
      if (failed(widenHalf(dot)))
        return signalPassFailure();
    for (DotGeneralOp dot : productsOf(getOperation()))
      formGemm(dot);
  }
};

} // namespace
