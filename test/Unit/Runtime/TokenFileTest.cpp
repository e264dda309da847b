//===- TokenFileTest.cpp - Samples of a token file ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/TokenFile.h"
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

using namespace nd::rt;

namespace {

constexpr int64_t batch = 4, sequence = 5;

/// A program with nothing but its inputs, on a mesh of `ranks` replicas; its arena is a vector.
struct Inputs {
  explicit Inputs(int ranks, int self, int64_t bound = 1000) {
    const char *names[] = {"input_ids", "labels", "position_ids"};
    for (int i = 0; i < 3; ++i) {
      nd_tensor_desc &desc = tensors[i];
      memset(desc.dim_axes, -1, sizeof(desc.dim_axes));
      desc.kind = "input", desc.name = names[i], desc.dtype = ND_I64, desc.rank = 2, desc.bound = bound;
      desc.shape[0] = batch / ranks, desc.shape[1] = sequence;
      desc.global_shape[0] = batch, desc.global_shape[1] = sequence;
      desc.dim_axes[0][0] = 0;
      desc.offset = i * batch * sequence * 8;
    }
    program.num_axes = 1, program.axis_sizes[0] = ranks, program.num_tensors = 3, program.tensors = tensors;
    rank.program = &program, rank.rank = self, rank.ranks = ranks;
    rank.arena = reinterpret_cast<char *>(values);
  }
  ~Inputs() { rank.arena = nullptr; } // not mapped

  int64_t get(int input, int64_t row, int64_t column) const { return values[input][row * sequence + column]; }

  nd_tensor_desc tensors[3]{};
  nd_program program{};
  int64_t values[3][batch * sequence];
  nd_rank rank;
};

/// Tokens 0, 1, 2, ... in a file.
class TokenFileTest : public testing::Test {
protected:
  void write(int64_t count, int bytes) {
    source.path = testing::TempDir() + "nd-tokens.bin";
    source.tokenBytes = bytes;
    source.shuffle = false;
    FILE *file = fopen(source.path.c_str(), "wb");
    for (uint32_t i = 0; i < count; ++i)
      fwrite(&i, bytes, 1, file); // little endian
    fclose(file);
  }
  void TearDown() override { remove(source.path.c_str()); }

  TokenSource source;
  std::string error;
};

} // namespace

TEST_F(TokenFileTest, SamplesOverlapInOneTokenAndLabelsAreShiftedOnce) {
  for (int bytes : {2, 4}) {
    write(101, bytes); // 20 samples: the last token is a label only
    Inputs inputs(1, 0);
    TokenFile file;
    ASSERT_TRUE(file.open(inputs.rank, source, error)) << error;
    for (int64_t step : {1, 5, 6}) {
      ASSERT_TRUE(file.fill(inputs.rank, step, error)) << error;
      for (int64_t row = 0; row < batch; ++row)
        for (int64_t column = 0; column < sequence; ++column) {
          int64_t first = ((step - 1) * batch + row) % 20 * sequence + column;
          EXPECT_EQ(inputs.get(0, row, column), first);
          EXPECT_EQ(inputs.get(1, row, column), first + 1);
          EXPECT_EQ(inputs.get(2, row, column), column);
        }
    }
  }
}

TEST_F(TokenFileTest, ReplicasTakeContiguousSlicesOfTheBatch) {
  write(101, 2);
  source.shuffle = true;
  source.seed = 3;
  Inputs whole(1, 0);
  TokenFile file;
  ASSERT_TRUE(file.open(whole.rank, source, error));
  ASSERT_TRUE(file.fill(whole.rank, 2, error));
  for (int self : {0, 1}) {
    Inputs half(2, self);
    TokenFile other;
    ASSERT_TRUE(other.open(half.rank, source, error));
    ASSERT_TRUE(other.fill(half.rank, 2, error));
    for (int64_t row = 0; row < batch / 2; ++row)
      EXPECT_EQ(half.get(0, row, 1), whole.get(0, self * batch / 2 + row, 1));
  }
}

TEST_F(TokenFileTest, EachMicrobatchIsTheNextBatchAndReplicasTakeSlicesOfEach) {
  write(101, 2);
  for (int self : {0, 1}) {
    Inputs inputs(2, self);
    for (nd_tensor_desc &desc : inputs.tensors) { // two microbatches of four samples, on two replicas
      desc.rank = 3;
      for (int64_t *shape : {desc.shape, desc.global_shape})
        shape[2] = shape[1], shape[1] = shape[0], shape[0] = 2;
      desc.dim_axes[1][0] = desc.dim_axes[0][0];
      desc.dim_axes[0][0] = -1;
    }
    TokenFile file;
    ASSERT_TRUE(file.open(inputs.rank, source, error)) << error;
    ASSERT_TRUE(file.fill(inputs.rank, 2, error)) << error;
    for (int64_t microbatch : {0, 1})
      for (int64_t row = 0; row < batch / 2; ++row) {
        int64_t sample = 2 * batch + microbatch * batch + self * batch / 2 + row;
        EXPECT_EQ(inputs.get(0, microbatch * batch / 2 + row, 1), sample * sequence + 1);
        EXPECT_EQ(inputs.get(1, microbatch * batch / 2 + row, 1), sample * sequence + 2);
        EXPECT_EQ(inputs.get(2, microbatch * batch / 2 + row, 1), 1);
      }
  }
}

