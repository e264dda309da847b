//===- AllocationTest.cpp - A step allocates nothing ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The allocator of this executable counts: allocations whose caller is our code (the executable's own text, where the
// runtime is linked in), and the live bytes of all. oneDNN makes small short-lived allocations of its own, so only the
// latter counts them.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Rank.h"
#include "nd/Runtime/Core/TokenFile.h"
#include "nd/Runtime/Core/nd.h"
#include <cstring>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <thread>

using namespace nd::rt;

extern "C" {
void *__libc_malloc(size_t bytes);
void __libc_free(void *memory);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
extern char __executable_start, etext;
}

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> ours{0}, liveBytes{0};

void *counted(void *memory, const void *caller) {
  liveBytes += memory ? static_cast<int64_t>(malloc_usable_size(memory)) : 0;
  if (counting && caller >= &__executable_start && caller < &etext)
    ++ours;
  return memory;
}

void release(void *memory) {
  liveBytes -= memory ? static_cast<int64_t>(malloc_usable_size(memory)) : 0;
  __libc_free(memory);
}

} // namespace

#define CALLER __builtin_return_address(0)
extern "C" {
void *malloc(size_t bytes) { return counted(__libc_malloc(bytes), CALLER); }
void free(void *memory) { release(memory); }
void *calloc(size_t count, size_t bytes) { return counted(__libc_calloc(count, bytes), CALLER); }
void *realloc(void *memory, size_t bytes) {
  liveBytes -= memory ? static_cast<int64_t>(malloc_usable_size(memory)) : 0;
  return counted(__libc_realloc(memory, bytes), CALLER);
}
void *memalign(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes), CALLER); }
void *aligned_alloc(size_t alignment, size_t bytes) { return counted(__libc_memalign(alignment, bytes), CALLER); }
int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  *memory = counted(__libc_memalign(alignment, bytes), CALLER);
  return *memory ? 0 : ENOMEM;
}
}
void *operator new(size_t bytes) { return counted(__libc_malloc(bytes), CALLER); }
void *operator new[](size_t bytes) { return counted(__libc_malloc(bytes), CALLER); }
void operator delete(void *memory) noexcept { release(memory); }
void operator delete[](void *memory) noexcept { release(memory); }
void operator delete(void *memory, size_t) noexcept { release(memory); }
void operator delete[](void *memory, size_t) noexcept { release(memory); }

namespace {

constexpr int64_t batch = 4, sequence = 64, heads = 2, dim = 32, width = heads * dim, rows = batch / 2 * sequence;
constexpr int64_t tile = rows * width * 4; ///< bytes of an activation

nd_tensor_desc ids;
nd_gemm_desc product;
nd_attention_desc attention;
nd_collective_desc collective;
const nd_launch_desc launch{0, 1, rows * width, 64, 256, "test"};

void kernel(void *const *args, int64_t lo, int64_t hi, void *) {
  auto *values = static_cast<float *>(args[0]);
  for (int64_t i = lo; i < hi; ++i)
    values[i] = values[i] * 0.5f + 1;
}
const nd_kernel kernels[] = {kernel};

void step(nd_rank *rank, char *arena, const nd_kernel *table) {
  auto at = [&](int slot) { return static_cast<void *>(arena + 4096 + slot * tile); };
  void *args[] = {at(0)};
  nd_rt_launch(rank, table, &launch, args);
  nd_rt_gemm(rank, &product, at(0), at(1), nullptr, at(2));
  nd_attention_args a{};
  a.q = at(0), a.k = at(1), a.v = at(2), a.o = at(3), a.o_in = at(3), a.d_o = at(4);
  a.lse = static_cast<float *>(at(8)), a.lse_in = a.lse, a.dq = at(5), a.dk = at(6), a.dv = at(7);
  nd_rt_attention(rank, &attention, &a);
  nd_rt_attention_grad(rank, &attention, &a);
  nd_rt_copy(rank, at(1), at(2), tile);
  nd_rt_fill_zero(rank, at(2), tile);
  void *operands[] = {at(5), at(5)};
  nd_rt_collective_start(rank, &collective, operands);
  nd_rt_collective_wait(rank, &collective);
}

} // namespace

