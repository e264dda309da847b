//===- CollectiveStages.cpp - Who reads what from whom --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An all-reduce has each rank reduce its share of the elements and write it to the targets of all: they are there for
// that from the start on. A share is read and written by one rank alone, so source and target may be one.
//
// Where a group goes over N nodes of m ranks, nothing is sent between nodes twice: ranks of equal place in their nodes
// exchange what belongs to their place. Of X bytes, in all,
//
//   all-reduce      inside: each rank reduces 1/m of its node's; between: places reduce and gather that (2 (N-1) X);
//                   inside: nodes gather
//   gather          between: places gather ((N-1) X); inside: nodes gather
//   reduce-scatter  inside: each rank reduces what ranks of its place will have; between: these add that ((N-1) X)
//
// The partial sums of a reduce-scatter have no place in source or target: they go through the staging memory at the end
// of the arena, in pieces. In all as much is sent as without nodes.
//
// Sums are in the order of positions for every element, inside nodes and then over nodes: equal on all ranks, in all
// runs.
//
//===----------------------------------------------------------------------===//

#include "Reduce.h"
#include "SharedMemoryTransport.h"
#include "nd/Runtime/Core/CollectiveRows.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>
#include <cstring>
#include <immintrin.h>

using namespace nd::rt;

namespace {

/// Shares of an all-reduce are cut at multiples of this, a cache line of the smallest type that is reduced.
constexpr int64_t shareGrain = 32;

/// Part `index` of `count` of a range.
Range shareOf(Range range, int index, int count) {
  Range part = splitRange(range.hi - range.lo, shareGrain, index, count);
  return {range.lo + part.lo, range.lo + part.hi};
}

/// Runs function on ranges that make up the range, on all threads where that pays.
template <typename Function> void forElements(nd_rank &rank, int64_t elementBytes, Range range, Function function) {
  constexpr int64_t parallelBytes = 64 * 1024, grain = 1024;
  int64_t count = range.hi - range.lo;
  if (count * elementBytes < parallelBytes) {
    function(range);
    return;
  }
  rank.pool.parallel([&](int thread, int threads) {
    Range part = splitRange(count, grain, thread, threads);
    if (part.lo < part.hi)
      function(Range{range.lo + part.lo, range.lo + part.hi});
  });
}

} // namespace

/// An element of an operand: at `src` and `dst` in its parts, and at `within` in a slot of the staging memory.
char *SharedMemoryTransport::locate(const nd_collective_desc &desc, Place place, int32_t operand, int64_t src,
                                    int64_t dst, int64_t within) const {
  const Call &call = calls[desc.id];
  int member = call.group.memberAt(place.position);
  if (place.kind == Place::Staging)
    return memory + layout.arenaOffset(member) + program.arena_bytes - program.staging_bytes +
           (place.part * stagedElements(call) + within) * call.elementBytes;
  OperandPlace base = placeOf(member, call.operandIndex + operand);
  const nd_collective_operand &strides = desc.operands[operand];
  bool isSource = place.kind == Place::Source;
  int64_t element = isSource ? src + place.part * strides.src.part : dst + place.part * strides.dst.part;
  return memory + layout.arenaOffset(member) + (isSource ? base.src : base.dst) + element * call.elementBytes;
}

