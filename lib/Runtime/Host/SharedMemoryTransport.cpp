//===- SharedMemoryTransport.cpp - Collectives over shared memory ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Arenas lie in shared memory, so a collective reads its peers' operands where they are, with their strides: nothing is
// staged. A start says where the operands are and that they are ready, and returns. A wait
//
//   1. waits until all of the group have started,
//   2. takes what this rank gets from its peers; an all-reduce has each rank reduce its share of the elements into its
//      own target, wait for the others' shares, and copy those,
//   3. waits until its peers have taken what they get from this rank, for then the operands' memory is free.
//
// The reduction of a share reads and writes only that share, and others read it only when it is reduced: source and
// target of an all-reduce may be one. Sums are in the order of positions for every element: equal on all ranks, in all
// runs. Collectives know nothing of each other: any number may be in flight, over any groups, and be waited for in any
// order that is the same on all ranks.
//
//===----------------------------------------------------------------------===//

#include "Reduce.h"
#include "nd/Runtime/Core/CollectiveRows.h"
#include "nd/Runtime/Core/Futex.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>
#include <cstring>
#include <sched.h>

using namespace nd::rt;

namespace {

/// Ranks whose parts are reduced at once.
constexpr int maxGroup = 4096;

/// Shares of an all-reduce are cut at multiples of this, a cache line of the smallest type that is reduced.
constexpr int64_t shareGrain = 32;

/// What a rank receives in one collective from here on does not stay in the caches: it is stored past them, which saves
/// to read the target first.
constexpr int64_t streamedBytes = 16 << 20;

void copyPastCaches(char *to, const char *from, int64_t bytes) {
  constexpr int64_t line = 64;
  int64_t head = std::min(bytes, (line - static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % line)) % line);
  memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= line; to += line, from += line, bytes -= line)
    for (int64_t at = 0; at < line; at += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i *>(to + at),
                       _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + at)));
  memcpy(to, from, bytes);
}

class SharedMemoryTransport : public Transport {
public:
  SharedMemoryTransport(const nd_program &program, int rank, int ranks, char *memory)
      : program(program), layout(ranks, program), memory(memory), self(rank), ranks(ranks) {
    cpu_set_t set;
    bool known = sched_getaffinity(0, sizeof(set), &set) == 0;
    spins = known && ranks <= CPU_COUNT(&set) ? spinPauses : 0;
  }

  bool open(std::string &error);
  void start(nd_rank &rank, const nd_collective_desc &desc, void *const *operands) override;
  void wait(nd_rank &rank, const nd_collective_desc &desc) override;

private:
  /// The ranks along the axes of a collective.
  struct Group {
    std::vector<int> members; ///< by position
    int position = 0, first = 0;

    int size() const { return static_cast<int>(members.size()); }
  };
  /// A collective of the program.
  struct Call {
    Group group;
    CollectiveState *state = nullptr;
    int64_t operandIndex = 0; ///< of its first operand, among all of the program
    int64_t elements = 0;     ///< of the stream
    int64_t elementBytes = 0;
    size_t sentIndex = 0;
    std::vector<void *> operands; ///< sources, then targets
    uint32_t uses = 0;
    bool inFlight = false;
  };

  Group findGroup(const nd_collective_desc &desc) const;
  std::string check(const nd_collective_desc &desc, const Group &group) const;
  uint64_t describeProgram() const;
  RankStatus &statusOf(int rank) const { return *reinterpret_cast<RankStatus *>(memory + layout.statusOffset(rank)); }
  OperandPlace &placeOf(int rank, int64_t operand) const {
    return *reinterpret_cast<OperandPlace *>(memory + layout.placeOffset(rank, operand));
  }

  void arrive(const Call &call, CollectiveState::Counter &counter) const;
  bool await(nd_rank &rank, const nd_collective_desc &desc, CollectiveState::Counter &counter) const;
  bool checkPeers(nd_rank &rank, const nd_collective_desc &desc) const;

  template <typename Function> void forElements(nd_rank &rank, const Call &call, Range range, Function function) const;
  void copy(nd_rank &rank, const nd_collective_desc &desc, int position, Range range, bool reduced);
  void reduce(nd_rank &rank, const nd_collective_desc &desc, Range range);
  bool take(nd_rank &rank, const nd_collective_desc &desc);

