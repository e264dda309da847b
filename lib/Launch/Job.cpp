//===- Job.cpp - The ranks of a running program ---------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Job.h"
#include "Cores.h"
#include "JobProcess.h"
#include "MachineMemory.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace nd::launch;
using nd::rt::MessageReader;
using nd::rt::MessageType;
using nd::rt::MessageWriter;

namespace {

/// A rank that computes and whose counter of operations stands still for this long is taken for stuck. ND_STALL_SECONDS
/// overrides it; 0 turns the check off.
double stallMilliseconds() {
  constexpr double standard = 300;
  const char *text = getenv("ND_STALL_SECONDS");
  double seconds = standard;
  if (text && StringRef(text).getAsDouble(seconds))
    seconds = standard;
  return seconds * 1e3;
}

Error systemError(const Twine &what) { return makeError(what + ": " + strerror(errno)); }

} // namespace

Job::Job(const Manifest &manifest)
    : manifest(manifest), layout(manifest.ranks), claims(std::make_unique<CoreClaims>()),
      startTime(monotonicMilliseconds()) {}

Job::~Job() {
  killAll();
  if (shared)
    munmap(shared, layout.controlBytes());
  if (memory >= 0)
    close(memory);
  if (signals >= 0) {
    close(signals);
    sigset_t set;
    fillJobSignals(set);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
  }
}

nd::rt::RankStatus &Job::status(int64_t rank) const {
  return *reinterpret_cast<rt::RankStatus *>(shared + layout.statusOffset(rank));
}

/// Arenas are touched as a whole, so what cannot fit is refused before the system starts to kill processes. The folder
/// ND_PROC, if given, is read instead of /proc.
static Error checkMachine(const Manifest &manifest, int threads, bool startAnyway) {
  SystemFiles files;
  if (const char *folder = getenv("ND_PROC"))
    files.processes = folder;
  std::optional<AvailableMemory> memory = findAvailableMemory(files);
  if (!memory)
    return Error::success();
  Expected<std::string> warning = checkMemory(manifest, threads, *memory, startAnyway);
  if (!warning)
    return warning.takeError();
  if (!warning->empty())
    errs() << "nd-run: warning: " << *warning << '\n';
  return Error::success();
}

Error Job::createSharedMemory() {
  memory = memfd_create("nd", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, layout.controlBytes()) != 0)
    return systemError("cannot create the job's shared memory");
  void *mapped = mmap(nullptr, layout.controlBytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED)
    return systemError("cannot map the job's shared memory");
  shared = static_cast<char *>(mapped);
  for (int64_t rank = 0; rank < manifest.ranks; ++rank)
    status(rank).collective.store(-1);
  return Error::success();
}

Error Job::watchSignals() {
  sigset_t set;
  fillJobSignals(set);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0)
    return systemError("cannot block signals");
  signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return signals < 0 ? systemError("cannot watch signals") : Error::success();
}

Error Job::spawn(int64_t rank) {
  Expected<std::unique_ptr<Process>> process = Process::start(rank, manifest.programs[manifest.rankProgram[rank]]);
  if (!process)
    return process.takeError();
  processes.push_back(std::move(*process));
  return Error::success();
}

Expected<std::unique_ptr<Job>> Job::start(const Manifest &manifest, const JobOptions &options) {
  std::unique_ptr<Job> job(new Job(manifest));
  job->threads = options.threads > 0 ? options.threads : std::max<int>(1, availableCores() / manifest.ranks);
  job->bound = options.bind && job->claims->claim(job->threads * manifest.ranks);
  if (Error error = checkMachine(manifest, job->threads, options.ignoreMemory))
    return std::move(error);
  if (Error error = job->createSharedMemory())
    return std::move(error);
  if (Error error = job->watchSignals())
    return std::move(error);
  for (int64_t rank = 0; rank < manifest.ranks; ++rank)
    if (Error error = job->spawn(rank))
      return std::move(error);
  if (Error error = job->serve(MessageType::Hello, {}))
    return std::move(error);
  job->rendezvousMilliseconds = monotonicMilliseconds() - job->startTime;
  for (std::unique_ptr<Process> &process : job->processes) {
    MessageWriter out;
    out.add<int32_t>(process->rank).add<int32_t>(manifest.ranks).add<int32_t>(job->threads).add(options.totalSteps);
    out.add(options.tokenFile).add(options.tokenBytes).add<int32_t>(options.shuffle).add(options.seed);
    out.add<int32_t>(job->bound);
    if (job->bound)
      for (int core : job->claims->get().slice(process->rank * job->threads, job->threads))
        out.add<int32_t>(core);
    if (!rt::sendMessage(process->socket, MessageType::Configure, out.getPayload(), job->memory))
      return job->lost(*process);
  }
  if (Error error = job->serve(MessageType::Ready, {}))
    return std::move(error);
  return job;
}

