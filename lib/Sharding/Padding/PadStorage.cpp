//===- PadStorage.cpp - Parameters that no axis divides -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Padding/PadStorage.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

/// Dimension 0 as `cuts` parts of `size` rows, of which `rows` are real.
struct Layout {
  int64_t cuts, rows, size;
  int64_t padded() const { return cuts * size; }
};

SmallVector<int64_t> withFront(ArrayRef<int64_t> front, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result(front);
  llvm::append_range(result, shape.drop_front());
  return result;
}

/// The real rows of a padded tensor.
Value takeRows(OpBuilder &builder, Location loc, Value padded, const Layout &layout) {
  SmallVector<int64_t> shape(tensorTypeOf(padded).getShape());
  if (layout.cuts == 1)
    return nd::slice(builder, loc, padded, 0, 0, layout.rows);
  Value parts = nd::reshape(builder, loc, padded, withFront({layout.cuts, layout.size}, shape));
  Value real = nd::slice(builder, loc, parts, 1, 0, layout.rows);
  return nd::reshape(builder, loc, real, withFront({layout.cuts * layout.rows}, shape));
}

/// A tensor with zero rows behind those of each part.
Value addRows(OpBuilder &builder, Location loc, Value real, const Layout &layout) {
  RankedTensorType type = tensorTypeOf(real);
  Value zero = scalar(builder, loc, type.getElementType(), 0.0);
  auto pad = [&](Value value, int64_t dim) {
    RankedTensorType from = tensorTypeOf(value);
    SmallVector<int64_t> shape(from.getShape()), none(shape.size(), 0), high(shape.size(), 0);
    high[dim] = layout.size - layout.rows;
    shape[dim] = layout.size;
    return PadOp::create(builder, loc, withShape(from, shape), value, zero, none, high, none).getResult();
  };
  if (layout.cuts == 1)
    return pad(real, 0);
  Value parts = nd::reshape(builder, loc, real, withFront({layout.cuts, layout.rows}, type.getShape()));
  return nd::reshape(builder, loc, pad(parts, 1), withFront({layout.padded()}, type.getShape()));
}

class StoragePadder {
public:
  StoragePadder(Program &program, ArrayRef<int64_t> axisSizes, bool allWeights)
      : function(program.function), axisSizes(axisSizes), allWeights(allWeights) {}

  void pad(BlockArgument weight, const Layout &layout) {
    weightToo = allWeights || isMaster(weight);
    SmallVector<Operation *> updates;
    for (Operation *user : weight.getUsers())
      if (isa<AdamWOp, SgdOp>(user) && user->getOperand(0) == weight)
        updates.push_back(user);
    if (updates.size() != 1)
      return; // frozen: stays whole
    Operation *update = updates.front();
    OpBuilder builder(function.getContext());
    Location loc = weight.getLoc();

    Value gradient = update->getOperand(1);
    update->setOperand(1, padGradient(builder, weight, gradient, layout));
    if (auto sum = gradient.getDefiningOp<AccumulateOp>(); sum && sum.use_empty())
      sum.erase();
    for (Value state : llvm::drop_begin(update->getOperands(), 2))
      if (auto argument = dyn_cast<BlockArgument>(state); argument && argument.getType() == weight.getType())
        grow(argument, layout);
    if (weightToo) {
      padWeight(builder, weight, update, layout);
    } else {
      builder.setInsertionPoint(update);
      update->setOperand(0, addRows(builder, loc, weight, layout));
    }
    for (Value result : update->getResults())
      result.setType(withShape(tensorTypeOf(result), withFront({layout.padded()}, tensorTypeOf(result).getShape())));
    for (Value result : update->getResults())
      describeResults(result, layout);
    if (!weightToo) {
      builder.setInsertionPointAfter(update);
      Value whole = update->getResult(0);
      SmallPtrSet<Operation *, 4> readers(whole.user_begin(), whole.user_end());
      Value real = takeRows(builder, loc, whole, layout);
      whole.replaceUsesWithIf(real, [&](OpOperand &use) { return readers.contains(use.getOwner()); });
    }
  }

private:
  /// Parameters may have one gradient (two biases of one sum). Each has its own padded for its update and as a result;
  /// what else reads it, such as the norm, reads that of the first.
  Value padGradient(OpBuilder &builder, BlockArgument weight, Value gradient, const Layout &layout) {
    SmallPtrSet<Operation *, 8> others;
    if (isPadded.insert(gradient).second)
      for (Operation *user : gradient.getUsers())
        if (!isa<AdamWOp, SgdOp, func::ReturnOp>(user))
          others.insert(user);
    Value &padded = gradients[{gradient, layout.cuts, layout.size}];
    if (!padded) {
      builder.setInsertionPointAfterValue(gradient);
      // Each microbatch pads what it adds, so that sums are of shards.
      auto sum = gradient.getDefiningOp<AccumulateOp>();
      padded = addRows(builder, gradient.getLoc(), sum ? sum.getInput() : gradient, layout);
      if (sum)
        padded = AccumulateOp::create(builder, sum.getLoc(), padded, sum.getCount());
    }
    StringRef name = names::argName(function, weight.getArgNumber());
    gradient.replaceUsesWithIf(padded, [&](OpOperand &use) {
      return others.contains(use.getOwner()) ||
             (isa<func::ReturnOp>(use.getOwner()) && names::resultName(function, use.getOperandNumber()) == name);
    });
    growBehind(padded, tensorTypeOf(gradient).getShape(), layout);
    return padded;
  }

