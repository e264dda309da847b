//===- MemoryClasses.cpp - What memory holds ------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Named tensors are of the class of their kind. A temporary is
//
//   workspace    when it is scratch of a kernel, or lives within one phase and is none of the following
//   gathers      when a gather of parameters writes it
//   parameters   when it is computed from parameters alone (copies in the compute type)
//   gradients    when an update reads it, or what an update reads is reduced or summed up from it
//   activations  when a forward operation first writes it and a later phase reads it
//
//===----------------------------------------------------------------------===//

#include "MemoryClasses.h"
#include "Collectives.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Memory/Lifetimes.h"
#include "nd/Support/Locations.h"

using namespace mlir;
using namespace nd;

StringRef nd::stringify(MemoryClass memoryClass) {
  constexpr StringLiteral names[kMemoryClasses] = {"parameters",  "master",  "moments",   "gradients",
                                                   "activations", "gathers", "workspace", "inputs",
                                                   "scalars",     "outputs", "staging"};
  return names[static_cast<int>(memoryClass)];
}

namespace {

class Classifier {
public:
  Classifier(rt::ProgramOp program, StringRef computeType) : computeType(computeType) {
    program.getBody().walk([&](Operation *op) { visit(op); });
    findGradients();
  }

  MemoryClass classOf(Operation *root) const {
    if (auto tensor = dyn_cast<rt::TensorOp>(root))
      return classOf(tensor);
    if (scratch.contains(root))
      return MemoryClass::Workspace;
    if (gathered.contains(root))
      return MemoryClass::Gathers;
    if (gradients.contains(root))
      return MemoryClass::Gradients;
    if (ofParameters.contains(root))
      return MemoryClass::Parameters;
    auto first = firstPhase.find(root), last = lastPhase.find(root);
    bool saved = first != firstPhase.end() && first->second == rt::Phase::forward && last->second != rt::Phase::forward;
    return saved ? MemoryClass::Activations : MemoryClass::Workspace;
  }

private:
  MemoryClass classOf(rt::TensorOp tensor) const {
    StringRef kind = tensor.getKind();
    if (kind == names::kind::kWeight) {
      auto type = dyn_cast<FloatType>(tensor.getBuffer().getType().getElementType());
      return type && type.isF32() && computeType != "f32" ? MemoryClass::Master : MemoryClass::Parameters;
    }
    if (kind == names::kind::kExpAvg || kind == names::kind::kExpAvgSq || kind == names::kind::kMomentum)
      return MemoryClass::Moments;
    if (kind == "master")
      return MemoryClass::Master;
    if (kind == names::kind::kGradient)
      return MemoryClass::Gradients;
    if (kind == names::kind::kInput)
      return MemoryClass::Inputs;
    return tensor.getOutput() && kind != names::kind::kMetric ? MemoryClass::Outputs : MemoryClass::Scalars;
  }

  static Operation *rootOf(Value buffer) { return rt::getRoot(buffer).getDefiningOp(); }

  static bool isParameter(Operation *root) {
    auto tensor = dyn_cast<rt::TensorOp>(root);
    return tensor && tensor.getKind() == names::kind::kWeight;
  }

  static bool isState(Operation *root) {
    auto tensor = dyn_cast<rt::TensorOp>(root);
    return tensor && !tensor.getOutput() && tensor.getKind() != names::kind::kInput &&
           tensor.getKind() != names::kind::kScalar && tensor.getBuffer().getType().getNumElements() > 1;
  }

  static int64_t elementsOf(Value buffer) { return cast<MemRefType>(buffer.getType()).getNumElements(); }

