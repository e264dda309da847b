//===- Warnings.cpp - What a colleague would point out --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Warnings.h"
#include "Format.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace nd;
using llvm::formatv;

namespace {

/// Padding that is worth a word.
constexpr double kPadding = 0.05;

class Warnings {
public:
  explicit Warnings(Report &report) : report(report) {}

  void collect() {
    checkMemory();
    checkGathers();
    checkTensorParallel();
    checkRing();
    checkKeptKeys();
    checkPadding();
  }

private:
  void add(const llvm::formatv_object_base &text) { report.warnings.push_back(text.str()); }

  bool usesAxis(llvm::StringRef group, llvm::StringRef axis) {
    llvm::SmallVector<llvm::StringRef> names;
    group.split(names, '+');
    return llvm::any_of(names,
                        [&](llvm::StringRef name) { return name == axis || name.starts_with((axis + "[").str()); });
  }

  void checkMemory() {
    auto arena = static_cast<double>(report.memory.arena);
    if (report.system.published && arena > report.system.memoryBytes)
      add(formatv("a rank needs {0}, but {1} has {2}: shard over more ranks, or take smaller microbatches",
                  formatBytes(arena), report.system.name, formatBytes(report.system.memoryBytes)));
  }

  void checkGathers() {
    llvm::StringMap<std::pair<int64_t, GroupShape>> groups;
    for (const CollectiveReport &collective : report.collectives)
      if (collective.kind == "all_gather" && usesAxis(collective.group, "fsdp") && collective.shape.nodes > 1) {
        auto &[bytes, shape] = groups[collective.group];
        bytes += collective.sentBetweenNodes();
        shape = collective.shape;
      }
    for (const auto &entry : groups) {
      auto [bytes, shape] = entry.second;
      std::string instead;
      if (entry.first() == "fsdp" && shape.inside > 1)
        instead = formatv("; dp{0},fsdp{1} would gather inside a node only", sizeOf("dp") * shape.nodes, shape.inside);
      add(formatv("gathers over {0} leave the node: {1} nodes exchange {2} a step{3}", entry.first(), shape.nodes,
                  formatBytes(static_cast<double>(bytes)), instead));
    }
  }

  int64_t sizeOf(llvm::StringRef name) {
    for (const PlacedAxis &axis : report.axes)
      if (axis.name == name)
        return axis.size;
    return 1;
  }

  void checkTensorParallel() {
    for (auto [axis, shape] : llvm::zip_equal(report.axes, report.axisShapes))
      if ((axis.name == "tp" || llvm::StringRef(axis.name).starts_with("tp.")) && shape.nodes > 1)
        add(formatv(
            "tp goes over {0} nodes: its collectives stand between products and cannot be hidden; at most tp{1} "
            "stays inside a node of {2}",
            shape.nodes, shape.inside, report.system.name));
  }

  void checkRing() {
    double exposed = 0, whole = 0;
    for (const CollectiveReport &collective : report.collectives)
      if (collective.kind == "permute" && usesAxis(collective.group, "cp")) {
        exposed += collective.exposed;
        whole += collective.seconds * static_cast<double>(collective.times);
      }
    if (exposed > 0 && report.system.overlap)
      add(formatv("the ring is too short to hide: a rank waits {0} of {1} that it takes; fewer ranks on cp, longer "
                  "sequences, or --cp=gather",
                  formatSeconds(exposed), formatSeconds(whole)));
  }

  /// --cp=gather gathers keys and values in forward, and again in backward unless they are kept.
  void checkKeptKeys() {
    int64_t forward = 0, later = 0;
    for (const CollectiveReport &collective : report.collectives)
      if (collective.kind == "all_gather" && collective.group == "cp")
        (collective.phase == "forward" ? forward : later) += collective.times;
    if (forward > later)
      add(formatv(
          "{0} of {1} gathers over cp in forward are kept for backward, which takes memory and saves as many gathers",
          forward - later, forward));
  }

  void checkPadding() {
    for (const ParameterReport &parameter : report.parameters)
      if (parameter.padding > kPadding)
        add(formatv("{0} is padded by {1:P1}: its shape is {2}, stored as {3} on each rank", parameter.name,
                    parameter.padding, formatShape(parameter.globalShape), formatShape(parameter.localShape)));
  }

  Report &report;
};

} // namespace

void nd::collectWarnings(Report &report) { Warnings(report).collect(); }
