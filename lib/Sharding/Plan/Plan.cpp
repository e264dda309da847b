//===- Plan.cpp - The default plan of a step ------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Plan/Plan.h"
#include "Plan/ContextPlan.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

bool isState(StringRef kind) {
  return kind == names::kind::kExpAvg || kind == names::kind::kExpAvgSq || kind == names::kind::kMomentum;
}

/// `1, 2, 4`
std::string divisorsOf(int64_t size) {
  SmallVector<std::string> divisors;
  for (int64_t divisor = 1; divisor <= size && divisors.size() < 16; ++divisor)
    if (size % divisor == 0)
      divisors.push_back(std::to_string(divisor));
  return llvm::join(divisors, ", ");
}

} // namespace

Plan::Plan(Program &program, const Analysis &analysis, const TensorPlan *tensorPlan, const ShardingOptions &options)
    : program(program), function(program.function), analysis(analysis), tensorPlan(tensorPlan), options(options),
      mesh(program.mesh), attributes(program.function), signature(program.function),
      settled(analysis.getClasses(), mesh) {
  bool storesShards = options.findAxis(AxisRole::shard) != nullptr;
  for (unsigned axis : llvm::seq<unsigned>(mesh.getSizes().size())) {
    if (mesh.getSizes()[axis] == 1)
      continue;
    AxisRole role = mesh.getRole(axis);
    if (role == AxisRole::tensor)
      tensorAxes.push_back(axis);
    else if (role == AxisRole::context)
      contextAxes.push_back(axis);
    else
      dataAxes.push_back(axis);
    if (storesShards && (role == AxisRole::shard || role == AxisRole::context))
      storageAxes.push_back(axis);
  }
  auto module = program.function->getParentOfType<ModuleOp>();
  batch = names::moduleInt(module, names::kModel, "batch");
  sequence = findSequence(program, analysis);
}

LogicalResult Plan::annotate() {
  if (failed(settleClasses()))
    return failure();
  for (unsigned index : llvm::seq(function.getNumArguments())) {
    auto type = typeOf(function.getArgument(index));
    StringRef kind = names::argKind(function, index);
    if (kind.empty() && !attributes.getArg(index, names::kSharding))
      return function.emitError() << "argument " << index << " of @" << function.getName()
                                  << " has no nd.kind, so there is no plan for it; give it one, or an nd.sharding";
    LogicalResult done = success();
    if (kind == names::kind::kInput)
      done = annotateInput(index);
    else if (kind == names::kind::kWeight)
      done = annotateWeight(index);
    else if (isState(kind))
      done = annotateState(index);
    else if (Attribute given = attributes.getArg(index, names::kSharding))
      done = checkGiven(given, type, describeArgument(function, index));
    else
      attributes.setArg(index, names::kSharding, mesh.toAttr(TensorSharding::replicated(type.getRank())));
    if (failed(done))
      return failure();
  }
  for (unsigned index : llvm::seq(function.getNumResults()))
    if (failed(annotateResult(index)))
      return failure();
  setBlocks();
  noteExchanges();
  return success();
}

LogicalResult Plan::settleClasses() {
  for (BlockArgument weight : function.getArguments()) {
    unsigned index = weight.getArgNumber();
    if (names::argKind(function, index) != names::kind::kWeight)
      continue;
    Attribute given = attributes.getArg(index, names::kSharding);
    if (!given) {
      settled.add(weight, plannedUse(weight, nullptr), /*byUser=*/false);
      continue;
    }
    if (failed(checkGiven(given, typeOf(weight), describeArgument(function, index))))
      return failure();
    FailureOr<TensorSharding> sharding = mesh.fromArgument(function, weight);
    if (failed(sharding))
      return failure();
    settled.add(weight, tensorPart(*sharding), /*byUser=*/true);
  }
  return success();
}

TensorSharding Plan::tensorPart(TensorSharding sharding) {
  for (AxisList &axes : sharding.dims)
    llvm::erase_if(axes, [&](unsigned axis) { return mesh.getRole(axis) != AxisRole::tensor; });
  return sharding;
}

