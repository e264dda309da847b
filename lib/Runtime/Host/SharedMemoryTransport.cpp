//===- SharedMemoryTransport.cpp - Collectives over shared memory ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A collective is cut into chunks that fit a staging slot; every rank has two slots. For a chunk each rank copies its
// part into its slot (published); an all-reduce then has each rank reduce its share of the chunk, reading all slots in
// rank order, and put the result in its slot (reduced), from where its peers copy it; at last each rank says that it
// reads no more (done), and the slot is free. The next chunk is published before the current one is finished, so ranks
// rarely wait. Sums are in rank order for every element: equal on all ranks, in all runs.
//
// A counter of the group rises by one for each member's arrival. Arrivals of different rounds never mix: a member
// cannot publish round r + 1 of a slot before all were done with round r.
//
//===----------------------------------------------------------------------===//

#include "Reduce.h"
#include "nd/Runtime/Core/Futex.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>
#include <cstring>
#include <sched.h>

using namespace nd::rt;

namespace {

class SharedMemoryTransport : public Transport {
public:
  SharedMemoryTransport(const nd_program &program, int rank, int ranks, char *memory)
      : program(program), layout(ranks, program.num_axes), memory(memory), self(rank),
        pending(program.num_collectives) {
    cpu_set_t set;
    bool known = sched_getaffinity(0, sizeof(set), &set) == 0;
    bool ownCores = known && ranks <= CPU_COUNT(&set);
    spins = ownCores ? spinPauses : 0;
    chunkBytes = ownCores ? cachedChunkBytes : slotBytes;
  }

  bool open(std::string &error);
  void start(nd_rank &rank, const nd_collective_desc &desc, const void *src, void *dst) override;
  void wait(nd_rank &rank, const nd_collective_desc &desc) override;

private:
  /// The ranks of one collective, with this rank's view of their counters.
  struct Group {
    uint32_t mask = 0;
    std::vector<int> members; ///< ascending
    int position = 0;
    GroupCounters *counters = nullptr;
    uint32_t chunks = 0; ///< published by this rank so far; the slot is its last bit

    int size() const { return static_cast<int>(members.size()); }
  };
  struct Pending {
    const char *src = nullptr;
    char *dst = nullptr;
    Group *group = nullptr;
    int64_t *sent = nullptr;
    bool started = false;
  };
  /// Who may still read a slot of this rank.
  struct SlotUse {
    Group *group = nullptr;
    uint32_t target = 0; ///< of the group's counter `done`
  };
  /// A collective under way.
  struct Call {
    nd_rank &rank;
    const nd_collective_desc &desc;
    Pending &operands;
    Group &group;
    int64_t elementBytes;
    int64_t total; ///< elements to be cut into chunks
    int64_t chunk; ///< elements of a chunk
    uint32_t firstChunk;

    int64_t begin(int64_t index) const { return index * chunk; }
    int64_t length(int64_t index) const { return std::min(chunk, total - begin(index)); }
    int slot(int64_t index) const { return static_cast<int>((firstChunk + index) & 1); }
    /// What a counter of the slot reaches when all have arrived for this chunk.
    uint32_t target(int64_t index) const {
      return static_cast<uint32_t>(group.size()) * ((firstChunk + static_cast<uint32_t>(index)) / 2 + 1);
    }
  };

  Group *findGroup(uint32_t mask, const nd_rank &rank);
  char *slotOf(int rank, int slot) const { return memory + layout.slotOffset(rank, slot); }
  SlotHeader &headerOf(int rank, int slot) const {
    return *reinterpret_cast<SlotHeader *>(memory + layout.headerOffset(rank, slot));
  }
  void arrive(GroupCounters::Counter &counter, uint32_t target);
  bool await(nd_rank &rank, const nd_collective_desc &desc, GroupCounters::Counter &counter, uint32_t target);
  bool publish(Call &call, int64_t index);
  bool checkPeers(Call &call, int64_t index);
  void reduceShare(Call &call, int64_t index);
  void gatherShares(Call &call, int64_t index);
  void gatherOperands(Call &call, int64_t index);
  void reducePiece(Call &call, int64_t index);
  bool complete(Call &call, int64_t index);
  template <typename Function> void forElements(Call &call, int64_t count, Function function);

