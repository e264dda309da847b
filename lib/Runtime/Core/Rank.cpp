//===- Rank.cpp - Opening, stepping and closing a rank --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Rank.h"
#include "nd/Runtime/Core/Schedule.h"
#include "nd/Runtime/Core/nd.h"
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace nd::rt;

double nd::rt::nowMilliseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

int64_t nd::rt::numElements(const nd_tensor_desc &desc) {
  int64_t count = 1;
  for (int32_t dim = 0; dim < desc.rank; ++dim)
    count *= desc.shape[dim];
  return count;
}

bool nd::rt::detectCpuLevel(int &level) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
    return false;
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
              __builtin_cpu_supports("avx512cd");
  level = wide ? ND_CPU_V4 : ND_CPU_V3;
  return true;
}

void nd_rank::fail(const char *format, ...) {
  if (failed)
    return;
  failed = true;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error, sizeof(error), format, arguments);
  va_end(arguments);
}

int64_t nd_rank::coordinate(int axis) const {
  int64_t inner = 1;
  for (int i = axis + 1; i < program->num_axes; ++i)
    inner *= program->axis_sizes[i];
  return rank / inner % program->axis_sizes[axis];
}

int64_t nd_rank::positionIn(const nd_collective_desc &desc) const {
  int64_t position = 0;
  for (int32_t i = 0; i < desc.num_axes; ++i)
    position = position * program->axis_sizes[desc.axes[i]] + coordinate(desc.axes[i]);
  return position;
}

nd_rank::~nd_rank() {
  if (arena && !hasPeers())
    munmap(arena, arenaBytes);
  if (threadMemory)
    munmap(threadMemory, threadBytes);
  if (sharedMemory)
    munmap(sharedMemory, sharedBytes);
}

namespace {

constexpr int64_t page = 4096, hugePage = 2 << 20;
constexpr int collapse = 25; ///< MADV_COLLAPSE, which the C library may not know

int64_t align(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Touches memory: each thread its share, so that page faults are taken once, in parallel, before the first step. In
/// large pages where the system has them: shared memory gets those only on request, for pages that exist in part.
/// Returns 0, or an errno.
int touch(ThreadPool &pool, char *memory, int64_t bytes, bool isShared = false) {
  std::atomic<int> problem{0};
  madvise(memory, bytes, MADV_HUGEPAGE);
  pool.parallel([&](int thread, int threads) {
    Range range = splitRange(bytes, hugePage, thread, threads);
    if (isShared) {
      for (int64_t at = range.lo; at < range.hi; at += hugePage)
        const_cast<volatile char *>(memory)[at] = 0;
      madvise(memory + range.lo, range.hi - range.lo, collapse);
    }
    if (range.lo == range.hi || madvise(memory + range.lo, range.hi - range.lo, MADV_POPULATE_WRITE) == 0)
      return;
    if (errno != EINVAL) {
      problem.store(errno);
      return;
    }
    for (int64_t at = range.lo; at < range.hi; at += page) // a kernel that does not know the request
      const_cast<volatile char *>(memory)[at] = 0;
  });
  return problem.load();
}

/// Memory of this process alone, touched. Null, with a message, when there is none.
char *mapPrivate(int64_t bytes, std::string &error) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    error = "cannot map " + std::to_string(bytes) + " bytes of memory: " + strerror(errno) +
            "; use fewer ranks on this machine, or a smaller batch";
    return nullptr;
  }
  return static_cast<char *>(memory);
}

/// Gives the rank its arena, in shared memory where it has peers, and its threads' memory.
bool mapMemory(nd_rank &rank, std::string &error) {
  const nd_program &program = *rank.program;
  int64_t scratch = program.thread_scratch_bytes;
  for (int32_t i = 0; i < program.num_attentions; ++i)
    scratch = std::max(scratch, nd_attention_scratch_bytes(program.attentions[i]));
  rank.scratchBytes = align(scratch, page);
  rank.workspaceBytes = align(rank.library->workspaceBytes(), page);
  rank.arenaBytes = align(program.arena_bytes, hugePage);
  rank.threadBytes = align(rank.pool.size() * (rank.scratchBytes + rank.workspaceBytes), page);
  if (rank.hasPeers())
    rank.arena = rank.sharedMemory + SharedMemoryLayout(rank.ranks, program).arenaOffset(rank.rank);
  else if (rank.arenaBytes)
    rank.arena = mapPrivate(rank.arenaBytes, error);
  if (rank.threadBytes)
    rank.threadMemory = mapPrivate(rank.threadBytes, error);
  if (!error.empty())
    return false;
  double start = nowMilliseconds();
  int problem = touch(rank.pool, rank.arena, rank.arenaBytes, rank.hasPeers());
  if (!problem)
    problem = touch(rank.pool, rank.threadMemory, rank.threadBytes);
  if (problem) {
    error = "there is no memory for an arena of " + std::to_string(rank.arenaBytes) + " bytes: " + strerror(problem) +
            "; use fewer ranks on this machine, or a smaller batch";
    return false;
  }
  rank.touchMilliseconds = nowMilliseconds() - start;
  return true;
}

