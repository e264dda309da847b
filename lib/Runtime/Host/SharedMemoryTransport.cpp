//===- SharedMemoryTransport.cpp - Collectives over shared memory ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "SharedMemoryTransport.h"
#include "Reduce.h"
#include "nd/Runtime/Core/CollectiveRows.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>
#include <cstring>

using namespace nd::rt;

namespace {

/// What a rank receives in one collective from here on does not stay in the caches: it is stored past them, which saves
/// to read the target first.
constexpr int64_t streamedBytes = 16 << 20;

} // namespace

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

std::string SharedMemoryTransport::check(const nd_collective_desc &desc, const RankGroup &group) const {
  bool reduces = desc.kind == ND_ALL_REDUCE || desc.kind == ND_REDUCE_SCATTER;
  if (reduces && !canReduce(desc.dtype, desc.reduction))
    return std::string(dtypeName(desc.dtype)) + " cannot be reduced between ranks";
  if (reduces && group.size() > maxGroup)
    return "too many ranks: " + std::to_string(group.size());
  int64_t staged = desc.kind == ND_REDUCE_SCATTER && isHierarchical(group)
                       ? nd_staging_bytes(group.nodes(), streamElements(desc), dtypeBytes(desc.dtype))
                       : 0;
  if (program.staging_bytes < staged)
    return "its partial sums between nodes need " + std::to_string(staged) + " bytes, but the program has " +
           std::to_string(program.staging_bytes) + " for them; this is an error of the compiler";
  return "";
}

/// Equal for programs whose collectives fit each other. Never 0.
uint64_t SharedMemoryTransport::describeProgram() const {
  uint64_t hash = 14695981039346656037ull;
  auto add = [&](int64_t number) { hash = (hash ^ static_cast<uint64_t>(number)) * 1099511628211ull; };
  add(program.arena_bytes);
  add(program.staging_bytes);
  add(program.num_nodes);
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
    std::string problem;
    call.group = RankGroup::find(program, desc, self, problem);
    if (problem.empty())
      problem = check(desc, call.group);
    if (!problem.empty()) {
      error = std::string("collective '") + desc.name + "' (" + desc.location + "): " + problem;
      return false;
    }
    call.state = reinterpret_cast<CollectiveState *>(memory + layout.stateOffset(id, call.group.first()));
    call.operandIndex = operandIndex;
    operandIndex += desc.num_operands;
    call.elements = streamElements(desc);
    call.elementBytes = dtypeBytes(desc.dtype);
    int64_t parts = desc.kind == ND_ALL_GATHER ? call.group.size() : 1;
    call.streamed = call.elements * call.elementBytes * parts >= streamedBytes;
    for (std::vector<Place> *places : {&sources, &sums, &single, &targets})
      places->reserve(call.group.size());
    call.operands.resize(2 * desc.num_operands);
    auto same = [&](const Sent &entry) {
      return !strcmp(entry.group, desc.group) && entry.kind == desc.kind && entry.isScalar == desc.is_scalar;
    };
    auto entry = std::find_if(sent.begin(), sent.end(), same);
    call.sentIndex = entry - sent.begin();
    if (entry == sent.end())
      sent.push_back({desc.group, desc.kind, desc.is_scalar, id, 0, 0});
  }
  signature = describeProgram();
  statusOf(self).program.store(signature);
  return true;
}

//===----------------------------------------------------------------------===//
// Waiting for peers
//===----------------------------------------------------------------------===//

void SharedMemoryTransport::arrive(const Call &call, CollectiveState::Counter &counter, uint32_t times) const {
  uint32_t target = times * static_cast<uint32_t>(call.group.size());
  if (counter.value.fetch_add(1) + 1 == target && counter.sleepers.load())
    futexWake(&counter.value, /*shared=*/true);
}

bool SharedMemoryTransport::checkPeers(nd_rank &rank, const nd_collective_desc &desc) const {
  const RankGroup &group = calls[desc.id].group;
  for (int position = 0; position < group.size(); ++position) {
    int member = group.memberAt(position);
    uint64_t other = statusOf(member).program.load();
    if (!other || other == signature)
      continue;
    rank.fail("rank %d runs another program than this rank, which is in '%s' (%s): compile the program again", member,
              desc.name, desc.location);
    return false;
  }
  return true;
}

bool SharedMemoryTransport::await(nd_rank &rank, const nd_collective_desc &desc, CollectiveState::Counter &counter,
                                  uint32_t times) const {
  const Call &call = calls[desc.id];
  uint32_t target = times * static_cast<uint32_t>(call.group.size());
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
// A collective
//===----------------------------------------------------------------------===//

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
  arrive(call, call.state->started, call.uses);
}

void SharedMemoryTransport::wait(nd_rank &rank, const nd_collective_desc &desc) {
  Call &call = calls[desc.id];
  if (!call.inFlight)
    return rank.fail("collective '%s' (%s) is waited for but was not started; this is an error of the compiler",
                     desc.name, desc.location);
  call.inFlight = false;
  rank.status->collective.store(desc.id, std::memory_order_relaxed);
  if (await(rank, desc, call.state->started, call.uses) && checkPeers(rank, desc) && take(rank, desc)) {
    arrive(call, call.state->done, call.uses);
    await(rank, desc, call.state->done, call.uses);
  }
  rank.status->collective.store(-1, std::memory_order_relaxed);
}

std::unique_ptr<Transport> nd::rt::openTransport(const nd_program &program, int rank, int ranks, char *sharedMemory,
                                                 bool spin, std::string &error) {
  auto transport = std::make_unique<SharedMemoryTransport>(program, rank, ranks, sharedMemory, spin);
  if (!transport->open(error))
    return nullptr;
  return transport;
}