  const nd_program &program;
  SharedMemoryLayout layout;
  char *memory;
  int self, spins = 0;
  int64_t chunkBytes;
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<Pending> pending; ///< by the collective's id
  SlotUse uses[2];
};

} // namespace

SharedMemoryTransport::Group *SharedMemoryTransport::findGroup(uint32_t mask, const nd_rank &rank) {
  for (std::unique_ptr<Group> &group : groups)
    if (group->mask == mask)
      return group.get();
  auto group = std::make_unique<Group>();
  group->mask = mask;
  nd_rank other; // for its coordinates
  other.program = rank.program;
  for (int candidate = 0; candidate < layout.ranks; ++candidate) {
    other.rank = candidate;
    bool member = true;
    for (int axis = 0; axis < program.num_axes; ++axis)
      member &= (mask >> axis & 1) || other.coordinate(axis) == rank.coordinate(axis);
    if (!member)
      continue;
    if (candidate == self)
      group->position = group->size();
    group->members.push_back(candidate);
  }
  group->counters = reinterpret_cast<GroupCounters *>(memory + layout.groupOffset(mask, group->members.front()));
  groups.push_back(std::move(group));
  return groups.back().get();
}

bool SharedMemoryTransport::open(std::string &error) {
  nd_rank rank;
  rank.program = &program;
  rank.rank = self;
  auto sentIndex = [&](const nd_collective_desc &desc) {
    for (size_t i = 0; i < sent.size(); ++i)
      if (sent[i].axes == desc.axes && sent[i].kind == desc.kind && sent[i].isScalar == desc.is_scalar)
        return i;
    sent.push_back({desc.axes, desc.kind, desc.is_scalar, 0});
    return sent.size() - 1;
  };
  for (int32_t i = 0; i < program.num_collectives; ++i) {
    const nd_collective_desc &desc = *program.collectives[i];
    pending[i].group = findGroup(desc.axes, rank);
    int64_t size = pending[i].group->size();
    std::string what = std::string("collective '") + desc.name + "' (" + desc.location + "): ";
    if (desc.kind != ND_ALL_GATHER && !canReduce(desc.dtype, desc.reduction))
      error = what + dtypeName(desc.dtype) + " cannot be reduced between ranks";
    else if (desc.kind == ND_REDUCE_SCATTER && desc.count % size != 0)
      error = what + std::to_string(desc.count) + " elements do not divide by " + std::to_string(size) + " ranks";
    else if (desc.kind == ND_REDUCE_SCATTER && size * 8 > chunkBytes)
      error = what + "too many ranks for the shared memory's slots";
    if (!error.empty())
      return false;
    sentIndex(desc);
  }
  for (int32_t i = 0; i < program.num_collectives; ++i)
    pending[i].sent = &sent[sentIndex(*program.collectives[i])].bytes;
  return true;
}

void SharedMemoryTransport::start(nd_rank &rank, const nd_collective_desc &desc, const void *src, void *dst) {
  Pending &operands = pending[desc.id];
  operands.src = static_cast<const char *>(src);
  operands.dst = static_cast<char *>(dst);
  operands.started = true;
}

void SharedMemoryTransport::arrive(GroupCounters::Counter &counter, uint32_t target) {
  if (counter.value.fetch_add(1) + 1 == target && counter.sleepers.load())
    futexWake(&counter.value, /*shared=*/true);
}

bool SharedMemoryTransport::await(nd_rank &rank, const nd_collective_desc &desc, GroupCounters::Counter &counter,
                                  uint32_t target) {
  auto reached = [&](uint32_t value) { return static_cast<int32_t>(value - target) >= 0; };
  for (int i = 0; i < spins && !reached(counter.value.load(std::memory_order_acquire)); ++i)
    _mm_pause();
  uint32_t value = counter.value.load();
  if (reached(value))
    return true;
  // The wait is bounded only to notice that a peer is lost.
  constexpr int milliseconds = 50;
  const auto &job = *reinterpret_cast<JobStatus *>(memory);
  counter.sleepers.fetch_add(1);
  int32_t lost = 0;
  while (!reached(value = counter.value.load()) && !(lost = job.lostRank.load()))
    futexWait(&counter.value, value, /*shared=*/true, milliseconds);
  counter.sleepers.fetch_sub(1);
  if (!lost)
    return true;
  static constexpr const char *kinds[] = {"all_reduce", "all_gather", "reduce_scatter"};
  rank.fail("rank %d is lost; this rank waited for it in %s '%s' (%s)", lost - 1, kinds[desc.kind], desc.name,
            desc.location);
  return false;
}