  void padWeight(OpBuilder &builder, BlockArgument weight, Operation *update, const Layout &layout) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : weight.getUses())
      if (use.getOwner() != update)
        uses.push_back(&use);
    grow(weight, layout);
    Value real;
    for (OpOperand *use : uses) {
      // A parameter is rounded as it is stored, and gathered rounded.
      if (auto round = dyn_cast<arith::TruncFOp>(use->getOwner())) {
        Value rounded = round.getResult();
        rounded.setType(tensorTypeOf(weight).clone(tensorTypeOf(rounded).getElementType()));
        builder.setInsertionPointAfter(round);
        SmallPtrSet<Operation *, 8> readers(rounded.user_begin(), rounded.user_end());
        Value rows = takeRows(builder, round.getLoc(), rounded, layout);
        rounded.replaceUsesWithIf(rows, [&](OpOperand &other) { return readers.contains(other.getOwner()); });
        continue;
      }
      if (!real) {
        builder.setInsertionPointToStart(weight.getOwner());
        real = takeRows(builder, weight.getLoc(), weight, layout);
      }
      use->set(real);
    }
  }

  DenseI64ArrayAttr logicalShape(ArrayRef<int64_t> shape) {
    return Builder(function.getContext()).getDenseI64ArrayAttr(shape);
  }

  ArrayAttr blocks(const Layout &layout, int64_t rank) {
    Builder builder(function.getContext());
    SmallVector<Attribute> lists(rank, builder.getArrayAttr({}));
    SmallVector<Attribute> first;
    if (layout.cuts > 1)
      first.push_back(builder.getI64IntegerAttr(layout.rows));
    int64_t block = layout.size;
    for (int64_t axis : axisSizes)
      first.push_back(builder.getI64IntegerAttr(block /= axis));
    lists.front() = builder.getArrayAttr(first);
    return builder.getArrayAttr(lists);
  }

  void grow(BlockArgument argument, const Layout &layout) {
    unsigned index = argument.getArgNumber();
    RankedTensorType type = tensorTypeOf(argument);
    if (!function.getArgAttr(index, names::kGlobalShape))
      function.setArgAttr(index, names::kGlobalShape, logicalShape(type.getShape()));
    function.setArgAttr(index, names::kBlocks, blocks(layout, type.getRank()));
    argument.setType(withShape(type, withFront({layout.padded()}, type.getShape())));
  }

  void describeResults(Value value, const Layout &layout) {
    for (OpOperand &use : value.getUses()) {
      if (!isa<func::ReturnOp>(use.getOwner()))
        continue;
      unsigned index = use.getOperandNumber();
      StringRef kind = names::resultKind(function, index);
      if (kind == names::kind::kWeight && !weightToo)
        continue;
      if (!function.getResultAttr(index, names::kGlobalShape))
        function.setResultAttr(index, names::kGlobalShape,
                               logicalShape(withFront({layout.cuts * layout.rows}, tensorTypeOf(value).getShape())));
      function.setResultAttr(index, names::kBlocks, blocks(layout, tensorTypeOf(value).getRank()));
    }
  }

  /// Operations of the update that compute element by element from a gradient follow its shape; sums count zeros.
  void growBehind(Value value, ArrayRef<int64_t> from, const Layout &layout) {
    describeResults(value, layout);
    for (Operation *user : llvm::make_early_inc_range(value.getUsers())) {
      if (auto element = dyn_cast<ReshapeOp>(user); element && element.getType().getRank() == 0) {
        // The sum of a single element, as canonicalization writes it.
        OpBuilder builder(element);
        element.replaceAllUsesWith(nd::reduceSumAll(builder, element.getLoc(), value));
        element.erase();
        continue;
      }
      if (isa<AdamWOp, SgdOp, ReduceOp, func::ReturnOp>(user))
        continue;
      for (Value result : user->getResults())
        if (tensorTypeOf(result).getShape() == from) {
          result.setType(tensorTypeOf(value).clone(tensorTypeOf(result).getElementType()));
          growBehind(result, from, layout);
        }
    }
  }

  func::FuncOp function;
  SmallVector<int64_t> axisSizes;
  bool allWeights;
  llvm::DenseMap<std::tuple<Value, int64_t, int64_t>, Value> gradients; ///< padded, by cuts and size
  llvm::DenseSet<Value> isPadded;                                       ///< gradients that have been padded
  bool weightToo = false; ///< whether the parameter at hand is stored in shards
};

} // namespace

bool nd::padStorage(Program &program, ArrayRef<int64_t> axisSizes, bool allWeights,
                    llvm::function_ref<int64_t(BlockArgument, int64_t)> tensorCuts) {
  int64_t parts = 1;
  for (int64_t size : axisSizes)
    parts *= size;
  if (parts == 1)
    return false;
  SmallVector<std::pair<BlockArgument, Layout>> padded;
  for (BlockArgument argument : program.getBody().getArguments()) {
    ArrayRef<int64_t> shape = tensorTypeOf(argument).getShape();
    if (names::argKind(program.function, argument.getArgNumber()) != names::kind::kWeight || shape.empty() ||
        program.function.getArgAttr(argument.getArgNumber(), names::kSharding) ||
        llvm::any_of(llvm::seq<int64_t>(shape.size()),
                     [&](int64_t dim) { return shape[dim] / tensorCuts(argument, dim) % parts == 0; }))
      continue;
    int64_t cuts = tensorCuts(argument, 0), rows = shape[0] / cuts;
    padded.push_back({argument, {cuts, rows, static_cast<int64_t>(llvm::alignTo(rows, parts))}});
  }
  StoragePadder padder(program, axisSizes, allWeights);
  for (auto &[argument, layout] : padded)
    padder.pad(argument, layout);
  if (!padded.empty())
    program.function.setFunctionType(FunctionType::get(
        program.function.getContext(), program.getBody().getArgumentTypes(), program.getReturn()->getOperandTypes()));
  return !padded.empty();
}
