//===- gemm.cpp - Which split is best for a product ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// nd-benchmark-gemm [THREADS [TOKENS [bf16]]]: times the splits of the products of a GPT-2 124M training step, cold
// weights (each run takes its operands from the next of several copies), and marks what the runtime's rule chooses. The
// time is the CPU time of the slowest thread, so that it means something on a busy machine too.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Host/Gemm.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/mman.h>

using namespace nd::rt;

namespace {

struct Shape {
  const char *name;
  int64_t m, n, k;
  bool transposeA, transposeB;
};

char *allocate(int64_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, bytes, MADV_HUGEPAGE);
  auto *values = static_cast<float *>(memory);
  for (int64_t i = 0; i < bytes / 4; ++i)
    values[i] = static_cast<float>(i * 2654435761 >> 16 & 1023) / 5120;
  return static_cast<char *>(memory);
}

double cpuMilliseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

} // namespace

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  int64_t t = argc > 2 ? atoi(argv[2]) : 256, c = 768, f = 3072, v = 50257;
  bool isShort = argc > 3 && strcmp(argv[3], "bf16") == 0;
  const Shape shapes[] = {
      {"qkv", t, 3 * c, c, false, false},   {"proj", t, c, c, false, false},
      {"fc", t, f, c, false, false},        {"out", t, c, f, false, false},
      {"head", t, v, c, false, true},       {"dX qkv", t, c, 3 * c, false, true},
      {"dX proj", t, c, c, false, true},    {"dX fc", t, c, f, false, true},
      {"dX out", t, f, c, false, true},     {"dX head", t, c, v, false, false},
      {"dW qkv", c, 3 * c, t, true, false}, {"dW proj", c, c, t, true, false},
      {"dW fc", c, f, t, true, false},      {"dW out", f, c, t, true, false},
      {"dW head", v, c, t, true, false},    {"attention", 64, 64, 64, false, true},
  };
  ThreadPool pool;
  std::string error;
  if (!pool.start(threads, error)) {
    fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  constexpr int64_t pool_bytes = 1LL << 30;
  char *memory = allocate(pool_bytes);
  static constexpr const char *splits[] = {"batch", "rows", "columns"};
  for (const Shape &shape : shapes) {
    nd_gemm_desc desc{};
    desc.batch = 1, desc.m = shape.m, desc.n = shape.n, desc.k = shape.k;
    desc.transpose_a = shape.transposeA, desc.transpose_b = shape.transposeB, desc.location = shape.name;
    desc.lda = shape.transposeA ? shape.m : shape.k, desc.ldb = shape.transposeB ? shape.k : shape.n,
    desc.ldc = shape.n;
    // The gradients of weights are f32.
    desc.dtype_ab = isShort ? ND_BF16 : ND_F32;
    desc.dtype_c = isShort && !shape.transposeA ? ND_BF16 : ND_F32;
    int64_t size = isShort ? 2 : 4, sizeC = desc.dtype_c == ND_BF16 ? 2 : 4;
    int64_t bytesA = desc.m * desc.k * size, bytesB = desc.k * desc.n * size, bytesC = desc.m * desc.n * sizeC;
    int64_t each = (bytesA + bytesB + bytesC + 4095) / 4096 * 4096, copies = std::max<int64_t>(1, pool_bytes / each);
    GemmSplit ruleSplit = chooseSplit(desc, threads);
    for (GemmSplit split : {GemmSplit::Rows, GemmSplit::Columns}) {
      GemmTable table;
      const nd_gemm_desc *descs[] = {&desc};
      if (!table.buildWith(descs, 1, threads, split, error)) {
        printf("%s: %s\n", shape.name, error.c_str());
        continue;
      }
      char *workspace = allocate((table.workspaceBytes() + 64) * threads + 4096);
      double best = 1e9, start = cpuMilliseconds();
      std::vector<double> spent(threads);
      for (int64_t run = 0; run < 3 || cpuMilliseconds() - start < 30; ++run) {
        char *base = memory + run % copies * each;
        pool.parallel([&](int thread, int) {
          double before = cpuMilliseconds();
          table.run(desc, thread, base, base + bytesA, nullptr, base + bytesA + bytesB,
                    workspace + thread * ((table.workspaceBytes() + 63) / 64 * 64));
          spent[thread] = cpuMilliseconds() - before;
        });
        best = std::min(best, *std::max_element(spent.begin(), spent.end()));
      }
      munmap(workspace, (table.workspaceBytes() + 64) * threads + 4096);
      bool chosen = split == ruleSplit;
      printf("%-10s %6ld x %6ld x %6ld  %-8s %8.3f ms %7.1f GFLOP/s%s\n", shape.name, desc.m, desc.n, desc.k,
             splits[static_cast<int>(split)], best, 2e-6 * static_cast<double>(desc.m * desc.n * desc.k) / best,
             chosen ? "  <- rule" : "");
      fflush(stdout);
    }
  }
  return 0;
}