  const nd_program &program;
  SharedMemoryLayout layout;
  char *memory;
  int self, ranks, spins = 0;
  uint64_t signature = 0;
  std::vector<Call> calls; ///< by the collective's id
};

} // namespace

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

SharedMemoryTransport::Group SharedMemoryTransport::findGroup(const nd_collective_desc &desc) const {
  auto inGroup = [&](int axis) {
    return std::find(desc.axes, desc.axes + desc.num_axes, axis) != desc.axes + desc.num_axes;
  };
  nd_rank own, other; // for their coordinates
  own.program = other.program = &program;
  own.rank = self;
  Group group;
  group.first = ranks;
  for (int candidate = 0; candidate < ranks; ++candidate) {
    other.rank = candidate;
    bool member = true;
    for (int axis = 0; axis < program.num_axes; ++axis)
      member &= inGroup(axis) || other.coordinate(axis) == own.coordinate(axis);
    if (!member)
      continue;
    size_t position = other.positionIn(desc);
    group.members.resize(std::max(group.members.size(), position + 1));
    group.members[position] = candidate;
    group.first = std::min(group.first, candidate);
  }
  group.position = static_cast<int>(own.positionIn(desc));
  return group;
}

std::string SharedMemoryTransport::check(const nd_collective_desc &desc, const Group &group) const {
  bool reduces = desc.kind == ND_ALL_REDUCE || desc.kind == ND_REDUCE_SCATTER;
  if (reduces && !canReduce(desc.dtype, desc.reduction))
    return std::string(dtypeName(desc.dtype)) + " cannot be reduced between ranks";
  if (reduces && group.size() > maxGroup)
    return "too many ranks: " + std::to_string(group.size());
  return "";
}

/// Equal for programs whose collectives fit each other. Never 0.
uint64_t SharedMemoryTransport::describeProgram() const {
  uint64_t hash = 14695981039346656037ull;
  auto add = [&](int64_t number) { hash = (hash ^ static_cast<uint64_t>(number)) * 1099511628211ull; };
  add(program.arena_bytes);
  for (int32_t id = 0; id < program.num_collectives; ++id) {
    const nd_collective_desc &desc = *program.collectives[id];
    for (int64_t number :
         {int64_t(desc.kind), int64_t(desc.dtype), int64_t(desc.reduction), int64_t(desc.num_operands)})
      add(number);
    for (int32_t axis = 0; axis < desc.num_axes; ++axis)
      add(desc.axes[axis]);
    for (int32_t i = 0; i < desc.num_operands; ++i)
      for (int64_t number : {desc.operands[i].outer, desc.operands[i].middle, desc.operands[i].inner})
        add(number);
  }
  return hash | 1;
}

bool SharedMemoryTransport::open(std::string &error) {
  calls.resize(program.num_collectives);
  int64_t operandIndex = 0;
  for (int32_t id = 0; id < program.num_collectives; ++id) {
    const nd_collective_desc &desc = *program.collectives[id];
    Call &call = calls[id];
    call.group = findGroup(desc);
    if (std::string problem = check(desc, call.group); !problem.empty()) {
      error = std::string("collective '") + desc.name + "' (" + desc.location + "): " + problem;
      return false;
    }
    call.state = reinterpret_cast<CollectiveState *>(memory + layout.stateOffset(id, call.group.first));
    call.operandIndex = operandIndex;
    operandIndex += desc.num_operands;
    call.elements = streamElements(desc);
    call.elementBytes = dtypeBytes(desc.dtype);
    call.operands.resize(2 * desc.num_operands);
    auto same = [&](const Sent &entry) {
      return !strcmp(entry.group, desc.group) && entry.kind == desc.kind && entry.isScalar == desc.is_scalar;
    };
    auto entry = std::find_if(sent.begin(), sent.end(), same);
    call.sentIndex = entry - sent.begin();
    if (entry == sent.end())
      sent.push_back({desc.group, desc.kind, desc.is_scalar, id, 0});
  }
  signature = describeProgram();
  statusOf(self).program.store(signature);
  return true;
}

