//===- Attention.cpp - Attention in blocks of query rows ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// For each block of query rows: scores q k^T of the keys that the block can see, in a tile; a kernel on each row; and
// the products with v. The backward recomputes the probabilities from the log of the sum of exponentials. Operands are
// read and written in place with their strides; nothing of size S x S exists.
//
// A key and value head belongs to one thread in the backward, which adds up its gradients over the group's query heads
// and over blocks in a fixed order: results do not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>
#include <cmath>
#include <dnnl.h>
#include <limits>

using namespace nd::rt;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

int64_t roundUp(int64_t value) { return (value + 15) / 16 * 16; }

/// One thread's work on one attention.
class AttentionWorker {
public:
  AttentionWorker(const nd_attention_desc &desc, const nd_attention_args &args, int cpuLevel, void *scratch)
      : d(desc), args(args), rows(cpuLevel == ND_CPU_V4 ? attentionRowsV4 : attentionRowsV3),
        stride(roundUp(desc.keys) + 16), probabilities(static_cast<float *>(scratch)),
        grads(probabilities + ND_ATTENTION_BLOCK * stride), mask(grads + ND_ATTENTION_BLOCK * stride),
        inverse(mask + stride) {}

  bool forwardHead(int64_t batch, int64_t head);
  bool backwardGroup(int64_t batch, int64_t kvHead);

private:
  /// Query rows [first, first + count), and the keys [lo, hi) that any of them can see.
  struct Block {
    int64_t batch, head, first, count, lo, hi;
    int64_t keys() const { return hi - lo; }
  };
  /// Short sequences take smaller blocks: more of what is not visible is skipped.
  int64_t blockRows() const { return d.queries <= ND_ATTENTION_BLOCK ? ND_ATTENTION_BLOCK / 2 : ND_ATTENTION_BLOCK; }
  Block makeBlock(int64_t batch, int64_t head, int64_t first) const;
  bool needsMask() const { return d.has_positions || d.has_documents || d.has_key_padding || d.mask; }
  ScoreRow makeRow(const Block &block, int64_t row);
  void fillMask(const Block &block, int64_t query);

  template <typename T> static T *at(T *base, const nd_attention_strides &strides, int64_t b, int64_t h, int64_t s) {
    return base + b * strides.b + h * strides.h + s * strides.s;
  }
  const float *q(const Block &x) const { return at(static_cast<const float *>(args.q), d.q, x.batch, x.head, x.first); }
  int64_t kvHead(const Block &x) const { return x.head / (d.heads / d.kv_heads); }
  const float *k(const Block &x) const { return at(static_cast<const float *>(args.k), d.k, x.batch, kvHead(x), x.lo); }
  const float *v(const Block &x) const { return at(static_cast<const float *>(args.v), d.v, x.batch, kvHead(x), x.lo); }
  const float *lse(const float *base, const Block &x) const {
    return base + (x.batch * d.heads + x.head) * d.queries + x.first;
  }
  static bool product(char transposeA, char transposeB, int64_t m, int64_t n, int64_t k, double alpha, const float *a,
                      int64_t lda, const float *b, int64_t ldb, bool accumulate, float *c, int64_t ldc) {
    return dnnl_sgemm(transposeA, transposeB, m, n, k, static_cast<float>(alpha), a, lda, b, ldb,
                      accumulate ? 1.0f : 0.0f, c, ldc) == dnnl_success;
  }
  static void zeroRows(float *base, const nd_attention_strides &strides, int64_t lo, int64_t hi, int64_t width) {
    for (int64_t row = lo; row < hi; ++row)
      std::fill_n(base + row * strides.s, width, 0.0f);
  }
  bool backwardBlock(const Block &block, bool first);

  const nd_attention_desc &d;
  const nd_attention_args &args;
  const AttentionRows &rows;
  int64_t stride; ///< of the tiles
  float *probabilities, *grads, *mask, *inverse;
};