/// Combines the elements of a range of the stream, in the order of `from`, and writes them to all of `to`. This is
/// where bytes are sent, and the only place where they are counted: what comes from a peer's memory, and what goes
/// there.
void SharedMemoryTransport::combine(nd_rank &rank, const nd_collective_desc &desc, const std::vector<Place> &from,
                                    const std::vector<Place> &to, Range range) {
  const Call &call = calls[desc.id];
  int64_t bytes = call.elementBytes;
  bool streamed = call.streamed && to[0].kind == Place::Target;
  forElements(rank, bytes, range, [&](Range part) {
    const char *parts[maxGroup];
    char *targets[maxGroup];
    int64_t within = part.lo - range.lo;
    forRows(desc, part, [&](int32_t index, int64_t src, int64_t dst, int64_t count) {
      for (size_t i = 0; i < from.size(); ++i)
        parts[i] = locate(desc, from[i], index, src, dst, within);
      for (size_t i = 0; i < to.size(); ++i)
        targets[i] = locate(desc, to[i], index, src, dst, within);
      if (from.size() == 1)
        copyRow(targets[0], parts[0], count * bytes, streamed);
      else
        reduceParts(desc.dtype, desc.reduction, parts, static_cast<int>(from.size()), targets,
                    static_cast<int>(to.size()), count, streamed);
      within += count;
    });
    _mm_sfence();
  });
  for (const std::vector<Place> *places : {&from, &to})
    for (const Place &place : *places)
      if (place.position != call.group.position()) {
        Sent &entry = sent[call.sentIndex];
        int64_t moved = (range.hi - range.lo) * bytes;
        entry.bytes += moved;
        entry.betweenNodes += call.group.crossesNodes(place.position) ? moved : 0;
      }
}

void SharedMemoryTransport::reduce(nd_rank &rank, const nd_collective_desc &desc, Place to, Range range) {
  targets.assign(1, to);
  combine(rank, desc, sources, targets, range);
}

void SharedMemoryTransport::copy(nd_rank &rank, const nd_collective_desc &desc, Place from, Place to, Range range) {
  single.assign(1, from);
  targets.assign(1, to);
  combine(rank, desc, single, targets, range);
}

/// Waits until all of the group have come as far.
bool SharedMemoryTransport::meet(nd_rank &rank, const nd_collective_desc &desc) {
  Call &call = calls[desc.id];
  ++call.stages;
  arrive(call, call.state->staged, call.stages);
  return await(rank, desc, call.state->staged, call.stages);
}

void SharedMemoryTransport::reduceAll(nd_rank &rank, const nd_collective_desc &desc) {
  const Call &call = calls[desc.id];
  int size = call.group.size(), own = call.group.position();
  sources.clear(), targets.clear();
  for (int position = 0; position < size; ++position) {
    sources.push_back({Place::Source, position, 0});
    targets.push_back({Place::Target, position, 0});
  }
  combine(rank, desc, sources, targets, shareOf({0, call.elements}, own, size));
}

bool SharedMemoryTransport::reduceAllOverNodes(nd_rank &rank, const nd_collective_desc &desc) {
  const Call &call = calls[desc.id];
  const RankGroup &group = call.group;
  int own = group.position(), node = group.nodeOf(own), place = group.placeOf(own);
  int nodes = group.nodes(), inside = group.inside();
  const Range all{0, call.elements}, share = shareOf(all, place, inside);
  const Place target{Place::Target, own, 0};
  sources.clear(), sums.clear();
  for (int i = 0; i < inside; ++i)
    sources.push_back({Place::Source, group.positionAt(node, i), 0});
  for (int i = 0; i < nodes; ++i)
    sums.push_back({Place::Target, group.positionAt(i, place), 0});
  reduce(rank, desc, target, share);
  if (!meet(rank, desc))
    return false;
  targets.assign(1, target);
  combine(rank, desc, sums, targets, shareOf(share, node, nodes));
  if (!meet(rank, desc))
    return false;
  for (int i = 1; i < nodes; ++i) {
    int from = (node + i) % nodes;
    copy(rank, desc, sums[from], target, shareOf(share, from, nodes));
  }
  if (!meet(rank, desc))
    return false;
  for (int i = 1; i < inside; ++i) {
    int from = (place + i) % inside;
    copy(rank, desc, {Place::Target, group.positionAt(node, from), 0}, target, shareOf(all, from, inside));
  }
  return true;
}

