//===- TestMesh.h - Ranks of a mesh as threads of a test --------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_TEST_UNIT_RUNTIME_TESTMESH_H
#define ND_TEST_UNIT_RUNTIME_TESTMESH_H

#include "nd/Runtime/Core/CollectiveRows.h"
#include "nd/Runtime/Core/Rank.h"
#include "nd/Runtime/Core/SharedMemory.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <thread>

namespace nd::rt {

/// A collective of a test, with what its descriptor points to.
struct Collective {
  nd_collective_desc desc{};
  std::vector<nd_collective_operand> operands;
  std::vector<int32_t> sources;
};

/// The ranks of a mesh as threads of this process, over one anonymous mapping.
class Mesh {
public:
  Mesh(std::vector<int32_t> sizes, std::vector<Collective> list, int nodes = 1) : collectives(std::move(list)) {
    program.num_nodes = nodes;
    program.num_axes = static_cast<int32_t>(sizes.size());
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      ranks *= program.axis_sizes[axis] = sizes[axis];
    for (size_t i = 0; i < collectives.size(); ++i) {
      nd_collective_desc &desc = collectives[i].desc;
      desc.id = static_cast<int32_t>(i);
      desc.name = "test", desc.location = "here", desc.group = "group";
      desc.num_operands = static_cast<int32_t>(collectives[i].operands.size());
      desc.operands = collectives[i].operands.data();
      desc.sources = collectives[i].sources.data();
      pointers.push_back(&desc);
      if (desc.kind == ND_REDUCE_SCATTER && nodes > 1) // at least what its group needs
        program.staging_bytes =
            std::max(program.staging_bytes, nd_staging_bytes(nodes, streamElements(desc), dtypeBytes(desc.dtype)));
    }
    program.num_collectives = static_cast<int32_t>(collectives.size());
    program.collectives = pointers.data();
    program.arena_bytes = 64 << 20;
    SharedMemoryLayout layout(ranks, program);
    bytes = layout.totalBytes();
    memory = static_cast<char *>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~Mesh() { munmap(memory, bytes); }

  const nd_collective_desc &operator[](size_t index) const { return collectives[index].desc; }

  /// Runs body(rank, self) on all ranks at once.
  void run(const std::function<void(nd_rank &, int)> &body) {
    std::vector<std::thread> threads;
    for (int self = 0; self < ranks; ++self)
      threads.emplace_back([&, self] {
        nd_rank rank;
        nd_program own = program;
        if (self == strange)
          own.arena_bytes -= 1;
        rank.program = &own, rank.rank = self, rank.ranks = ranks, rank.status = &rank.ownStatus;
        std::string error;
        ASSERT_TRUE(rank.pool.start(1, error));
        rank.transport = openTransport(own, self, ranks, memory, /*spin=*/false, error);
        ASSERT_TRUE(rank.transport) << error;
        rank.arena = memory + SharedMemoryLayout(ranks, program).arenaOffset(self);
        body(rank, self);
        if (testing::Test::HasFatalFailure())
          loseRank(self); // the others would wait for it
        rank.arena = nullptr;
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  void loseRank(int rank) { reinterpret_cast<JobStatus *>(memory)->lostRank.store(rank + 1); }

  nd_program program{};
  int ranks = 1;
  int strange = -1; ///< a rank that runs another program
  std::vector<Collective> collectives;

private:
  std::vector<const nd_collective_desc *> pointers;
  char *memory;
  int64_t bytes;
};

/// `count` elements of an operand: the part of a rank for gathers and scatters.
inline Collective collective(int32_t kind, std::vector<int8_t> axes, std::vector<int64_t> counts,
                             int32_t dtype = ND_F32, int32_t reduction = ND_SUM) {
  Collective result;
  nd_collective_desc &desc = result.desc;
  desc.kind = kind, desc.dtype = dtype, desc.reduction = reduction;
  desc.num_axes = static_cast<int32_t>(axes.size());
  std::copy(axes.begin(), axes.end(), desc.axes);
  for (int64_t count : counts)
    result.operands.push_back({1,
                               1,
                               count,
                               {0, 0, kind == ND_REDUCE_SCATTER || kind == ND_ALL_TO_ALL ? count : 0},
                               {0, 0, kind == ND_ALL_GATHER || kind == ND_ALL_TO_ALL ? count : 0}});
  return result;
}

inline void runCollective(nd_rank &rank, const nd_collective_desc &desc, std::vector<void *> operands) {
  nd_rt_collective_start(&rank, &desc, operands.data());
  nd_rt_collective_wait(&rank, &desc);
  ASSERT_FALSE(rank.failed) << rank.error;
}

/// Element `offset` of the rank's arena.
template <typename T = float> T *at(nd_rank &rank, int64_t offset = 0) {
  return reinterpret_cast<T *>(rank.arena) + offset;
}

inline float element(int rank, int64_t i) { return std::sin(static_cast<float>(rank * 7919 + i)); }

inline constexpr int64_t large = 536633; // no multiple of anything

} // namespace nd::rt

#endif // ND_TEST_UNIT_RUNTIME_TESTMESH_H
