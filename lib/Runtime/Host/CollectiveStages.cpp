//===- CollectiveStages.cpp - Who reads what from whom --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An all-reduce has each rank reduce its share of the elements into its own target, and then copy the shares of the
// others. A share is read and written by its rank alone until it is reduced, so source and target may be one.
//
// Where a group goes over N nodes of m ranks, nothing is sent between nodes twice: ranks of equal place in their nodes
// exchange what belongs to their place. Of X bytes, in all,
//
//   all-reduce      inside: each rank reduces 1/m of its node's; between: places reduce and gather that (2 (N-1) X);
//                   inside: nodes gather
//   gather          between: places gather ((N-1) X); inside: nodes gather
//   reduce-scatter  inside: each rank reduces what all nodes' ranks of its place will have; between: these add ((N-1)
//   X)
//
// The partial sums of a reduce-scatter have no place in source or target: they go through the staging memory, in
// pieces. Every byte is sent as often as without nodes.
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

void copyRow(char *to, const char *from, int64_t bytes, bool streamed) {
  constexpr int64_t shortRow = 4096;
  if (from == to)
    return;
  if (streamed && bytes >= shortRow)
    copyPastCaches(to, from, bytes);
  else
    memcpy(to, from, bytes);
}

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
    return memory + layout.stagingOffset(member) + (place.part * stagedElements(call) + within) * call.elementBytes;
  OperandPlace base = placeOf(member, call.operandIndex + operand);
  const nd_collective_operand &strides = desc.operands[operand];
  bool isSource = place.kind == Place::Source;
  int64_t element = isSource ? src + place.part * strides.src.part : dst + place.part * strides.dst.part;
  return memory + layout.arenaOffset(member) + (isSource ? base.src : base.dst) + element * call.elementBytes;
}

/// Combines the elements of a range of the stream, in the order of `from`, at `to`, which is this rank's. This is where
/// bytes are sent, and the only place where they are counted.
void SharedMemoryTransport::combine(nd_rank &rank, const nd_collective_desc &desc, const std::vector<Place> &from,
                                    Place to, Range range) {
  Call &call = calls[desc.id];
  int64_t bytes = call.elementBytes;
  forElements(rank, bytes, range, [&](Range part) {
    const char *parts[maxGroup];
    int64_t within = part.lo - range.lo;
    forRows(desc, part, [&](int32_t index, int64_t src, int64_t dst, int64_t count) {
      for (size_t i = 0; i < from.size(); ++i)
        parts[i] = locate(desc, from[i], index, src, dst, within);
      char *target = locate(desc, to, index, src, dst, within);
      if (from.size() == 1)
        copyRow(target, parts[0], count * bytes, call.streamed);
      else
        reduceParts(desc.dtype, desc.reduction, parts, static_cast<int>(from.size()), target, count);
      within += count;
    });
    _mm_sfence();
  });
  for (const Place &place : from) {
    if (place.position == call.group.position())
      continue;
    Sent &entry = sent[call.sentIndex];
    int64_t moved = (range.hi - range.lo) * bytes;
    entry.bytes += moved;
    entry.betweenNodes += call.group.crossesNodes(place.position) ? moved : 0;
  }
}

void SharedMemoryTransport::copy(nd_rank &rank, const nd_collective_desc &desc, Place from, Place to, Range range) {
  single.assign(1, from);
  combine(rank, desc, single, to, range);
}

/// Waits until all of the group have come as far.
bool SharedMemoryTransport::meet(nd_rank &rank, const nd_collective_desc &desc) {
  Call &call = calls[desc.id];
  ++call.stages;
  arrive(call, call.state->staged, call.stages);
  return await(rank, desc, call.state->staged, call.stages);
}

bool SharedMemoryTransport::reduceAll(nd_rank &rank, const nd_collective_desc &desc) {
  const Call &call = calls[desc.id];
  int size = call.group.size(), own = call.group.position();
  const Range all{0, call.elements};
  sources.clear();
  for (int position = 0; position < size; ++position)
    sources.push_back({Place::Source, position, 0});
  combine(rank, desc, sources, {Place::Target, own, 0}, shareOf(all, own, size));
  if (!meet(rank, desc))
    return false;
  for (int i = 1; i < size; ++i) {
    int from = (own + i) % size;
    copy(rank, desc, {Place::Target, from, 0}, {Place::Target, own, 0}, shareOf(all, from, size));
  }
  return true;
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
  combine(rank, desc, sources, target, share);
  if (!meet(rank, desc))
    return false;
  combine(rank, desc, sums, target, shareOf(share, node, nodes));
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

/// Elements of a slot: staging memory has one for each node in both halves, which pieces use in turns.
int64_t SharedMemoryTransport::stagedElements(const Call &call) const {
  int64_t elements = SharedMemoryLayout::stagingBytes / (2 * call.group.nodes()) / call.elementBytes;
  return elements / shareGrain * shareGrain;
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
      combine(rank, desc, sources, {Place::Staging, own, half * nodes + of}, piece);
    }
    if (!meet(rank, desc))
      return false;
    sums.clear();
    for (int i = 0; i < nodes; ++i)
      sums.push_back({Place::Staging, group.positionAt(i, place), half * nodes + node});
    combine(rank, desc, sums, {Place::Target, own, own}, piece);
  }
  return true;
}

/// Takes everything that this rank gets from its peers. They have started.
bool SharedMemoryTransport::take(nd_rank &rank, const nd_collective_desc &desc) {
  const Call &call = calls[desc.id];
  const RankGroup &group = call.group;
  int size = group.size(), own = group.position();
  bool hierarchical = group.nodes() > 1 && group.inside() > 1;
  Range all{0, call.elements};
  switch (desc.kind) {
  case ND_ALL_REDUCE:
    return hierarchical ? reduceAllOverNodes(rank, desc) : reduceAll(rank, desc);
  case ND_REDUCE_SCATTER: {
    if (hierarchical)
      return scatterOverNodes(rank, desc);
    sources.clear();
    for (int position = 0; position < size; ++position)
      sources.push_back({Place::Source, position, own});
    combine(rank, desc, sources, {Place::Target, own, own}, all);
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
