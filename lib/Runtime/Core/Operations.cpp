//===- Operations.cpp - What a step calls, but for library calls ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/CollectiveRows.h"
#include "nd/Runtime/Core/Rank.h"
#include <cstring>

using namespace nd::rt;

void nd_rt_launch(nd_rank *rank, const nd_kernel *kernels, const nd_launch_desc *desc, void *const *args) {
  if (!rank->proceed())
    return;
  ProfileScope scope(*rank, Profile::Kernel, desc->kernel, desc->location);
  nd_kernel kernel = kernels[desc->kernel];
  if (desc->extent <= desc->grain) {
    kernel(args, 0, desc->extent, rank->scratch(0));
    return;
  }
  rank->pool.parallel([&](int thread, int threads) {
    Range range = splitRange(desc->extent, desc->grain, thread, threads);
    if (range.lo < range.hi)
      kernel(args, range.lo, range.hi, rank->scratch(thread));
  });
}

namespace {

/// Below this, waking the other threads costs more than it saves.
constexpr int64_t parallelBytes = 64 * 1024;

template <typename Function> void forBytes(nd_rank &rank, int64_t bytes, Function function) {
  if (bytes < parallelBytes) {
    function(Range{0, bytes});
    return;
  }
  rank.pool.parallel([&](int thread, int threads) { function(splitRange(bytes, 4096, thread, threads)); });
}

} // namespace

void nd_rt_copy(nd_rank *rank, void *dst, const void *src, int64_t bytes) {
  if (!rank->proceed() || dst == src)
    return;
  ProfileScope scope(*rank, Profile::Copy, 0, "copy");
  forBytes(*rank, bytes, [&](Range range) {
    memcpy(static_cast<char *>(dst) + range.lo, static_cast<const char *>(src) + range.lo, range.hi - range.lo);
  });
}

void nd_rt_fill_zero(nd_rank *rank, void *dst, int64_t bytes) {
  if (!rank->proceed())
    return;
  ProfileScope scope(*rank, Profile::Copy, 1, "fill with zeros");
  forBytes(*rank, bytes, [&](Range range) { memset(static_cast<char *>(dst) + range.lo, 0, range.hi - range.lo); });
}

/// Every part of a group of one rank is its own; of an all_slice that at `position`.
static void moveLocally(nd_rank &rank, const nd_collective_desc &desc, int64_t position, const void *const *src,
                        void *const *dst) {
  int64_t bytes = dtypeBytes(desc.dtype), elements = streamElements(desc);
  auto move = [&](Range range) {
    forRows(desc, range, [&](int32_t index, int64_t from, int64_t to, int64_t count) {
      const char *source =
          static_cast<const char *>(src[index]) + (from + position * desc.operands[index].src.part) * bytes;
      char *target = static_cast<char *>(dst[index]) + to * bytes;
      if (source != target)
        memcpy(target, source, count * bytes);
    });
  };
  if (elements * bytes < parallelBytes)
    move(Range{0, elements});
  else
    rank.pool.parallel([&](int thread, int threads) { move(splitRange(elements, 1024, thread, threads)); });
}

void nd_rt_collective_start(nd_rank *rank, const nd_collective_desc *desc, void *const *operands) {
  if (!rank->proceed())
    return;
  if (rank->transport)
    rank->transport->start(*rank, *desc, operands);
  else
    moveLocally(*rank, *desc, 0, operands, operands + desc->num_operands);
}

void nd_rt_collective_wait(nd_rank *rank, const nd_collective_desc *desc) {
  if (!rank->proceed() || !rank->transport)
    return;
  ProfileScope scope(*rank, Profile::Collective, desc->id, desc->name);
  rank->transport->wait(*rank, *desc);
}

void nd_rt_all_slice(nd_rank *rank, const nd_collective_desc *desc, const void *src, void *dst) {
  if (!rank->proceed())
    return;
  ProfileScope scope(*rank, Profile::Copy, 2, "cut a shard");
  moveLocally(*rank, *desc, rank->positionIn(*desc), &src, &dst);
}