template <typename Function> void SharedMemoryTransport::forElements(Call &call, int64_t count, Function function) {
  constexpr int64_t parallelBytes = 64 * 1024, grain = 1024;
  if (count * call.elementBytes < parallelBytes) {
    function(Range{0, count});
    return;
  }
  call.rank.pool.parallel([&](int thread, int threads) {
    Range range = splitRange(count, grain, thread, threads);
    if (range.lo < range.hi)
      function(range);
  });
}

bool SharedMemoryTransport::publish(Call &call, int64_t index) {
  int slot = call.slot(index);
  SlotUse &use = uses[slot];
  if (use.group && !await(call.rank, call.desc, use.group->counters->done[slot], use.target))
    return false;
  use = {&call.group, call.target(index)};
  headerOf(self, slot) = {call.desc.id, call.desc.count};
  char *staging = slotOf(self, slot);
  int64_t bytes = call.elementBytes, length = call.length(index);
  bool scatter = call.desc.kind == ND_REDUCE_SCATTER;
  for (int64_t part = 0; part < (scatter ? call.group.size() : 1); ++part) {
    const char *from = call.operands.src + (part * call.total + call.begin(index)) * bytes;
    char *to = staging + part * length * bytes;
    forElements(call, length, [&](Range range) {
      memcpy(to + range.lo * bytes, from + range.lo * bytes, (range.hi - range.lo) * bytes);
    });
  }
  arrive(call.group.counters->published[slot], call.target(index));
  return true;
}

bool SharedMemoryTransport::checkPeers(Call &call, int64_t index) {
  for (int member : call.group.members) {
    const SlotHeader &header = headerOf(member, call.slot(index));
    if (header.collective == call.desc.id && header.count == call.desc.count)
      continue;
    bool known = header.collective >= 0 && header.collective < program.num_collectives;
    call.rank.fail(
        "ranks run different collectives: rank %d is in '%s' with %ld elements, this rank in '%s' (%s) with %ld; the "
        "programs of the ranks do not belong together: compile them again",
        member, known ? program.collectives[header.collective]->name : "?", header.count, call.desc.name,
        call.desc.location, call.desc.count);
    return false;
  }
  return true;
}

/// Elements of a chunk's shares are cut at multiples of this, a cache line of the smallest type that is reduced.
static constexpr int64_t shareGrain = 32;

void SharedMemoryTransport::reduceShare(Call &call, int64_t index) {
  Group &group = call.group;
  int slot = call.slot(index);
  int64_t bytes = call.elementBytes;
  Range share = splitRange(call.length(index), shareGrain, group.position, group.size());
  char *own = slotOf(self, slot) + share.lo * bytes;
  char *dst = call.operands.dst + (call.begin(index) + share.lo) * bytes;
  forElements(call, share.hi - share.lo, [&](Range range) {
    const char *parts[4096];
    for (int i = 0; i < group.size(); ++i)
      parts[i] = slotOf(group.members[i], slot) + (share.lo + range.lo) * bytes;
    reduceParts(call.desc.dtype, call.desc.reduction, parts, group.size(), own + range.lo * bytes, range.hi - range.lo);
    memcpy(dst + range.lo * bytes, own + range.lo * bytes, (range.hi - range.lo) * bytes);
  });
  *call.operands.sent += (group.size() - 1) * (share.hi - share.lo) * bytes;
}

void SharedMemoryTransport::gatherShares(Call &call, int64_t index) {
  Group &group = call.group;
  int64_t bytes = call.elementBytes;
  for (int i = 0; i < group.size(); ++i) {
    if (i == group.position)
      continue;
    Range share = splitRange(call.length(index), shareGrain, i, group.size());
    const char *from = slotOf(group.members[i], call.slot(index)) + share.lo * bytes;
    char *to = call.operands.dst + (call.begin(index) + share.lo) * bytes;
    forElements(call, share.hi - share.lo, [&](Range range) {
      memcpy(to + range.lo * bytes, from + range.lo * bytes, (range.hi - range.lo) * bytes);
    });
    *call.operands.sent += (share.hi - share.lo) * bytes;
  }
}