void Plan::noteExchanges() {
  if (exchanged.empty())
    return;
  SmallVector<Attribute> notes;
  for (const auto &[sharding, weights] : exchanged) {
    std::string more = weights.size() > 1 ? llvm::formatv(" (and {0} more)", weights.size() - 1).str() : "";
    std::string text = llvm::formatv("{0}{1}: stored as annotated, but used as {2}, and exchanged each time: other "
                                     "parameters share dimensions with it, and are sharded otherwise",
                                     describeArgument(function, weights.front()), more, sharding);
    notes.push_back(StringAttr::get(function.getContext(), text));
    function.emitWarning() << text;
  }
  names::setModuleEntry(function->getParentOfType<ModuleOp>(), names::kPlan, "notes",
                        ArrayAttr::get(function.getContext(), notes));
}

LogicalResult Plan::checkDivides(const AxisList &axes, int64_t size, int64_t dim, const std::string &tensor,
                                 StringRef remedy) {
  int64_t parts = numShards(mesh.getSizes(), axes);
  if (size % parts == 0)
    return success();
  return function.emitError() << mesh.str(axes) << " = " << parts << " does not divide dimension " << dim << " of "
                              << tensor << ", which has size " << size << "; sizes of " << mesh.str(axes)
                              << " that work: " << divisorsOf(size) << "; or " << remedy << " that is a multiple of "
                              << parts;
}

LogicalResult Plan::annotateInput(unsigned index) {
  auto type = typeOf(function.getArgument(index));
  std::string tensor = describeArgument(function, index);
  Attribute given = attributes.getArg(index, names::kSharding);
  if (given && failed(checkGiven(given, type, tensor)))
    return failure();
  TensorSharding sharding = TensorSharding::replicated(type.getRank());
  // The dimensions of one microbatch; every rank has its part of each.
  int64_t first = getBatchDim(function.getArgument(index));
  ArrayRef<int64_t> shape = type.getShape().drop_front(first);
  if (!shape.empty() && !batch) // without nd.model the first input says what the batch is
    batch = shape[0];
  if (!shape.empty() && shape[0] == *batch) {
    if (!given && failed(checkDivides(dataAxes, *batch, first, tensor, "import with a --batch")))
      return failure();
    sharding.dims[first] = dataAxes;
  }
  // How the sequence is stored does not depend on who shards it.
  if (std::optional<int64_t> dim = storedSequenceDim(function, function.getArgument(index), analysis, sequence)) {
    sharding.dims[*dim] = contextAxes;
    Builder builder(function.getContext());
    if (names::argName(function, index) == names::name::kLabels)
      attributes.setArg(
          index, names::kPadValue,
          builder.getI64IntegerAttr(
              names::moduleInt(function->getParentOfType<ModuleOp>(), names::kModel, "ignore_index").value_or(-100)));
    attributes.setArg(index, names::kSequence, builder.getI64IntegerAttr(*dim));
    if (DictionaryAttr chunks = chunksOf(type, *dim))
      attributes.setArg(index, names::kChunks, chunks);
  }
  if (!given)
    attributes.setArg(index, names::kSharding, mesh.toAttr(sharding));
  return success();
}

DictionaryAttr Plan::chunksOf(RankedTensorType type, int64_t dim) {
  DenseI64ArrayAttr order = storedOrder(program);
  if (!order)
    return {};
  Builder builder(function.getContext());
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim)), builder.getNamedAttr("order", order),
       builder.getNamedAttr("size", builder.getI64IntegerAttr(type.getDimSize(dim) / order.size()))});
}

void Plan::annotateOutput(unsigned index) {
  Value value = program.getReturn()->getOperand(index);
  auto type = typeOf(value);
  SmallVector<int64_t> dims = sequenceDimsOf(value, analysis, sequence);
  DictionaryAttr chunks = dims.size() == 1 ? chunksOf(type, dims.front()) : DictionaryAttr();
  if (!chunks && !attributes.getResult(index, names::kGlobalShape))
    return;
  TensorSharding sharding = TensorSharding::replicated(type.getRank());
  if (batch && type.getRank() > 0 && type.getDimSize(0) == *batch)
    sharding.dims[0] = dataAxes;
  if (dims.size() == 1)
    sharding.dims[dims.front()] = contextAxes;
  attributes.setResult(index, names::kSharding, mesh.toAttr(sharding));
  if (chunks)
    attributes.setResult(index, names::kChunks, chunks);
}