Error Job::move(MessageType type, ArrayRef<FileSlice> slices) {
  MessageWriter out;
  out.add<uint32_t>(slices.size());
  for (const FileSlice &slice : slices)
    out.add(slice.tensor)
        .add(slice.dtype)
        .add(slice.offset)
        .add(static_cast<int32_t>(slice.part.dim))
        .add(slice.part.offset)
        .add(slice.part.size)
        .add(slice.path);
  return command(type, out.getPayload());
}

Error Job::run(int64_t lastStep, bool isCall, const StepHandler &onStep) {
  MessageWriter out;
  out.add(lastStep).add<int32_t>(isCall);
  return command(MessageType::Run, out.getPayload(), onStep);
}

Error Job::command(MessageType type, const std::string &payload, const StepHandler &onStep) {
  for (std::unique_ptr<Process> &process : processes)
    if (!rt::sendMessage(process->socket, type, payload))
      return lost(*process);
  return serve(MessageType::Done, onStep);
}

Error Job::finish() {
  finishing = true;
  for (std::unique_ptr<Process> &process : processes)
    if (!rt::sendMessage(process->socket, MessageType::Quit, {}))
      return lost(*process);
  for (std::unique_ptr<Process> &process : processes) {
    int code = process->waitForExit();
    readOutput(*process);
    if (code != 0)
      return makeError("rank " + Twine(process->rank) + " ended with code " + Twine(code));
  }
  return Error::success();
}

Error Job::serve(MessageType until, const StepHandler &onStep) {
  for (std::unique_ptr<Process> &process : processes)
    process->answered = false;
  std::vector<pollfd> polls;
  while (!all_of(processes, [](auto &process) { return process->answered; })) {
    polls.assign(1, {signals, POLLIN, 0});
    for (std::unique_ptr<Process> &process : processes) {
      polls.push_back({process->socket, POLLIN, 0});
      polls.push_back({process->output, POLLIN, 0});
    }
    constexpr int tick = 250;
    if (poll(polls.data(), polls.size(), tick) < 0 && errno != EINTR)
      return systemError("cannot wait for the ranks");
    for (size_t i = 0; i < processes.size(); ++i) {
      if (polls[2 + 2 * i].revents)
        readOutput(*processes[i]);
      if (polls[1 + 2 * i].revents)
        if (Error error = readMessages(*processes[i], until, onStep))
          return error;
    }
    if (polls[0].revents)
      if (Error error = readSignals())
        return error;
    if (Error error = checkProgress())
      return error;
  }
  return Error::success();
}

Error Job::readMessages(Process &process, MessageType until, const StepHandler &onStep) {
  bool open = process.receive();
  MessageType type;
  std::string payload;
  while (process.nextMessage(type, payload))
    if (Error error = handle(process, type, payload, until, onStep))
      return error;
  return open ? Error::success() : lost(process);
}

Error Job::handle(Process &process, MessageType type, const std::string &payload, MessageType until,
                  const StepHandler &onStep) {
  MessageReader in(payload);
  if (type == MessageType::Error) {
    std::string message = in.getString();
    // The peers wait for this rank: tell them before they are stopped.
    reinterpret_cast<rt::JobStatus *>(shared)->lostRank.store(static_cast<int32_t>(process.rank) + 1);
    std::string prefix = manifest.ranks > 1 ? "rank " + std::to_string(process.rank) + ": " : "";
    return makeError(prefix + message);
  }
  if (type == MessageType::Step && onStep) {
    StepReport report;
    report.step = in.get<int64_t>();
    report.loss = in.get<double>();
    report.gradNorm = in.get<double>();
    report.lr = in.get<double>();
    report.tokens = in.get<double>();
    report.applied = in.get<int32_t>();
    report.milliseconds = in.get<double>();
    report.residentBytes = in.get<int64_t>();
    for (double &milliseconds : report.phaseMilliseconds)
      milliseconds = in.get<double>();
    auto count = in.get<uint32_t>();
    for (uint32_t i = 0; i < count && in.ok(); ++i) {
      SentBytes entry;
      entry.collective = in.get<int32_t>();
      entry.bytes = in.get<int64_t>();
      entry.betweenNodes = in.get<int64_t>();
      report.sent.push_back(entry);
    }
    if (in.ok())
      onStep(process.rank, report);
  } else if (type == MessageType::Hello) {
    auto protocol = in.get<uint32_t>(), abi = in.get<uint32_t>();
    auto tensors = in.get<int32_t>();
    if (protocol != rt::protocolVersion || abi != ND_ABI_VERSION)
      return makeError("the executable of rank " + Twine(process.rank) +
                       " was made by another version of nd; recompile it");
    if (tensors != static_cast<int32_t>(manifest.tensors.size()))
      return makeError("the executable of rank " + Twine(process.rank) + " has " + Twine(tensors) +
                       " tensors and the manifest " + Twine(manifest.tensors.size()) + "; recompile the program");
    if (in.get<uint64_t>() != manifest.meshFingerprint())
      return makeError("the mesh of the manifest is not that of the executable of rank " + Twine(process.rank) +
                       ": the file was edited, or belongs to another program; recompile the program");
    for (const TensorInfo &tensor : manifest.tensors)
      if (in.get<uint64_t>() != tensor.fingerprint)
        return makeError("the manifest says of " + tensor.describe() + " what the executable of rank " +
                         Twine(process.rank) +
                         " does not: the file was edited, or belongs to another program; recompile the program");
  } else if (type == MessageType::Ready) {
    ReadyReport report;
    report.arenaBytes = in.get<int64_t>();
    report.touchMilliseconds = in.get<double>();
    report.cpuLevel = in.get<int32_t>();
    report.touchMilliseconds = std::max(report.touchMilliseconds, ready.touchMilliseconds);
    if (process.rank != 0)
      report.arenaBytes = ready.arenaBytes, report.cpuLevel = ready.cpuLevel;
    ready = report;
  }
  process.answered |= type == until;
  return Error::success();
}

