//===- FormKernels.cpp - Groups operations into kernels -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Grouping.h"
#include "nd/Codegen/Kernels/Passes.h"
#include "nd/Dialect/ND/IR/Builders.h"

#include "mlir/IR/IRMapping.h"

namespace nd {
#define GEN_PASS_DEF_NDFORMKERNELS
#include "nd/Codegen/Kernels/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// Reductions over dimensions that are not adjacent become several, the innermost dimensions first; those that combine
/// single elements become reshapes.
void splitReductions(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce)
      continue;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(reduce.getInput().getType()).getShape();
    OpBuilder builder(reduce);
    Location loc = reduce.getLoc();
    ArrayRef<int64_t> result = cast<RankedTensorType>(reduce.getType()).getShape();
    Value value;
    if (llvm::all_of(reduce.getDims(), [&](int64_t dim) { return shape[dim] == 1; })) {
      value = reshape(builder, loc, reduce.getInput(), result);
    } else if (!reduceShape(reduce)) {
      SmallVector<int64_t> dims(reduce.getDims());
      llvm::sort(dims);
      SmallVector<int64_t> inner = {dims.pop_back_val()};
      while (!dims.empty() &&
             (dims.back() + 1 == inner.back() ||
              llvm::all_of(llvm::seq(dims.back() + 1, inner.back()), [&](int64_t dim) { return shape[dim] == 1; })))
        inner.push_back(dims.pop_back_val());
      value = nd::reduce(builder, loc, reduce.getKind(), reduce.getInput(), inner);
      value = nd::reduce(builder, loc, reduce.getKind(), value, dims);
    } else {
      continue;
    }
    reduce.replaceAllUsesWith(value);
    reduce.erase();
  }
}

/// Sums that a loop carries start from zeros that only loops read: these are no kernel's work.
void separateZeros(Block &block) {
  for (auto loop : llvm::make_early_inc_range(block.getOps<RepeatOp>()))
    for (OpOperand &operand : loop.getCarriedMutable()) {
      Operation *zero = isZeroSplat(operand.get()) ? operand.get().getDefiningOp() : nullptr;
      if (zero && !startsLoop(zero))
        operand.set(OpBuilder(loop).clone(*zero)->getResult(0));
    }
}

/// Rewrites a block in the order of its groups. Kernels and the views between them are new operations; those outside of
/// kernels move, and read the new values.
class KernelWriter {
public:
  KernelWriter(Block &block, const Grouping &grouping) : block(block), grouping(grouping) {}

  void write() {
    SmallVector<Operation *> before;
    for (Operation &op : block)
      before.push_back(&op);
    for (unsigned number : grouping.getOrder()) {
      const Grouping::Group &group = grouping.getGroup(number);
      if (group.opaque)
        place(grouping.getOp(group.members.front()));
      else
        writeKernel(grouping.bodyOf(number));
    }
    for (Operation *op : llvm::reverse(before))
      if (!placed.contains(op))
        op->erase();
  }

private:
  void place(Operation *op) {
    placed.insert(op);
    op->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        operand.set(replacement(operand.get()));
    });
    op->moveBefore(&block, block.end());
  }

  /// The value outside of kernels that stands for `value`.
  Value replacement(Value value) {
    if (Value known = replacements.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &block || !isView(op))
      return value;
    Value source = replacement(op->getOperand(0));
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    Operation *view = builder.clone(*op);
    view->setOperand(0, source);
    placed.insert(view);
    replacements.map(value, view->getResult(0));
    return view->getResult(0);
  }

  void writeKernel(const KernelBody &body) {
    if (body.results.empty())
      return;
    SmallVector<Value> operands;
    for (Value input : body.inputs)
      operands.push_back(replacement(input));
    SmallVector<Location> locations;
    for (Value result : body.results)
      locations.push_back(result.getLoc());
    Location loc = FusedLoc::get(block.getParentOp()->getContext(), locations);
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    auto kernel = KernelOp::create(builder, loc, TypeRange(ValueRange(body.results)), operands);
    Block *inner = builder.createBlock(&kernel.getBody());
    IRMapping mapping;
    for (Value input : body.inputs)
      mapping.map(input, inner->addArgument(input.getType(), input.getLoc()));
    for (Operation *op : body.ops)
      builder.clone(*op, mapping);
    SmallVector<Value> results;
    for (Value result : body.results)
      results.push_back(mapping.lookup(result));
    YieldOp::create(builder, loc, results);
    replacements.map(ValueRange(body.results), kernel.getResults());
    placed.insert(kernel);
  }

  Block &block;
  const Grouping &grouping;
  llvm::DenseSet<Operation *> placed;
  IRMapping replacements;
};

class FormKernels : public nd::impl::NDFormKernelsBase<FormKernels> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    SmallVector<Block *> blocks;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<KernelOp>(op))
        return WalkResult::skip();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          blocks.push_back(&block);
      return WalkResult::advance();
    });
    for (Block *block : blocks) {
      splitReductions(*block);
      separateZeros(*block);
      Grouping grouping(*block);
      grouping.merge();
      KernelWriter(*block, grouping).write();
    }
  }
};

} // namespace
