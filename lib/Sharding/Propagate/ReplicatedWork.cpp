//===- ReplicatedWork.cpp - Products that all ranks of an axis do ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Propagate/ReplicatedWork.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace nd;

namespace {

/// Work that is worth a word.
constexpr double kShare = 0.01;

/// Multiplications and additions of a product or an attention; 0 for any other operation.
double workOf(const Analysis::Step &step) {
  if (isa<DotGeneralOp>(step.op)) {
    double work = 2;
    for (const Factor &factor : step.rule.factors)
      work *= static_cast<double>(factor.size);
    return work;
  }
  if (auto attention = dyn_cast<AttentionOp>(step.op))
    return 4.0 * static_cast<double>(tensorTypeOf(attention.getQuery()).getNumElements()) *
           static_cast<double>(tensorTypeOf(attention.getKey()).getDimSize(2));
  return 0;
}

std::string describeWork(Operation *op, func::FuncOp function) {
  for (Value operand : op->getOperands())
    if (BlockArgument weight = getWeightBehind(operand, function))
      return "the product with " + describe(weight);
  return ("'" + op->getName().getStringRef() + "'").str();
}

} // namespace

void nd::noteReplicatedWork(Program &program, const Analysis &analysis, const Propagation &propagation) {
  const MeshView &mesh = propagation.getMesh();
  auto module = program.function->getParentOfType<ModuleOp>();
  // Axes by name; the parts of one ("tp.0", "tp.1") together.
  llvm::MapVector<StringRef, llvm::SmallBitVector> groups;
  for (unsigned axis : llvm::seq<unsigned>(mesh.getSizes().size()))
    if (mesh.getSizes()[axis] > 1) {
      auto [it, isNew] = groups.try_emplace(mesh.getName(axis).getValue().split('.').first, mesh.getSizes().size());
      it->second.set(axis);
    }
  SmallVector<Attribute> notes;
  if (auto given = dyn_cast_or_null<ArrayAttr>(names::moduleEntry(module, names::kPlan, "notes")))
    llvm::append_range(notes, given);
  size_t before = notes.size();
  auto sharesTokens = dyn_cast_or_null<BoolAttr>(names::moduleEntry(module, names::kPlan, "sequence_parallel"));
  for (const auto &[name, axes] : groups) {
    double all = 0, replicated = 0;
    int64_t ranks = 1;
    for (unsigned axis : axes.set_bits())
      ranks *= mesh.getSizes()[axis];
    SmallVector<Operation *> found;
    for (const Analysis::Step &step : analysis.getSteps()) {
      double work = analysis.isForward(step.op) ? workOf(step) : 0;
      all += work;
      if (work == 0 || llvm::any_of(propagation.get(step.op), [&, &axes = axes](const AxisList &list) {
            return llvm::any_of(list, [&](unsigned axis) { return axes.test(axis); });
          }))
        continue;
      replicated += work;
      found.push_back(step.op);
    }
    if (replicated <= kShare * all)
      continue;
    std::string more = found.size() > 1 ? llvm::formatv(" (and {0} more)", found.size() - 1).str() : "";
    std::string text = llvm::formatv(
        "all {0} ranks of {1} compute {2:P1} of the products alike: {3}{4} has no dimension that the plan shards over "
        "{1}; --annotate can place it{5}",
        ranks, name, replicated / all, describeWork(found.front(), program.function), more,
        name == "tp" && sharesTokens && !sharesTokens.getValue() && !propagation.makesWholeKeys(found.front())
            ? ", --sequence-parallel=on shares its tokens"
            : "");
    notes.push_back(StringAttr::get(module.getContext(), text));
    found.front()->emitWarning() << text;
  }
  if (notes.size() > before)
    names::setModuleEntry(module, names::kPlan, "notes", ArrayAttr::get(module.getContext(), notes));
}
