//===- TextReport.cpp - The report for people -----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What differs only by the number of a block is one row: `model.layers.*.mlp.up_proj.weight`.
//
//===----------------------------------------------------------------------===//

#include "Format.h"
#include "nd/Report/Report.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace nd;
using llvm::formatv;

namespace {

/// Numbers between dots become `*`.
std::string withoutNumbers(llvm::StringRef text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    bool starts = llvm::isDigit(text[i]) && (i == 0 || text[i - 1] == '.');
    size_t end = i;
    while (starts && end < text.size() && llvm::isDigit(text[end]))
      ++end;
    bool isNumber = starts && (end == text.size() || text[end] == '.' || text[end] == ' ' || text[end] == ',');
    result += isNumber ? "*" : text.substr(i, std::max<size_t>(1, end - i)).str();
    i += std::max<size_t>(1, end - i);
  }
  return result;
}

/// `all_gather over fsdp (2x)`.
std::string counted(llvm::ArrayRef<std::string> texts, llvm::StringRef otherwise) {
  llvm::MapVector<llvm::StringRef, int> counts;
  for (const std::string &text : texts)
    ++counts[text];
  if (counts.empty())
    return otherwise.str();
  return llvm::join(llvm::map_range(counts,
                                    [](const auto &entry) {
                                      std::string times =
                                          entry.second > 1 ? formatv(" ({0}x)", entry.second).str() : "";
                                      return entry.first.str() + times;
                                    }),
                    ", ");
}

class TextWriter {
public:
  TextWriter(const Report &report, llvm::raw_ostream &out) : report(report), out(out) {}

  void write() {
    writeMesh();
    writeParameters();
    writeSent();
    writeCollectives();
    writeMemory();
    writeCompute();
    if (!report.warnings.empty())
      heading("Warnings");
    for (const std::string &warning : report.warnings)
      out << "  - " << warning << "\n";
  }

private:
  void heading(const llvm::Twine &text) { out << "\n" << text << "\n"; }

  void writeMesh() {
    out << (report.model.empty() ? "Program" : report.model) << " on " << formatCount(report.ranks)
        << (report.ranks == 1 ? " rank" : " ranks") << ", " << formatCount(report.nodes)
        << (report.nodes == 1 ? " node" : " nodes") << " of " << report.system.name << "\n";
    if (report.axes.empty())
      return;
    heading("Mesh, outer to inner");
    Table table({"axis", "size", "of them in a node", "nodes"});
    for (auto [axis, shape] : llvm::zip_equal(report.axes, report.axisShapes))
      table.add({axis.name, std::to_string(axis.size), std::to_string(shape.inside), std::to_string(shape.nodes)});
    table.print(out);
  }

  void writeParameters() {
    if (report.parameters.empty())
      return;
    using Row = std::vector<std::string>;
    llvm::MapVector<llvm::StringRef, Row> rows;
    std::map<Row, std::array<int64_t, 3>> sums;
    std::vector<Row> order;
    std::array<int64_t, 3> total{};
    for (const ParameterReport &p : report.parameters) {
      std::string sharding = "[" + llvm::join(p.sharding, ", ") + "]";
      Row row = {withoutNumbers(p.name),
                 p.type,
                 formatShape(p.globalShape),
                 sharding,
                 formatShape(p.localShape),
                 counted(p.uses, "as stored"),
                 p.trainable ? counted(p.reductions, "none") : "frozen"};
      auto [it, isNew] = sums.try_emplace(row, std::array<int64_t, 3>{});
      if (isNew)
        order.push_back(row);
      std::array<int64_t, 3> amounts = {1, p.bytes, p.stateBytes};
      for (int i = 0; i < 3; ++i) {
        it->second[i] += amounts[i];
        total[i] += amounts[i];
      }
    }
    heading("Parameters, and what a rank stores of them");
    Table table({"parameter", "count", "type", "shape", "sharding", "on a rank", "bytes", "state", "used", "gradient"});
    for (const Row &row : order) {
      const auto &[count, bytes, state] = sums[row];
      table.add({row[0], std::to_string(count), row[1], row[2], row[3], row[4], formatBytes(static_cast<double>(bytes)),
                 formatBytes(static_cast<double>(state)), row[5], row[6]});
    }
    table.add({"all", std::to_string(total[0]), "", "", "", "", formatBytes(static_cast<double>(total[1])),
               formatBytes(static_cast<double>(total[2])), "", ""});
    table.print(out);
  }

  struct Sum {
    int64_t count = 0, sent = 0, between = 0;
    double seconds = 0, exposed = 0;

    void add(const CollectiveReport &collective) {
      count += collective.times;
      sent += collective.sentTotal();
      between += collective.sentBetweenNodes();
      seconds += collective.seconds * static_cast<double>(collective.times);
      exposed += collective.exposed;
    }
  };

  std::string perRank(int64_t total) const {
    return formatBytes(static_cast<double>(total) / static_cast<double>(report.ranks));
  }

