//===- Annotate.cpp - The mesh and the default plan -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "MeshView.h"
#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Sharding/Options.h"
#include "nd/Sharding/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace nd {
#define GEN_PASS_DEF_ANNOTATE
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

MeshOp createMesh(ModuleOp module, const ShardingOptions &options) {
  MLIRContext *context = module.getContext();
  SmallVector<Attribute> axes = llvm::map_to_vector(options.axes, [&](const ShardingOptions::Axis &axis) -> Attribute {
    return MeshAxisAttr::get(context, StringAttr::get(context, axis.name), axis.size, axis.role);
  });
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  return MeshOp::create(builder, module.getLoc(), "mesh", builder.getArrayAttr(axes));
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

/// The default plan: data parallelism. The batch is sharded over the axes whose ranks see different data.
class Plan {
public:
  Plan(Program &program, ModuleOp module) : function(program.function), mesh(program.mesh) {
    for (unsigned axis : llvm::seq<unsigned>(mesh.getSizes().size()))
      if (mesh.getSizes()[axis] > 1 &&
          (mesh.getRole(axis) == AxisRole::replicate || mesh.getRole(axis) == AxisRole::shard))
        dataAxes.push_back(axis);
    batch = names::moduleInt(module, names::kModel, "batch");
  }

  LogicalResult annotate() {
    for (unsigned index : llvm::seq(function.getNumArguments()))
      if (failed(annotateArgument(index)))
        return failure();
    for (unsigned index : llvm::seq(function.getNumResults()))
      if (failed(annotateResult(index)))
        return failure();
    return success();
  }

private:
  LogicalResult annotateArgument(unsigned index) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
    if (Attribute given = function.getArgAttr(index, names::kSharding))
      return check(given, type, describeArgument(function, index));
    TensorSharding sharding = TensorSharding::replicated(type.getRank());
    if (names::argKind(function, index).empty())
      return function.emitError() << "argument " << index << " of @" << function.getName()
                                  << " has no nd.kind, so there is no plan for it; give it one, or an nd.sharding";
    if (names::argKind(function, index) == names::kind::kInput && hasBatch(type)) {
      if (failed(checkBatch(index, type.getDimSize(0))))
        return failure();
      sharding.dims.front() = dataAxes;
    }
    function.setArgAttr(index, names::kSharding, mesh.toAttr(sharding));
    return success();
  }

  /// Without `nd.model` the first input says what the batch is.
  bool hasBatch(RankedTensorType type) {
    if (type.getRank() == 0)
      return false;
    if (!batch)
      batch = type.getDimSize(0);
    return type.getDimSize(0) == *batch;
  }

  LogicalResult checkBatch(unsigned index, int64_t size) {
    int64_t parts = numShards(mesh.getSizes(), dataAxes);
    if (size % parts == 0)
      return success();
    SmallVector<std::string> working;
    for (int64_t divisor = 1; divisor <= size && working.size() < 16; ++divisor)
      if (size % divisor == 0)
        working.push_back(std::to_string(divisor));
    return function.emitError() << mesh.str(dataAxes) << " = " << parts << " does not divide the batch: dimension 0 of "
                                << describeArgument(function, index) << " has size " << size << "; sizes of "
                                << mesh.str(dataAxes) << " that work: " << llvm::join(working, ", ")
                                << "; or import with a --batch that is a multiple of " << parts;
  }

  LogicalResult annotateResult(unsigned index) {
    auto type = cast<RankedTensorType>(function.getResultTypes()[index]);
    if (Attribute given = function.getResultAttr(index, names::kSharding))
      return check(given, type, describeResult(function, index));
    StringRef kind = names::resultKind(function, index), name = names::resultName(function, index);
    std::optional<unsigned> argument = names::findArg(function, kind, name);
    if (!argument && kind == names::kind::kGradient)
      argument = names::findArg(function, names::kind::kWeight, name);
    if (argument) {
      if (function.getArgumentTypes()[*argument] != type)
        return function.emitError() << describeResult(function, index) << " has type " << type << ", but "
                                    << describeArgument(function, *argument) << " has type "
                                    << function.getArgumentTypes()[*argument];
      function.setResultAttr(index, names::kSharding, function.getArgAttr(*argument, names::kSharding));
    } else if (kind == names::kind::kMetric) {
      function.setResultAttr(index, names::kSharding, mesh.toAttr(TensorSharding::replicated(type.getRank())));
    }
    return success();
  }

  LogicalResult check(Attribute given, RankedTensorType type, const std::string &tensor) {
    auto sharding = dyn_cast<ShardingAttr>(given);
    if (!sharding)
      return function.emitError() << "nd.sharding of " << tensor << " is " << given
                                  << ", but a #nd.sharding is expected";
    if (sharding.isUnreduced())
      return function.emitError() << tensor
                                  << " is annotated as unreduced; values cross the boundary of a step reduced";
    return mesh.fromAttr(sharding, type.getShape(), tensor, [&] { return function.emitError(); });
  }

  func::FuncOp function;
  MeshView mesh;
  AxisList dataAxes;
  std::optional<int64_t> batch;
};

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
    program->mesh = createMesh(module, *options);
    copyConstantsPerUse(program->getBody());
    if (failed(Plan(*program, module).annotate()))
      signalPassFailure();
  }
};

} // namespace
