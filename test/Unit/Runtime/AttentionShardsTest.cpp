//===- AttentionShardsTest.cpp - Attention on parts of a sequence ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What ranks compute on their parts, put together, is what one rank computes on the whole.
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
  int64_t heads, kvHeads, length;
  bool causal = false;
  int64_t window = 0, valid = 0;
  bool positions = false, documents = false, padding = false;
  int mask = 0;
};

const Case cases[] = {
    {"plain", 2, 2, 48},
    {"causal", 2, 1, 96, true},
    {"causal long", 1, 1, 384, true},
    {"window", 2, 2, 192, true, 20},
    {"window both sides", 1, 1, 192, false, 9},
    {"padding", 2, 1, 96, true, 0, 83},
    {"padding, not causal", 2, 2, 48, false, 0, 25},
    {"positions", 2, 2, 96, true, 0, 0, true},
    {"documents and window", 4, 2, 96, true, 30, 90, false, true},
    {"hidden keys", 2, 2, 96, true, 0, 0, false, false, true},
    {"mask", 2, 2, 48, true, 0, 0, false, false, false, 1},
};

constexpr int64_t batch = 2, dim = 8;

/// [batch, heads, rows, dim], dense.
struct Tensor {
  int64_t heads, rows;
  std::vector<float> values;
  Tensor(int64_t heads, int64_t rows, unsigned seed = 0)
      : heads(heads), rows(rows), values(batch * heads * rows * dim) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> distribution;
    if (seed)
      for (float &value : values)
        value = distribution(engine);
    else
      std::fill(values.begin(), values.end(), NAN); // what a result overwrites must not matter
  }
  nd_attention_strides strides() const { return {heads * rows * dim, rows * dim, dim}; }
  float *row(int64_t head, int64_t index) { return values.data() + (head * rows + index) * dim; } // head over the batch
  Tensor shard(int64_t index, int64_t shards) {
    Tensor part(heads, rows / shards);
    for (int64_t head = 0; head < batch * heads; ++head)
      std::copy_n(row(head, index * part.rows), part.rows * dim, part.row(head, 0));
    return part;
  }
};

using Lse = std::vector<float>; ///< [batch, heads, rows]

/// All tensors of an attention over the whole sequence, in the order of storage.
struct Whole {
  Tensor q, k, v, o, outGrad, dq, dk, dv;
  Lse lse;
  std::vector<int64_t> positions, documents;
  std::vector<uint8_t> padding;
  std::vector<float> mask;

  explicit Whole(const Case &c)
      : q(c.heads, c.length, 1), k(c.kvHeads, c.length, 2), v(c.kvHeads, c.length, 3), o(c.heads, c.length),
        outGrad(c.heads, c.length, 4), dq(c.heads, c.length), dk(c.kvHeads, c.length), dv(c.kvHeads, c.length),
        lse(batch * c.heads * c.length, NAN), mask(c.length * c.length) {
    std::mt19937 engine(5);
    for (int64_t i = 0; i < batch * c.length; ++i) {
      positions.push_back(i % c.length * 7 % c.length);
      documents.push_back(i % c.length / 23);
      padding.push_back(i % 5 != 0);
    }
    for (float &value : mask)
      value = engine() % 4 == 0 ? -INFINITY : static_cast<float>(engine() % 8) * 0.25f;
  }
};

class Ranks {
public:
  explicit Ranks(int64_t count) {
    program.num_axes = 2;
    program.axis_sizes[0] = 1;
    program.axis_sizes[1] = static_cast<int32_t>(count);
    std::string error;
    EXPECT_TRUE(rank.pool.start(1, error)) << error;
    EXPECT_TRUE(nd::rt::detectCpuLevel(rank.cpuLevel));
    rank.status = &rank.ownStatus;
    rank.program = &program;
    rank.ranks = static_cast<int>(count);
  }
  nd_rank *use(int64_t index, const nd_attention_desc &desc) {
    rank.rank = static_cast<int>(index);
    memory.assign(nd_attention_scratch_bytes(&desc) + 64, '\xff'); // NaNs
    rank.threadMemory = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    return &rank;
  }

private:
  nd_program program{};
  nd_rank rank;
  std::vector<char> memory;
};

nd_attention_desc describe(const Case &c, const std::vector<int64_t> &order, Tensor &q, Tensor &k) {
  nd_attention_desc d{};
  d.batch = batch, d.heads = q.heads, d.kv_heads = k.heads, d.queries = q.rows, d.keys = k.rows;
  d.dim = d.value_dim = dim, d.scale = 0.5;
  d.q = d.o = d.dq = d.d_o = d.carry = q.strides();
  d.k = d.v = d.dk = d.dv = k.strides();
  d.causal = c.causal, d.window = c.window, d.valid = c.valid;
  d.has_positions = c.positions, d.has_documents = c.documents, d.has_key_padding = c.padding, d.mask = c.mask;
  d.mask_strides[2] = c.length, d.mask_strides[3] = 1;
  std::fill_n(d.seq_axes, 4, -1);
  std::fill_n(d.head_axes, 4, -1);
  d.key_shards = 1;
  d.num_chunks = static_cast<int64_t>(order.size()), d.order = order.data();
  d.location = "test";
  return d;
}

