//===- Program.cpp - The function that is sharded -------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

bool isTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape();
}

LogicalResult verifyTensors(Operation *op, TypeRange types) {
  for (Type type : types)
    if (!isTensor(type))
      return op->emitError() << "sharding needs values that are tensors of static shape, but '" << op->getName()
                             << "' has one of type " << type;
  return success();
}

} // namespace

FailureOr<Program> Program::get(ModuleOp module) {
  Program program;
  for (Operation &op : *module.getBody()) {
    if (auto mesh = dyn_cast<MeshOp>(op)) {
      if (program.mesh)
        return mesh.emitError() << "a module has one mesh, but this is the second";
      program.mesh = mesh;
    }
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || function.isExternal())
      continue;
    if (program.function) {
      InFlightDiagnostic diagnostic = function.emitError()
                                      << "a model has one function, but @" << function.getName() << " is the second";
      diagnostic.attachNote(program.function.getLoc()) << "the first is here";
      return diagnostic;
    }
    program.function = function;
  }
  if (!program.function)
    return module.emitError() << "there is no function to shard";
  if (!program.function.getBody().hasOneBlock())
    return program.function.emitError() << "sharding needs straight-line code, but @" << program.function.getName()
                                        << " has branches";
  if (failed(verifyTensors(program.function, program.function.getArgumentTypes())))
    return failure();
  for (Operation &op : program.getBody()) {
    if (op.getNumRegions() != 0)
      return op.emitError() << "sharding needs straight-line code, but '" << op.getName() << "' has a region";
    if (failed(verifyTensors(&op, op.getResultTypes())))
      return failure();
  }
  return program;
}

FailureOr<Program> Program::getWithMesh(ModuleOp module) {
  FailureOr<Program> program = get(module);
  if (succeeded(program) && !program->mesh)
    return module.emitError() << "there is no nd.mesh; run nd-annotate first";
  return program;
}

FailureOr<ShardingRule> nd::getShardingRule(Operation *op) {
  auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
  if (!sharded)
    return op->emitError()
           << "'" << op->getName()
           << "' has no sharding rule (ShardingRuleOpInterface), so nd cannot tell how it runs on shards";
  return sharded.getShardingRule();
}

std::string nd::describeArgument(func::FuncOp function, unsigned index) {
  StringRef name = names::argName(function, index);
  if (name.empty())
    return "argument " + std::to_string(index);
  return (names::argKind(function, index) + " '" + name + "'").str();
}

std::string nd::describeResult(func::FuncOp function, unsigned index) {
  StringRef name = names::resultName(function, index);
  if (name.empty())
    return "result " + std::to_string(index);
  return ("result " + names::resultKind(function, index) + " '" + name + "'").str();
}

std::string nd::describe(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      return describeArgument(function, argument.getArgNumber());
  if (auto result = dyn_cast<OpResult>(value))
    return ("result " + Twine(result.getResultNumber()) + " of '" + result.getOwner()->getName().getStringRef() + "'")
        .str();
  return "a value";
}
