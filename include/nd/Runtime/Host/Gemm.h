//===- Gemm.h - Matrix products by oneDNN -----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_HOST_GEMM_H
#define ND_RUNTIME_HOST_GEMM_H

#include "nd/Runtime/Core/ABI.h"
#include "nd/Runtime/Core/ThreadPool.h"
#include <memory>
#include <string>
#include <vector>

namespace nd::rt {

/// What a thread computes of a product: a range of one of its dimensions.
enum class GemmSplit { Batch, Rows, Columns };

/// The rule that chooses: a function of the shape alone, so that runs and ranks agree bit for bit. Measured on the
/// shapes of GPT-2 124M by benchmark/gemm, as are the methods that oneDNN offers: its inner products are its sgemm,
/// which is within 3 % of matmul once the split is right, and has no bias.
GemmSplit chooseSplit(const nd_gemm_desc &desc, int threads);

/// One thread's slice of a product, with its primitive. Equal slices share one.
class GemmSlice {
public:
  virtual ~GemmSlice() = default;
  virtual int64_t workspaceBytes() const = 0;
  /// The pointers are those of the slice.
  virtual bool run(const void *a, const void *b, const void *bias, void *c, void *workspace) = 0;
};

/// The products of a program for a team of threads.
class GemmTable {
public:
  GemmTable();
  ~GemmTable();

  /// Makes every primitive. False, with a message, for a product that oneDNN does not serve.
  [[nodiscard]] bool build(const nd_gemm_desc *const *descs, int32_t count, int threads, std::string &error);

  /// As build, with one split for all: for measurements.
  [[nodiscard]] bool buildWith(const nd_gemm_desc *const *descs, int32_t count, int threads, GemmSplit split,
                               std::string &error);

  int64_t workspaceBytes() const { return workspace; }

  /// Computes thread `thread`'s part. False when oneDNN reports an error.
  bool run(const nd_gemm_desc &desc, int thread, const void *a, const void *b, const void *bias, void *c,
           void *workspace) const;

private:
  struct Part;
  struct Cache;
  bool add(const nd_gemm_desc &desc, GemmSplit split, std::string &error);

  int threads = 1;
  int64_t workspace = 0;
  std::vector<std::vector<Part>> parts; ///< [id][thread]
  std::unique_ptr<Cache> cache;
};

} // namespace nd::rt

#endif // ND_RUNTIME_HOST_GEMM_H