TEST_F(TokenFileTest, AnEpochIsAPermutationBySeedAndEpoch) {
  write(101, 2);
  source.shuffle = true;
  auto order = [&](uint64_t seed, int64_t firstStep) {
    source.seed = seed;
    Inputs inputs(1, 0);
    TokenFile file;
    EXPECT_TRUE(file.open(inputs.rank, source, error)) << error;
    std::vector<int64_t> samples;
    for (int64_t step = firstStep; step < firstStep + 5; ++step) {
      EXPECT_TRUE(file.fill(inputs.rank, step, error)) << error;
      for (int64_t row = 0; row < batch; ++row)
        samples.push_back(inputs.get(0, row, 0) / sequence);
    }
    return samples;
  };
  std::vector<int64_t> first = order(0, 1);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 20u);
  EXPECT_EQ(first, order(0, 1));
  EXPECT_NE(first, order(1, 1));
  EXPECT_NE(first, order(0, 6)); // the second epoch
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST_F(TokenFileTest, ASequenceIsStoredInChunksAndPadded) {
  write(101, 2);
  // 5 positions in 4 chunks of 2, stored 0 3 1 2 over two ranks: rank 0 has positions 0 1 and padding.
  const int64_t order[] = {0, 3, 1, 2};
  for (int self : {0, 1}) {
    Inputs inputs(2, self);
    for (nd_tensor_desc &desc : inputs.tensors) {
      desc.shape[0] = batch, desc.shape[1] = 4;
      desc.dim_axes[0][0] = -1, desc.dim_axes[1][0] = 0;
      desc.units_dim = 1, desc.num_units = 4, desc.unit_size = 2, desc.units = order;
      desc.pad_value = &desc == &inputs.tensors[1] ? -100 : 0;
    }
    TokenFile file;
    ASSERT_TRUE(file.open(inputs.rank, source, error)) << error;
    ASSERT_TRUE(file.fill(inputs.rank, 1, error)) << error;
    const int64_t positions[2][4] = {{0, 1, -1, -1}, {2, 3, 4, -1}};
    for (int64_t row = 0; row < batch; ++row)
      for (int64_t column = 0; column < 4; ++column) {
        int64_t position = positions[self][column], at = row * 4 + column, token = row * sequence + position;
        EXPECT_EQ(inputs.values[0][at], position < 0 ? 0 : token);
        EXPECT_EQ(inputs.values[1][at], position < 0 ? -100 : token + 1);
        EXPECT_EQ(inputs.values[2][at], position < 0 ? 0 : position);
      }
  }
}

TEST(Permutation, IsOneForEverySize) {
  for (uint64_t size : {1, 2, 3, 4, 5, 17, 64, 1000}) {
    std::set<uint64_t> seen;
    Permutation permutation(size, 7, 1);
    for (uint64_t i = 0; i < size; ++i)
      seen.insert(permutation(i));
    EXPECT_EQ(seen.size(), size);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
}

TEST_F(TokenFileTest, RefusesATokenBeyondTheVocabulary) {
  write(101, 2);
  Inputs inputs(1, 0, /*bound=*/30);
  TokenFile file;
  ASSERT_TRUE(file.open(inputs.rank, source, error)) << error;
  EXPECT_TRUE(file.fill(inputs.rank, 1, error)) << error;
  EXPECT_FALSE(file.fill(inputs.rank, 2, error));
  EXPECT_NE(error.find("token 30 at index 30 is outside the vocabulary [0, 30)"), std::string::npos) << error;
}

TEST_F(TokenFileTest, RefusesFilesThatHoldNoSample) {
  for (int64_t tokens : {0, 1, 5}) {
    write(tokens, 2);
    Inputs inputs(1, 0);
    TokenFile file;
    error.clear();
    EXPECT_FALSE(file.open(inputs.rank, source, error));
    EXPECT_NE(error.find("one sample needs 6"), std::string::npos) << error;
  }
  write(7, 2);
  source.tokenBytes = 4;
  Inputs inputs(1, 0);
  TokenFile file;
  EXPECT_FALSE(file.open(inputs.rank, source, error));
}