void Plan::setBlocks() {
  Builder builder(function.getContext());
  auto blocksOf = [&](Attribute attr, RankedTensorType type) -> Attribute {
    SmallVector<Attribute> lists;
    for (int64_t dim : llvm::seq(type.getRank())) {
      SmallVector<Attribute> blocks;
      int64_t size = type.getDimSize(dim);
      for (StringAttr name : cast<ShardingAttr>(attr).getDimAxes(dim))
        blocks.push_back(builder.getI64IntegerAttr(size /= program.mesh.findAxis(name).getSize()));
      lists.push_back(builder.getArrayAttr(blocks));
    }
    return builder.getArrayAttr(lists);
  };
  for (unsigned index : llvm::seq(function.getNumArguments()))
    if (attributes.getArg(index, names::kGlobalShape) && !attributes.getArg(index, names::kChunks) &&
        !attributes.getArg(index, names::kBlocks))
      attributes.setArg(index, names::kBlocks,
                        blocksOf(attributes.getArg(index, names::kSharding), typeOf(function.getArgument(index))));
  for (unsigned index : llvm::seq(function.getNumResults()))
    if (attributes.getResult(index, names::kGlobalShape) && attributes.getResult(index, names::kSharding) &&
        !attributes.getResult(index, names::kChunks) && !attributes.getResult(index, names::kBlocks))
      attributes.setResult(index, names::kBlocks,
                           blocksOf(attributes.getResult(index, names::kSharding),
                                    cast<RankedTensorType>(function.getResultTypes()[index])));
}

TensorSharding Plan::useOf(BlockArgument weight) {
  TensorSharding used = plannedUse(weight, &settled);
  AxisList all;
  for (const AxisList &axes : used.dims)
    for (unsigned axis : axes) {
      // The user has settled one dimension only, and the plan shards the other over the same axis.
      if (llvm::is_contained(all, axis))
        return plannedUse(weight, nullptr);
      all.push_back(axis);
    }
  return used;
}

TensorSharding Plan::plannedUse(BlockArgument weight, const SettledClasses *settled) {
  TensorSharding sharding = TensorSharding::replicated(typeOf(weight).getRank());
  if (!tensorPlan)
    return sharding;
  for (int64_t dim : llvm::seq(typeOf(weight).getRank()))
    for (DimensionClasses::Id id : analysis.getClasses().getDim(weight, dim)) {
      if (const AxisList *axes = settled ? settled->find(id) : nullptr) {
        sharding.dims[dim].append(*axes);
        continue;
      }
      auto it = tensorPlan->getChoices().find(id);
      if (it == tensorPlan->getChoices().end())
        continue;
      int64_t before = 1;
      for (unsigned axis : tensorAxes) {
        int64_t size = mesh.getSizes()[axis];
        int64_t first = it->second.majorParts, parts = it->second.parts;
        if (before >= first && (parts == 0 || before < first * parts))
          sharding.dims[dim].push_back(axis);
        before *= size;
      }
    }
  return sharding;
}

TensorSharding Plan::storedOver(const AxisList &axes, ArrayRef<int64_t> shape, TensorSharding used) {
  if (axes.empty() || shape.empty())
    return used;
  int64_t parts = numShards(mesh.getSizes(), axes);
  SmallVector<int64_t> local = mesh.localShape(shape, used);
  int64_t chosen = -1;
  if (local[0] % parts == 0)
    chosen = 0;
  else
    for (auto [dim, size] : llvm::enumerate(local))
      if (size % parts == 0 && (chosen < 0 || size > local[chosen]))
        chosen = dim;
  if (chosen < 0)
    return used;
  used.dims[chosen].append(axes);
  return used;
}

