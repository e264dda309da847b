//===- ShardingRuleBuilder.h - Short forms for sharding rules ---*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_DIALECT_ND_IR_SHARDINGRULEBUILDER_H
#define ND_LIB_DIALECT_ND_IR_SHARDINGRULEBUILDER_H

#include "nd/Dialect/ND/IR/ND.h"

namespace nd {

/// Builds a rule dimension by dimension. A dimension that nothing was mapped to in the end gets a NeedReplication
/// factor of its own: the builder never lets a dimension be sharded by omission.
class ShardingRuleBuilder {
public:
  explicit ShardingRuleBuilder(mlir::Operation *op);

  /// A dimension of an operand or of a result, by position in the operation.
  struct Dim {
    bool isResult;
    unsigned tensor;
    int64_t dim;
  };
  static Dim operand(unsigned index, int64_t dim) { return {false, index, dim}; }
  static Dim result(unsigned index, int64_t dim) { return {true, index, dim}; }

  /// One factor that is the whole of each of these dimensions. Dimensions of size 1 beside others of another size
  /// broadcast and take no part.
  void share(FactorKind kind, llvm::ArrayRef<Dim> dims, ReductionKind reduction = ReductionKind::sum);
  void pass(llvm::ArrayRef<Dim> dims) { share(FactorKind::PassThrough, dims); }
  void sum(llvm::ArrayRef<Dim> dims) { share(FactorKind::Reduction, dims); }

  /// For dimensions that are products: adds a factor as the next minor one of `dim`.
  int64_t addFactor(int64_t size, FactorKind kind, ReductionKind reduction = ReductionKind::sum);
  void append(Dim dim, int64_t factor);
  /// The result is a sum over this PassThrough factor, which other results carry.
  void sumInto(unsigned result, int64_t factor);

  /// The operation is jointly linear in these operands.
  void linear(llvm::ArrayRef<unsigned> operands) { rule.linear.emplace_back(operands.begin(), operands.end()); }
  /// The operand is added to the result.
  void addend(unsigned operand) { rule.addends.push_back(operand); }

  ShardingRule build();

private:
  ShardingRule::DimFactors &factorsOf(Dim dim);
  int64_t sizeOf(Dim dim) const;
  void fillRest(bool isResult);

  mlir::Operation *op;
  ShardingRule rule;
};

/// All operands and results of the results' rank share every dimension; operands of rank 0 are numbers.
ShardingRule elementwiseRule(mlir::Operation *op);

} // namespace nd

#endif // ND_LIB_DIALECT_ND_IR_SHARDINGRULEBUILDER_H
