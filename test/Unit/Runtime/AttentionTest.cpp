//===- AttentionTest.cpp - Attention against a definition in double -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Rank.h"
#include "nd/Runtime/Core/nd.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace {

struct Case {
  const char *name;
  int64_t batch, heads, kvHeads, queries, keys, dim, valueDim;
  bool causal = false;
  int64_t window = 0;
  double softcap = 0;
  bool positions = false, documents = false, padding = false;
  int mask = 0;
  bool packed = false; ///< q, k and v lie in one [B, S, (Hq + 2 Hkv) D] buffer, o in [B, S, H D]
};

const Case cases[] = {
    {"single", 1, 1, 1, 1, 1, 1, 1},
    {"plain", 2, 3, 3, 17, 17, 8, 8},
    {"cross", 1, 2, 2, 5, 41, 16, 7},
    {"causal", 2, 2, 2, 37, 37, 16, 16, true},
    {"causal packed", 2, 4, 4, 64, 64, 8, 8, true, 0, 0, false, false, false, 0, true},
    {"causal long", 1, 2, 2, 200, 200, 12, 12, true},
    {"grouped", 2, 6, 2, 70, 70, 8, 8, true, 0, 0, false, false, false, 0, true},
    {"window", 1, 2, 1, 150, 150, 8, 8, true, 20},
    {"window both sides", 1, 1, 1, 90, 90, 8, 8, false, 20},
    {"soft cap", 1, 2, 2, 33, 33, 8, 8, true, 0, 1.5},
    {"positions", 2, 2, 2, 80, 80, 8, 8, true, 0, 0, true},
    {"positions and window", 2, 2, 2, 80, 80, 8, 8, true, 13, 0, true},
    {"documents", 2, 2, 1, 90, 90, 8, 8, true, 0, 0, false, true},
    {"padding hides whole rows", 2, 2, 2, 20, 20, 8, 8, true, 0, 0, false, false, true},
    {"added mask", 2, 2, 2, 9, 30, 8, 8, false, 0, 0, false, false, false, 1},
    {"boolean mask", 2, 2, 2, 30, 30, 8, 8, true, 0, 2.0, false, false, false, 2},
    {"everything", 2, 4, 2, 130, 130, 24, 24, true, 50, 3.0, true, true, true, 1, true},
};

/// Operands in memory, with their strides.
struct Operands {
  std::vector<float> q, k, v, o, lse, dout, dq, dk, dv, mask;
  std::vector<int64_t> positions, documents;
  std::vector<uint8_t> padding, boolMask;
};

void fill(std::vector<float> &values, int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> distribution;
  values.resize(count);
  for (float &value : values)
    value = distribution(engine);
}

nd_attention_desc describe(const Case &c) {
  nd_attention_desc d{};
  d.batch = c.batch, d.heads = c.heads, d.kv_heads = c.kvHeads, d.queries = c.queries, d.keys = c.keys;
  d.dim = c.dim, d.value_dim = c.valueDim, d.scale = 0.7 / std::sqrt(static_cast<double>(c.dim)), d.softcap = c.softcap;
  d.causal = c.causal, d.window = c.window;
  d.has_positions = c.positions, d.has_documents = c.documents, d.has_key_padding = c.padding, d.mask = c.mask;
  if (c.packed) { // heads beside each other in a row
    int64_t row = (c.heads + 2 * c.kvHeads) * c.dim, outRow = c.heads * c.valueDim;
    d.q = d.k = d.v = d.dq = d.dk = d.dv = {c.queries * row, c.dim, row};
    d.o = d.d_o = {c.queries * outRow, c.valueDim, outRow};
  } else {
    auto dense = [](int64_t heads, int64_t rows, int64_t width) {
      return nd_attention_strides{heads * rows * width, rows * width, width};
    };
    d.q = d.dq = dense(c.heads, c.queries, c.dim);
    d.k = d.dk = dense(c.kvHeads, c.keys, c.dim);
    d.v = d.dv = dense(c.kvHeads, c.keys, c.valueDim);
    d.o = d.d_o = dense(c.heads, c.queries, c.valueDim);
  }
  if (c.mask) { // broadcasts over heads
    d.mask_strides[0] = c.queries * c.keys;
    d.mask_strides[2] = c.keys;
    d.mask_strides[3] = 1;
  }
  std::fill_n(d.seq_axes, 4, -1);
  std::fill_n(d.head_axes, 4, -1);
  d.key_shards = 1;
  d.location = "test";
  return d;
}

