//===- Gemm.cpp - Matrix products by oneDNN -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Host/Gemm.h"
#include "GemmSlice.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

using namespace nd::rt;

/// A thread's slice and where its operands start, in bytes.
struct GemmTable::Part {
  std::shared_ptr<GemmSlice> slice; ///< null: nothing to do
  int64_t offsetA = 0, offsetB = 0, offsetBias = 0, offsetC = 0;
};

namespace {

using Key = std::tuple<int, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, std::array<int64_t, 10>>;

Key keyOf(const nd_gemm_desc &desc, int thread) {
  return {thread,
          desc.dtype_ab,
          desc.dtype_c,
          desc.transpose_a,
          desc.transpose_b,
          desc.accumulate,
          desc.has_bias,
          {desc.batch, desc.m, desc.n, desc.k, desc.lda, desc.ldb, desc.ldc, desc.batch_stride_a, desc.batch_stride_b,
           desc.batch_stride_c}};
}

/// Row and column slices are multiples of this, which every register tile of oneDNN's kernels divides or is near.
constexpr int64_t sliceGrain = 16;

} // namespace

struct GemmTable::Cache {
  std::map<Key, std::shared_ptr<GemmSlice>> slices;
};

GemmTable::GemmTable() : cache(std::make_unique<Cache>()) {}
GemmTable::~GemmTable() = default;

GemmSplit nd::rt::chooseSplit(const nd_gemm_desc &desc, int threads) {
  if (desc.batch >= threads && desc.batch > 1)
    return GemmSplit::Batch;
  // Slices of rows read all of b, slices of columns all of a: cut the longer dimension. A transposed b is an exception
  // unless it is far larger than a: its kernel copies it, and gains from wide slices.
  constexpr int64_t muchLonger = 4;
  if (desc.m >= desc.n || (desc.transpose_b && desc.n < muchLonger * desc.m))
    return GemmSplit::Rows;
  return GemmSplit::Columns;
}

bool GemmTable::add(const nd_gemm_desc &desc, GemmSplit split, std::string &error) {
  std::vector<Part> &team = parts[desc.id];
  team.resize(threads);
  int64_t bytesAB = dtypeBytes(desc.dtype_ab), bytesC = dtypeBytes(desc.dtype_c);
  for (int thread = 0; thread < threads; ++thread) {
    nd_gemm_desc slice = desc;
    Part &part = team[thread];
    if (split == GemmSplit::Batch) {
      Range range = splitRange(desc.batch, 1, thread, threads);
      slice.batch = range.hi - range.lo;
      part.offsetA = range.lo * desc.batch_stride_a * bytesAB;
      part.offsetB = range.lo * desc.batch_stride_b * bytesAB;
      part.offsetC = range.lo * desc.batch_stride_c * bytesC;
    } else if (split == GemmSplit::Rows) {
      Range range = splitRange(desc.m, sliceGrain, thread, threads);
      slice.m = range.hi - range.lo;
      part.offsetA = range.lo * (desc.transpose_a ? 1 : desc.lda) * bytesAB;
      part.offsetC = range.lo * desc.ldc * bytesC;
    } else {
      Range range = splitRange(desc.n, sliceGrain, thread, threads);
      slice.n = range.hi - range.lo;
      part.offsetB = range.lo * (desc.transpose_b ? desc.ldb : 1) * bytesAB;
      part.offsetBias = range.lo * 4;
      part.offsetC = range.lo * bytesC;
    }
    if (slice.batch == 0 || slice.m == 0 || slice.n == 0)
      continue;
    std::shared_ptr<GemmSlice> &shared = cache->slices[keyOf(slice, thread)];
    if (!shared)
      shared = makeGemmSlice(slice, error);
    if (!shared) {
      error += std::string(" (product of [") + std::to_string(desc.m) + ", " + std::to_string(desc.k) + "] and [" +
               std::to_string(desc.k) + ", " + std::to_string(desc.n) + "], " + desc.location + ")";
      return false;
    }
    part.slice = shared;
    workspace = std::max(workspace, shared->workspaceBytes());
  }
  return true;
}

bool GemmTable::build(const nd_gemm_desc *const *descs, int32_t count, int newThreads, std::string &error) {
  threads = newThreads;
  parts.resize(count);
  for (int32_t i = 0; i < count; ++i) {
    GemmSplit split = chooseSplit(*descs[i], threads);
    if (!add(*descs[i], split, error))
      return false;
  }
  return true;
}

bool GemmTable::buildWith(const nd_gemm_desc *const *descs, int32_t count, int newThreads, GemmSplit split,
                          std::string &error) {
  threads = newThreads;
  parts.resize(count);
  for (int32_t i = 0; i < count; ++i)
    if (!add(*descs[i], split, error))
      return false;
  return true;
}

bool GemmTable::run(const nd_gemm_desc &desc, int thread, const void *a, const void *b, const void *bias, void *c,
                    void *workspaceMemory) const {
  const Part &part = parts[desc.id][thread];
  if (!part.slice)
    return true;
  const char *biasStart = static_cast<const char *>(bias);
  return part.slice->run(static_cast<const char *>(a) + part.offsetA, static_cast<const char *>(b) + part.offsetB,
                         desc.has_bias ? biasStart + part.offsetBias : nullptr, static_cast<char *>(c) + part.offsetC,
                         workspaceMemory);
}
