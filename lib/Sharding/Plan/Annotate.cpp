//===- Annotate.cpp - The mesh and the default plan -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "Padding/PadStorage.h"
#include "Padding/PaddingMasks.h"
#include "Plan/ContextPlan.h"
#include "Plan/ExpandVocabulary.h"
#include "Plan/KeyHeadCopies.h"
#include "Plan/Plan.h"
#include "Plan/TensorPlan.h"
#include "Plan/UserAnnotations.h"
#include "Program.h"
#include "Reshard/GatherUnits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Schedule/Placement.h"
#include "nd/Sharding/Options.h"
#include "nd/Sharding/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

namespace nd {
#define GEN_PASS_DEF_ANNOTATE
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

FailureOr<MeshOp> createMesh(ModuleOp module, const ShardingOptions &options) {
  MLIRContext *context = module.getContext();
  SmallVector<Attribute> axes = llvm::map_to_vector(options.axes, [&](const ShardingOptions::Axis &axis) -> Attribute {
    return MeshAxisAttr::get(context, StringAttr::get(context, axis.name), axis.size, axis.role);
  });
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  auto mesh = MeshOp::create(builder, module.getLoc(), "mesh", builder.getArrayAttr(axes));
  llvm::Expected<System> system = System::find(options.system);
  if (!system)
    return module.emitError() << llvm::toString(system.takeError());
  llvm::Expected<NodeLayout> layout = placeMesh(mesh, *system, options.nodes);
  if (!layout)
    return module.emitError() << llvm::toString(layout.takeError());
  mesh.setNodes(layout->getNumNodes());
  return mesh;
}

/// A use of a constant, or of a number everywhere, must not tie its sharding to that of another use.
void copyConstantsPerUse(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(body)) {
    auto broadcast = dyn_cast<BroadcastOp>(op);
    bool isNumber = broadcast && broadcast.getInput().getType().getRank() == 0;
    if ((!isNumber && !isa<arith::ConstantOp>(op)) || op.use_empty())
      continue;
    for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(op.getUses()))) {
      OpBuilder builder(&op);
      use.set(builder.clone(op)->getResult(0));
    }
  }
}

/// A parameter is rounded once, on its stored shards: recomputing that would gather it once more.
void roundParametersOnce(Block &body) {
  DenseMap<std::pair<Value, Type>, Value> rounded;
  for (auto round : llvm::make_early_inc_range(body.getOps<arith::TruncFOp>())) {
    if (!isa<BlockArgument>(round.getIn()))
      continue;
    auto [it, inserted] = rounded.try_emplace({round.getIn(), round.getType()}, round.getResult());
    if (inserted)
      continue;
    round.getResult().replaceAllUsesWith(it->second);
    round.erase();
  }
}

/// A parameter's transpose or expansion that forward and backward both read is computed in each: otherwise backward
/// would hold on to what forward gathered.
LogicalResult copyParameterFormsPerPhase(Program &program) {
  FailureOr<Analysis> analysis = Analysis::get(program);
  if (failed(analysis))
    return failure();
  for (const Analysis::Step &step : llvm::reverse(analysis->getSteps())) {
    Operation *op = step.op;
    if (!isa<TransposeOp, ReshapeOp, BroadcastOp, SliceOp>(op) || !analysis->isForward(op) ||
        !getWeightBehind(op->getResult(0), program.function))
      continue;
    SmallVector<OpOperand *> backward;
    for (OpOperand &use : op->getUses())
      if (!analysis->isForward(use.getOwner()))
        backward.push_back(&use);
    if (backward.empty() || backward.size() == llvm::range_size(op->getUses()))
      continue;
    Operation *first = backward.front()->getOwner();
    for (OpOperand *use : backward)
      if (use->getOwner()->isBeforeInBlock(first))
        first = use->getOwner();
    Operation *copy = OpBuilder(first).clone(*op);
    for (OpOperand *use : backward)
      use->set(copy->getResult(0));
  }
  return success();
}