AttentionWorker::Block AttentionWorker::makeBlock(int64_t batch, int64_t head, int64_t first) const {
  Block block{batch, head, first, std::min(blockRows(), d.queries - first), 0, d.keys};
  if (!d.has_positions) {
    if (d.causal)
      block.hi = std::min(d.keys, first + block.count);
    if (d.window)
      block.lo = std::clamp<int64_t>(first - d.window + 1, 0, d.keys) / 16 * 16;
  } else if (d.causal || d.window) {
    const int64_t *positions = args.positions + batch * d.queries;
    auto ends = std::minmax_element(positions + first, positions + first + block.count);
    int64_t low = *ends.first, high = *ends.second;
    auto hidden = [&](int64_t key) {
      return (d.causal && positions[key] > high) || (d.window && low - positions[key] >= d.window);
    };
    while (block.hi > 0 && hidden(block.hi - 1))
      --block.hi;
    while (block.lo < block.hi && hidden(block.lo))
      ++block.lo;
    block.lo = block.lo / 16 * 16;
  }
  block.lo = std::min(block.lo, block.hi);
  return block;
}

void AttentionWorker::fillMask(const Block &block, int64_t query) {
  const int64_t *positions = d.has_positions ? args.positions + block.batch * d.queries : nullptr;
  const int64_t *documents = d.has_documents ? args.documents + block.batch * d.queries : nullptr;
  const uint8_t *padding = d.has_key_padding ? args.key_padding + block.batch * d.keys : nullptr;
  int64_t count = block.keys(), lo = block.lo;
  if (d.mask) {
    int64_t base = block.batch * d.mask_strides[0] + block.head * d.mask_strides[1] + query * d.mask_strides[2];
    int64_t step = d.mask_strides[3];
    if (d.mask == 1) {
      const float *values = static_cast<const float *>(args.mask) + base;
      for (int64_t j = 0; j < count; ++j)
        mask[j] = values[(lo + j) * step];
    } else {
      const uint8_t *values = static_cast<const uint8_t *>(args.mask) + base;
      for (int64_t j = 0; j < count; ++j)
        mask[j] = values[(lo + j) * step] ? 0.0f : -infinity;
    }
  } else {
    std::fill_n(mask, count, 0.0f);
  }
  auto hide = [&](auto hidden) {
    for (int64_t j = 0; j < count; ++j)
      mask[j] = hidden(lo + j) ? -infinity : mask[j];
  };
  if (positions && d.causal)
    hide([=, position = positions[query]](int64_t key) { return positions[key] > position; });
  if (positions && d.window)
    hide([=, first = positions[query] - d.window](int64_t key) { return positions[key] <= first; });
  if (documents)
    hide([=, document = documents[query]](int64_t key) { return documents[key] != document; });
  if (padding)
    hide([=](int64_t key) { return !padding[key]; });
  std::fill_n(mask + count, 16, -infinity); // vectors reach past the end
}

ScoreRow AttentionWorker::makeRow(const Block &block, int64_t row) {
  int64_t query = block.first + row;
  ScoreRow result{probabilities + row * stride, block.keys(), 0, block.keys(), nullptr, static_cast<float>(d.softcap)};
  if (!d.has_positions) {
    if (d.causal)
      result.hi = std::clamp<int64_t>(query + 1 - block.lo, 0, result.count);
    if (d.window)
      result.lo = std::clamp<int64_t>(query - d.window + 1 - block.lo, 0, result.count);
  }
  if (needsMask()) {
    fillMask(block, query);
    result.mask = mask;
  }
  return result;
}

bool AttentionWorker::forwardHead(int64_t batch, int64_t head) {
  for (int64_t first = 0; first < d.queries; first += blockRows()) {
    Block block = makeBlock(batch, head, first);
    float *out = at(static_cast<float *>(args.o), d.o, batch, head, first);
    auto *logSums = const_cast<float *>(lse(args.lse, block));
    if (block.keys() == 0) {
      zeroRows(out, d.o, 0, block.count, d.value_dim);
      std::fill_n(logSums, block.count, -infinity);
      continue;
    }
    if (!product('N', 'T', block.count, block.keys(), d.dim, d.scale, q(block), d.q.s, k(block), d.k.s, false,
                 probabilities, stride))
      return false;
    for (int64_t row = 0; row < block.count; ++row)
      logSums[row] = rows.forward(makeRow(block, row), inverse[row]);
    if (!product('N', 'N', block.count, d.value_dim, block.keys(), 1, probabilities, stride, v(block), d.v.s, false,
                 out, d.o.s))
      return false;
    for (int64_t row = 0; row < block.count; ++row)
      rows.scale(out + row * d.o.s, inverse[row], d.value_dim);
  }
  return true;
}

