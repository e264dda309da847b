//===- mpi.cpp - Times of Open MPI's collectives --------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The same as transport.cpp, on MPI. benchmark/collectives.py compiles it with mpicxx.
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"
#include <cstdio>
#include <cstring>
#include <mpi.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int self, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<float> a(benchmarkSizes().back() / 4), b(a.size());
  for (int64_t bytes : benchmarkSizes())
    for (const char *kind : {"all_reduce", "all_gather", "reduce_scatter"}) {
      int count = static_cast<int>(bytes / 4), part = count / ranks;
      double best = 0;
      for (int round = 0; round < benchmarkRounds; ++round) {
        int repeats = benchmarkRepeats(bytes);
        std::memset(a.data(), 0, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int repeat = 0; repeat < repeats; ++repeat)
          if (kind[4] == 'r')
            MPI_Allreduce(MPI_IN_PLACE, a.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
          else if (kind[4] == 'g')
            MPI_Allgather(a.data(), part, MPI_FLOAT, b.data(), part, MPI_FLOAT, MPI_COMM_WORLD);
          else
            MPI_Reduce_scatter_block(a.data(), b.data(), part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double time = (MPI_Wtime() - start) * 1e6 / repeats, slowest;
        MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        best = round == 0 ? slowest : std::min(best, slowest);
      }
      if (self == 0)
        std::printf("%s %d %.2f\n", kind, kind[4] == 'r' ? count * 4 : part * ranks * 4, best);
    }
  MPI_Finalize();
  return 0;
}