nd_attention_args argumentsOf(Whole &x, Tensor &q, Tensor &k, Tensor &v) {
  nd_attention_args args{};
  args.q = q.values.data(), args.k = k.values.data(), args.v = v.values.data();
  args.positions = x.positions.data(), args.documents = x.documents.data(), args.key_padding = x.padding.data();
  args.mask = x.mask.data();
  return args;
}

void setForward(nd_attention_args &args, Tensor &o, Lse &lse) { args.o = o.values.data(), args.lse = lse.data(); }

void setBackward(nd_attention_args &args, Tensor &o, Lse &lse, Tensor &outGrad, Tensor &dq, Tensor &dk, Tensor &dv) {
  args.o_in = o.values.data(), args.lse_in = lse.data(), args.d_o = outGrad.values.data();
  args.dq = dq.values.data(), args.dk = dk.values.data(), args.dv = dv.values.data();
}

void expectClose(const char *what, const std::vector<float> &expected, const std::vector<float> &found) {
  ASSERT_EQ(expected.size(), found.size());
  double norm = 0, difference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(expected[i], found[i]) << what << " " << i;
      continue;
    }
    auto a = static_cast<double>(expected[i]), b = static_cast<double>(found[i]);
    norm += a * a, difference += (a - b) * (a - b);
  }
  EXPECT_LE(std::sqrt(difference), 2e-6 * std::sqrt(norm) + 1e-9) << what;
}

void addTo(std::vector<float> &sum, const std::vector<float> &part) {
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += part[i];
}

std::vector<int64_t> zigZag(int64_t shards) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < shards; ++i)
    order.push_back(i), order.push_back(2 * shards - 1 - i);
  return order;
}

/// Runs every rank's part and compares; with `ring`, keys come one shard at a time.
void runShards(const Case &c, const std::vector<int64_t> &order, int64_t shards, bool ring, Whole &x) {
  Ranks ranks(shards);
  std::vector<Tensor> keyGrads, valueGrads;
  for (int64_t shard = 0; shard < (ring ? shards : 1); ++shard) {
    keyGrads.push_back(x.dk.shard(0, ring ? shards : 1)), valueGrads.push_back(keyGrads.back());
    std::fill(keyGrads.back().values.begin(), keyGrads.back().values.end(), 0.0f);
    valueGrads.back().values = keyGrads.back().values;
  }
  for (int64_t r = 0; r < shards; ++r) {
    SCOPED_TRACE(r);
    Tensor q = x.q.shard(r, shards), outGrad = x.outGrad.shard(r, shards), o(c.heads, q.rows), dqSum = q;
    std::fill(dqSum.values.begin(), dqSum.values.end(), 0.0f);
    Lse lse(batch * c.heads * q.rows, NAN);
    auto step = [&](int64_t j, auto run) {
      int64_t from = (r - j + shards) % shards;
      Tensor k = ring ? x.k.shard(from, shards) : x.k, v = ring ? x.v.shard(from, shards) : x.v;
      nd_attention_desc d = describe(c, order, q, k);
      d.seq_axes[0] = 1;
      if (ring)
        d.key_shards = shards, d.ring_step = j;
      nd_attention_args args = argumentsOf(x, q, k, v);
      run(d, args, k, ring ? from : 0);
    };
    for (int64_t j = 0; j < (ring ? shards : 1); ++j)
      step(j, [&](nd_attention_desc &d, nd_attention_args &args, Tensor &, int64_t) {
        Tensor before = o;
        Lse lseBefore = lse;
        d.has_carry = j > 0;
        args.carry_o = before.values.data(), args.carry_lse = lseBefore.data();
        setForward(args, o, lse);
        nd_rt_attention(ranks.use(r, d), &d, &args);
      });
    for (int64_t j = 0; j < (ring ? shards : 1); ++j)
      step(j, [&](nd_attention_desc &d, nd_attention_args &args, Tensor &k, int64_t from) {
        Tensor dq(c.heads, q.rows), dk(c.kvHeads, k.rows), dv = dk;
        setBackward(args, o, lse, outGrad, dq, dk, dv);
        nd_rt_attention_grad(ranks.use(r, d), &d, &args);
        addTo(dqSum.values, dq.values);
        addTo(keyGrads[from].values, dk.values);
        addTo(valueGrads[from].values, dv.values);
      });
    expectClose("o", x.o.shard(r, shards).values, o.values);
    expectClose("dq", x.dq.shard(r, shards).values, dqSum.values);
    Lse expected;
    for (int64_t head = 0; head < batch * c.heads; ++head)
      expected.insert(expected.end(), x.lse.begin() + head * c.length + r * q.rows,
                      x.lse.begin() + head * c.length + (r + 1) * q.rows);
    expectClose("lse", expected, lse);
  }
  for (size_t shard = 0; shard < keyGrads.size(); ++shard) {
    expectClose("dk", x.dk.shard(shard, keyGrads.size()).values, keyGrads[shard].values);
    expectClose("dv", x.dv.shard(shard, keyGrads.size()).values, valueGrads[shard].values);
  }
}