bool mapSharedMemory(nd_rank &rank, int fd, std::string &error) {
  SharedMemoryLayout layout(rank.ranks, *rank.program);
  struct stat info;
  rank.sharedBytes = rank.hasPeers() ? layout.totalBytes() : layout.controlBytes();
  // All ranks make it as large, so that it does not matter who is first.
  if (fstat(fd, &info) != 0 || (info.st_size < rank.sharedBytes && ftruncate(fd, rank.sharedBytes) != 0)) {
    error = std::string("cannot enlarge the job's shared memory: ") + strerror(errno);
    return false;
  }
  // At a large page, so that arenas can be in such.
  void *room =
      mmap(nullptr, rank.sharedBytes + hugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void *memory = MAP_FAILED;
  if (room != MAP_FAILED) {
    char *begin = static_cast<char *>(room), *end = begin + rank.sharedBytes + hugePage;
    char *at = begin + (align(reinterpret_cast<intptr_t>(begin), hugePage) - reinterpret_cast<intptr_t>(begin));
    memory = mmap(at, rank.sharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (at > begin)
      munmap(begin, at - begin);
    munmap(at + rank.sharedBytes, end - at - rank.sharedBytes);
  }
  if (memory == MAP_FAILED) {
    error = std::string("cannot map the job's shared memory: ") + strerror(errno);
    return false;
  }
  rank.sharedMemory = static_cast<char *>(memory);
  rank.status = reinterpret_cast<RankStatus *>(rank.sharedMemory + layout.statusOffset(rank.rank));
  return true;
}

const nd_tensor_desc *find(const nd_rank &rank, const char *kind, const char *name) {
  for (int32_t i = 0; i < rank.program->num_tensors; ++i) {
    const nd_tensor_desc &desc = rank.program->tensors[i];
    if (!strcmp(desc.kind, kind) && !strcmp(desc.name, name))
      return &desc;
  }
  return nullptr;
}

void setScalar(nd_rank &rank, const char *name, double value) {
  const nd_tensor_desc *desc = find(rank, "scalar", name);
  if (desc && desc->dtype == ND_F32)
    *reinterpret_cast<float *>(rank.arena + desc->offset) = static_cast<float>(value);
  else if (desc && desc->dtype == ND_F64)
    *reinterpret_cast<double *>(rank.arena + desc->offset) = value;
  else if (desc && desc->dtype == ND_I64)
    *reinterpret_cast<int64_t *>(rank.arena + desc->offset) = static_cast<int64_t>(value);
}

double metric(const nd_rank &rank, const char *name, double otherwise) {
  const nd_tensor_desc *desc = find(rank, "metric", name);
  if (!desc)
    return otherwise;
  const char *data = rank.arena + desc->offset;
  switch (desc->dtype) {
  case ND_F32:
    return static_cast<double>(*reinterpret_cast<const float *>(data));
  case ND_F64:
    return *reinterpret_cast<const double *>(data);
  case ND_I64:
    return static_cast<double>(*reinterpret_cast<const int64_t *>(data));
  case ND_I32:
    return static_cast<double>(*reinterpret_cast<const int32_t *>(data));
  case ND_I1:
    return *data != 0;
  default:
    return otherwise;
  }
}

void setScalars(nd_rank &rank, int64_t step, int64_t update) {
  const nd_schedule_desc &schedule = rank.program->schedule;
  setScalar(rank, "step", static_cast<double>(step));
  setScalar(rank, "lr", learningRate(schedule, step, rank.totalSteps));
  setScalar(rank, "bias1", biasCorrection1(schedule, update));
  setScalar(rank, "sqrt_bias2", sqrtBiasCorrection2(schedule, update));
}

/// Tells the program where in the mesh it runs.
void setCoordinates(nd_rank &rank) {
  for (int32_t i = 0; i < rank.program->num_tensors; ++i) {
    const nd_tensor_desc &desc = rank.program->tensors[i];
    if (strcmp(desc.kind, "coordinate"))
      continue;
    for (int32_t axis = 0; axis < rank.program->num_axes; ++axis)
      if (!strcmp(desc.name, rank.program->axis_names[axis]))
        *reinterpret_cast<int64_t *>(rank.arena + desc.offset) = rank.coordinate(axis);
  }
}

/// Checks what generated code is not trusted to get right on another machine or with another launcher.
bool checkProgram(const nd_program &program, const nd_options &options, std::string &error) {
  int64_t ranks = 1;
  for (int32_t axis = 0; axis < program.num_axes; ++axis)
    ranks *= program.axis_sizes[axis];
  if (program.abi_version != ND_ABI_VERSION)
    error = "the program has ABI version " + std::to_string(program.abi_version) + ", this runtime has " +
            std::to_string(ND_ABI_VERSION) + "; recompile it with nd-compile";
  else if (options.ranks != ranks)
    error = "the program is compiled for " + std::to_string(ranks) + " ranks and was started with " +
            std::to_string(options.ranks);
  else if (program.num_nodes > 1 && ranks % program.num_nodes != 0)
    error = "the program's " + std::to_string(ranks) + " ranks do not fill " + std::to_string(program.num_nodes) +
            " nodes evenly";
  else if (options.rank < 0 || options.rank >= ranks || options.threads < 1)
    error =
        "rank " + std::to_string(options.rank) + " with " + std::to_string(options.threads) + " threads does not exist";
  else if (ranks > 1 && options.shared_memory_fd < 0)
    error = "a program of several ranks needs the shared memory that nd-run gives";
  return error.empty();
}

bool openRank(nd_rank &rank, const nd_options &options, std::string &error) {
  if (!checkProgram(*rank.program, options, error))
    return false;
  rank.rank = options.rank;
  rank.ranks = options.ranks;
  rank.totalSteps = options.total_steps;
  rank.status = &rank.ownStatus;
  rank.profile.reset(Profile::create());
  if (!detectCpuLevel(rank.cpuLevel)) {
    error = "this CPU lacks AVX2, FMA or BMI2, which the compiled kernels need";
    return false;
  }
  if (options.shared_memory_fd >= 0 && !mapSharedMemory(rank, options.shared_memory_fd, error))
    return false;
  rank.status->collective.store(-1);
  cpu_set_t set;
  bool spin = options.cores || (sched_getaffinity(0, sizeof(set), &set) == 0 &&
                                int64_t(options.ranks) * options.threads <= CPU_COUNT(&set));
  if (!rank.pool.start(options.threads, error) || (options.cores && !rank.pool.bind(options.cores, error)))
    return false;
  rank.library = openLibrary(*rank.program, options.threads, error);
  if (!rank.library || !mapMemory(rank, error))
    return false;
  setCoordinates(rank);
  setScalars(rank, 1, 1);
  if (rank.ranks > 1)
    rank.transport = openTransport(*rank.program, rank.rank, rank.ranks, rank.sharedMemory, spin, error);
  return rank.ranks == 1 || rank.transport;
}

void endPhase(nd_rank &rank) {
  double now = nowMilliseconds();
  rank.phaseMilliseconds[rank.phase] += now - rank.phaseStart;
  rank.phaseStart = now;
}

} // namespace

nd_rank *nd_open(const nd_program *program, const nd_options *options, char *error, size_t errorSize) {
  auto rank = std::make_unique<nd_rank>();
  rank->program = program;
  std::string message;
  if (openRank(*rank, *options, message))
    return rank.release();
  snprintf(error, errorSize, "%s", message.c_str());
  return nullptr;
}

int nd_tensor(nd_rank *rank, const char *kind, const char *name, nd_tensor_view *view) {
  for (int32_t i = 0; i < rank->program->num_tensors; ++i) {
    const nd_tensor_desc &desc = rank->program->tensors[i];
    if (strcmp(desc.kind, kind) || strcmp(desc.name, name))
      continue;
    *view = {&desc, rank->arena + desc.offset, numElements(desc) * dtypeBytes(desc.dtype)};
    return 0;
  }
  snprintf(rank->error, sizeof(rank->error), "the program has no %s named '%s'", kind, name);
  return 1;
}

int nd_step(nd_rank *rank, int keepScalars, nd_step_result *result) {
  const nd_program &program = *rank->program;
  double start = nowMilliseconds();
  int64_t step = rank->stepsDone + 1, update = rank->updatesApplied + 1;
  double lr = learningRate(program.schedule, step, rank->totalSteps);
  if (!keepScalars)
    setScalars(*rank, step, update);
  if (rank->transport)
    rank->transport->clearSent();
  std::fill_n(rank->phaseMilliseconds, 4, 0.0);
  rank->phase = ND_PHASE_FORWARD;
  rank->phaseStart = start;
  program.step(rank, rank->arena, program.kernels[rank->cpuLevel]);
  endPhase(*rank);
  if (rank->failed)
    return 1;
  double applied = metric(*rank, "applied", 1);
  rank->stepsDone = step;
  rank->updatesApplied += applied != 0;
  *result = {step,         metric(*rank, "loss", NAN), metric(*rank, "grad_norm", NAN), lr, metric(*rank, "tokens", 0),
             applied != 0, nowMilliseconds() - start};
  return 0;
}

int64_t nd_sent_bytes(nd_rank *rank, nd_sent *entries, int64_t capacity) {
  if (!rank->transport)
    return 0;
  const std::vector<Transport::Sent> &sent = rank->transport->getSent();
  for (int64_t i = 0; i < std::min<int64_t>(capacity, sent.size()); ++i)
    entries[i] = {sent[i].group,      sent[i].kind,  sent[i].isScalar,
                  sent[i].collective, sent[i].bytes, sent[i].betweenNodes};
  return sent.size();
}

const char *nd_error(const nd_rank *rank) { return rank->error; }

void nd_close(nd_rank *rank) {
  if (rank->profile && rank->rank == 0)
    rank->profile->print(rank->stepsDone);
  delete rank;
}

void nd_rt_phase(nd_rank *rank, int32_t phase) {
  rank->proceed();
  endPhase(*rank);
  rank->phase = phase & 3;
}
