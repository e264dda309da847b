//===- HostLibrary.cpp - Library state of a rank on the host --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "HostLibrary.h"
#include "nd/Runtime/Core/Rank.h"
#include <atomic>

using namespace nd::rt;

std::unique_ptr<Library> nd::rt::openLibrary(const nd_program &program, int threads, std::string &error) {
  auto library = std::make_unique<HostLibrary>();
  if (!library->gemms.build(program.gemms, program.num_gemms, threads, error))
    return nullptr;
  for (int32_t i = 0; i < program.num_attentions; ++i) {
    const nd_attention_desc &attention = *program.attentions[i];
    if (attention.dtype == ND_F32 || attention.dtype == ND_BF16)
      continue;
    error = std::string("attention of ") + dtypeName(attention.dtype) + " is not supported; f32 and bf16 are (" +
            attention.location + ")";
    return nullptr;
  }
  return library;
}

void nd_rt_gemm(nd_rank *rank, const nd_gemm_desc *desc, const void *a, const void *b, const void *bias, void *c) {
  if (!rank->proceed())
    return;
  ProfileScope scope(*rank, Profile::Product, desc->id, desc->location);
  const GemmTable &table = static_cast<HostLibrary &>(*rank->library).gemms;
  std::atomic<bool> good{true};
  auto part = [&](int thread, int) {
    if (!table.run(*desc, thread, a, b, bias, c, rank->workspace(thread)))
      good.store(false, std::memory_order_relaxed);
  };
  rank->pool.parallel(part);
  if (!good.load())
    rank->fail("oneDNN cannot run a product of [%ld, %ld] and [%ld, %ld] (%s)", desc->m, desc->k, desc->k, desc->n,
               desc->location);
}