void SharedMemoryTransport::gatherOperands(Call &call, int64_t index) {
  Group &group = call.group;
  int64_t bytes = call.elementBytes, length = call.length(index);
  for (int i = 0; i < group.size(); ++i) {
    bool isSelf = i == group.position;
    const char *from =
        isSelf ? call.operands.src + call.begin(index) * bytes : slotOf(group.members[i], call.slot(index));
    char *to = call.operands.dst + (i * call.total + call.begin(index)) * bytes;
    if (from == to)
      continue;
    forElements(call, length, [&](Range range) {
      memcpy(to + range.lo * bytes, from + range.lo * bytes, (range.hi - range.lo) * bytes);
    });
    *call.operands.sent += isSelf ? 0 : length * bytes;
  }
}

void SharedMemoryTransport::reducePiece(Call &call, int64_t index) {
  Group &group = call.group;
  int64_t bytes = call.elementBytes, length = call.length(index);
  char *dst = call.operands.dst + call.begin(index) * bytes;
  forElements(call, length, [&](Range range) {
    const char *parts[4096];
    for (int i = 0; i < group.size(); ++i)
      parts[i] = slotOf(group.members[i], call.slot(index)) + (group.position * length + range.lo) * bytes;
    reduceParts(call.desc.dtype, call.desc.reduction, parts, group.size(), dst + range.lo * bytes, range.hi - range.lo);
  });
  *call.operands.sent += (group.size() - 1) * length * bytes;
}

bool SharedMemoryTransport::complete(Call &call, int64_t index) {
  GroupCounters &counters = *call.group.counters;
  int slot = call.slot(index);
  uint32_t target = call.target(index);
  if (!await(call.rank, call.desc, counters.published[slot], target) || !checkPeers(call, index))
    return false;
  if (call.desc.kind == ND_ALL_REDUCE) {
    reduceShare(call, index);
    arrive(counters.reduced[slot], target);
    if (!await(call.rank, call.desc, counters.reduced[slot], target))
      return false;
    gatherShares(call, index);
  } else {
    if (call.desc.kind == ND_ALL_GATHER)
      gatherOperands(call, index);
    else
      reducePiece(call, index);
    // Nobody waits for it, but the next all-reduce in this slot counts on one arrival per round.
    arrive(counters.reduced[slot], target);
  }
  arrive(counters.done[slot], target);
  return true;
}

void SharedMemoryTransport::wait(nd_rank &rank, const nd_collective_desc &desc) {
  Pending &operands = pending[desc.id];
  if (!operands.started)
    return rank.fail("collective '%s' (%s) is waited for but was not started; this is an error of the compiler",
                     desc.name, desc.location);
  operands.started = false;
  Group &group = *operands.group;
  int64_t bytes = dtypeBytes(desc.dtype), size = group.size();
  if (size == 1) {
    if (operands.src != operands.dst)
      memcpy(operands.dst, operands.src, desc.count * bytes);
    return;
  }
  bool scatter = desc.kind == ND_REDUCE_SCATTER;
  Call call{rank,
            desc,
            operands,
            group,
            bytes,
            scatter ? desc.count / size : desc.count,
            chunkBytes / bytes / (scatter ? size : 1),
            group.chunks};
  int64_t chunks = (call.total + call.chunk - 1) / call.chunk;
  rank.status->collective.store(desc.id, std::memory_order_relaxed);
  bool good = chunks == 0 || publish(call, 0);
  for (int64_t index = 0; good && index < chunks; ++index)
    good = (index + 1 == chunks || publish(call, index + 1)) && complete(call, index);
  group.chunks += static_cast<uint32_t>(chunks);
  rank.status->collective.store(-1, std::memory_order_relaxed);
}

std::unique_ptr<Transport> nd::rt::openTransport(const nd_program &program, int rank, int ranks, char *sharedMemory,
                                                 std::string &error) {
  auto transport = std::make_unique<SharedMemoryTransport>(program, rank, ranks, sharedMemory);
  if (!transport->open(error))
    return nullptr;
  return transport;
}