void Job::readOutput(Process &process) {
  std::string prefix = manifest.ranks > 1 ? "[rank " + std::to_string(process.rank) + "] " : "";
  process.readOutput([&](StringRef line) { errs() << prefix << line << '\n'; });
}

Error Job::readSignals() {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) {
      interrupted = true;
      return makeError(Twine("stopped by ") + (info.ssi_signo == SIGINT ? "Ctrl-C" : strsignal(info.ssi_signo)));
    }
    if (Error error = reapChildren())
      return error;
  }
  return Error::success();
}

Error Job::reapChildren() {
  for (std::unique_ptr<Process> &process : processes) {
    int state;
    if (process->ended || waitpid(process->pid, &state, WNOHANG | WUNTRACED) != process->pid)
      continue;
    if (WIFSTOPPED(state))
      return lost(*process, std::string("was stopped by ") + strsignal(WSTOPSIG(state)));
    process->ended = true;
    process->receive();
    MessageType type;
    std::string payload;
    while (process->nextMessage(type, payload)) // what it managed to say explains more than how it ended
      if (Error error = handle(*process, type, payload, MessageType::Quit, {}))
        return error;
    return lost(*process, describeEnd(state));
  }
  return Error::success();
}

std::string Job::describeWaiting(int64_t except) const {
  for (int64_t rank = 0; rank < manifest.ranks; ++rank) {
    int32_t id = status(rank).collective.load();
    if (rank == except || id < 0 || id >= static_cast<int32_t>(manifest.collectives.size()))
      continue;
    const CollectiveInfo &info = manifest.collectives[id];
    std::string text = "\n  rank " + std::to_string(rank) + " waits for it in " + info.kind + " '" + info.name + "'";
    return info.location.empty() ? text : text + " (" + info.location + ")";
  }
  return "";
}

Error Job::lost(Process &process, std::string how) {
  if (how.empty())
    how = process.explainEnd();
  // The others may still be on their way to the collective that they will miss this rank in.
  std::string waiting = describeWaiting(process.rank);
  for (int attempt = 0; manifest.ranks > 1 && waiting.empty() && attempt < 100; ++attempt) {
    usleep(2000);
    waiting = describeWaiting(process.rank);
  }
  reinterpret_cast<rt::JobStatus *>(shared)->lostRank.store(static_cast<int32_t>(process.rank) + 1);
  readOutput(process);
  std::string message =
      "rank " + std::to_string(process.rank) + " (process " + std::to_string(process.pid) + ") " + how + waiting;
  if (!process.lastLines.empty()) {
    message += "\n  its last output:";
    for (const std::string &line : process.lastLines)
      message += "\n    " + line;
  }
  return makeError(message);
}

Error Job::checkProgress() {
  double limit = stallMilliseconds(), now = monotonicMilliseconds();
  if (limit <= 0)
    return Error::success();
  for (std::unique_ptr<Process> &process : processes) {
    uint64_t progress = status(process->rank).progress.load();
    bool waits = process->answered || status(process->rank).collective.load() >= 0;
    if (waits || progress != process->lastProgress || process->lastChange == 0) {
      process->lastProgress = progress;
      process->lastChange = now;
    } else if (now - process->lastChange > limit) {
      return lost(*process,
                  formatv("has made no progress for {0} seconds (ND_STALL_SECONDS sets the limit)", limit / 1e3).str());
    }
  }
  return Error::success();
}

void Job::killAll() {
  for (std::unique_ptr<Process> &process : processes)
    process->kill();
}