  void visit(Operation *op) {
    if (auto next = dyn_cast<rt::PhaseOp>(op)) {
      phase = next.getPhase();
      return;
    }
    if (isa<rt::ViewOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType())) {
        Operation *root = rootOf(operand);
        firstPhase.try_emplace(root, phase);
        lastPhase[root] = phase;
      }
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](rt::LaunchOp launch) { visitLaunch(launch); })
        .Case([&](rt::CopyOp copy) { moves.push_back({{copy.getSource()}, {copy.getTarget()}}); })
        .Case([&](rt::CollectiveStartOp start) { visitCollective(start); });
  }

  void visitLaunch(rt::LaunchOp launch) {
    if (Value workspace = launch.getWorkspace())
      scratch.insert(rootOf(workspace));
    SmallVector<Value> written(launch.getOutputs());
    for (int64_t input : launch.getInPlace())
      if (input >= 0)
        written.push_back(launch.getInputs()[input]);
    bool updates = llvm::any_of(written, [](Value buffer) { return isState(rootOf(buffer)); });
    if (updates)
      updateReads.append(launch.getInputs().begin(), launch.getInputs().end());
    else
      moves.push_back({launch.getInputs(), written});
    bool fromParameters = !launch.getInputs().empty() && llvm::all_of(launch.getInputs(), [&](Value input) {
      Operation *root = rootOf(input);
      return isParameter(root) || ofParameters.contains(root) || isa<rt::ConstantOp>(root);
    });
    if (fromParameters && phase != rt::Phase::update)
      for (Value output : launch.getOutputs())
        ofParameters.insert(rootOf(output));
  }

  void visitCollective(rt::CollectiveStartOp start) {
    moves.push_back({sourcesOf(start), targetsOf(start)});
    if (start.getKind() != rt::CollectiveKind::all_gather)
      return;
    for (auto [source, target] : llvm::zip_equal(sourcesOf(start), targetsOf(start))) {
      Operation *root = rootOf(source), *whole = rootOf(target);
      if ((isParameter(root) || ofParameters.contains(root) || gathered.contains(root)) && !isState(whole))
        gathered.insert(whole);
    }
  }

  /// Backwards from what updates read, through collectives, copies and sums of as many elements.
  void findGradients() {
    for (Value buffer : updateReads) {
      Operation *root = rootOf(buffer);
      if (elementsOf(buffer) > 1 && !isa<rt::TensorOp, rt::ConstantOp>(root))
        gradients.insert(root);
    }
    for (const Move &move : llvm::reverse(moves))
      for (Value target : move.targets) {
        if (!gradients.contains(rootOf(target)))
          continue;
        bool isCollective = move.sources.size() == move.targets.size();
        for (Value source : move.sources)
          if ((isCollective || elementsOf(source) == elementsOf(target)) && !gathered.contains(rootOf(source)) &&
              lastPhase.lookup(rootOf(source)) != rt::Phase::forward &&
              firstPhase.lookup(rootOf(source)) != rt::Phase::forward)
            gradients.insert(rootOf(source));
      }
  }

  struct Move {
    SmallVector<Value> sources, targets;
  };

  StringRef computeType;
  rt::Phase phase = rt::Phase::forward;
  llvm::DenseMap<Operation *, rt::Phase> firstPhase, lastPhase;
  llvm::DenseSet<Operation *> scratch, gathered, ofParameters, gradients;
  SmallVector<Value> updateReads;
  std::vector<Move> moves;
};

/// How much is live, by time.
class LiveBytes {
public:
  void add(const Lifetime &life) {
    change[life.first] += life.bytes;
    change[life.last + 1] -= life.bytes;
  }

  /// The operation at which most is live, and how much that is.
  std::pair<int64_t, int64_t> peak() const {
    int64_t live = 0, most = -1, peak = 0;
    for (auto [time, delta] : change)
      if ((live += delta) > most) {
        most = live;
        peak = time;
      }
    return {peak, std::max<int64_t>(most, 0)};
  }

private:
  std::map<int64_t, int64_t> change;
};

} // namespace

MemoryReport nd::reportMemory(rt::ProgramOp program, StringRef computeType) {
  MemoryReport report;
  report.arena = static_cast<int64_t>(program.getArenaBytes().value_or(0));
  Classifier classifier(program, computeType);
  ProgramLifetimes memory(program);
  LiveBytes all, byClass[kMemoryClasses];
  for (const auto &[root, life] : memory.getShared()) {
    all.add(life);
    byClass[static_cast<int>(classifier.classOf(root))].add(life);
  }
  for (int index = 0; index < kMemoryClasses; ++index)
    report.most[index] = byClass[index].peak().second;
  auto add = [&](Operation *root, int64_t bytes) {
    report.live[static_cast<int>(classifier.classOf(root))] += bytes;
    report.peakLive += bytes;
  };
  for (rt::TensorOp tensor : memory.getFixed()) {
    int64_t bytes = rt::getBytes(tensor.getBuffer().getType());
    add(tensor, bytes);
    report.most[static_cast<int>(classifier.classOf(tensor.getOperation()))] += bytes;
  }
  auto staging = static_cast<int64_t>(program.getStagingBytes().value_or(0));
  for (auto *bytes : {&report.live, &report.most})
    (*bytes)[static_cast<int>(MemoryClass::Staging)] = staging;
  report.peakLive += staging;
  int64_t peak = all.peak().first;
  for (const auto &[root, life] : memory.getShared())
    if (life.first <= peak && peak <= life.last)
      add(root, life.bytes);
  if (Operation *op = memory.getOperation(peak))
    report.peakAt = describeLocation(op->getLoc());
  return report;
}
