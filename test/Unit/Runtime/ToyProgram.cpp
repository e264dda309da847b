//===- ToyProgram.cpp - A rank program written by hand --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// y = x w; the gradient of w is x^T y, summed over dp; w -= lr * gradient. `s` is a parameter sharded on its last
// dimension that the step doubles. The loss is 10 / step, and `checksum` the sum of all ranks' labels. TOY_RANKS is the
// degree of dp. TOY_FAIL=rank:step:mode makes a rank fail in a step: exit, kill, stop, hang. `nd-toy-rank --manifest`
// prints the manifest.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Rank.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <unistd.h>

namespace {

enum Tensor { X, InputIds, Labels, Positions, W, S, Lr, Loss, GradNorm, Tokens, Checksum, GradientW, Y, NumTensors };
constexpr int64_t rows = 4, sequence = 3, width = 5, columns = 7, vocabulary = 50;
int64_t sharded = 6; ///< columns of s; TOY_COLUMNS

nd_tensor_desc tensors[NumTensors];
int ranks = 1;
int64_t steps = 0;

void define(Tensor tensor, const char *kind, const char *name, int32_t dtype, int64_t dim0, int64_t dim1,
            int shardedDim) {
  static int64_t offset = 0;
  nd_tensor_desc &desc = tensors[tensor];
  desc = {};
  desc.kind = kind;
  desc.name = name;
  desc.dtype = dtype;
  desc.rank = dim0 == 0 ? 0 : 2;
  int64_t dims[] = {dim0, dim1}, count = 1;
  for (int dim = 0; dim < ND_MAX_RANK; ++dim)
    memset(desc.dim_axes[dim], -1, ND_MAX_DIM_AXES);
  for (int dim = 0; dim < desc.rank; ++dim) {
    desc.global_shape[dim] = dims[dim];
    desc.shape[dim] = dim == shardedDim ? dims[dim] / ranks : dims[dim];
    if (dim == shardedDim)
      desc.dim_axes[dim][0] = 0;
    count *= desc.shape[dim];
  }
  desc.offset = offset;
  offset += (count * (dtype == ND_I64 ? 8 : 4) + 63) / 64 * 64;
}

void updateKernel(void *const *args, int64_t lo, int64_t hi, void *) {
  auto *w = static_cast<float *>(args[0]);
  const auto *gradient = static_cast<const float *>(args[1]), *lr = static_cast<const float *>(args[2]);
  for (int64_t i = lo; i < hi; ++i)
    w[i] -= *lr * gradient[i];
}

const nd_kernel kernels[] = {updateKernel};
nd_gemm_desc forward, backward;
nd_collective_desc reduceGradient, reduceChecksum, reduceScalar;

void failOnDemand(const nd_rank &self) {
  int rank = 0, step = 0;
  char mode[16] = "";
  const char *variable = getenv("TOY_FAIL");
  if (!variable || sscanf(variable, "%d:%d:%15s", &rank, &step, mode) != 3 || rank != self.rank || step != steps)
    return;
  fprintf(stderr, "about to %s\n", mode);
  if (!strcmp(mode, "exit"))
    exit(7);
  if (!strcmp(mode, "kill"))
    raise(SIGKILL);
  if (!strcmp(mode, "stop"))
    raise(SIGSTOP);
  while (!strcmp(mode, "hang"))
    pause();
}

void step(nd_rank *rank, char *arena, const nd_kernel *table) {
  auto at = [&](Tensor tensor) { return static_cast<void *>(arena + tensors[tensor].offset); };
  auto *s = static_cast<float *>(at(S));
  ++steps;
  failOnDemand(*rank);
  nd_rt_gemm(rank, &forward, at(X), at(W), nullptr, at(Y));
  nd_rt_phase(rank, ND_PHASE_BACKWARD);
  nd_rt_gemm(rank, &backward, at(X), at(Y), nullptr, at(GradientW));
  nd_rt_phase(rank, ND_PHASE_REDUCE);
  auto start = [&](const nd_collective_desc &desc, void *tensor) {
    void *operands[] = {tensor, tensor};
    nd_rt_collective_start(rank, &desc, operands);
  };
  start(reduceGradient, at(GradientW));
  const auto *labels = static_cast<const int64_t *>(at(Labels));
  auto *checksum = static_cast<int64_t *>(at(Checksum));
  *checksum = 0;
  for (int64_t i = 0; i < rows / ranks * sequence; ++i)
    *checksum += labels[i];
  start(reduceChecksum, checksum);
  *static_cast<float *>(at(Tokens)) = rows / static_cast<float>(ranks) * sequence;
  start(reduceScalar, at(Tokens));
  nd_rt_collective_wait(rank, &reduceGradient);
  nd_rt_collective_wait(rank, &reduceChecksum);
  nd_rt_collective_wait(rank, &reduceScalar);
  nd_rt_phase(rank, ND_PHASE_UPDATE);
  static const nd_launch_desc update{0, 3, width * columns, 16, 0, "toy"};
  void *args[] = {at(W), at(GradientW), at(Lr)};
  nd_rt_launch(rank, table, &update, args);
  for (int64_t i = 0; i < width * sharded / ranks; ++i)
    s[i] *= 2;
  *static_cast<float *>(at(Loss)) = 10.0f / static_cast<float>(steps);
  *static_cast<float *>(at(GradNorm)) = 0.5f;
}

void printManifest() {
  static constexpr const char *types[] = {"f32", "bf16", "f16", "f64", "i64"};
  printf("{\"format\": \"nd.program\", \"version\": 1, \"abi\": %d, \"target\": \"host\", \"name\": \"toy\",\n",
         ND_ABI_VERSION);
  printf(" \"mesh\": {\"axes\": [\"dp\"], \"sizes\": [%d]}, \"ranks\": %d,\n", ranks, ranks);
  printf(" \"programs\": [{\"file\": \"rank0\"}], \"rank_program\": [0");
  for (int rank = 1; rank < ranks; ++rank)
    printf(", 0");
  printf("],\n \"tensors\": [");
  for (int i = 0; i < NumTensors; ++i) {
    const nd_tensor_desc &desc = tensors[i];
    printf("%s\n  {\"kind\": \"%s\", \"name\": \"%s\", \"dtype\": \"%s\", \"offset\": %ld, ", i ? "," : "", desc.kind,
           desc.name, types[desc.dtype], desc.offset);
    auto printList = [&](const char *key, auto print) {
      printf("\"%s\": [", key);
      for (int dim = 0; dim < desc.rank; ++dim) {
        printf("%s", dim ? ", " : "");
        print(dim);
      }
      printf("]");
    };
    printList("shape", [&](int dim) { printf("%ld", desc.shape[dim]); });
    printf(", ");
    printList("global_shape", [&](int dim) { printf("%ld", desc.global_shape[dim]); });
    printf(", ");
    printList("dim_axes", [&](int dim) { printf(desc.dim_axes[dim][0] < 0 ? "[]" : "[\"dp\"]"); });
    printf("%s", desc.bound ? ", \"bound\": 50" : "");
    if (!strcmp(desc.kind, "weight"))
      printf(", \"storage\": {\"file\": \"model.safetensors\", \"key\": \"%s\"}", desc.name);
    printf("}");
  }
  printf("],\n \"collectives\": [{\"kind\": \"all_reduce\", \"group\": \"dp\", \"name\": \"gradient of w\", "
         "\"location\": \"toy.py:1\"},\n"
         "  {\"kind\": \"all_reduce\", \"group\": \"dp\", \"name\": \"checksum\", \"location\": \"toy.py:2\"},\n"
         "  {\"kind\": \"all_reduce\", \"group\": \"dp\", \"scalar\": true, \"name\": \"tokens\", \"location\": "
         "\"toy.py:3\"}],\n"
         " \"model\": {\"name\": \"toy\", \"weights_dir\": \"weights\", \"files\": [\"config.json\"], \"batch\": %ld, "
         "\"seq\": %ld},\n"
         " \"step\": {\"lr\": 0.5}, \"memory\": {}}\n",
         rows, sequence);
}

} // namespace

