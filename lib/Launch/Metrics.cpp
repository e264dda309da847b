//===- Metrics.cpp - What a run says about its steps ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Metrics.h"
#include "JobProcess.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <unistd.h>

using namespace llvm;
using namespace nd::launch;

namespace {

/// JSON has no NaN and no infinity.
json::Value number(double value) { return std::isfinite(value) ? json::Value(value) : json::Value(nullptr); }

std::string duration(double seconds) {
  auto whole = static_cast<int64_t>(seconds + 0.5);
  auto two = [](int64_t value) { return (value < 10 ? ":0" : ":") + std::to_string(value); };
  if (whole < 3600)
    return std::to_string(whole / 60) + two(whole % 60);
  return std::to_string(whole / 3600) + two(whole / 60 % 60) + two(whole % 60);
}

} // namespace

std::optional<StepMetrics> MetricsCollector::add(int64_t rank, const StepReport &report) {
  StepMetrics &metrics = open[report.step];
  if (rank == 0)
    metrics.first = report;
  metrics.arenaBytes = arenaBytes;
  metrics.residentBytes = std::max(metrics.residentBytes, report.residentBytes);
  for (const SentBytes &entry : report.sent) {
    if (entry.collective < 0 || entry.collective >= static_cast<int32_t>(manifest.collectives.size()))
      continue;
    const CollectiveInfo &info = manifest.collectives[entry.collective];
    if (info.group.empty())
      continue;
    metrics.sent[info.isScalar ? "scalar" : info.group][info.kind] += entry.bytes;
    metrics.sentBetweenNodes += entry.betweenNodes;
  }
  if (++metrics.reports < manifest.ranks)
    return std::nullopt;
  StepMetrics whole = std::move(metrics);
  open.erase(report.step);
  return whole;
}

Expected<std::unique_ptr<MetricsFile>> MetricsFile::create(StringRef path) {
  if (path == "-")
    return std::unique_ptr<MetricsFile>(new MetricsFile(path, ::dup(STDOUT_FILENO)));
  int file = -1;
  std::error_code code = sys::fs::openFileForWrite(path, file, sys::fs::CD_OpenAlways);
  if (!code && sys::fs::is_regular_file(path)) {
    if (!lockForThisProcess(file)) {
      ::close(file);
      return makeError("another run writes its metrics to " + path + "; choose another file");
    }
    code = sys::fs::resize_file(file, 0);
  }
  if (code)
    return makeError("cannot write metrics to " + path + ": " + code.message());
  return std::unique_ptr<MetricsFile>(new MetricsFile(path, file));
}

Error MetricsFile::write(const StepMetrics &metrics) {
  json::OStream out(stream);
  static constexpr const char *phases[] = {"forward", "backward", "reduce", "update"};
  out.object([&] {
    out.attribute("step", metrics.first.step);
    out.attribute("loss", number(metrics.first.loss));
    out.attribute("grad_norm", number(metrics.first.gradNorm));
    out.attribute("lr", number(metrics.first.lr));
    out.attribute("tokens", static_cast<int64_t>(metrics.first.tokens));
    out.attribute("applied", metrics.first.applied != 0);
    out.attribute("step_ms", number(metrics.first.milliseconds));
    out.attribute("tokens_per_s", number(metrics.tokensPerSecond()));
    out.attribute("mfu", nullptr); // the peak of a host is not known
    out.attribute("arena_bytes", metrics.arenaBytes);
    out.attribute("rss_bytes", metrics.residentBytes);
    out.attributeObject("phase_ms", [&] {
      for (int phase = 0; phase < 4; ++phase)
        out.attribute(phases[phase], number(metrics.first.phaseMilliseconds[phase]));
    });
    out.attributeObject("sent", [&] {
      for (const auto &[group, kinds] : metrics.sent)
        out.attributeObject(group, [&, &kinds = kinds] {
          for (const auto &[kind, bytes] : kinds)
            out.attribute(kind, bytes);
        });
    });
    out.attribute("sent_between_nodes", metrics.sentBetweenNodes);
  });
  stream << '\n';
  stream.flush();
  if (!stream.has_error())
    return Error::success();
  std::string problem = stream.error().message();
  stream.clear_error();
  return makeError("cannot write metrics to " + path + ": " + problem);
}

ProgressLine::ProgressLine(raw_ostream &stream, int64_t steps)
    : stream(stream), steps(steps), terminal(stream.is_displayed()), start(monotonicMilliseconds()) {}

void ProgressLine::show(const StepMetrics &metrics) {
  double now = monotonicMilliseconds();
  bool last = metrics.first.step == steps;
  ++stepsSeen;
  constexpr double plainInterval = 1000, terminalInterval = 50;
  if (!last && stepsSeen > 1 && now - lastShown < (terminal ? terminalInterval : plainInterval))
    return;
  lastShown = now;
  double left = (now - start) / 1e3 / static_cast<double>(stepsSeen) * static_cast<double>(steps - metrics.first.step);
  std::string line = formatv("step {0}/{1}  loss {2:f4}  grad norm {3:f3}  lr {4}  {5:f0} tokens/s  {6} left",
                             metrics.first.step, steps, metrics.first.loss, metrics.first.gradNorm,
                             formatv("{0:e2}", metrics.first.lr), metrics.tokensPerSecond(), duration(left));
  if (!metrics.first.applied)
    line += "  not applied: no valid token, or gradients that are not finite";
  if (!terminal) {
    stream << line << '\n';
    stream.flush();
    return;
  }
  constexpr int64_t width = 20;
  int64_t filled = width * metrics.first.step / std::max<int64_t>(1, steps);
  stream << "\r\x1b[K[" << std::string(filled, '=') << std::string(width - filled, ' ') << "] " << line;
  stream.flush();
  unfinished = true;
  if (last)
    finish();
}

void ProgressLine::finish() {
  if (unfinished)
    stream << '\n';
  unfinished = false;
  stream.flush();
}