void runWhole(const Case &c, const std::vector<int64_t> &order, Whole &x) {
  Ranks one(1);
  nd_attention_desc d = describe(c, order, x.q, x.k);
  nd_attention_args args = argumentsOf(x, x.q, x.k, x.v);
  setForward(args, x.o, x.lse);
  setBackward(args, x.o, x.lse, x.outGrad, x.dq, x.dk, x.dv);
  nd_rt_attention(one.use(0, d), &d, &args);
  nd_rt_attention_grad(one.use(0, d), &d, &args);
}

TEST(AttentionShards, PutTogetherAreTheWhole) {
  for (const Case &c : cases)
    for (bool zigzag : {false, true})
      for (int64_t shards : {2, 3, 4}) {
        std::vector<int64_t> order = zigzag ? zigZag(shards) : std::vector<int64_t>();
        Whole x(c);
        runWhole(c, order, x);
        for (bool ring : {false, true}) {
          SCOPED_TRACE(std::string(c.name) + (zigzag ? ", zig-zag, " : ", ") + std::to_string(shards) +
                       (ring ? " in a ring" : " with all keys"));
          runShards(c, order, shards, ring, x);
        }
      }
}

TEST(AttentionShards, AnOrderOfStorageChangesNothingElse) {
  Case c{"order", 2, 1, 96, true, 30, 90};
  Whole natural(c), stored(c);
  runWhole(c, {}, natural);
  std::vector<int64_t> order = zigZag(4);
  int64_t size = c.length / static_cast<int64_t>(order.size());
  auto store = [&](Tensor &from) {
    Tensor to = from;
    for (int64_t head = 0; head < batch * from.heads; ++head)
      for (size_t place = 0; place < order.size(); ++place)
        std::copy_n(from.row(head, order[place] * size), size * dim, to.row(head, static_cast<int64_t>(place) * size));
    return to;
  };
  stored.q = store(natural.q), stored.k = store(natural.k), stored.v = store(natural.v);
  stored.outGrad = store(natural.outGrad);
  runWhole(c, order, stored);
  expectClose("o", store(natural.o).values, stored.o.values);
  expectClose("dq", store(natural.dq).values, stored.dq.values);
  expectClose("dk", store(natural.dk).values, stored.dk.values);
  expectClose("dv", store(natural.dv).values, stored.dv.values);
}

