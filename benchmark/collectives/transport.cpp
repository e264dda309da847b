//===- transport.cpp - Times of our collectives ---------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// nd-collectives RANKS: starts so many processes that run all-reduces, all-gathers and reduce-scatters of each size,
// and prints a line for each, `kind bytes microseconds`: the best of several rounds, of the slowest rank. `bytes` are
// those of the whole tensor.
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"
#include "nd/Runtime/Core/Rank.h"
#include "nd/Runtime/Core/nd.h"
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace nd::rt;

namespace {

struct Benchmark {
  std::vector<nd_collective_desc> descs;
  std::vector<nd_collective_operand> operands;
  std::vector<const nd_collective_desc *> pointers;
  nd_program program{};

  explicit Benchmark(int ranks) {
    auto add = [&](int32_t kind, int64_t elements) {
      bool whole = kind == ND_ALL_REDUCE;
      int64_t part = whole ? elements : elements / ranks;
      operands.push_back(
          {1, 1, part, {0, 0, kind == ND_REDUCE_SCATTER ? part : 0}, {0, 0, kind == ND_ALL_GATHER ? part : 0}});
      nd_collective_desc desc{};
      desc.id = static_cast<int32_t>(descs.size());
      desc.kind = kind, desc.num_axes = 1, desc.num_operands = 1;
      desc.name = desc.location = desc.group = "benchmark";
      descs.push_back(desc);
    };
    for (int64_t bytes : benchmarkSizes())
      for (int32_t kind : {ND_ALL_REDUCE, ND_ALL_GATHER, ND_REDUCE_SCATTER})
        add(kind, bytes / 4);
    add(ND_ALL_REDUCE, 1); // the barrier before each round
    for (size_t i = 0; i < descs.size(); ++i) {
      descs[i].operands = &operands[i];
      pointers.push_back(&descs[i]);
    }
    program.abi_version = ND_ABI_VERSION, program.name = "benchmark", program.num_axes = 1;
    program.axis_sizes[0] = ranks, program.axis_names[0] = "dp";
    program.arena_bytes = 2 * benchmarkSizes().back() + 4096;
    program.num_collectives = static_cast<int32_t>(pointers.size()), program.collectives = pointers.data();
  }

  void run(nd_rank *rank, const nd_collective_desc &desc) const {
    char *a = rank->arena, *b = rank->arena + benchmarkSizes().back();
    void *operands[] = {a, desc.kind == ND_ALL_REDUCE ? a : b};
    nd_rt_collective_start(rank, &desc, operands);
    nd_rt_collective_wait(rank, &desc);
    if (rank->failed) {
      fprintf(stderr, "%s\n", rank->error);
      _exit(1);
    }
  }
};

} // namespace

int main(int argc, char **argv) {
  int ranks = argc > 1 ? atoi(argv[1]) : 2, self = 0;
  Benchmark benchmark(ranks);
  int memory = memfd_create("nd", MFD_CLOEXEC);
  if (ftruncate(memory, SharedMemoryLayout(ranks).controlBytes()) != 0)
    return 1;
  auto *slowest = static_cast<std::atomic<double> *>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int child = 1; child < ranks && self == 0; ++child)
    if (fork() == 0)
      self = child;
  nd_options options{self, ranks, 1, memory, 1};
  char error[512] = "";
  nd_rank *rank = nd_open(&benchmark.program, &options, error, sizeof(error));
  if (!rank) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  if (sysconf(_SC_NPROCESSORS_ONLN) >= ranks) { // a core for each, as the peer's ranks are bound
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(self, &core);
    sched_setaffinity(0, sizeof(core), &core);
  }
  const nd_collective_desc &barrier = benchmark.descs.back();
  for (const nd_collective_desc &desc : benchmark.descs) {
    if (&desc == &barrier)
      break;
    int64_t bytes = desc.operands->inner * (desc.kind == ND_ALL_REDUCE ? 1 : ranks) * 4;
    double best = 0;
    for (int round = 0; round < benchmarkRounds; ++round) {
      int repeats = benchmarkRepeats(bytes);
      *slowest = 0;
      memset(rank->arena, 0, bytes); // sums of sums would overflow
      benchmark.run(rank, barrier);
      double start = nowMilliseconds();
      for (int repeat = 0; repeat < repeats; ++repeat)
        benchmark.run(rank, desc);
      double time = (nowMilliseconds() - start) * 1e3 / repeats;
      for (double seen = slowest->load(); time > seen && !slowest->compare_exchange_weak(seen, time);) {
      }
      benchmark.run(rank, barrier);
      best = round == 0 ? slowest->load() : std::min(best, slowest->load());
      benchmark.run(rank, barrier);
    }
    if (self == 0)
      printf("%s %ld %.2f\n", collectiveName(desc.kind), bytes, best);
  }
  nd_close(rank);
  while (self == 0 && wait(nullptr) > 0) {
  }
  return 0;
}