Operands makeOperands(const Case &c) {
  Operands x;
  int64_t packed = c.batch * c.queries * (c.heads + 2 * c.kvHeads) * c.dim;
  fill(x.q, c.packed ? packed : c.batch * c.heads * c.queries * c.dim, 1);
  fill(x.k, c.packed ? 0 : c.batch * c.kvHeads * c.keys * c.dim, 2);
  fill(x.v, c.packed ? 0 : c.batch * c.kvHeads * c.keys * c.valueDim, 3);
  fill(x.dout, c.batch * c.heads * c.queries * c.valueDim, 4);
  // What the result overwrites must not matter.
  x.o.assign(x.dout.size(), NAN);
  x.dq.assign(x.q.size(), NAN);
  x.dk.assign(x.k.size(), NAN);
  x.dv.assign(x.v.size(), NAN);
  x.lse.assign(c.batch * c.heads * c.queries, NAN);
  for (int64_t i = 0; i < c.batch * c.queries; ++i) {
    int64_t row = i % c.queries;
    // Zig-zag: the first and the last quarter, then the middle; another order in the second sample.
    x.positions.push_back(i < c.queries ? (row % 2 ? c.queries - 1 - row / 2 : row / 2) : row);
    x.documents.push_back(row / 23);
  }
  for (int64_t i = 0; i < c.batch * c.keys; ++i)
    x.padding.push_back(i % c.keys >= 3 && i % 5 != 0);
  fill(x.mask, c.batch * c.queries * c.keys, 5);
  for (size_t i = 0; i < x.mask.size(); ++i) {
    x.boolMask.push_back(x.mask[i] > -0.5f);
    if (x.mask[i] > 1.2f)
      x.mask[i] = -INFINITY;
  }
  return x;
}

nd_attention_args argumentsOf(const Case &c, Operands &x) {
  nd_attention_args args{};
  int64_t kOffset = c.packed ? c.heads * c.dim : 0, vOffset = c.packed ? (c.heads + c.kvHeads) * c.dim : 0;
  std::vector<float> &k = c.packed ? x.q : x.k, &v = c.packed ? x.q : x.v;
  std::vector<float> &dk = c.packed ? x.dq : x.dk, &dv = c.packed ? x.dq : x.dv;
  args.q = x.q.data(), args.k = k.data() + kOffset, args.v = v.data() + vOffset;
  args.o = x.o.data(), args.o_in = x.o.data(), args.d_o = x.dout.data();
  args.lse = x.lse.data(), args.lse_in = x.lse.data();
  args.positions = x.positions.data(), args.documents = x.documents.data(), args.key_padding = x.padding.data();
  args.mask = c.mask == 1 ? static_cast<void *>(x.mask.data()) : x.boolMask.data();
  args.dq = x.dq.data(), args.dk = dk.data() + kOffset, args.dv = dv.data() + vOffset;
  return args;
}

bool visible(const Case &c, const Operands &x, int64_t b, int64_t i, int64_t j) {
  int64_t qp = c.positions ? x.positions[b * c.queries + i] : i, kp = c.positions ? x.positions[b * c.queries + j] : j;
  return !((c.causal && kp > qp) || (c.window && qp - kp >= c.window) ||
           (c.documents && x.documents[b * c.queries + i] != x.documents[b * c.queries + j]) ||
           (c.padding && !x.padding[b * c.keys + j]) || (c.mask == 2 && !x.boolMask[(b * c.queries + i) * c.keys + j]));
}

/// A result of the reference: [B, H, S, D], dense.
struct Reference {
  std::vector<double> o, lse, dq, dk, dv;
};

Reference reference(const Case &c, const Operands &x, const nd_attention_desc &d, const nd_attention_args &args) {
  Reference r;
  r.o.assign(c.batch * c.heads * c.queries * c.valueDim, 0);
  r.lse.assign(c.batch * c.heads * c.queries, -INFINITY);
  r.dq.assign(c.batch * c.heads * c.queries * c.dim, 0);
  r.dk.assign(c.batch * c.kvHeads * c.keys * c.dim, 0);
  r.dv.assign(c.batch * c.kvHeads * c.keys * c.valueDim, 0);
  auto get = [](const void *base, const nd_attention_strides &s, int64_t b, int64_t h, int64_t i, int64_t j) {
    return static_cast<double>(static_cast<const float *>(base)[b * s.b + h * s.h + i * s.s + j]);
  };
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.queries; ++i) {
        int64_t g = h / (c.heads / c.kvHeads), row = (b * c.heads + h) * c.queries + i;
        std::vector<double> p(c.keys, -INFINITY), slope(c.keys, 1);
        double largest = -INFINITY, sum = 0, delta = 0;
        for (int64_t j = 0; j < c.keys; ++j) {
          double s = 0;
          for (int64_t e = 0; e < c.dim; ++e)
            s += d.scale * get(args.q, d.q, b, h, i, e) * get(args.k, d.k, b, g, j, e);
          if (c.softcap != 0) {
            double t = std::tanh(s / c.softcap);
            s = c.softcap * t, slope[j] = 1 - t * t;
          }
          if (c.mask == 1)
            s += static_cast<double>(x.mask[(b * c.queries + i) * c.keys + j]);
          if (visible(c, x, b, i, j))
            p[j] = s;
          largest = std::max(largest, p[j]);
        }
        if (largest == -INFINITY)
          continue;
        for (double &value : p)
          sum += value = std::exp(value - largest);
        r.lse[row] = largest + std::log(sum);
        std::vector<double> dp(c.keys, 0);
        for (int64_t j = 0; j < c.keys; ++j) {
          p[j] /= sum;
          for (int64_t e = 0; e < c.valueDim; ++e) {
            double grad = get(args.d_o, d.d_o, b, h, i, e);
            r.o[row * c.valueDim + e] += p[j] * get(args.v, d.v, b, g, j, e);
            r.dv[((b * c.kvHeads + g) * c.keys + j) * c.valueDim + e] += p[j] * grad;
            dp[j] += grad * get(args.v, d.v, b, g, j, e);
          }
          delta += p[j] * dp[j];
        }
        for (int64_t j = 0; j < c.keys; ++j) {
          double ds = p[j] * (dp[j] - delta) * slope[j] * d.scale;
          for (int64_t e = 0; e < c.dim; ++e) {
            r.dq[row * c.dim + e] += ds * get(args.k, d.k, b, g, j, e);
            r.dk[((b * c.kvHeads + g) * c.keys + j) * c.dim + e] += ds * get(args.q, d.q, b, h, i, e);
          }
        }
      }
  return r;
}

