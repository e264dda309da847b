//===- Estimate.cpp - How long operations of a step take ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Estimate.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

double elementsOf(Value value) { return static_cast<double>(typeOf(value).getNumElements()); }

/// Of the scores of a query shard with a key shard, of which a rank sees half under causal order.
template <typename AttentionLike> double pairsOf(AttentionLike op) {
  ArrayRef<int64_t> query = typeOf(op.getQuery()).getShape();
  double pairs = static_cast<double>(query[0] * query[1]) * static_cast<double>(query[2]) *
                 static_cast<double>(typeOf(op.getKey()).getDimSize(2));
  return op.getCausal() ? pairs / 2 : pairs;
}

double flopsOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([](DotGeneralOp dot) {
        double flops = 2 * elementsOf(dot.getResult());
        for (int64_t dim : dot.getLhsContract())
          flops *= static_cast<double>(typeOf(dot.getLhs()).getDimSize(dim));
        return flops;
      })
      .Case([](AttentionOp attention) {
        return 2 * pairsOf(attention) *
               static_cast<double>(typeOf(attention.getQuery()).getDimSize(3) +
                                   typeOf(attention.getValue()).getDimSize(3));
      })
      .Case([](AttentionGradOp attention) {
        return 2 * pairsOf(attention) *
               static_cast<double>(3 * typeOf(attention.getQuery()).getDimSize(3) +
                                   2 * typeOf(attention.getValue()).getDimSize(3));
      })
      .Default([](Operation *) { return 0.0; });
}

std::string nameOf(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

} // namespace

double Estimate::compute(Operation *op) const {
  double flops = flopsOf(op);
  return flops == 0 ? 0 : model.compute(flops, 0, nameOf(typeOf(op->getOperand(0)).getElementType()));
}

double Estimate::gather(Operation *op) const {
  auto gather = dyn_cast<AllGatherOp>(op);
  if (!gather)
    return 0;
  SmallVector<StringRef> axes;
  for (auto axis : gather.getAxes().getAsRange<StringAttr>())
    axes.push_back(axis.getValue());
  return model.collective(CommKind::AllGather, layout.shapeOf(axes), static_cast<double>(gather.getPayloadBytes()));
}
