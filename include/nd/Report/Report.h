//===- Report.h - What a step sends, stores and computes --------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A report is read off the program that a rank runs, after its memory is planned: what it says is what the run does.
// Bytes and memory are exact, times are those of the cost model. docs/report.md describes the JSON.
//
//===----------------------------------------------------------------------===//

#ifndef ND_REPORT_REPORT_H
#define ND_REPORT_REPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "nd/Cost/CostModel.h"

#include <array>

namespace nd {

/// A parameter, or another tensor that lasts from step to step.
struct ParameterReport {
  std::string name, type;
  llvm::SmallVector<int64_t> globalShape, localShape;
  /// Of each dimension the axes that shard it, joined by `+`; `_` for none.
  llvm::SmallVector<std::string> sharding;
  bool trainable = true;
  int64_t bytes = 0;      ///< of the parameter on a rank
  int64_t stateBytes = 0; ///< of its optimizer state on a rank
  double padding = 0.0;   ///< stored elements that are none of the tensor's, as a share of those that are
  /// How it gets to where it is used, and its gradient to where it is updated: `all_gather over fsdp`.
  std::vector<std::string> uses, reductions;
};

/// Collectives of one rt.collective_start.
struct CollectiveReport {
  std::string kind, group, type, name, reason, location, phase;
  bool scalar = false;
  GroupShape shape;
  int64_t times = 1; ///< in a step
  int64_t payload = 0;
  SentBytes sent; ///< by all ranks, each time
  double seconds = 0.0;
  std::string unit;       ///< of a gather of parameters: what is gathered together
  int64_t unitsAhead = 0; ///< how many units come into use between its start and its own use
  double exposed = 0.0;   ///< seconds that a rank waits for it in a step

  int64_t sentTotal() const { return times * sent.total; }
  int64_t sentBetweenNodes() const { return times * sent.betweenNodes; }
};

enum class MemoryClass {
  Parameters,
  Master,
  Moments,
  Gradients,
  Activations,
  Gathers,
  Workspace,
  Inputs,
  Scalars,
  Outputs,
  Staging
};
inline constexpr int kMemoryClasses = 11;
llvm::StringRef stringify(MemoryClass memoryClass);

/// A value of the program that takes more memory than one might think.
struct ListedValue {
  std::string what; ///< `scores`: it has the sequence in two dimensions; `logits`: of all tokens of a rank
  std::string value, type, location;
  llvm::SmallVector<int64_t> shape;
  int64_t bytes = 0;
};

struct MemoryReport {
  /// Bytes that are live at the peak, exactly.
  std::array<int64_t, kMemoryClasses> live{};
  /// Of each class the most that is live at any time.
  std::array<int64_t, kMemoryClasses> most{};
  int64_t peakLive = 0;  ///< their sum
  int64_t arena = 0;     ///< what a rank allocates: the peak, alignment, and what no order of places could avoid
  std::string peakAt;    ///< the operation at which the peak is reached
  int64_t lossChunk = 0; ///< tokens whose logits exist at once; 0: all of a rank's
  std::vector<ListedValue> listed; ///< in the order of the program
};

struct ComputeReport {
  int64_t tokens = 0; ///< of a step
  /// Of the model as published figures count them: 6 N + 12 L h s a token. Nothing without a model.
  std::optional<int64_t> modelFlopsPerToken;
  /// Of the products and attentions that a rank executes in a step, and of its elementwise operations.
  double productFlops = 0.0, elementwiseFlops = 0.0;
  std::string type;         ///< in which the products run
  double seconds = 0.0;     ///< that a rank computes in a step
  double stepSeconds = 0.0; ///< with the collectives that are not hidden
};

struct Report {
  std::string model;
  System system;
  llvm::SmallVector<PlacedAxis> axes;
  llvm::SmallVector<GroupShape> axisShapes;
  int64_t ranks = 1, nodes = 1;
  std::vector<ParameterReport> parameters;
  std::vector<CollectiveReport> collectives; ///< in the order of the program
  MemoryReport memory;
  ComputeReport compute;
  std::vector<std::string> warnings;

  double modelFlops() const;
  /// Model FLOPs against the peak of all ranks over the predicted time; nothing where either is unknown.
  std::optional<double> mfu() const;
};

/// Lowers the program of one rank (or a step without a mesh) as nd-compile does, without emission, and describes it.
/// The module is the rt program afterwards. `nodes` must be what its mesh was made for, or 0.
mlir::FailureOr<Report> buildReport(mlir::ModuleOp module, const System &system, int64_t nodes);

void writeText(const Report &report, llvm::raw_ostream &out);
void writeJson(const Report &report, llvm::raw_ostream &out);

} // namespace nd

#endif // ND_REPORT_REPORT_H