bool SharedMemoryTransport::gatherOverNodes(nd_rank &rank, const nd_collective_desc &desc) {
  const Call &call = calls[desc.id];
  const RankGroup &group = call.group;
  int own = group.position(), node = group.nodeOf(own), place = group.placeOf(own);
  const Range all{0, call.elements};
  for (int i = 0; i < group.nodes(); ++i) {
    int from = group.positionAt((node + i) % group.nodes(), place);
    copy(rank, desc, {Place::Source, from, own}, {Place::Target, own, from}, all);
  }
  if (!meet(rank, desc))
    return false;
  for (int i = 1; i < group.inside(); ++i) {
    int neighbour = (place + i) % group.inside();
    for (int from = 0; from < group.nodes(); ++from) {
      int part = group.positionAt(from, neighbour);
      copy(rank, desc, {Place::Target, group.positionAt(node, neighbour), part}, {Place::Target, own, part}, all);
    }
  }
  return true;
}

/// Elements of a slot of the staging memory.
int64_t SharedMemoryTransport::stagedElements(const Call &call) const {
  int64_t elements = program.staging_bytes / (2 * call.group.nodes()) / call.elementBytes;
  return elements / ND_STAGING_GRAIN * ND_STAGING_GRAIN;
}

bool SharedMemoryTransport::scatterOverNodes(nd_rank &rank, const nd_collective_desc &desc) {
  const Call &call = calls[desc.id];
  const RankGroup &group = call.group;
  int own = group.position(), node = group.nodeOf(own), place = group.placeOf(own), nodes = group.nodes();
  int64_t step = stagedElements(call);
  int half = 0; // one piece's half is read by the others while the next piece fills the other
  for (Range piece{0, 0}; piece.lo < call.elements; piece.lo = piece.hi, half = 1 - half) {
    piece.hi = std::min(piece.lo + step, call.elements);
    for (int of = 0; of < nodes; ++of) {
      sources.clear();
      for (int i = 0; i < group.inside(); ++i)
        sources.push_back({Place::Source, group.positionAt(node, i), group.positionAt(of, place)});
      reduce(rank, desc, {Place::Staging, own, half * nodes + of}, piece);
    }
    if (!meet(rank, desc))
      return false;
    sums.clear();
    for (int i = 0; i < nodes; ++i)
      sums.push_back({Place::Staging, group.positionAt(i, place), half * nodes + node});
    targets.assign(1, {Place::Target, own, own});
    combine(rank, desc, sums, targets, piece);
  }
  return true;
}

/// Moves everything that is this rank's to move. Its peers have started.
bool SharedMemoryTransport::take(nd_rank &rank, const nd_collective_desc &desc) {
  const Call &call = calls[desc.id];
  const RankGroup &group = call.group;
  int size = group.size(), own = group.position();
  bool hierarchical = isHierarchical(group);
  Range all{0, call.elements};
  switch (desc.kind) {
  case ND_ALL_REDUCE:
    if (hierarchical)
      return reduceAllOverNodes(rank, desc);
    reduceAll(rank, desc);
    return true;
  case ND_REDUCE_SCATTER: {
    if (hierarchical)
      return scatterOverNodes(rank, desc);
    sources.clear();
    for (int position = 0; position < size; ++position)
      sources.push_back({Place::Source, position, own});
    reduce(rank, desc, {Place::Target, own, own}, all);
    return true;
  }
  case ND_PERMUTE:
    copy(rank, desc, {Place::Source, desc.sources[own], own}, {Place::Target, own, own}, all);
    return true;
  case ND_ALL_GATHER:
    if (hierarchical)
      return gatherOverNodes(rank, desc);
    [[fallthrough]];
  default: // a part of each, its own first; no two ranks read one peer at once
    for (int i = 0; i < size; ++i) {
      int from = (own + i) % size;
      copy(rank, desc, {Place::Source, from, own}, {Place::Target, own, from}, all);
    }
    return true;
  }
}
