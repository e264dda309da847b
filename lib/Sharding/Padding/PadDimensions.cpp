//===- PadDimensions.cpp - Sizes that axes divide -------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Padding/PadDimensions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

class Padder {
public:
  using Id = DimensionClasses::Id;

  Padder(Program &program, const Analysis &analysis, const PaddedSizes &sizes, const llvm::DenseSet<Id> &sequence)
      : program(program), classes(analysis.getClasses()), analysis(analysis), sizes(sizes), sequence(sequence) {}

  LogicalResult run() {
    // Classes are asked for before any type changes.
    for (BlockArgument argument : program.getBody().getArguments())
      shapes[argument] = paddedShape(argument);
    for (const Analysis::Step &step : analysis.getSteps())
      for (Value result : step.op->getResults())
        shapes[result] = paddedShape(result);
    recordLogicalShapes();
    for (const Analysis::Step &step : analysis.getSteps())
      if (failed(pad(step)))
        return failure();
    for (BlockArgument argument : program.getBody().getArguments())
      setShape(argument);
    program.function.setFunctionType(FunctionType::get(
        program.function.getContext(), program.getBody().getArgumentTypes(), program.getReturn()->getOperandTypes()));
    return success();
  }

private:
  SmallVector<int64_t> paddedShape(Value value) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    for (auto [dim, size] : llvm::enumerate(shape)) {
      int64_t product = 1;
      bool grows = false;
      for (Id id : classes.getDim(value, dim)) {
        auto it = sizes.find(id);
        grows |= it != sizes.end();
        product *= it == sizes.end() ? classes.getSize(id) : it->second;
      }
      if (grows)
        size = product;
    }
    return shape;
  }

  bool grows(Value value) { return ArrayRef<int64_t>(shapes[value]) != typeOf(value).getShape(); }

  void recordLogicalShapes() {
    func::FuncOp function = program.function;
    Builder builder(function.getContext());
    for (BlockArgument argument : program.getBody().getArguments())
      if (grows(argument) && !function.getArgAttr(argument.getArgNumber(), names::kGlobalShape))
        function.setArgAttr(argument.getArgNumber(), names::kGlobalShape,
                            builder.getDenseI64ArrayAttr(typeOf(argument).getShape()));
    for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands()))
      if (grows(value) && !function.getResultAttr(index, names::kGlobalShape))
        function.setResultAttr(index, names::kGlobalShape, builder.getDenseI64ArrayAttr(typeOf(value).getShape()));
  }

  void setShape(Value value) {
    if (grows(value))
      value.setType(typeOf(value).clone(shapes[value]));
  }

  LogicalResult pad(const Analysis::Step &step) {
    Operation *op = step.op;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      for (auto [dim, size] : llvm::enumerate(shapes[constant.getResult()]))
        for (Id id : classes.getDim(constant.getResult(), dim))
          if (sizes.contains(id) && needsWhole(analysis, step, step.rule.results[0][dim], id))
            size = typeOf(constant.getResult()).getDimSize(dim);
      if (failed(padConstant(constant)))
        return failure();
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      setValidKeys(attention);
    } else if (auto gradient = dyn_cast<AttentionGradOp>(op)) {
      setValidKeys(gradient);
    }
    for (Value result : op->getResults())
      setShape(result);
    return success();
  }

  template <typename AttentionLike> void setValidKeys(AttentionLike op) {
    // The key's type has grown already; its classes know the logical size.
    int64_t logical = 1;
    bool isPadded = false;
    for (Id id : classes.getDim(op.getKey(), 2)) {
      logical *= classes.getSize(id);
      isPadded |= sizes.contains(id) && sequence.contains(id);
    }
    if (isPadded && op.getValid() == 0)
      op.setValid(logical);
  }

  LogicalResult padConstant(arith::ConstantOp constant) {
    if (!grows(constant.getResult()))
      return success();
    auto type = typeOf(constant.getResult()).clone(shapes[constant.getResult()]);
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements)
      return constant.emitError()
             << "a constant from a file has a dimension that has to be padded; choose a mesh whose "
                "axes divide its sizes";
    if (elements.isSplat()) {
      constant.setValueAttr(elements.resizeSplat(type));
      return success();
    }
    // Along a dimension that may grow all elements are equal (it passes in the constant's rule), so any place will do.
    ArrayRef<int64_t> from = elements.getType().getShape(), to = type.getShape();
    auto values = elements.getValues<Attribute>();
    SmallVector<Attribute> padded;
    SmallVector<int64_t> index(to.size(), 0);
    for (int64_t count = 0; count < type.getNumElements(); ++count) {
      int64_t linear = 0;
      for (auto [position, size] : llvm::zip_equal(index, from))
        linear = linear * size + std::min(position, size - 1);
      padded.push_back(values[linear]);
      for (int64_t dim = type.getRank() - 1; dim >= 0 && ++index[dim] == to[dim]; --dim)
        index[dim] = 0;
    }
    constant.setValueAttr(DenseElementsAttr::get(type, padded));
    return success();
  }

  Program &program;
  const DimensionClasses &classes;
  const Analysis &analysis;
  const PaddedSizes &sizes;
  const llvm::DenseSet<Id> &sequence;
  DenseMap<Value, SmallVector<int64_t>> shapes;
};

} // namespace

bool nd::needsWhole(const Analysis &analysis, const Analysis::Step &step, const ShardingRule::DimFactors &dim,
                    DimensionClasses::Id id) {
  return llvm::any_of(dim, [&](int64_t factor) {
    return step.rule.factors[factor].kind == FactorKind::NeedReplication &&
           llvm::is_contained(analysis.getClasses().getFactor(step.op, factor), id);
  });
}

LogicalResult nd::padDimensions(Program &program, const Analysis &analysis, const PaddedSizes &sizes,
                                const llvm::DenseSet<DimensionClasses::Id> &sequence) {
  return sizes.empty() ? success() : Padder(program, analysis, sizes, sequence).run();
}