  void writeSent() {
    heading("Sent in a step");
    if (report.collectives.empty()) {
      out << "  nothing\n";
      return;
    }
    std::map<std::pair<std::string, std::string>, Sum> sums;
    Sum all;
    for (const CollectiveReport &collective : report.collectives) {
      sums[{collective.group, collective.kind}].add(collective);
      all.add(collective);
    }
    Table table({"group", "kind", "count", "bytes, all ranks", "by a rank", "between nodes", "time", "exposed"});
    for (const auto &[key, sum] : sums)
      table.add({key.first, key.second, formatCount(sum.count), formatCount(sum.sent), perRank(sum.sent),
                 formatBytes(static_cast<double>(sum.between)), formatSeconds(sum.seconds),
                 formatSeconds(sum.exposed)});
    table.add({"all", "", formatCount(all.count), formatCount(all.sent), perRank(all.sent),
               formatBytes(static_cast<double>(all.between)), formatSeconds(all.seconds), formatSeconds(all.exposed)});
    table.print(out);
  }

  void writeCollectives() {
    if (report.collectives.empty())
      return;
    // The place in the source is that of the first of a row: where a step was read from a file, each has its own.
    using Row = std::vector<std::string>;
    llvm::MapVector<Row, std::pair<Sum, std::string>, std::map<Row, unsigned>> rows;
    for (const CollectiveReport &c : report.collectives) {
      auto &[sum, location] = rows[{c.kind, c.group, c.shape.nodes > 1 ? "between" : "inside", c.phase,
                                    formatBytes(static_cast<double>(c.payload)), withoutNumbers(c.name), c.reason}];
      if (sum.count == 0)
        location = withoutNumbers(c.location);
      sum.add(c);
    }
    heading("Collectives, in the order of the program");
    Table table(
        {"count", "kind", "group", "nodes", "phase", "payload", "sent by a rank", "exposed", "what", "asked for by"});
    for (const auto &[row, entry] : rows) {
      const auto &[sum, location] = entry;
      table.add({formatCount(sum.count), row[0], row[1], row[2], row[3], row[4], perRank(sum.sent),
                 sum.exposed > 0 ? formatSeconds(sum.exposed) : "hidden", row[5],
                 location + (location.empty() ? "" : ": ") + row[6]});
    }
    table.print(out);
  }

  void writeMemory() {
    const MemoryReport &memory = report.memory;
    heading("Memory of a rank at its peak" + (memory.peakAt.empty() ? "" : ", at " + memory.peakAt));
    Table table({"class", "bytes", ""});
    auto add = [&](llvm::StringRef name, int64_t bytes) {
      table.add({name.str(), formatCount(bytes), formatBytes(static_cast<double>(bytes))});
    };
    for (int index = 0; index < kMemoryClasses; ++index)
      if (memory.live[index] != 0)
        add(stringify(static_cast<MemoryClass>(index)), memory.live[index]);
    add("alignment and gaps", memory.arena - memory.peakLive);
    add("arena", memory.arena);
    table.print(out);
    if (memory.lossChunk)
      out << "  logits of at most " << formatCount(memory.lossChunk) << " tokens at once (--loss-chunk)\n";
    writeListed("scores",
                "Scores in memory: the sequence in two dimensions (an attention that is written out, a general mask)");
    writeListed("logits", "Logits of all tokens of a rank in memory (--loss-chunk)");
  }

  void writeListed(llvm::StringRef what, llvm::StringRef title) {
    using Row = std::vector<std::string>;
    llvm::MapVector<Row, std::pair<int64_t, int64_t>, std::map<Row, unsigned>> rows;
    for (const ListedValue &listed : report.memory.listed) {
      if (listed.what != what)
        continue;
      auto &[count, bytes] =
          rows[{listed.value, formatShape(listed.shape), listed.type, withoutNumbers(listed.location)}];
      ++count;
      bytes += listed.bytes;
    }
    if (rows.empty())
      return;
    heading(title);
    Table table({"count", "what", "shape", "type", "bytes, together", "where"});
    for (const auto &[row, sum] : rows)
      table.add({formatCount(sum.first), row[0], row[1], row[2], formatBytes(static_cast<double>(sum.second)), row[3]});
    table.print(out);
  }

  void writeCompute() {
    const ComputeReport &compute = report.compute;
    heading("Computation of a step");
    Table table({"what", "how much"});
    if (compute.tokens)
      table.add({"tokens", formatCount(compute.tokens)});
    if (compute.modelFlopsPerToken) {
      table.add({"model FLOPs a token", formatCount(*compute.modelFlopsPerToken)});
      table.add({"model FLOPs", formatFlops(report.modelFlops())});
      table.add({"model FLOPs by a rank", formatFlops(report.modelFlops() / static_cast<double>(report.ranks))});
    }
    table.add({"executed FLOPs by a rank, in " + compute.type, formatFlops(compute.productFlops)});
    table.add({"elementwise operations by a rank", formatFlops(compute.elementwiseFlops)});
    table.add({"predicted: computing", formatSeconds(compute.seconds)});
    table.add({"predicted: waiting", formatSeconds(compute.stepSeconds - compute.seconds)});
    table.add({"predicted: a step", formatSeconds(compute.stepSeconds)});
    if (std::optional<double> mfu = report.mfu())
      table.add({"predicted: MFU", formatv("{0:P1}", *mfu).str()});
    table.print(out);
  }

  const Report &report;
  llvm::raw_ostream &out;
};

} // namespace

void nd::writeText(const Report &report, llvm::raw_ostream &out) { TextWriter(report, out).write(); }
