//===- GemmTest.cpp - Products against a definition in double -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Host/Gemm.h"
#include "../../../lib/Runtime/Host/ConvertedGemm.h"
#include "../../../lib/Runtime/Host/GemmSlice.h"
#include "nd/Runtime/Core/BFloat.h"
#include "nd/Runtime/Core/ThreadPool.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace nd::rt;

namespace {

std::vector<float> randomVector(int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(engine);
  return values;
}

struct Case {
  int64_t batch, m, n, k;
  bool transposeA, transposeB, accumulate, bias;
  int64_t pad; ///< how much longer rows are than they need be
  bool broadcastB;
};

nd_gemm_desc describe(const Case &test) {
  nd_gemm_desc desc{};
  desc.transpose_a = test.transposeA;
  desc.transpose_b = test.transposeB;
  desc.accumulate = test.accumulate;
  desc.has_bias = test.bias;
  desc.batch = test.batch;
  desc.m = test.m;
  desc.n = test.n;
  desc.k = test.k;
  desc.lda = (test.transposeA ? test.m : test.k) + test.pad;
  desc.ldb = (test.transposeB ? test.k : test.n) + test.pad;
  desc.ldc = test.n + test.pad;
  desc.batch_stride_a = desc.lda * (test.transposeA ? test.k : test.m) + test.pad;
  desc.batch_stride_b = test.broadcastB ? 0 : desc.ldb * (test.transposeB ? test.n : test.k) + test.pad;
  desc.batch_stride_c = desc.ldc * test.m + test.pad;
  desc.location = "test";
  return desc;
}

/// The largest error relative to the largest element, and whether anything outside the result was touched.
void check(const Case &test, int threads, GemmTable &table, const nd_gemm_desc &desc) {
  auto a = randomVector(desc.batch * (desc.batch_stride_a + 64) + desc.lda * (test.m + test.k), 1);
  auto b = randomVector(desc.batch * (desc.batch_stride_b + 64) + desc.ldb * (test.n + test.k), 2);
  auto bias = randomVector(test.n, 3);
  auto c = randomVector(desc.batch * desc.batch_stride_c + 64, 4), before = c;
  ThreadPool pool;
  std::string error;
  ASSERT_TRUE(pool.start(threads, error)) << error;
  std::vector<std::vector<char>> workspace(threads, std::vector<char>(table.workspaceBytes() + 64));
  pool.parallel([&](int thread, int) {
    auto aligned = (reinterpret_cast<uintptr_t>(workspace[thread].data()) + 63) / 64 * 64;
    EXPECT_TRUE(table.run(desc, thread, a.data(), b.data(), test.bias ? bias.data() : nullptr, c.data(),
                          reinterpret_cast<void *>(aligned)));
  });
  double largest = 0, worst = 0;
  for (int64_t g = 0; g < desc.batch; ++g)
    for (int64_t i = 0; i < test.m; ++i)
      for (int64_t j = 0; j < test.n; ++j) {
        int64_t at = g * desc.batch_stride_c + i * desc.ldc + j;
        double sum = (test.accumulate ? before[at] : 0.0) + (test.bias ? bias[j] : 0.0);
        for (int64_t p = 0; p < test.k; ++p)
          sum +=
              static_cast<double>(
                  a[g * desc.batch_stride_a + (test.transposeA ? p * desc.lda + i : i * desc.lda + p)]) *
              static_cast<double>(b[g * desc.batch_stride_b + (test.transposeB ? j * desc.ldb + p : p * desc.ldb + j)]);
        largest = std::max(largest, std::abs(sum));
        worst = std::max(worst, std::abs(sum - static_cast<double>(c[at])));
        before[at] = c[at];
      }
  EXPECT_LT(worst, 1e-6 * largest + 1e-7);
  EXPECT_EQ(before, c) << "an element outside the result was written";
}

std::vector<uint16_t> rounded(std::vector<float> &values) {
  std::vector<uint16_t> bits;
  for (float &value : values) {
    bits.push_back(floatToBFloat(value));
    value = bfloatToFloat(bits.back());
  }
  return bits;
}

/// A product of bf16 by `slice`, into f32 or bf16; the largest error relative to the largest element.
void checkShort(const Case &test, GemmSlice &slice, const nd_gemm_desc &desc) {
  auto a = randomVector(desc.batch * (desc.batch_stride_a + 64) + desc.lda * (test.m + test.k), 1);
  auto b = randomVector(desc.batch * (desc.batch_stride_b + 64) + desc.ldb * (test.n + test.k), 2);
  auto bias = randomVector(test.n, 3), c = randomVector(desc.batch * desc.batch_stride_c + 64, 4);
  std::vector<uint16_t> shortA = rounded(a), shortB = rounded(b), shortC;
  if (desc.dtype_c == ND_BF16)
    shortC = rounded(c);
  auto before = c;
  std::vector<char> workspace(slice.workspaceBytes() + 64);
  auto aligned = (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64;
  void *result = desc.dtype_c == ND_BF16 ? static_cast<void *>(shortC.data()) : c.data();
  ASSERT_TRUE(slice.run(shortA.data(), shortB.data(), test.bias ? bias.data() : nullptr, result,
                        reinterpret_cast<void *>(aligned)));
  for (size_t i = 0; i < shortC.size(); ++i)
    c[i] = bfloatToFloat(shortC[i]);
  double largest = 0, worst = 0;
  for (int64_t g = 0; g < desc.batch; ++g)
    for (int64_t i = 0; i < test.m; ++i)
      for (int64_t j = 0; j < test.n; ++j) {
        int64_t at = g * desc.batch_stride_c + i * desc.ldc + j;
        double sum = (test.accumulate ? before[at] : 0.0) + (test.bias ? bias[j] : 0.0);
        for (int64_t p = 0; p < test.k; ++p)
          sum +=
              static_cast<double>(
                  a[g * desc.batch_stride_a + (test.transposeA ? p * desc.lda + i : i * desc.lda + p)]) *
              static_cast<double>(b[g * desc.batch_stride_b + (test.transposeB ? j * desc.ldb + p : p * desc.ldb + j)]);
        largest = std::max(largest, std::abs(sum));
        worst = std::max(worst, std::abs(sum - static_cast<double>(c[at])));
        before[at] = c[at];
      }
  EXPECT_LT(worst, (desc.dtype_c == ND_BF16 ? 1.0 / 256 : 2e-6) * largest + 1e-7);
  EXPECT_EQ(before, c) << "an element outside the result was written";
}

const Case cases[] = {
    {1, 64, 48, 32, false, false, false, false, 0, false}, {1, 33, 17, 5, false, true, false, true, 3, false},
    {1, 7, 131, 29, true, false, true, false, 0, false},   {1, 1, 1, 1, false, false, false, true, 0, false},
    {1, 1, 97, 61, false, false, true, true, 1, false},    {1, 101, 1, 13, true, true, false, false, 2, false},
    {3, 5, 7, 11, false, false, false, false, 0, false},   {2, 19, 23, 8, false, true, true, true, 4, false},
    {5, 4, 6, 3, true, false, false, true, 0, true},       {1, 200, 300, 100, true, false, false, false, 0, false},
};

} // namespace

TEST(Gemm, EqualsItsDefinition) {
  for (int threads : {1, 2, 3})
    for (const Case &test : cases) {
      nd_gemm_desc desc = describe(test);
      const nd_gemm_desc *table[] = {&desc};
      SCOPED_TRACE(testing::Message() << threads << " threads, [" << test.m << ", " << test.k << "] x " << test.n);
      GemmTable gemms;
      std::string error;
      ASSERT_TRUE(gemms.build(table, 1, threads, error)) << error;
      check(test, threads, gemms, desc);
    }
}

TEST(Gemm, EverySplit) {
  for (GemmSplit split : {GemmSplit::Batch, GemmSplit::Rows, GemmSplit::Columns})
    for (const Case &test : cases) {
      nd_gemm_desc desc = describe(test);
      const nd_gemm_desc *table[] = {&desc};
      SCOPED_TRACE(testing::Message() << static_cast<int>(split) << " [" << test.m << ", " << test.k << "] x "
                                      << test.n);
      GemmTable gemms;
      std::string error;
      ASSERT_TRUE(gemms.buildWith(table, 1, 2, split, error)) << error;
      check(test, 2, gemms, desc);
    }
}

/// By oneDNN where the processor has products of bf16, and in f32 as on one that has not.
TEST(Gemm, ShortFloats) {
  std::vector<Case> all(std::begin(cases), std::end(cases));
  all.push_back({1, 257, 513, 1025, false, true, true, true, 1, false}); // several tiles
  for (int32_t result : {ND_F32, ND_BF16})
    for (const Case &test : all) {
      nd_gemm_desc desc = describe(test);
      desc.dtype_ab = ND_BF16;
      desc.dtype_c = result;
      SCOPED_TRACE(testing::Message() << "into type " << result << ", [" << test.m << ", " << test.k << "] x "
                                      << test.n);
      std::string error;
      std::shared_ptr<GemmSlice> slice = makeGemmSlice(desc, error);
      ASSERT_TRUE(slice) << error;
      checkShort(test, *slice, desc);
      checkShort(test, *makeConvertedSlice(desc), desc);
    }
}

TEST(Gemm, RefusesATypeItHasNoKernelFor) {
  nd_gemm_desc desc = describe(cases[0]);
  desc.dtype_ab = ND_I8;
  const nd_gemm_desc *table[] = {&desc};
  GemmTable gemms;
  std::string error;
  EXPECT_FALSE(gemms.build(table, 1, 1, error));
  EXPECT_NE(error.find("i8"), std::string::npos) << error;
}