LogicalResult Plan::annotateWeight(unsigned index) {
  BlockArgument weight = function.getArgument(index);
  std::string tensor = describeArgument(function, index);
  // The update may run on longer, padded shards.
  ArrayRef<int64_t> shape = typeOf(weight).getShape();
  if (Operation *update = analysis.getUpdate(weight))
    shape = typeOf(update->getOperand(1)).getShape();
  TensorSharding used = useOf(weight), stored = storedOver(storageAxes, shape, used);
  if (Attribute given = attributes.getArg(index, names::kSharding)) {
    FailureOr<TensorSharding> sharding = mesh.fromArgument(function, weight);
    if (failed(sharding))
      return failure();
    stored = *sharding;
    if (tensorPart(stored) != used)
      exchanged["[" +
                llvm::join(llvm::map_range(used.dims,
                                           [&](const AxisList &axes) { return axes.empty() ? "_" : mesh.str(axes); }),
                           ",") +
                "]"]
          .push_back(index);
  }
  attributes.setArg(index, names::kUseSharding, mesh.toAttr(used));
  attributes.setArg(index, names::kUpdateSharding, mesh.toAttr(stored));
  if (!attributes.getArg(index, names::kSharding))
    attributes.setArg(index, names::kSharding, mesh.toAttr(options.zero == 3 || isMaster(weight) ? stored : used));
  return success();
}

LogicalResult Plan::annotateState(unsigned index) {
  auto type = typeOf(function.getArgument(index));
  if (Attribute given = attributes.getArg(index, names::kSharding))
    return checkGiven(given, type, describeArgument(function, index));
  std::optional<unsigned> weight = signature.findArg(names::kind::kWeight, names::argName(function, index));
  if (!weight || typeOf(function.getArgument(*weight)).getRank() != type.getRank())
    return function.emitError() << describeArgument(function, index)
                                << " belongs to no weight of that name and shape, so there is no plan for it; give it "
                                   "an nd.sharding";
  attributes.setArg(index, names::kSharding, attributes.getArg(*weight, names::kUpdateSharding));
  return success();
}

LogicalResult Plan::annotateResult(unsigned index) {
  auto type = cast<RankedTensorType>(function.getResultTypes()[index]);
  if (Attribute given = attributes.getResult(index, names::kSharding))
    return checkGiven(given, type, describeResult(function, index));
  StringRef kind = names::resultKind(function, index), name = names::resultName(function, index);
  std::optional<unsigned> argument = signature.findArg(kind, name);
  bool isGradient = !argument && kind == names::kind::kGradient;
  if (isGradient)
    argument = signature.findArg(names::kind::kWeight, name);
  if (argument) {
    Type expected = function.getArgumentTypes()[*argument];
    // A gradient has the shape of the update, which may be of longer, padded shards than a weight that is stored whole.
    if (Operation *update = isGradient ? analysis.getUpdate(function.getArgument(*argument)) : nullptr)
      expected = update->getOperand(1).getType();
    if (expected != type)
      return function.emitError() << describeResult(function, index) << " has type " << type << ", but "
                                  << describeArgument(function, *argument) << " has type " << expected;
    attributes.setResult(index, names::kSharding,
                         attributes.getArg(*argument, isGradient ? names::kUpdateSharding : names::kSharding));
  } else if (kind == names::kind::kMetric) {
    attributes.setResult(index, names::kSharding, mesh.toAttr(TensorSharding::replicated(type.getRank())));
  } else {
    annotateOutput(index);
  }
  return success();
}

LogicalResult Plan::checkGiven(Attribute given, RankedTensorType type, const std::string &tensor) {
  auto sharding = dyn_cast<ShardingAttr>(given);
  if (!sharding)
    return function.emitError() << "nd.sharding of " << tensor << " is " << given << ", but a #nd.sharding is expected";
  if (sharding.isUnreduced())
    return function.emitError() << tensor << " is annotated as unreduced; values cross the boundary of a step reduced";
  return mesh.fromAttr(sharding, type.getShape(), tensor, [&] { return function.emitError(); });
}