void expectClose(const char *what, const std::vector<double> &expected, const void *base, const nd_attention_strides &s,
                 int64_t batch, int64_t heads, int64_t rows, int64_t width) {
  double norm = 0, difference = 0;
  for (int64_t b = 0, at = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; ++j, ++at) {
          double value = static_cast<double>(static_cast<const float *>(base)[b * s.b + h * s.h + i * s.s + j]);
          norm += expected[at] * expected[at];
          difference += (value - expected[at]) * (value - expected[at]);
        }
  EXPECT_LE(std::sqrt(difference), 2e-6 * std::sqrt(norm) + 1e-9) << what;
}

/// A rank with nothing but threads and scratch.
std::unique_ptr<nd_rank> makeRank(int threads, int level, std::vector<char> &memory, int64_t scratch) {
  auto rank = std::make_unique<nd_rank>();
  std::string error;
  EXPECT_TRUE(rank->pool.start(threads, error)) << error;
  rank->status = &rank->ownStatus;
  rank->cpuLevel = level;
  rank->scratchBytes = (scratch + 63) / 64 * 64;
  memory.assign(threads * rank->scratchBytes + 64, '\xff'); // NaNs
  rank->threadMemory = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  return rank;
}

} // namespace

TEST(Attention, EqualsItsDefinition) {
  int best = ND_CPU_V3;
  ASSERT_TRUE(nd::rt::detectCpuLevel(best));
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    Operands first;
    for (int level = ND_CPU_V3; level <= best; ++level)
      for (int threads : {1, 2, 3}) {
        nd_attention_desc d = describe(c);
        Operands x = makeOperands(c);
        nd_attention_args args = argumentsOf(c, x);
        std::vector<char> memory;
        auto rank = makeRank(threads, level, memory, nd_attention_scratch_bytes(&d));
        nd_rt_attention(rank.get(), &d, &args);
        nd_rt_attention_grad(rank.get(), &d, &args);
        ASSERT_FALSE(rank->failed) << rank->error;
        if (threads > 1) {
          EXPECT_EQ(x.o, first.o) << "depends on the number of threads";
          EXPECT_EQ(x.dq, first.dq) << "depends on the number of threads";
          EXPECT_EQ(x.dk, first.dk) << "depends on the number of threads";
          continue;
        }
        Reference r = reference(c, x, d, args);
        expectClose("o", r.o, args.o, d.o, c.batch, c.heads, c.queries, c.valueDim);
        expectClose("dq", r.dq, args.dq, d.dq, c.batch, c.heads, c.queries, c.dim);
        expectClose("dk", r.dk, args.dk, d.dk, c.batch, c.kvHeads, c.keys, c.dim);
        expectClose("dv", r.dv, args.dv, d.dv, c.batch, c.kvHeads, c.keys, c.valueDim);
        for (size_t i = 0; i < r.lse.size(); ++i)
          if (std::isinf(r.lse[i]))
            EXPECT_EQ(x.lse[i], -INFINITY);
          else
            EXPECT_NEAR(static_cast<double>(x.lse[i]), r.lse[i], 1e-5);
        first = std::move(x);
      }
  }
}

TEST(Attention, ANaNIsNotHidden) {
  Case c{"nan", 1, 1, 1, 40, 40, 8, 8, true};
  nd_attention_desc d = describe(c);
  for (bool everywhere : {false, true}) {
    Operands x = makeOperands(c);
    nd_attention_args args = argumentsOf(c, x);
    for (int64_t key = everywhere ? 0 : 7; key < (everywhere ? 40 : 8); ++key)
      x.k[key * 8 + 2] = NAN;
    std::vector<char> memory;
    int level = ND_CPU_V3;
    ASSERT_TRUE(nd::rt::detectCpuLevel(level));
    auto rank = makeRank(1, level, memory, nd_attention_scratch_bytes(&d));
    nd_rt_attention(rank.get(), &d, &args);
    for (int64_t row = 0; row < 40; ++row)
      EXPECT_EQ(std::isnan(x.o[row * 8]), everywhere || row >= 7) << row;
  }
}
