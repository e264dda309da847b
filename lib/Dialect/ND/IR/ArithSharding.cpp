//===- ArithSharding.cpp - arith and math: sharding rules -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "nd/Dialect/ND/IR/ExternalModels.h"

using namespace mlir;
using namespace nd;

namespace {

/// In which operands an elementwise operation is linear.
enum class Linearity { None, Unary, Both };

template <typename OpTy, Linearity linearity>
struct ElementwiseModel : ShardingRuleOpInterface::ExternalModel<ElementwiseModel<OpTy, linearity>, OpTy> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule = elementwiseRule(op);
    if (linearity == Linearity::Unary)
      rule.linear = {{0}};
    if (linearity == Linearity::Both)
      rule.linear = {{0, 1}};
    return rule;
  }
};

template <Linearity linearity, typename... OpTys> void attach(MLIRContext *context) {
  (OpTys::template attachInterface<ElementwiseModel<OpTys, linearity>>(*context), ...);
}

/// Whether all slices of a constant along `dim` are equal.
bool isUniformAlong(DenseElementsAttr elements, int64_t dim) {
  ArrayRef<int64_t> shape = elements.getType().getShape();
  int64_t inner = 1;
  for (int64_t size : shape.drop_front(dim + 1))
    inner *= size;
  int64_t block = inner * shape[dim];
  auto values = elements.getValues<Attribute>();
  for (int64_t index : llvm::seq<int64_t>(elements.getNumElements()))
    if (values[index] != values[index / block * block + index % inner])
      return false;
  return true;
}

/// A dimension along which a constant repeats itself may be sharded: every shard holds the same elements.
struct ConstantModel : ShardingRuleOpInterface::ExternalModel<ConstantModel, arith::ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto elements = dyn_cast<DenseElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    ShardingRuleBuilder rule(op);
    for (int64_t dim : llvm::seq(cast<RankedTensorType>(op->getResult(0).getType()).getRank()))
      if (elements && (elements.isSplat() || isUniformAlong(elements, dim)))
        rule.pass({ShardingRuleBuilder::result(0, dim)});
    return rule.build();
  }
};

} // namespace

void nd::registerShardingModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    using namespace arith;
    ConstantOp::attachInterface<ConstantModel>(*context);
    attach<Linearity::Both, AddFOp, AddIOp, SubFOp, SubIOp>(context);
    // A conversion to float of a partial count is exact up to 2^24 (f32), as is that of the whole. A narrowing
    // conversion rounds every partial sum instead of the whole: right, and up to the plan (StatePlan).
    attach<Linearity::Unary, ExtFOp, NegFOp, SIToFPOp, TruncFOp, UIToFPOp>(context);
    attach<Linearity::None, AndIOp, BitcastOp, CeilDivSIOp, CeilDivUIOp, CmpFOp, CmpIOp, DivFOp, DivSIOp, DivUIOp,
           ExtSIOp, ExtUIOp, FPToSIOp, FPToUIOp, FloorDivSIOp, IndexCastOp, IndexCastUIOp, MaxNumFOp, MaxSIOp, MaxUIOp,
           MaximumFOp, MinNumFOp, MinSIOp, MinUIOp, MinimumFOp, MulFOp, MulIOp, OrIOp, RemFOp, RemSIOp, RemUIOp,
           SelectOp, ShLIOp, ShRSIOp, ShRUIOp, TruncIOp, XOrIOp>(context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    using namespace math;
    attach<Linearity::None, AbsFOp, AbsIOp, AcosOp, AcoshOp, AsinOp, AsinhOp, Atan2Op, AtanOp, AtanhOp, CbrtOp, CeilOp,
           ClampFOp, CopySignOp, CosOp, CoshOp, CountLeadingZerosOp, CountTrailingZerosOp, CtPopOp, ErfOp, ErfcOp,
           Exp2Op, ExpM1Op, ExpOp, FPowIOp, FloorOp, FmaOp, IPowIOp, IsFiniteOp, IsInfOp, IsNaNOp, IsNormalOp, Log10Op,
           Log1pOp, Log2Op, LogOp, PowFOp, RoundEvenOp, RoundOp, RsqrtOp, SinOp, SinhOp, SqrtOp, TanOp, TanhOp,
           TruncOp>(context);
  });
}