/// Query heads 0..3 read key heads 1, 0, 0, none; on two ranks each has a slot for what it reads.
TEST(AttentionShards, AKeyMapGivesHeadsTheirKeys) {
  Case mapped{"map", 4, 2, 48, true}, plain{"plain", 3, 3, 48, true};
  Whole x(mapped), y(plain);
  const int64_t map[] = {1, 0, 0, -1}, slots[] = {1, 0, 2, -1}; // rank 1 has key head 0 in slot 2
  auto pick = [](Tensor &from, std::vector<int64_t> heads) {
    Tensor to(static_cast<int64_t>(heads.size()), from.rows);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < to.heads; ++h)
        std::copy_n(from.row(b * from.heads + heads[h], 0), from.rows * dim, to.row(b * to.heads + h, 0));
    return to;
  };
  y.q = pick(x.q, {0, 1, 2}), y.outGrad = pick(x.outGrad, {0, 1, 2});
  y.k = pick(x.k, {1, 0, 0}), y.v = pick(x.v, {1, 0, 0});
  runWhole(plain, {}, y);

  Ranks one(1);
  nd_attention_desc d = describe(mapped, {}, x.q, x.k);
  d.num_map = 4, d.kv_map = map;
  nd_attention_args args = argumentsOf(x, x.q, x.k, x.v);
  setForward(args, x.o, x.lse);
  setBackward(args, x.o, x.lse, x.outGrad, x.dq, x.dk, x.dv);
  nd_rt_attention(one.use(0, d), &d, &args);
  nd_rt_attention_grad(one.use(0, d), &d, &args);
  expectClose("o", y.o.values, pick(x.o, {0, 1, 2}).values);
  expectClose("dq", y.dq.values, pick(x.dq, {0, 1, 2}).values);
  std::vector<float> zeros(batch * 48 * dim, 0.0f);
  EXPECT_EQ(pick(x.o, {3}).values, zeros);
  EXPECT_EQ(pick(x.dq, {3}).values, zeros);
  EXPECT_EQ(x.lse[3 * 48], -INFINITY);
  std::vector<float> sum = pick(y.dk, {1}).values;
  addTo(sum, pick(y.dk, {2}).values);
  expectClose("dk", sum, pick(x.dk, {0}).values);
  expectClose("dk", pick(y.dk, {0}).values, pick(x.dk, {1}).values);

  Ranks two(2);
  for (int64_t r : {0, 1}) {
    Tensor q = pick(x.q, {2 * r, 2 * r + 1}), k = pick(x.k, {0, 1}), v = pick(x.v, {0, 1}), o(2, 48), dq(2, 48),
           dk(2, 48), dv(2, 48), outGrad = pick(x.outGrad, {2 * r, 2 * r + 1});
    Lse lse(batch * 2 * 48);
    nd_attention_desc local = describe(mapped, {}, q, k);
    local.num_map = 4, local.kv_map = slots, local.head_axes[0] = 1;
    nd_attention_args part = argumentsOf(x, q, k, v);
    setForward(part, o, lse);
    setBackward(part, o, lse, outGrad, dq, dk, dv);
    nd_rt_attention(two.use(r, local), &local, &part);
    nd_rt_attention_grad(two.use(r, local), &local, &part);
    expectClose("o", pick(x.o, {2 * r, 2 * r + 1}).values, o.values);
    expectClose("dq", pick(x.dq, {2 * r, 2 * r + 1}).values, dq.values);
    expectClose("dk", pick(y.dk, {r == 0 ? 1 : 2}).values, pick(dk, {0}).values);
    expectClose("dk", r == 0 ? pick(y.dk, {0}).values : zeros, pick(dk, {1}).values);
  }
}

/// bf16 in memory, f32 inside: the same as f32 on the rounded operands, with the result rounded.
TEST(AttentionShards, BfloatOperandsAreConverted) {
  Case c{"bf16", 2, 1, 96, true, 0, 90};
  Whole x(c);
  auto narrow = [](std::vector<float> &values) { // and rounds the original
    std::vector<uint16_t> bits;
    for (float &value : values) {
      uint32_t wide;
      memcpy(&wide, &value, 4);
      bits.push_back(static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16));
      wide = static_cast<uint32_t>(bits.back()) << 16;
      memcpy(&value, &wide, 4);
    }
    return bits;
  };
  auto q = narrow(x.q.values), k = narrow(x.k.values), v = narrow(x.v.values), outGrad = narrow(x.outGrad.values);
  std::vector<int64_t> order = zigZag(2);
  runWhole(c, order, x);
  std::vector<uint16_t> expectedOut = narrow(x.o.values);
  runWhole(c, order, x);
  Ranks one(1);
  nd_attention_desc d = describe(c, order, x.q, x.k);
  d.dtype = d.result_dtype = d.grad_dtype = ND_BF16;
  nd_attention_args args = argumentsOf(x, x.q, x.k, x.v);
  std::vector<uint16_t> o(q.size()), dq(q.size());
  Lse lse(x.lse.size());
  Tensor dk(c.kvHeads, c.length), dv(c.kvHeads, c.length);
  args.q = q.data(), args.k = k.data(), args.v = v.data(), args.o = o.data(), args.lse = lse.data();
  args.o_in = o.data(), args.lse_in = lse.data(), args.d_o = outGrad.data();
  args.dq = dq.data(), args.dk = dk.values.data(), args.dv = dv.values.data();
  nd_rt_attention(one.use(0, d), &d, &args);
  EXPECT_EQ(o, expectedOut);
  EXPECT_EQ(lse, x.lse);
  nd_rt_attention_grad(one.use(0, d), &d, &args);
  // The f32 run with the rounded result, which delta is computed from.
  narrow(x.o.values);
  nd_attention_desc wide = describe(c, order, x.q, x.k);
  nd_attention_args wideArgs = argumentsOf(x, x.q, x.k, x.v);
  setBackward(wideArgs, x.o, x.lse, x.outGrad, x.dq, x.dk, x.dv);
  nd_rt_attention_grad(one.use(0, wide), &wide, &wideArgs);
  EXPECT_EQ(dk.values, x.dk.values);
  EXPECT_EQ(dv.values, x.dv.values);
  EXPECT_EQ(dq, narrow(x.dq.values));
}

} // namespace
