//===- ShardingRule.cpp - Sharding rules: building and printing -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nd;

namespace {

void printTensors(llvm::raw_ostream &os, ArrayRef<ShardingRule::TensorFactors> tensors) {
  os << '(';
  llvm::interleaveComma(tensors, os, [&](const ShardingRule::TensorFactors &dims) {
    os << '[';
    llvm::interleaveComma(dims, os, [&](const ShardingRule::DimFactors &factors) {
      if (factors.empty())
        os << '1';
      llvm::interleave(factors, os, [&](int64_t factor) { os << 'i' << factor; }, "*");
    });
    os << ']';
  });
  os << ')';
}

} // namespace

bool ShardingRule::isPartialOver(unsigned result, int64_t factor) const {
  return factors[factor].kind == FactorKind::Reduction ||
         (!summed.empty() && llvm::is_contained(summed[result], factor));
}

std::string ShardingRule::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTensors(os, operands);
  os << " -> ";
  printTensors(os, results);
  os << " {";
  llvm::interleaveComma(llvm::enumerate(factors), os,
                        [&](auto it) { os << 'i' << it.index() << '=' << it.value().size; });
  os << '}';
  auto printKind = [&](FactorKind kind, StringRef title) {
    SmallVector<std::string> named;
    for (auto [index, factor] : llvm::enumerate(factors))
      if (factor.kind == kind)
        named.push_back("i" + std::to_string(index) +
                        (kind == FactorKind::Reduction ? ":" + stringifyReductionKind(factor.reduction).str() : ""));
    if (!named.empty())
      os << ' ' << title << "={" << llvm::join(named, ", ") << '}';
  };
  printKind(FactorKind::Reduction, "reduction");
  printKind(FactorKind::NeedReplication, "need_replication");
  SmallVector<std::string> sums;
  for (auto [result, list] : llvm::enumerate(summed))
    for (int64_t factor : list)
      sums.push_back("i" + std::to_string(factor) + ":" + std::to_string(result));
  if (!sums.empty())
    os << " summed={" << llvm::join(sums, ", ") << '}';
  if (!linear.empty()) {
    os << " linear={";
    llvm::interleave(
        linear, os, [&](ArrayRef<unsigned> set) { llvm::interleave(set, os, [&](unsigned i) { os << i; }, "+"); },
        ", ");
    os << '}';
  }
  if (!addends.empty()) {
    os << " addends={";
    llvm::interleaveComma(addends, os);
    os << '}';
  }
  return text;
}

//===----------------------------------------------------------------------===//
// ShardingRuleBuilder
//===----------------------------------------------------------------------===//

ShardingRuleBuilder::ShardingRuleBuilder(Operation *op) : op(op) {
  auto resize = [](SmallVector<ShardingRule::TensorFactors> &tensors, TypeRange types) {
    for (Type type : types)
      tensors.emplace_back(cast<RankedTensorType>(type).getRank());
  };
  resize(rule.operands, op->getOperandTypes());
  resize(rule.results, op->getResultTypes());
}

ShardingRule::DimFactors &ShardingRuleBuilder::factorsOf(Dim dim) {
  return (dim.isResult ? rule.results : rule.operands)[dim.tensor][dim.dim];
}

int64_t ShardingRuleBuilder::sizeOf(Dim dim) const {
  Type type = dim.isResult ? op->getResult(dim.tensor).getType() : op->getOperand(dim.tensor).getType();
  return cast<RankedTensorType>(type).getDimSize(dim.dim);
}

int64_t ShardingRuleBuilder::addFactor(int64_t size, FactorKind kind, ReductionKind reduction) {
  rule.factors.push_back({size, kind, reduction});
  return rule.factors.size() - 1;
}

void ShardingRuleBuilder::sumInto(unsigned result, int64_t factor) {
  rule.summed.resize(rule.results.size());
  rule.summed[result].push_back(factor);
}

void ShardingRuleBuilder::append(Dim dim, int64_t factor) { factorsOf(dim).push_back(factor); }

void ShardingRuleBuilder::share(FactorKind kind, ArrayRef<Dim> dims, ReductionKind reduction) {
  int64_t size = 1;
  for (Dim dim : dims)
    size = std::max(size, sizeOf(dim));
  int64_t factor = addFactor(size, kind, reduction);
  for (Dim dim : dims)
    if (sizeOf(dim) == size)
      append(dim, factor);
}

void ShardingRuleBuilder::fillRest(bool isResult) {
  for (auto [tensor, dims] : llvm::enumerate(isResult ? rule.results : rule.operands))
    for (auto [index, factors] : llvm::enumerate(dims)) {
      Dim dim{isResult, static_cast<unsigned>(tensor), static_cast<int64_t>(index)};
      if (factors.empty())
        append(dim, addFactor(sizeOf(dim), FactorKind::NeedReplication));
    }
}

ShardingRule ShardingRuleBuilder::build() {
  fillRest(/*isResult=*/false);
  fillRest(/*isResult=*/true);
  return std::move(rule);
}

ShardingRule nd::elementwiseRule(Operation *op) {
  ShardingRuleBuilder rule(op);
  int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  auto hasRank = [&](Type type) { return cast<RankedTensorType>(type).getRank() == rank; };
  for (int64_t dim : llvm::seq(rank)) {
    SmallVector<ShardingRuleBuilder::Dim> dims;
    for (auto [index, type] : llvm::enumerate(op->getOperandTypes()))
      if (hasRank(type))
        dims.push_back(ShardingRuleBuilder::operand(index, dim));
    for (unsigned index : llvm::seq(op->getNumResults()))
      dims.push_back(ShardingRuleBuilder::result(index, dim));
    rule.pass(dims);
  }
  return rule.build();
}