bool AttentionWorker::backwardBlock(const Block &block, bool first) {
  float *queryGrad = at(static_cast<float *>(args.dq), d.dq, block.batch, block.head, block.first);
  float *keyGrad = at(static_cast<float *>(args.dk), d.dk, block.batch, kvHead(block), 0);
  float *valueGrad = at(static_cast<float *>(args.dv), d.dv, block.batch, kvHead(block), 0);
  if (first) { // it writes its keys' gradients; those of the others start from zero
    zeroRows(keyGrad, d.dk, 0, block.lo, d.dim);
    zeroRows(keyGrad, d.dk, block.hi, d.keys, d.dim);
    zeroRows(valueGrad, d.dv, 0, block.lo, d.value_dim);
    zeroRows(valueGrad, d.dv, block.hi, d.keys, d.value_dim);
  }
  if (block.keys() == 0) {
    zeroRows(queryGrad, d.dq, 0, block.count, d.dim);
    return true;
  }
  const float *outGrad = at(static_cast<const float *>(args.d_o), d.d_o, block.batch, block.head, block.first);
  const float *out = at(static_cast<const float *>(args.o_in), d.o, block.batch, block.head, block.first);
  const float *logSums = lse(args.lse_in, block);
  int64_t count = block.count, keys = block.keys();
  if (!product('N', 'T', count, keys, d.dim, d.scale, q(block), d.q.s, k(block), d.k.s, false, probabilities, stride) ||
      !product('N', 'T', count, keys, d.value_dim, 1, outGrad, d.d_o.s, v(block), d.v.s, false, grads, stride))
    return false;
  for (int64_t row = 0; row < count; ++row) {
    float delta = rows.dot(out + row * d.o.s, outGrad + row * d.d_o.s, d.value_dim);
    rows.backward(makeRow(block, row), logSums[row], delta, grads + row * stride);
  }
  return product('T', 'N', keys, d.value_dim, count, 1, probabilities, stride, outGrad, d.d_o.s, !first,
                 valueGrad + block.lo * d.dv.s, d.dv.s) &&
         product('N', 'N', count, d.dim, keys, d.scale, grads, stride, k(block), d.k.s, false, queryGrad, d.dq.s) &&
         product('T', 'N', keys, d.dim, count, d.scale, grads, stride, q(block), d.q.s, !first,
                 keyGrad + block.lo * d.dk.s, d.dk.s);
}

bool AttentionWorker::backwardGroup(int64_t batch, int64_t kvHead) {
  int64_t group = d.heads / d.kv_heads, blocks = (d.queries + blockRows() - 1) / blockRows();
  bool first = true;
  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
    for (int64_t block = blocks - 1; block >= 0; --block) { // the last block of a causal attention sees most keys
      if (!backwardBlock(makeBlock(batch, head, block * blockRows()), first))
        return false;
      first = false;
    }
  return true;
}

/// Runs work(worker, batch, head) for every pair, split over the threads.
template <typename Work>
void forHeads(nd_rank *rank, const nd_attention_desc *desc, const nd_attention_args *args, int64_t heads, Work work) {
  std::atomic<bool> good{true};
  rank->pool.parallel([&](int thread, int threads) {
    Range range = splitRange(desc->batch * heads, 1, thread, threads);
    AttentionWorker worker(*desc, *args, rank->cpuLevel, rank->scratch(thread));
    for (int64_t i = range.lo; i < range.hi; ++i)
      if (!work(worker, i / heads, i % heads))
        good.store(false, std::memory_order_relaxed);
  });
  if (!good.load())
    rank->fail("oneDNN cannot run the products of an attention (%s)", desc->location);
}

} // namespace

void nd_rt_attention(nd_rank *rank, const nd_attention_desc *desc, const nd_attention_args *args) {
  if (!rank->proceed())
    return;
  ProfileScope scope(*rank, Profile::Attention, desc->id, desc->location);
  forHeads(rank, desc, args, desc->heads,
           [](AttentionWorker &worker, int64_t batch, int64_t head) { return worker.forwardHead(batch, head); });
}

void nd_rt_attention_grad(nd_rank *rank, const nd_attention_desc *desc, const nd_attention_args *args) {
  if (!rank->proceed())
    return;
  ProfileScope scope(*rank, Profile::AttentionGrad, desc->id, desc->location);
  forHeads(rank, desc, args, desc->kv_heads,
           [](AttentionWorker &worker, int64_t batch, int64_t head) { return worker.backwardGroup(batch, head); });
}
