//===- ConvertedGemm.cpp - Products of bf16 in f32 ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ConvertedGemm.h"
#include "nd/Runtime/Core/BFloat.h"
#include "nd/Runtime/Core/Dtype.h"
#include <algorithm>
#include <dnnl.h>

using namespace nd::rt;

namespace {

/// Sizes of a tile: the three tiles together stay in the second or third cache level, and a tile is converted for
/// hundreds of uses.
constexpr int64_t tileM = 256, tileN = 512, tileK = 1024;

class ConvertedSlice : public GemmSlice {
public:
  explicit ConvertedSlice(const nd_gemm_desc &desc)
      : d(desc), m(std::min(tileM, d.m)), n(std::min(tileN, d.n)), k(std::min(tileK, d.k)) {}

  int64_t workspaceBytes() const override { return (m * k + k * n + m * n) * 4; }

  bool run(const void *a, const void *b, const void *bias, void *c, void *workspace) override {
    auto *tileA = static_cast<float *>(workspace), *tileB = tileA + m * k, *tileC = tileB + k * n;
    for (int64_t g = 0; g < d.batch; ++g)
      for (int64_t j = 0; j < d.n; j += n)
        for (int64_t i = 0; i < d.m; i += m)
          if (!runTile(static_cast<const uint16_t *>(a) + g * d.batch_stride_a,
                       static_cast<const uint16_t *>(b) + g * d.batch_stride_b, static_cast<const float *>(bias),
                       static_cast<char *>(c) + g * d.batch_stride_c * bytesC(), i, j, tileA, tileB, tileC))
            return false;
    return true;
  }

private:
  int64_t bytesC() const { return dtypeBytes(d.dtype_c); }

  /// `rows` of `count` elements, as they are stored.
  static void convert(const uint16_t *from, int64_t stride, int64_t rows, int64_t count, float *to) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < count; ++i)
        to[row * count + i] = bfloatToFloat(from[row * stride + i]);
  }

  bool runTile(const uint16_t *a, const uint16_t *b, const float *bias, char *c, int64_t i, int64_t j, float *tileA,
               float *tileB, float *tileC) const {
    int64_t rows = std::min(m, d.m - i), columns = std::min(n, d.n - j);
    start(bias, c, i, j, rows, columns, tileC);
    for (int64_t p = 0; p < d.k; p += k) {
      int64_t depth = std::min(k, d.k - p);
      if (d.transpose_a)
        convert(a + p * d.lda + i, d.lda, depth, rows, tileA);
      else
        convert(a + i * d.lda + p, d.lda, rows, depth, tileA);
      if (d.transpose_b)
        convert(b + j * d.ldb + p, d.ldb, columns, depth, tileB);
      else
        convert(b + p * d.ldb + j, d.ldb, depth, columns, tileB);
      if (dnnl_sgemm(d.transpose_a ? 'T' : 'N', d.transpose_b ? 'T' : 'N', rows, columns, depth, 1.0f, tileA,
                     d.transpose_a ? rows : depth, tileB, d.transpose_b ? depth : columns, 1.0f, tileC,
                     columns) != dnnl_success)
        return false;
    }
    for (int64_t row = 0; row < rows; ++row) {
      char *to = c + ((i + row) * d.ldc + j) * bytesC();
      const float *from = tileC + row * columns;
      if (d.dtype_c == ND_F32)
        std::copy_n(from, columns, reinterpret_cast<float *>(to));
      else
        std::transform(from, from + columns, reinterpret_cast<uint16_t *>(to), floatToBFloat);
    }
    return true;
  }

  /// What the product is added to: the bias, and the result itself when it accumulates.
  void start(const float *bias, const char *c, int64_t i, int64_t j, int64_t rows, int64_t columns,
             float *tileC) const {
    for (int64_t row = 0; row < rows; ++row) {
      float *to = tileC + row * columns;
      if (d.has_bias)
        std::copy_n(bias + j, columns, to);
      else
        std::fill_n(to, columns, 0.0f);
      if (!d.accumulate)
        continue;
      const char *from = c + ((i + row) * d.ldc + j) * bytesC();
      for (int64_t column = 0; column < columns; ++column)
        to[column] += d.dtype_c == ND_F32 ? reinterpret_cast<const float *>(from)[column]
                                          : bfloatToFloat(reinterpret_cast<const uint16_t *>(from)[column]);
    }
  }

  const nd_gemm_desc d;
  int64_t m, n, k; ///< of a whole tile
};

} // namespace

std::shared_ptr<GemmSlice> nd::rt::makeConvertedSlice(const nd_gemm_desc &desc) {
  return std::make_shared<ConvertedSlice>(desc);
}
