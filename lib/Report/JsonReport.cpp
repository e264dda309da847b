//===- JsonReport.cpp - The report for programs ---------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Report/Report.h"
#include "llvm/Support/JSON.h"

using namespace nd;

namespace {

class JsonWriter {
public:
  JsonWriter(const Report &report, llvm::raw_ostream &out) : report(report), json(out, /*IndentSize=*/1) {}

  void write() {
    json.object([&] {
      json.attribute("format", "nd.report");
      json.attribute("version", 1);
      json.attribute("model", report.model);
      json.attributeObject("system", [&] { writeSystem(); });
      json.attributeObject("mesh", [&] { writeMesh(); });
      json.attributeArray("parameters", [&] {
        for (const ParameterReport &parameter : report.parameters)
          json.object([&] { write(parameter); });
      });
      json.attributeArray("collectives", [&] {
        for (const CollectiveReport &collective : report.collectives)
          json.object([&] { write(collective); });
      });
      writeSent();
      json.attributeObject("memory", [&] { writeMemory(); });
      json.attributeObject("compute", [&] { writeCompute(); });
      writeStrings("warnings", report.warnings);
    });
  }

private:
  void writeSizes(llvm::StringRef key, llvm::ArrayRef<int64_t> sizes) {
    json.attributeArray(key, [&] {
      for (int64_t size : sizes)
        json.value(size);
    });
  }

  void writeStrings(llvm::StringRef key, llvm::ArrayRef<std::string> texts) {
    json.attributeArray(key, [&] {
      for (const std::string &text : texts)
        json.value(text);
    });
  }

  void writeSystem() {
    json.attribute("name", report.system.name);
    json.attribute("ranks", report.ranks);
    json.attribute("nodes", report.nodes);
    json.attribute("memory_bytes", report.system.memoryBytes);
    json.attribute("overlap", report.system.overlap);
  }

  void writeMesh() {
    json.attributeArray("axes", [&] {
      for (auto [axis, shape] : llvm::zip_equal(report.axes, report.axisShapes))
        json.object([&, &axis = axis, &shape = shape] {
          json.attribute("name", axis.name);
          json.attribute("size", axis.size);
          json.attribute("inside_node", shape.inside);
          json.attribute("nodes", shape.nodes);
        });
    });
  }

  void write(const ParameterReport &parameter) {
    json.attribute("name", parameter.name);
    json.attribute("type", parameter.type);
    writeSizes("global_shape", parameter.globalShape);
    writeSizes("local_shape", parameter.localShape);
    writeStrings("sharding", parameter.sharding);
    json.attribute("trainable", parameter.trainable);
    json.attribute("bytes", parameter.bytes);
    json.attribute("state_bytes", parameter.stateBytes);
    json.attribute("padding", parameter.padding);
    writeStrings("uses", parameter.uses);
    writeStrings("reductions", parameter.reductions);
  }

  void write(const CollectiveReport &collective) {
    json.attribute("kind", collective.kind);
    json.attribute("group", collective.group);
    json.attribute("ranks", collective.shape.ranks());
    json.attribute("nodes", collective.shape.nodes);
    json.attribute("scalar", collective.scalar);
    json.attribute("type", collective.type);
    json.attribute("count", collective.times);
    json.attribute("payload_bytes", collective.payload);
    json.attribute("sent_bytes", collective.sentTotal());
    json.attribute("sent_per_rank", perRank(collective.sentTotal()));
    json.attribute("sent_between_nodes", collective.sentBetweenNodes());
    json.attribute("name", collective.name);
    json.attribute("reason", collective.reason);
    json.attribute("location", collective.location);
    json.attribute("phase", collective.phase);
    json.attribute("seconds", collective.seconds);
    json.attribute("exposed_seconds", collective.exposed);
    if (!collective.unit.empty()) {
      json.attribute("unit", collective.unit);
      json.attribute("units_ahead", collective.unitsAhead);
    }
  }

  /// Whole where all ranks send as much.
  llvm::json::Value perRank(int64_t total) const {
    if (total % report.ranks == 0)
      return total / report.ranks;
    return static_cast<double>(total) / static_cast<double>(report.ranks);
  }

  /// As `sent` of metrics.jsonl: by group and kind, all ranks together.
  void writeSent() {
    std::map<std::string, std::map<std::string, int64_t>> sent;
    int64_t between = 0;
    for (const CollectiveReport &collective : report.collectives) {
      sent[collective.group][collective.kind] += collective.sentTotal();
      between += collective.sentBetweenNodes();
    }
    json.attributeObject("sent", [&] {
      for (const auto &[group, kinds] : sent)
        json.attributeObject(group, [&, &kinds = kinds] {
          for (const auto &[kind, bytes] : kinds)
            json.attribute(kind, bytes);
        });
    });
    json.attribute("sent_between_nodes", between);
  }

  void writeMemory() {
    json.attribute("arena_bytes", report.memory.arena);
    json.attribute("peak_live_bytes", report.memory.peakLive);
    json.attributeObject("live_at_peak", [&] {
      for (int index = 0; index < kMemoryClasses; ++index)
        json.attribute(stringify(static_cast<MemoryClass>(index)), report.memory.live[index]);
    });
    json.attributeObject("most_by_class", [&] {
      for (int index = 0; index < kMemoryClasses; ++index)
        json.attribute(stringify(static_cast<MemoryClass>(index)), report.memory.most[index]);
    });
    json.attribute("peak_at", report.memory.peakAt);
    if (report.memory.lossChunk)
      json.attribute("loss_chunk", report.memory.lossChunk);
    json.attributeArray("listed", [&] {
      for (const ListedValue &listed : report.memory.listed)
        json.object([&] {
          json.attribute("what", listed.what);
          json.attribute("value", listed.value);
          writeSizes("shape", listed.shape);
          json.attribute("type", listed.type);
          json.attribute("bytes", listed.bytes);
          json.attribute("location", listed.location);
        });
    });
  }

  void writeCompute() {
    const ComputeReport &compute = report.compute;
    json.attribute("tokens", compute.tokens);
    bool known = compute.modelFlopsPerToken.has_value();
    json.attribute("model_flops_per_token", known ? llvm::json::Value(*compute.modelFlopsPerToken) : nullptr);
    json.attribute("model_flops", known ? llvm::json::Value(report.modelFlops()) : nullptr);
    json.attribute("executed_flops_per_rank", compute.productFlops);
    json.attribute("elementwise_per_rank", compute.elementwiseFlops);
    json.attribute("type", compute.type);
    json.attribute("compute_seconds", compute.seconds);
    json.attribute("step_seconds", compute.stepSeconds);
    std::optional<double> mfu = report.mfu();
    json.attribute("mfu", mfu ? llvm::json::Value(*mfu) : nullptr);
  }

  const Report &report;
  llvm::json::OStream json;
};

} // namespace

void nd::writeJson(const Report &report, llvm::raw_ostream &out) {
  JsonWriter(report, out).write();
  out << "\n";
}