//===----------------------------------------------------------------------===//
// Waiting for peers
//===----------------------------------------------------------------------===//

void SharedMemoryTransport::arrive(const Call &call, CollectiveState::Counter &counter) const {
  uint32_t target = call.uses * static_cast<uint32_t>(call.group.size());
  if (counter.value.fetch_add(1) + 1 == target && counter.sleepers.load())
    futexWake(&counter.value, /*shared=*/true);
}

bool SharedMemoryTransport::checkPeers(nd_rank &rank, const nd_collective_desc &desc) const {
  for (int member : calls[desc.id].group.members) {
    uint64_t other = statusOf(member).program.load();
    if (!other || other == signature)
      continue;
    rank.fail("rank %d runs another program than this rank, which is in '%s' (%s): compile the program again", member,
              desc.name, desc.location);
    return false;
  }
  return true;
}

bool SharedMemoryTransport::await(nd_rank &rank, const nd_collective_desc &desc,
                                  CollectiveState::Counter &counter) const {
  const Call &call = calls[desc.id];
  uint32_t target = call.uses * static_cast<uint32_t>(call.group.size());
  auto reached = [&](uint32_t value) { return static_cast<int32_t>(value - target) >= 0; };
  for (int i = 0; i < spins && !reached(counter.value.load(std::memory_order_acquire)); ++i)
    _mm_pause();
  uint32_t value = counter.value.load();
  if (reached(value))
    return true;
  // The wait is bounded only to notice that a peer is lost or runs something else.
  constexpr int milliseconds = 50;
  const auto &job = *reinterpret_cast<JobStatus *>(memory);
  counter.sleepers.fetch_add(1);
  int32_t lost = 0;
  bool fit = true;
  while (!reached(value = counter.value.load()) && !(lost = job.lostRank.load()) && (fit = checkPeers(rank, desc)))
    futexWait(&counter.value, value, /*shared=*/true, milliseconds);
  counter.sleepers.fetch_sub(1);
  if (lost)
    rank.fail("rank %d is lost; this rank waited for it in %s '%s' (%s)", lost - 1, collectiveName(desc.kind),
              desc.name, desc.location);
  return !lost && fit;
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

template <typename Function>
void SharedMemoryTransport::forElements(nd_rank &rank, const Call &call, Range range, Function function) const {
  constexpr int64_t parallelBytes = 64 * 1024, grain = 1024;
  int64_t count = range.hi - range.lo;
  if (count * call.elementBytes < parallelBytes) {
    function(range);
    return;
  }
  rank.pool.parallel([&](int thread, int threads) {
    Range part = splitRange(count, grain, thread, threads);
    if (part.lo < part.hi)
      function(Range{range.lo + part.lo, range.lo + part.hi});
  });
}

/// Copies what this rank gets from one position: of its sources, or of its reduced targets.
void SharedMemoryTransport::copy(nd_rank &rank, const nd_collective_desc &desc, int position, Range range,
                                 bool reduced) {
  Call &call = calls[desc.id];
  int member = call.group.members[position];
  const char *arena = memory + layout.arenaOffset(member);
  int64_t bytes = call.elementBytes;
  bool streamed = call.elements * bytes * (desc.kind == ND_ALL_GATHER ? call.group.size() : 1) >= streamedBytes;
  constexpr int64_t shortRow = 4096;
  forElements(rank, call, range, [&](Range part) {
    forRows(desc, part, [&](int32_t index, int64_t src, int64_t dst, int64_t count) {
      const nd_collective_operand &operand = desc.operands[index];
      OperandPlace place = placeOf(member, call.operandIndex + index);
      const char *from = reduced ? arena + place.dst + dst * bytes
                                 : arena + place.src + (src + call.group.position * operand.src.part) * bytes;
      char *to =
          static_cast<char *>(call.operands[desc.num_operands + index]) + (dst + position * operand.dst.part) * bytes;
      if (from == to)
        return;
      if (streamed && count * bytes >= shortRow)
        copyPastCaches(to, from, count * bytes);
      else
        memcpy(to, from, count * bytes);
    });
    _mm_sfence();
  });
  if (member != self)
    sent[call.sentIndex].bytes += (range.hi - range.lo) * bytes;
}

/// Reduces the sources of all positions.
void SharedMemoryTransport::reduce(nd_rank &rank, const nd_collective_desc &desc, Range range) {
  Call &call = calls[desc.id];
  int64_t bytes = call.elementBytes;
  forElements(rank, call, range, [&](Range part) {
    const char *parts[maxGroup];
    forRows(desc, part, [&](int32_t index, int64_t src, int64_t dst, int64_t count) {
      for (int position = 0; position < call.group.size(); ++position) {
        int member = call.group.members[position];
        parts[position] = memory + layout.arenaOffset(member) + placeOf(member, call.operandIndex + index).src +
                          (src + call.group.position * desc.operands[index].src.part) * bytes;
      }
      char *to = static_cast<char *>(call.operands[desc.num_operands + index]) + dst * bytes;
      reduceParts(desc.dtype, desc.reduction, parts, call.group.size(), to, count);
    });
  });
  sent[call.sentIndex].bytes += (call.group.size() - 1) * (range.hi - range.lo) * bytes;
}

/// Takes everything that this rank gets from its peers. They have started.
bool SharedMemoryTransport::take(nd_rank &rank, const nd_collective_desc &desc) {
  Call &call = calls[desc.id];
  int size = call.group.size(), position = call.group.position;
  Range all{0, call.elements};
  switch (desc.kind) {
  case ND_ALL_REDUCE:
    reduce(rank, desc, splitRange(call.elements, shareGrain, position, size));
    arrive(call, call.state->reduced);
    if (!await(rank, desc, call.state->reduced))
      return false;
    for (int i = 1; i < size; ++i) {
      int from = (position + i) % size;
      copy(rank, desc, from, splitRange(call.elements, shareGrain, from, size), /*reduced=*/true);
    }
    return true;
  case ND_REDUCE_SCATTER:
    reduce(rank, desc, all);
    return true;
  case ND_PERMUTE:
    copy(rank, desc, desc.sources[position], all, /*reduced=*/false);
    return true;
  default: // of an all-gather or all-to-all a part of each, its own first; no two ranks read one peer at once
    for (int i = 0; i < size; ++i)
      copy(rank, desc, (position + i) % size, all, /*reduced=*/false);
    return true;
  }
}

void SharedMemoryTransport::start(nd_rank &rank, const nd_collective_desc &desc, void *const *operands) {
  Call &call = calls[desc.id];
  if (call.inFlight)
    return rank.fail("collective '%s' (%s) is started again before it is waited for; this is an error of the compiler",
                     desc.name, desc.location);
  call.inFlight = true;
  ++call.uses;
  std::copy_n(operands, 2 * desc.num_operands, call.operands.begin());
  for (int32_t i = 0; i < desc.num_operands; ++i) {
    OperandPlace place{static_cast<char *>(operands[i]) - rank.arena,
                       static_cast<char *>(operands[desc.num_operands + i]) - rank.arena};
    if (place.src < 0 || place.src >= program.arena_bytes)
      return rank.fail("operand %d of collective '%s' (%s) is not in the arena; this is an error of the compiler", i,
                       desc.name, desc.location);
    placeOf(self, call.operandIndex + i) = place;
  }
  arrive(call, call.state->started);
}

void SharedMemoryTransport::wait(nd_rank &rank, const nd_collective_desc &desc) {
  Call &call = calls[desc.id];
  if (!call.inFlight)
    return rank.fail("collective '%s' (%s) is waited for but was not started; this is an error of the compiler",
                     desc.name, desc.location);
  call.inFlight = false;
  rank.status->collective.store(desc.id, std::memory_order_relaxed);
  if (await(rank, desc, call.state->started) && checkPeers(rank, desc) && take(rank, desc)) {
    arrive(call, call.state->done);
    await(rank, desc, call.state->done);
  }
  rank.status->collective.store(-1, std::memory_order_relaxed);
}

std::unique_ptr<Transport> nd::rt::openTransport(const nd_program &program, int rank, int ranks, char *sharedMemory,
                                                 std::string &error) {
  auto transport = std::make_unique<SharedMemoryTransport>(program, rank, ranks, sharedMemory);
  if (!transport->open(error))
    return nullptr;
  return transport;
}
