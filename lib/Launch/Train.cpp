//===- Train.cpp - Running the steps of a program -------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Train.h"
#include "JobProcess.h"
#include "nd/Launch/Metrics.h"
#include "nd/Launch/StoreFile.h"
#include "nd/Launch/TokenData.h"
#include "nd/Launch/Weights.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace nd::launch;

namespace {

class Training {
public:
  Training(const Manifest &manifest, const TrainOptions &options) : manifest(manifest), options(options) {}

  Error run();
  bool wasInterrupted() const { return job && job->wasInterrupted(); }

private:
  Error checkOptions();
  Error startJob();
  Error runTo(int64_t step);
  Error dumpGradients();
  int64_t seed() const { return options.seed.value_or(manifest.step.getInteger("seed").value_or(0)); }

  const Manifest &manifest;
  const TrainOptions &options;
  std::vector<FileSlice> weights;
  std::vector<int32_t> gradients; ///< tensors that --dump-gradients writes
  TokenFormat format;
  std::unique_ptr<SaveFolder> save;
  std::unique_ptr<MetricsFile> metrics;
  std::unique_ptr<Job> job;
  std::unique_ptr<MetricsCollector> collector;
  std::unique_ptr<ProgressLine> progress;
  std::string metricsProblem; ///< why metrics are not written any more, or empty
};

} // namespace

/// Everything that can be wrong is found before a process starts.
Error Training::checkOptions() {
  if (options.steps < 1)
    return makeError("--steps=N must be at least 1");
  if (options.data.empty())
    return makeError("give a token file with --data (nd-data makes one)");
  Expected<TokenFormat> inspected = inspectTokenFile(options.data, options.dataDtype);
  if (!inspected)
    return inspected.takeError();
  format = *inspected;
  if (std::string repeats = describeRepeats(manifest, options.data, format.tokens); !repeats.empty())
    errs() << "nd-run: warning: " << repeats << '\n';
  std::string folder = weightsFolderOf(manifest, options.weights);
  Expected<std::vector<FileSlice>> planned = planWeights(manifest, folder);
  if (!planned)
    return planned.takeError();
  weights = std::move(*planned);
  if (!options.save.empty()) {
    Expected<std::unique_ptr<SaveFolder>> created =
        SaveFolder::create(manifest, options.save, folder, weights, options.saveDtype);
    if (!created)
      return created.takeError();
    save = std::move(*created);
  }
  if (!options.metrics.empty()) {
    Expected<std::unique_ptr<MetricsFile>> created = MetricsFile::create(options.metrics);
    if (!created)
      return created.takeError();
    metrics = std::move(*created);
  }
  for (size_t i = 0; i < manifest.tensors.size() && !options.dumpGradients.empty(); ++i)
    if (manifest.tensors[i].kind == "gradient")
      gradients.push_back(static_cast<int32_t>(i));
  if (!options.dumpGradients.empty() && gradients.empty())
    return makeError("the program returns no gradients, so --dump-gradients has none to write; build it with nd-opt "
                     "--keep-gradients");
  return Error::success();
}

Error Training::startJob() {
  JobOptions jobOptions;
  jobOptions.threads = options.threads;
  jobOptions.bind = options.bind;
  jobOptions.ignoreMemory = options.ignoreMemory;
  jobOptions.totalSteps = options.steps;
  jobOptions.tokenFile = options.data;
  jobOptions.tokenBytes = format.tokenBytes;
  jobOptions.shuffle = options.shuffle;
  jobOptions.seed = static_cast<uint64_t>(seed());
  Expected<std::unique_ptr<Job>> started = Job::start(manifest, jobOptions);
  if (!started)
    return started.takeError();
  job = std::move(*started);
  double loadStart = monotonicMilliseconds();
  if (Error error = job->load(weights))
    return error;
  const ReadyReport &ready = job->getReady();
  errs() << formatv(
      "{0} {1}, {2} {3} each{8}; rendezvous {4:f0} ms, arena {5:f1} MiB, first touch {6:f0} ms, weights {7:f0} ms\n",
      manifest.ranks, manifest.ranks == 1 ? "rank" : "ranks", job->getThreads(),
      job->getThreads() == 1 ? "thread" : "threads", job->getRendezvousMilliseconds(),
      static_cast<double>(ready.arenaBytes) / 1048576, ready.touchMilliseconds, monotonicMilliseconds() - loadStart,
      job->isBound() ? ", bound to cores" : "");
  collector = std::make_unique<MetricsCollector>(manifest, ready.arenaBytes);
  progress = std::make_unique<ProgressLine>(errs(), options.steps);
  return Error::success();
}

Error Training::runTo(int64_t step) {
  Error error = job->run(step, /*isCall=*/false, [&](int64_t rank, const StepReport &report) {
    std::optional<StepMetrics> whole = collector->add(rank, report);
    if (!whole)
      return;
    progress->show(*whole);
    if (!metrics)
      return;
    // What was trained is worth more than what is known about it.
    if (Error failed = metrics->write(*whole)) {
      metricsProblem = toString(std::move(failed));
      metrics.reset();
      errs() << "nd-run: warning: " << metricsProblem << "; training goes on without\n";
    }
  });
  progress->finish();
  return error;
}

Error Training::dumpGradients() {
  if (std::error_code code = sys::fs::create_directories(options.dumpGradients, true, sys::fs::perms::all_all))
    return makeError("cannot create " + options.dumpGradients + ": " + code.message());
  SmallString<256> path(options.dumpGradients);
  sys::path::append(path, "gradients.safetensors");
  std::vector<NamedTensor> tensors;
  for (int32_t index : gradients)
    tensors.push_back({index, manifest.tensors[index].dtype, manifest.tensors[index].modelName()});
  Expected<std::vector<FileSlice>> slices = createStoreFile(manifest, path, tensors);
  return slices ? job->save(*slices) : slices.takeError();
}

Error Training::run() {
  if (Error error = checkOptions())
    return error;
  if (Error error = startJob())
    return error;
  if (!gradients.empty()) {
    if (Error error = runTo(1))
      return error;
    if (Error error = dumpGradients())
      return error;
  }
  if (Error error = runTo(options.steps))
    return error;
  if (save) {
    if (Error error = save->write(*job))
      return joinErrors(makeError("the trained weights are not saved"), std::move(error));
    errs() << "saved " << options.save << '\n';
  }
  Error error = job->finish();
  return metricsProblem.empty() ? std::move(error) : joinErrors(makeError(metricsProblem), std::move(error));
}

Error nd::launch::trainProgram(const Manifest &manifest, const TrainOptions &options, bool &interrupted) {
  Training training(manifest, options);
  Error error = training.run();
  interrupted = training.wasInterrupted();
  return error;
}