/// Sizes that the mesh divides: classes that the tensor axes shard, and the sequence, which cp stores in so many chunks
/// a rank, and the tensor axes shard again.
PaddedSizes paddedSizes(const ShardingOptions &options, const Analysis &analysis, const TensorPlan *plan,
                        const llvm::DenseSet<DimensionClasses::Id> &sequence, int64_t chunks) {
  PaddedSizes sizes;
  auto sizeOf = [&](AxisRole role) {
    const ShardingOptions::Axis *axis = options.findAxis(role);
    return axis ? axis->size : 1;
  };
  int64_t tensor = sizeOf(AxisRole::tensor), context = sizeOf(AxisRole::context);
  if (plan)
    for (const auto &[id, choice] : plan->getChoices()) {
      int64_t size = analysis.getClasses().getSize(id), parts = choice.parts == 0 ? tensor : choice.parts;
      if (size % parts != 0)
        sizes[id] = llvm::alignTo(size, parts);
    }
  int64_t shards = context * (plan && options.sequenceParallel ? tensor : 1);
  int64_t multiple = std::lcm(chunks * context, shards);
  for (DimensionClasses::Id id : sequence)
    if (int64_t size = analysis.getClasses().getSize(id); size % multiple != 0)
      sizes[id] = llvm::alignTo(size, multiple);
  return sizes;
}

/// Sizes that do not divide are padded, but an axis with more ranks than any of its dimensions has elements leaves
/// ranks with nothing but padding.
LogicalResult checkExtents(Program &program, const Analysis &analysis, const ShardingOptions &options,
                           const TensorPlan *plan, const llvm::DenseSet<DimensionClasses::Id> &sequence) {
  auto refuse = [&](const ShardingOptions::Axis &axis, const Twine &dimension, int64_t size) {
    return program.function.emitError() << axis.name << " = " << axis.size << " is more than " << dimension
                                        << ", of size " << size << "; sizes of " << axis.name << " that work: 1 to "
                                        << size;
  };
  const DimensionClasses &classes = analysis.getClasses();
  const ShardingOptions::Axis *context = options.findAxis(AxisRole::context),
                              *tensor = options.findAxis(AxisRole::tensor);
  std::string largestName;
  int64_t largest = 0;
  for (BlockArgument argument : program.getBody().getArguments())
    for (int64_t dim : llvm::seq(cast<RankedTensorType>(argument.getType()).getRank())) {
      std::string name = ("dimension " + Twine(dim) + " of " + describe(argument)).str();
      bool isChosen = false;
      int64_t size = 1; // of the classes that the tensor axes shard
      for (DimensionClasses::Id id : classes.getDim(argument, dim)) {
        if (context && sequence.contains(id) && context->size > classes.getSize(id))
          return refuse(*context, name, classes.getSize(id));
        if (plan && plan->getChoices().contains(id)) {
          isChosen = true;
          size *= classes.getSize(id);
        }
      }
      // Heads may be padded already.
      if (auto logical =
              program.function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), names::kGlobalShape))
        size = std::min(size, logical[dim]);
      if (isChosen && size > largest) {
        largest = size;
        largestName = name;
      }
    }
  if (largest && tensor->size > largest)
    return refuse(*tensor, "any dimension that it can shard: the largest is part of " + largestName, largest);
  return success();
}

/// Sizes of the axes that share the storage of a parameter.
SmallVector<int64_t> storageSizes(const ShardingOptions &options) {
  SmallVector<int64_t> sizes;
  if (options.findAxis(AxisRole::shard))
    for (AxisRole role : {AxisRole::shard, AxisRole::context})
      if (const ShardingOptions::Axis *axis = options.findAxis(role); axis && axis->size > 1)
        sizes.push_back(axis->size);
  return sizes;
}

DictionaryAttr describePlan(MLIRContext *context, const ShardingOptions &options) {
  Builder builder(context);
  NamedAttrList entries;
  entries.append("zero", builder.getI64IntegerAttr(options.zero));
  entries.append("keep_gathered", builder.getBoolAttr(options.keepGathered));
  entries.append("sequence_parallel", builder.getBoolAttr(options.sequenceParallel));
  if (options.fsdpUnit != "block")
    entries.append("fsdp_unit", builder.getStringAttr(options.fsdpUnit));
  return entries.getDictionary(context);
}

