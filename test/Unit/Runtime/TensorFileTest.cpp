//===- TensorFileTest.cpp - Slices of tensors in files --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/TensorFile.h"
#include "nd/Runtime/Core/nd.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace nd::rt;

namespace {

/// One tensor [5, 6, 4] on a mesh a2, b3: dimension 0 over a (padded: 5 = 3 + 2), dimension 1 over b.
struct Slice {
  explicit Slice(int self) {
    memset(desc.dim_axes, -1, sizeof(desc.dim_axes));
    desc.kind = "weight", desc.name = "t", desc.dtype = ND_F32, desc.rank = 3;
    int64_t global[] = {5, 6, 4}, local[] = {3, 2, 4};
    std::copy(global, global + 3, desc.global_shape);
    std::copy(local, local + 3, desc.shape);
    desc.dim_axes[0][0] = 0, desc.dim_axes[1][0] = 1;
    program.num_axes = 2, program.axis_sizes[0] = 2, program.axis_sizes[1] = 3;
    program.num_tensors = 1, program.tensors = &desc;
    rank.program = &program, rank.rank = self, rank.ranks = 6, rank.status = &rank.ownStatus;
    rank.arena = reinterpret_cast<char *>(values);
    std::string error;
    EXPECT_TRUE(rank.pool.start(1, error));
  }
  ~Slice() { rank.arena = nullptr; } // not mapped

  nd_tensor_desc desc{};
  nd_program program{};
  float values[24];
  nd_rank rank;
};

class TensorFileTest : public testing::Test {
protected:
  void SetUp() override {
    path = testing::TempDir() + "nd-tensors.bin";
    FILE *file = fopen(path.c_str(), "wb");
    float header = -1;
    fwrite(&header, 4, 1, file);
    for (int i = 0; i < 120; ++i) {
      auto value = static_cast<float>(i);
      fwrite(&value, 4, 1, file);
    }
    fclose(file);
  }
  void TearDown() override { remove(path.c_str()); }
  nd_file_slice slice() const { return {0, ND_F32, 4, 0, 0, 0, path.c_str()}; }

  std::string path;
};

} // namespace

TEST_F(TensorFileTest, ARankReadsItsBoxAndZeroesItsPadding) {
  for (int self = 0; self < 6; ++self) {
    Slice s(self);
    std::fill_n(s.values, 24, NAN);
    nd_file_slice what = slice();
    ASSERT_EQ(nd_load(&s.rank, &what, 1), 0) << s.rank.error;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 2; ++j)
        for (int k = 0; k < 4; ++k) {
          int row = self / 3 * 3 + i, column = self % 3 * 2 + j;
          EXPECT_EQ(s.values[(i * 2 + j) * 4 + k], row < 5 ? static_cast<float>((row * 6 + column) * 4 + k) : 0.0f);
        }
  }
}

TEST_F(TensorFileTest, AllRanksTogetherWriteTheWhole) {
  std::string other = path + ".out";
  FILE *file = fopen(other.c_str(), "wb");
  fclose(file);
  for (int self = 0; self < 6; ++self) {
    Slice s(self);
    nd_file_slice from = slice(), to = from;
    to.path = other.c_str();
    ASSERT_EQ(nd_load(&s.rank, &from, 1), 0);
    ASSERT_EQ(nd_save(&s.rank, &to, 1), 0) << s.rank.error;
    ASSERT_EQ(nd_verify(&s.rank, &from, 1), 0) << s.rank.error;
    s.values[5] += 1;
    EXPECT_EQ(nd_verify(&s.rank, &from, 1), 1);
    EXPECT_NE(std::string(s.rank.error).find("weight 't' differs"), std::string::npos) << s.rank.error;
  }
  char a[484], b[484];
  FILE *first = fopen(path.c_str(), "rb"), *second = fopen(other.c_str(), "rb");
  ASSERT_EQ(fread(a, 1, 484, first), 484u);
  ASSERT_EQ(fread(b, 1, 484, second), 484u);
  EXPECT_EQ(memcmp(a + 4, b + 4, 480), 0);
  fclose(first);
  fclose(second);
  remove(other.c_str());
}

TEST(TensorBox, ARankOfPaddingOnlyHasNoRuns) {
  Slice s(5);
  s.desc.global_shape[0] = 3; // all on the first half of axis a
  LocalBoxes boxes(s.rank, s.desc);
  TensorBox box;
  EXPECT_TRUE(boxes.hasPadding());
  EXPECT_FALSE(boxes.next(box));
}

TEST_F(TensorFileTest, ATruncatedFileIsAnError) {
  ASSERT_EQ(truncate(path.c_str(), 400), 0);
  Slice s(5);
  nd_file_slice what = slice();
  EXPECT_EQ(nd_load(&s.rank, &what, 1), 1);
  EXPECT_NE(std::string(s.rank.error).find("ends too early"), std::string::npos) << s.rank.error;
}

TEST(Convert, FloatsKeepTheirValuesAndRoundToNearestEven) {
  auto convert = [](float value, int32_t type) {
    char narrow[2];
    float back;
    EXPECT_TRUE(convertElements(narrow, type, &value, ND_F32, 1));
    EXPECT_TRUE(convertElements(&back, ND_F32, narrow, type, 1));
    return back;
  };
  for (float value : {0.0f, -0.0f, 1.0f, -2.5f, 65504.0f, 6.103515625e-05f, 5.9604645e-08f, 3.0517578125e-05f})
    EXPECT_EQ(convert(value, ND_F16), value) << value;
  EXPECT_EQ(convert(1.0f + 1.0f / 2048, ND_F16), 1.0f);
  EXPECT_EQ(convert(1.0f + 3.0f / 2048, ND_F16), 1.0f + 2.0f / 1024);
  EXPECT_EQ(convert(65520.0f, ND_F16), INFINITY);
  EXPECT_EQ(convert(2e-8f, ND_F16), 0.0f);
  EXPECT_TRUE(std::isnan(convert(NAN, ND_F16)));
  for (float value : {0.0f, 1.0f, -3.140625f, 1e38f})
    EXPECT_NEAR(convert(value, ND_BF16), value, std::abs(value) / 256) << value;
  EXPECT_EQ(convert(1.0f + 1.0f / 256, ND_BF16), 1.0f);
  EXPECT_EQ(convert(1.0f + 3.0f / 256, ND_BF16), 1.0f + 4.0f / 256);
  EXPECT_TRUE(std::isnan(convert(NAN, ND_BF16)));
  int64_t integer = 0;
  float real = 0;
  EXPECT_FALSE(convertElements(&integer, ND_I64, &real, ND_F32, 1));
}
