//===- InsertReshards.cpp - Shardings in types, and reshards --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "Reshard/GatherUnits.h"
#include "Reshard/JoinPartialSums.h"
#include "Reshard/StatePlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Sharding/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace nd {
#define GEN_PASS_DEF_INSERTRESHARDS
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// What a value is to the user: the gradient of a parameter, a metric. Found by following it forward, nearest use
/// first, through operations that keep its number of elements, or but sum up copies and make them again. Empty when it
/// is none of these.
std::string purposeOf(Value value, func::FuncOp function) {
  // A parameter in the type of computation is that parameter.
  if (isa_and_nonnull<arith::TruncFOp>(value.getDefiningOp()))
    if (auto parameter = dyn_cast<BlockArgument>(value.getDefiningOp()->getOperand(0)))
      return names::argName(function, parameter.getArgNumber()).str();
  constexpr size_t kLimit = 32; // values; what is farther away says little
  llvm::SmallSetVector<Value, 8> reached;
  reached.insert(value);
  for (size_t next = 0; next < reached.size() && next < kLimit; ++next)
    for (OpOperand &use : reached[next].getUses()) {
      Operation *user = use.getOwner();
      if (isa<AdamWOp, SgdOp>(user) && use.getOperandNumber() == 1)
        if (auto parameter = dyn_cast<BlockArgument>(user->getOperand(0)))
          return ("gradient of " + names::argName(function, parameter.getArgNumber())).str();
      if (isa<func::ReturnOp>(user))
        return names::resultName(function, use.getOperandNumber()).str();
      for (Value result : user->getResults())
        if (typeOf(result).getNumElements() == typeOf(value).getNumElements() || isa<SumCopiesOp, MakeCopiesOp>(user))
          reached.insert(result);
    }
  return {};
}

/// Puts the plan into the program.
class Inserter {
public:
  Inserter(Program &program, const Analysis &analysis, const GatherUnits &units, const StatePlan &plan)
      : program(program), analysis(analysis), units(units), plan(plan), mesh(plan.getMesh()) {}

  LogicalResult run() {
    for (BlockArgument argument : program.getBody().getArguments())
      setState(argument, plan.getState(argument));
    for (const StatePlan::Step &step : plan.getSteps())
      insertInto(step);
    if (failed(insertIntoReturn()))
      return failure();
    // The plan speaks of the products, so they stay until it has been read.
    for (const StatePlan::Step &step : plan.getSteps())
      if (step.scaled)
        replaceByScale(step.op, *step.scaled);
    program.function.setFunctionType(FunctionType::get(
        program.function.getContext(), program.getBody().getArgumentTypes(), program.getReturn()->getOperandTypes()));
    return success();
  }

private:
  void insertInto(const StatePlan::Step &step) {
    Operation *op = step.op;
    std::string user = ("'" + op->getName().getStringRef() + "'").str();
    if (step.added) {
      Value partial = op->getOperand(0);
      OpBuilder builder(op);
      op->setOperand(0, createReshard(builder, partial, *step.added, partial.getLoc(),
                                      reasonOf(partial, plan.getState(partial)) +
                                          (isa<AccumulateOp>(op) ? ", in every microbatch" : "")));
    } else {
      for (auto [operand, dims] : llvm::zip_equal(op->getOpOperands(), step.operandDims))
        use(operand, dims, user);
    }
    for (auto [index, axes] : llvm::enumerate(step.partialOver))
      if (!axes.empty())
        makePartial(op->getOpOperand(index), axes);
    op->removeAttr(names::kFactorAxes);
    for (Value result : op->getResults())
      setState(result, plan.getState(result));
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      setConstantType(constant);
    for (Value result : op->getResults())
      if (plan.isReducedAtDefinition(result))
        reduceBehind(result);
  }

  LogicalResult insertIntoReturn() {
    func::FuncOp function = program.function;
    for (OpOperand &operand : program.getReturn()->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      SmallVector<AxisList> dims = plan.getState(operand.get()).dims;
      if (auto attr = function.getResultAttrOfType<ShardingAttr>(index, names::kSharding)) {
        FailureOr<TensorSharding> annotated =
            mesh.fromAttr(attr, typeOf(operand.get()).getShape(), describeResult(function, index),
                          [&] { return function.emitError(); });
        if (failed(annotated))
          return failure();
        dims = annotated->dims;
      }
      use(operand, dims, describeResult(function, index));
      function.setResultAttr(index, names::kSharding, typeOf(operand.get()).getEncoding());
    }
    return success();
  }

  /// Makes an operand what its operation needs.
  void use(OpOperand &operand, ArrayRef<AxisList> dims, const std::string &user) {
    Value value = operand.get();
    TensorSharding wanted = plan.getUsedState(value);
    Value found = plan.isReducedAtDefinition(value) ? reduced.lookup(value) : value;
    if (ArrayRef<AxisList>(wanted.dims) != dims) {
      wanted.dims.assign(dims.begin(), dims.end());
      // A parameter that forward gave back is gathered again for backward: another instance.
      bool isAgain = units.isGatheredAgain(value, operand.getOwner()) || isGatheredForGradient(operand);
      Value &resharded = resharding[{found, {mesh.toAttr(wanted), isAgain}}];
      if (!resharded) {
        OpBuilder builder(operand.getOwner());
        Location loc = operand.getOwner()->getLoc();
        arith::ExtFOp widening = getWidening(found, wanted);
        Value narrow = widening ? widening.getIn() : found;
        resharded = createReshard(builder, narrow, wanted, loc, user + " needs it sharded otherwise");
        if (StringAttr unit = units.getName(value, isAgain); unit && !analysis.isUpdate(operand.getOwner())) {
          resharded.getDefiningOp()->setAttr(names::kUnit, unit);
          if (units.areOncePerStep())
            resharded.getDefiningOp()->setAttr(names::kOnce, builder.getUnitAttr());
        }
        if (widening)
          resharded = arith::ExtFOp::create(builder, widening.getLoc(),
                                            typeOf(found).cloneWithEncoding(mesh.toAttr(wanted)), resharded);
      }
      found = resharded;
    }
    operand.set(found);
  }

