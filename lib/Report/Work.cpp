//===- Work.cpp - What operations compute and move ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Work.h"

using namespace mlir;
using namespace nd;

std::string nd::typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

namespace {

double elementsOf(Type type) { return static_cast<double>(cast<ShapedType>(type).getNumElements()); }

double elementwiseOf(KernelOp kernel) {
  double count = 0;
  kernel.getBody().walk([&](Operation *op) {
    if (op->getNumResults() == 0 || isa<arith::ConstantOp>(op))
      return;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      count += elementsOf(reduce.getInput().getType());
    else if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
      count += elementsOf(op->getResult(0).getType());
  });
  return count;
}

double bytesOf(Value buffer) { return static_cast<double>(rt::getBytes(cast<MemRefType>(buffer.getType()))); }

/// Pairs of a query and a key that it sees, of queries and keys 0..n-1 and of one head. Masks beyond causal order and a
/// window depend on data and are not looked at.
double visiblePairs(double n, bool causal, double window) {
  if (!causal)
    return window > 0 && window < n ? n * n - (n - window) * (n - window + 1) / 2 : n * n;
  if (window <= 0 || window >= n)
    return n * (n + 1) / 2;
  return window * (window + 1) / 2 + (n - window) * window;
}

/// The mean over ranks: a rank's share of the whole sequence's pairs, in queries and in keys.
template <typename OpTy> double pairsOf(OpTy op) {
  ArrayRef<int64_t> query = op.getQuery().getType().getShape(), key = op.getKey().getType().getShape();
  double keys = static_cast<double>(key[2]) * static_cast<double>(op.getKeyShards()), queries = query[2];
  double whole = visiblePairs(keys, op.getCausal(), static_cast<double>(op.getWindow()));
  double share = queries / keys / static_cast<double>(op.getKeyShards());
  return whole * share * static_cast<double>(query[0]) * static_cast<double>(query[1]);
}

/// Products of rank [G, M, K] x [G, K, N].
double gemmFlops(rt::GemmOp gemm) {
  return 2 * elementsOf(gemm.getC().getType()) * static_cast<double>(gemm.getA().getType().getShape().back());
}

} // namespace

WorkCounter::WorkCounter(ModuleOp module) {
  for (auto kernel : module.getOps<rt::KernelOp>())
    elementwise[kernel.getSymNameAttr()] = elementwiseOf(cast<KernelOp>(kernel.getBody().front().front()));
}

Work WorkCounter::count(Operation *op) const {
  Work work;
  for (Value operand : op->getOperands())
    if (isa<MemRefType>(operand.getType()))
      work.bytes += bytesOf(operand);
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](rt::LaunchOp launch) { work.elementwise = elementwise.lookup(launch.getKernelAttr().getAttr()); })
      .Case([&](rt::GemmOp gemm) {
        work.products = gemmFlops(gemm);
        work.type = typeName(gemm.getA().getType().getElementType());
      })
      .Case([&](rt::AttentionOp attention) {
        double dim = attention.getQuery().getType().getDimSize(3),
               valueDim = attention.getValue().getType().getDimSize(3);
        work.products = 2 * pairsOf(attention) * (dim + valueDim);
        work.type = typeName(attention.getQuery().getType().getElementType());
      })
      .Case([&](rt::AttentionGradOp attention) {
        // Scores again, gradients of probabilities and values over one width, of queries and keys over the other.
        double dim = attention.getQuery().getType().getDimSize(3),
               valueDim = attention.getValue().getType().getDimSize(3);
        work.products = 2 * pairsOf(attention) * (3 * dim + 2 * valueDim);
        work.type = typeName(attention.getQuery().getType().getElementType());
      });
  return work;
}
