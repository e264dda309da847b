//===- gemm_floor.cpp - What a step's products cost alone -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reads products from standard input, a line each: "M N K transposeA transposeB typeAB typeC count", types f32 or bf16.
// Runs each with oneDNN's own threads (OMP_NUM_THREADS) on buffers of its own and prints the sum of count * best time
// in seconds: the floor of a step.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <dnnl.hpp>
#include <vector>

using namespace dnnl;

static double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main() {
  engine cpu(engine::kind::cpu, 0);
  stream queue(cpu);
  double total = 0, operations = 0;
  long m, n, k, count;
  int transposeA, transposeB;
  char typeOperands[8], typeResult[8];
  auto typeOf = [](const char *name) {
    return strcmp(name, "bf16") == 0 ? memory::data_type::bf16 : memory::data_type::f32;
  };
  while (scanf("%ld %ld %ld %d %d %7s %7s %ld", &m, &n, &k, &transposeA, &transposeB, typeOperands, typeResult,
               &count) == 8) {
    memory::data_type operands = typeOf(typeOperands);
    memory::desc a({m, k}, operands, transposeA ? memory::dims{1, m} : memory::dims{k, 1});
    memory::desc b({k, n}, operands, transposeB ? memory::dims{1, k} : memory::dims{n, 1});
    memory::desc c({m, n}, typeOf(typeResult), memory::dims{n, 1});
    matmul product(matmul::primitive_desc(matmul::desc(a, b, c), cpu));
    memory left(a, cpu), right(b, cpu), result(c, cpu);
    memset(left.get_data_handle(), 0, a.get_size());
    memset(right.get_data_handle(), 0, b.get_size());
    memset(result.get_data_handle(), 0, c.get_size());
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      double start = seconds();
      product.execute(queue, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}});
      queue.wait();
      best = std::min(best, seconds() - start);
    }
    total += best * static_cast<double>(count);
    operations +=
        2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(count);
  }
  printf("%.6f %.3e\n", total, operations);
}