int main(int argc, char **argv) {
  if (const char *variable = getenv("TOY_RANKS"))
    ranks = atoi(variable);
  if (const char *variable = getenv("TOY_COLUMNS"))
    sharded = atol(variable);
  define(X, "input", "x", ND_F32, rows, width, 0);
  define(InputIds, "input", "input_ids", ND_I64, rows, sequence, 0);
  define(Labels, "input", "labels", ND_I64, rows, sequence, 0);
  define(Positions, "input", "position_ids", ND_I64, rows, sequence, 0);
  define(W, "weight", "w", ND_F32, width, columns, -1);
  define(S, "weight", "s", ND_F32, width, sharded, 1);
  define(Lr, "scalar", "lr", ND_F32, 0, 0, -1);
  define(Loss, "metric", "loss", ND_F32, 0, 0, -1);
  define(GradNorm, "metric", "grad_norm", ND_F32, 0, 0, -1);
  define(Tokens, "metric", "tokens", ND_F32, 0, 0, -1);
  define(Checksum, "metric", "checksum", ND_I64, 0, 0, -1);
  define(GradientW, "gradient", "w", ND_F32, width, columns, -1);
  define(Y, "output", "y", ND_F32, rows, columns, 0);
  // A step on tokens has no x.
  bool tokens = getenv("TOY_TOKENS") != nullptr;
  if (tokens)
    tensors[X].kind = "weight";
  tensors[InputIds].bound = tensors[Labels].bound = vocabulary;
  if (argc == 2 && !strcmp(argv[1], "--manifest")) {
    printManifest();
    return 0;
  }
  forward.m = rows / ranks, forward.n = columns, forward.k = width;
  forward.batch = 1, forward.lda = width, forward.ldb = forward.ldc = columns, forward.location = "toy";
  backward = forward;
  backward.id = 1, backward.transpose_a = 1;
  backward.m = width, backward.k = rows / ranks;
  static const nd_collective_operand weights{1, 1, width * columns, {0, 0, 0}, {0, 0, 0}};
  static const nd_collective_operand number{1, 1, 1, {0, 0, 0}, {0, 0, 0}};
  reduceGradient = {0,        ND_ALL_REDUCE, ND_F32, ND_SUM,          0,         1, {0}, 1,
                    &weights, nullptr,       "dp",   "gradient of w", "toy.py:1"};
  reduceChecksum = {1, ND_ALL_REDUCE, ND_I64, ND_SUM, 0, 1, {0}, 1, &number, nullptr, "dp", "checksum", "toy.py:2"};
  reduceScalar = {2, ND_ALL_REDUCE, ND_F32, ND_SUM, 1, 1, {0}, 1, &number, nullptr, "dp", "tokens", "toy.py:3"};
  static const nd_gemm_desc *const gemms[] = {&forward, &backward};
  static const nd_collective_desc *const collectives[] = {&reduceGradient, &reduceChecksum, &reduceScalar};
  static nd_program program{};
  program.abi_version = ND_ABI_VERSION;
  program.name = "toy";
  program.num_axes = 1;
  program.axis_sizes[0] = ranks;
  program.axis_names[0] = "dp";
  program.arena_bytes = 8192 + width * sharded * 4;
  program.num_tensors = NumTensors;
  program.num_kernels = static_cast<int32_t>(std::size(kernels));
  program.num_gemms = 2;
  program.num_collectives = 3;
  program.tensors = tensors;
  program.kernels[0] = program.kernels[1] = kernels;
  program.gemms = gemms;
  program.collectives = collectives;
  program.schedule = {ND_CONSTANT, 0.5, 0, 0, 0, 0.9, 0.999};
  program.step = step;
  return nd_rank_main(argc, argv, &program);
}