struct Annotate : nd::impl::AnnotateBase<Annotate> {
  using AnnotateBase::AnnotateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<ShardingOptions> options = ShardingOptions::parse(shard, ranks);
    if (!options) {
      module.emitError() << llvm::toString(options.takeError());
      return signalPassFailure();
    }
    FailureOr<Program> program = Program::get(module);
    if (failed(program))
      return signalPassFailure();
    if (program->mesh) {
      program->mesh.emitError() << "the module has a mesh already; annotate a program once";
      return signalPassFailure();
    }
    options->zero = zero;
    options->annotations.assign(annotations.begin(), annotations.end());
    options->keepGathered = keepGathered;
    options->fsdpUnit = fsdpUnit;
    options->cpMode = cpMode;
    options->sequenceParallel = sequenceParallel;
    options->system = systemName;
    options->nodes = nodes;
    if (failed(plan(*program, *options)))
      signalPassFailure();
  }

  LogicalResult plan(Program &program, ShardingOptions &options) {
    ModuleOp module = getOperation();
    copyConstantsPerUse(program.getBody());
    roundParametersOnce(program.getBody());
    if (failed(checkUnitRule(program.function, options.fsdpUnit)) || failed(planContext(program, options)))
      return failure();
    const ShardingOptions::Axis *tensor = options.findAxis(AxisRole::tensor);
    const int64_t tensorSize = tensor ? tensor->size : 1;
    if (failed(expandKeyHeads(program, tensorSize)))
      return failure();
    SmallVector<Value> logits;
    if (tensorSize > 1) {
      FailureOr<SmallVector<Value>> found = expandVocabulary(program, tensorSize);
      if (failed(found))
        return failure();
      logits = *found;
    }
    if (failed(copyParameterFormsPerPhase(program)))
      return failure();
    FailureOr<Analysis> analysis = Analysis::get(program);
    if (failed(analysis))
      return failure();
    std::optional<TensorPlan> tensorPlan;
    auto planTensors = [&] {
      if (tensorSize > 1) {
        tensorPlan.emplace(program, *analysis, logits);
        tensorPlan->run(tensorSize);
      }
    };
    planTensors();
    llvm::DenseSet<DimensionClasses::Id> sequence = findSequence(program, *analysis);
    if (failed(checkExtents(program, *analysis, options, tensorPlan ? &*tensorPlan : nullptr, sequence)))
      return failure();
    // Masks of padding, which know how the sequence is stored, come later.
    if (failed(checkStoredOrder(program, *analysis)))
      return failure();
    PaddedSizes sizes =
        paddedSizes(options, *analysis, tensorPlan ? &*tensorPlan : nullptr, sequence, storedOrder(program) ? 2 : 1);
    if (!sizes.empty()) {
      if (failed(padDimensions(program, *analysis, sizes, sequence)) ||
          failed(maskPadding(program, *analysis, sizes, sequence, storedOrder(program))))
        return failure();
      analysis = Analysis::get(program);
      if (failed(analysis))
        return failure();
      planTensors();
    }
    if (tensorPlan && failed(splitTensorAxis(options, *tensorPlan)))
      return failure();
    FailureOr<MeshOp> mesh = createMesh(module, options);
    if (failed(mesh))
      return failure();
    program.mesh = *mesh;
    if (failed(applyUserAnnotations(program, options.annotations)))
      return failure();
    // What the user has placed keeps its shape.
    auto cuts = [&](BlockArgument weight, int64_t dim) {
      int64_t parts = 1;
      if (tensorPlan)
        for (DimensionClasses::Id id : analysis->getClasses().getDim(weight, dim))
          if (auto it = tensorPlan->getChoices().find(id); it != tensorPlan->getChoices().end())
            parts *= it->second.parts == 0 ? tensorSize : it->second.parts;
      return parts;
    };
    if (padStorage(program, storageSizes(options), options.zero == 3, cuts)) {
      if (failed(copyParameterFormsPerPhase(program)))
        return failure();
      analysis = Analysis::get(program);
      if (failed(analysis))
        return failure();
      planTensors();
    }
    module->setAttr(names::kPlan, describePlan(&getContext(), options));
    if (failed(Plan(program, *analysis, tensorPlan ? &*tensorPlan : nullptr, options).annotate()))
      return failure();
    return sumKeyHeadCopies(program);
  }

  /// kv heads fewer than the tensor axis take its major part: the mesh then has the parts as axes of their own.
  LogicalResult splitTensorAxis(ShardingOptions &options, const TensorPlan &plan) {
    SmallVector<int64_t> cuts;
    for (const auto &[id, choice] : plan.getChoices())
      if (choice.majorParts > 1 && !llvm::is_contained(cuts, choice.majorParts))
        cuts.push_back(choice.majorParts);
    if (cuts.empty())
      return success();
    llvm::sort(cuts);
    auto *axis = llvm::find_if(options.axes, [](const auto &axis) { return axis.role == AxisRole::tensor; });
    ShardingOptions::Axis whole = *axis;
    cuts.push_back(whole.size);
    options.axes.erase(axis);
    int64_t before = 1;
    for (auto [index, cut] : llvm::enumerate(cuts)) {
      if (cut % before != 0)
        return getOperation().emitError()
               << "attentions with " << before << " and " << cut << " kv heads cannot share tensor axis '" << whole.name
               << "' of size " << whole.size << "; use a size that the numbers of kv heads are multiples of";
      options.axes.push_back({whole.name + "." + std::to_string(index), whole.role, cut / before});
      before = cut;
    }
    return success();
  }
};

} // namespace