  /// The widening that made a value, where that can wait until the value is sharded otherwise: what moves is narrow
  /// then.
  static arith::ExtFOp getWidening(Value value, const TensorSharding &wanted) {
    return wanted.unreduced.empty() ? value.getDefiningOp<arith::ExtFOp>() : arith::ExtFOp();
  }

  /// Keys and values of all ranks that forward gathered are given back, and gathered again for the gradient.
  static bool isGatheredForGradient(OpOperand &operand) {
    auto gradient = dyn_cast<AttentionGradOp>(operand.getOwner());
    return gradient && gradient.getCpMode() == "gather" &&
           (operand.get() == gradient.getKey() || operand.get() == gradient.getValue());
  }

  void makePartial(OpOperand &operand, const AxisList &axes) {
    OpBuilder builder(operand.getOwner());
    Value value = operand.get();
    TensorSharding state = *mesh.fromType(value, operand.getOwner());
    state.unreduced.append(axes);
    llvm::sort(state.unreduced);
    operand.set(AsPartialOp::create(builder, operand.getOwner()->getLoc(),
                                    typeOf(value).cloneWithEncoding(mesh.toAttr(state)), value, mesh.toArray(axes),
                                    numShards(mesh.getSizes(), axes)));
  }

  void setState(Value value, const TensorSharding &state) {
    value.setType(typeOf(value).cloneWithEncoding(mesh.toAttr(state)));
  }

  void reduceBehind(Value value) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    TensorSharding partial = plan.getState(value), used = plan.getUsedState(value);
    llvm::erase_if(partial.unreduced, [&](unsigned axis) { return llvm::is_contained(used.unreduced, axis); });
    reduced[value] = createReshard(builder, value, used, value.getLoc(), reasonOf(value, partial));
  }

  /// Names the operation that made the partial value, behind linear ones that carried it on.
  std::string reasonOf(Value value, const TensorSharding &state) {
    Operation *origin = value.getDefiningOp();
    auto isPartial = [](Value operand) {
      auto sharding = dyn_cast_or_null<ShardingAttr>(typeOf(operand).getEncoding());
      return sharding && sharding.isUnreduced();
    };
    while (origin) {
      auto operands = origin->getOperands();
      auto it = llvm::find_if(operands, isPartial);
      if (it == operands.end())
        break;
      origin = (*it).getDefiningOp();
    }
    std::string name = origin ? origin->getName().getStringRef().str() : "an argument";
    return "'" + name + "' combines elements that lie on ranks along " + mesh.str(state.unreduced);
  }

  Value createReshard(OpBuilder &builder, Value value, const TensorSharding &to, Location loc,
                      const std::string &reason) {
    auto type = typeOf(value).cloneWithEncoding(mesh.toAttr(to));
    std::string name;
    if (BlockArgument parameter = getWeightBehind(value, program.function))
      name = describe(parameter);
    else
      name = purposeOf(value, program.function);
    if (name.empty())
      name = describe(value);
    return ReshardOp::create(builder, loc, type, value, nextInstance++, reason, name);
  }

  void setConstantType(arith::ConstantOp constant) {
    auto type = typeOf(constant.getResult());
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      constant.setValueAttr(elements.isSplat() ? elements.resizeSplat(type) : elements.reshape(type));
    else if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue()))
      constant.setValueAttr(DenseResourceElementsAttr::get(type, resource.getRawHandle()));
  }

  void replaceByScale(Operation *product, unsigned tensor) {
    OpBuilder builder(product);
    Value factor = buildScaleFactor(builder, product, tensor);
    if (!typeOf(factor).getEncoding()) { // a constant that was made just now
      factor.setType(typeOf(factor).cloneWithEncoding(mesh.toAttr(TensorSharding::replicated(0))));
      setConstantType(factor.getDefiningOp<arith::ConstantOp>());
    }
    Value result = product->getResult(0);
    result.replaceAllUsesWith(
        ScaleOp::create(builder, product->getLoc(), result.getType(), product->getOperand(tensor), factor));
    product->erase();
  }

  Program &program;
  const Analysis &analysis;
  const GatherUnits &units;
  const StatePlan &plan;
  const MeshView &mesh;
  DenseMap<Value, Value> reduced;
  DenseMap<std::pair<Value, std::pair<Attribute, unsigned>>, Value> resharding;
  int64_t nextInstance = 1;
};

struct InsertReshards : nd::impl::InsertReshardsBase<InsertReshards> {
  void runOnOperation() override {
    FailureOr<Program> program = Program::getWithMesh(getOperation());
    if (failed(program) || failed(run(*program)))
      signalPassFailure();
  }

  LogicalResult run(Program &program) {
    FailureOr<Analysis> analysis = Analysis::get(program);
    if (failed(analysis))
      return failure();
    GatherUnits units(program, *analysis);
    units.separateForms();
    StatePlan plan(program);
    if (failed(plan.run()))
      return failure();
    // Sums that are regrouped leave fewer values to reduce, so this ends.
    if (joinPartialSums(program, plan))
      return run(program);
    return Inserter(program, *analysis, units, plan).run();
  }
};

} // namespace