TEST(Allocation, TheCounterCounts) {
  counting = true;
  ours = 0;
  int64_t before = liveBytes;
  std::vector<int> *values = new std::vector<int>(100);
  EXPECT_GE(ours, 2);
  EXPECT_GE(liveBytes - before, 400);
  delete values;
  EXPECT_EQ(liveBytes, before);
  counting = false;
}

TEST(Allocation, AStepAllocatesNothingAndTheHeapStaysAsItIs) {
  ids.kind = "input", ids.name = "input_ids", ids.dtype = ND_I64, ids.rank = 2;
  memset(ids.dim_axes, -1, sizeof(ids.dim_axes));
  ids.shape[0] = batch / 2, ids.global_shape[0] = batch, ids.shape[1] = ids.global_shape[1] = sequence;
  ids.dim_axes[0][0] = 0;
  product.batch = 1, product.m = rows, product.n = product.k = width;
  product.lda = product.ldb = product.ldc = width, product.location = "test";
  attention.batch = batch / 2, attention.heads = attention.kv_heads = heads;
  attention.queries = attention.keys = sequence, attention.dim = attention.value_dim = dim;
  attention.q = {sequence * width, dim, width};
  attention.k = attention.v = attention.o = attention.dq = attention.dk = attention.dv = attention.d_o = attention.q;
  attention.scale = 0.1, attention.causal = 1, attention.location = "test", attention.key_shards = 1;
  std::fill_n(attention.seq_axes, 4, -1), std::fill_n(attention.head_axes, 4, -1);
  const nd_collective_operand operand{1, 1, rows * width, {0, 0, 0}, {0, 0, 0}};
  collective.num_axes = 1, collective.num_operands = 1, collective.operands = &operand;
  collective.name = collective.location = collective.group = "test";
  const nd_gemm_desc *gemms[] = {&product};
  const nd_attention_desc *attentions[] = {&attention};
  const nd_collective_desc *collectives[] = {&collective};
  nd_program program{};
  program.abi_version = ND_ABI_VERSION, program.name = "test", program.num_axes = 1, program.axis_sizes[0] = 2;
  program.arena_bytes = 4096 + 9 * tile, program.thread_scratch_bytes = 256;
  program.num_tensors = 1, program.num_kernels = 1, program.num_gemms = 1, program.num_attentions = 1;
  program.num_collectives = 1, program.tensors = &ids, program.gemms = gemms, program.attentions = attentions;
  program.collectives = collectives, program.kernels[0] = program.kernels[1] = kernels, program.step = step;
  std::string path = testing::TempDir() + "nd-allocation.bin";
  FILE *file = fopen(path.c_str(), "wb");
  std::vector<uint16_t> tokens(1000, 3);
  fwrite(tokens.data(), 2, tokens.size(), file);
  fclose(file);
  int memory = memfd_create("nd", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, SharedMemoryLayout(2).controlBytes()), 0);

  std::atomic<int> arrived{0};
  auto meet = [&](int phase) { // a barrier that allocates nothing
    for (++arrived; arrived < 2 * phase;)
      usleep(100);
  };
  std::vector<int64_t> live(12);
  std::vector<std::thread> ranks;
  for (int self = 0; self < 2; ++self)
    ranks.emplace_back([&, self] {
      nd_options options{self, 2, 2, memory, 1, nullptr};
      char message[512] = "";
      nd_rank *rank = nd_open(&program, &options, message, sizeof(message));
      ASSERT_TRUE(rank) << message;
      TokenFile source;
      std::string error;
      ASSERT_TRUE(source.open(*rank, {path, 2, true, 0}, error)) << error;
      nd_step_result result;
      for (int i = 0; i < 12; ++i) {
        counting = i >= 2; // the first steps are oneDNN's to warm up
        ASSERT_TRUE(source.fill(*rank, i + 1, error));
        ASSERT_EQ(nd_step(rank, 0, &result), 0) << nd_error(rank);
        meet(2 * i + 1);
        if (self == 0)
          live[i] = liveBytes;
        meet(2 * i + 2);
      }
      counting = false;
      meet(25);
      nd_close(rank);
    });
  ours = 0;
  for (std::thread &rank : ranks)
    rank.join();
  EXPECT_EQ(ours, 0) << "allocations by our code during steps";
  for (int i = 3; i < 12; ++i)
    EXPECT_EQ(live[i], live[2]) << "after step " << i + 1;
  close(memory);
  remove(path.c_str());
}
