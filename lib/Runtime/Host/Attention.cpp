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
// A tile's columns are the keys in the order of their indices (AttentionPlaces.h), so that by position a block and each
// of its rows see one interval of columns. What no row sees is not computed. All is in f32: operands in bf16 are
// converted, keys and values for a head, the others for a block.
//
// A key and value head belongs to one thread in the backward, which adds up its gradients over the group's query heads
// and over blocks in a fixed order: results do not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#include "AttentionPlaces.h"
#include "AttentionRows.h"
#include "nd/Runtime/Core/BFloat.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>
#include <cmath>
#include <dnnl.h>
#include <limits>
#include <utility>

using namespace nd::rt;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

int64_t roundUp(int64_t value) { return (value + 15) / 16 * 16; }

/// A matrix of f32 whose rows are contiguous.
template <typename T> struct Rows {
  T *base;
  int64_t stride;
  T *row(int64_t index) const { return base + index * stride; }
};

/// The coordinate along these axes together, the first one major.
int64_t coordinateAlong(const nd_rank &rank, const int8_t (&axes)[4]) {
  int64_t coordinate = 0;
  for (int axis : axes)
    if (axis < 0)
      break;
    else
      coordinate = coordinate * rank.program->axis_sizes[axis] + rank.coordinate(axis);
  return coordinate;
}

/// This rank's part of an attention, and the memory of one thread.
struct Placement {
  Placement(const nd_rank &rank, const nd_attention_desc &desc)
      : length(desc.keys * desc.key_shards), own(coordinateAlong(rank, desc.seq_axes)),
        shard(desc.key_shards == 1 ? 0
                                   : ((own - desc.ring_step) % desc.key_shards + desc.key_shards) % desc.key_shards),
        firstHead(coordinateAlong(rank, desc.head_axes) * desc.heads) {}

  int64_t length, own, shard, firstHead;
};

/// One thread's work on one attention.
class AttentionWorker {
public:
  AttentionWorker(const nd_rank &rank, const nd_attention_desc &desc, const nd_attention_args &args,
                  const Placement &place, char *scratch)
      : d(desc), args(args), rows(rank.cpuLevel == ND_CPU_V4 ? attentionRowsV4 : attentionRowsV3),
        firstHead(place.firstHead), wholeQueries(place.length), stride(roundUp(desc.keys) + 16),
        probabilities(reinterpret_cast<float *>(scratch)), grads(probabilities + ND_ATTENTION_BLOCK * stride),
        mask(grads + ND_ATTENTION_BLOCK * stride), inverse(mask + stride), blockMemory(inverse + ND_ATTENTION_BLOCK),
        headMemory(blockMemory + 3 * ND_ATTENTION_BLOCK * (desc.dim + desc.value_dim)),
        keyPlaces(desc, place.length, place.shard * desc.keys, desc.keys, runMemory(0)),
        queryPlaces(desc, place.length, place.own * desc.queries, desc.queries, runMemory(1)) {}

  bool forwardHead(int64_t batch, int64_t head);
  bool backwardGroup(int64_t batch, int64_t keyHead);

private:
  /// Query rows [first, first + count), whose indices start at `index`, and the columns [lo, hi) that any of them can
  /// see.
  struct Block {
    int64_t batch, head, first, count, index, lo, hi;
    int64_t keys() const { return hi - lo; }
  };
  /// Short sequences take smaller blocks: more of what is not visible is skipped.
  int64_t blockRows() const { return d.queries <= ND_ATTENTION_BLOCK ? ND_ATTENTION_BLOCK / 2 : ND_ATTENTION_BLOCK; }
  Block makeBlock(int64_t batch, int64_t head, const AttentionRun &run, int64_t offset) const;
  void narrowByPositions(Block &block) const;
  /// work(block) for all of a head's query rows, those of later indices first: causal, these see most keys.
  template <typename Work> bool forBlocks(int64_t batch, int64_t head, Work work);
  bool needsMask() const { return d.has_positions || d.has_documents || d.has_key_padding || d.mask; }
  ScoreRow makeRow(const Block &block, int64_t row);
  void fillMask(const Block &block, int64_t row);

  /// The local key head of a query head; -1 for a padding head.
  int64_t keyHeadOf(int64_t head) const {
    if (!d.num_map)
      return head / (d.heads / d.kv_heads);
    int64_t entry = d.kv_map[firstHead + head];
    return entry < 0 ? -1 : entry % d.kv_heads;
  }

  template <typename T> static T *at(T *base, const nd_attention_strides &strides, int64_t b, int64_t h, int64_t s) {
    return base + b * strides.b + h * strides.h + s * strides.s;
  }
  /// Where rows of a result are computed: in place, or in `memory` to be converted.
  static Rows<float> target(void *base, int32_t dtype, const nd_attention_strides &strides, const Block &x,
                            int64_t width, float *memory) {
    if (dtype != ND_F32)
      return {memory, width};
    return {at(static_cast<float *>(base), strides, x.batch, x.head, x.first), strides.s};
  }
  /// Rows of an operand as f32: in place, or converted into `memory`.
  static Rows<const float> read(const void *base, int32_t dtype, const nd_attention_strides &strides, int64_t b,
                                int64_t h, int64_t first, int64_t count, int64_t width, float *memory);
  Rows<const float> readBlock(const void *base, int32_t dtype, const nd_attention_strides &strides, const Block &x,
                              int64_t width, float *memory) const {
    return read(base, dtype, strides, x.batch, x.head, x.first, x.count, width, memory);
  }
  void readKeys(int64_t batch, int64_t keyHead) {
    k = read(args.k, d.dtype, d.k, batch, keyHead, 0, d.keys, d.dim, headMemory);
    v = read(args.v, d.dtype, d.v, batch, keyHead, 0, d.keys, d.value_dim, headMemory + d.keys * d.dim);
  }
  /// Writes rows that are not in place.
  static void write(Rows<const float> from, void *base, const nd_attention_strides &strides, const Block &x,
                    int64_t width);
  static void zero(void *base, int32_t dtype, const nd_attention_strides &strides, const Block &x, int64_t width);
  int64_t lseOffset(const Block &x) const { return (x.batch * d.heads + x.head) * d.queries + x.first; }

  /// tile = alpha * perQuery [count, width] . perKey^T of the block's columns.
  bool againstKeys(const Block &block, double alpha, Rows<const float> perQuery, Rows<const float> perKey,
                   int64_t width, float *tile);
  /// out = alpha * tile . perKey [keys, width].
  bool sumOverKeys(const Block &block, double alpha, const float *tile, Rows<const float> perKey, int64_t width,
                   Rows<float> out);
  /// out (+)= alpha * tile^T . perQuery, rows of keys.
  bool sumOverQueries(const Block &block, double alpha, const float *tile, Rows<const float> perQuery, int64_t width,
                      bool accumulate, Rows<float> out);
  static bool product(char transposeA, char transposeB, int64_t m, int64_t n, int64_t k, double alpha, const float *a,
                      int64_t lda, const float *b, int64_t ldb, bool accumulate, float *c, int64_t ldc) {
    return dnnl_sgemm(transposeA, transposeB, m, n, k, static_cast<float>(alpha), a, lda, b, ldb,
                      accumulate ? 1.0f : 0.0f, c, ldc) == dnnl_success;
  }
  void zeroKeyRows(Rows<float> out, int64_t lo, int64_t hi, int64_t width) const {
    keyPlaces.forPieces(lo, hi, [&](int64_t, int64_t row, int64_t count) {
      for (int64_t i = row; i < row + count; ++i)
        std::fill_n(out.row(i), width, 0.0f);
      return true;
    });
  }

  bool forwardBlock(const Block &block);
  void mergeCarry(const Block &block, Rows<float> out, float *lse);
  bool backwardBlock(const Block &block, Rows<float> keyGrad, Rows<float> valueGrad, bool first);

  AttentionRun *runMemory(int which) const {
    float *end = headMemory + (d.dtype == ND_F32 ? 0 : d.keys * (d.dim + d.value_dim));
    uintptr_t aligned = (reinterpret_cast<uintptr_t>(end) + 63) / 64 * 64;
    return reinterpret_cast<AttentionRun *>(aligned) + which * (d.num_chunks + 1);
  }

  const nd_attention_desc &d;
  const nd_attention_args &args;
  const AttentionRows &rows;
  int64_t firstHead, wholeQueries;
  int64_t stride; ///< of the tiles
  float *probabilities, *grads, *mask, *inverse, *blockMemory, *headMemory;
  AttentionPlaces keyPlaces, queryPlaces;
  Rows<const float> k{}, v{}; ///< of the current head
};

Rows<const float> AttentionWorker::read(const void *base, int32_t dtype, const nd_attention_strides &strides, int64_t b,
                                        int64_t h, int64_t first, int64_t count, int64_t width, float *memory) {
  if (dtype == ND_F32)
    return {at(static_cast<const float *>(base), strides, b, h, first), strides.s};
  const uint16_t *source = at(static_cast<const uint16_t *>(base), strides, b, h, first);
  for (int64_t row = 0; row < count; ++row)
    for (int64_t i = 0; i < width; ++i)
      memory[row * width + i] = bfloatToFloat(source[row * strides.s + i]);
  return {memory, width};
}

void AttentionWorker::write(Rows<const float> from, void *base, const nd_attention_strides &strides, const Block &x,
                            int64_t width) {
  uint16_t *target = at(static_cast<uint16_t *>(base), strides, x.batch, x.head, x.first);
  for (int64_t row = 0; row < x.count; ++row)
    for (int64_t i = 0; i < width; ++i)
      target[row * strides.s + i] = floatToBFloat(from.row(row)[i]);
}

void AttentionWorker::zero(void *base, int32_t dtype, const nd_attention_strides &strides, const Block &x,
                           int64_t width) {
  for (int64_t row = x.first; row < x.first + x.count; ++row)
    if (dtype == ND_F32)
      std::fill_n(at(static_cast<float *>(base), strides, x.batch, x.head, row), width, 0.0f);
    else
      std::fill_n(at(static_cast<uint16_t *>(base), strides, x.batch, x.head, row), width, uint16_t(0));
}

//===----------------------------------------------------------------------===//
// What is visible
//===----------------------------------------------------------------------===//

AttentionWorker::Block AttentionWorker::makeBlock(int64_t batch, int64_t head, const AttentionRun &run,
                                                  int64_t offset) const {
  Block block{batch, head, run.row + offset, std::min(blockRows(), run.count - offset), run.index + offset, 0, d.keys};
  if (d.valid)
    block.hi = keyPlaces.columnsBelow(d.valid);
  if (d.has_positions)
    narrowByPositions(block);
  else if (d.causal)
    block.hi = std::min(block.hi, keyPlaces.columnsBelow(block.index + block.count));
  if (!d.has_positions && d.window)
    block.lo = keyPlaces.columnsBelow(block.index - d.window + 1) / 16 * 16;
  block.lo = std::min(block.lo, block.hi);
  return block;
}

void AttentionWorker::narrowByPositions(Block &block) const {
  if (!d.causal && !d.window)
    return;
  const int64_t *positions = args.positions + block.batch * wholeQueries;
  const int64_t *ofQueries = positions + queryPlaces.firstPlace() + block.first;
  auto ends = std::minmax_element(ofQueries, ofQueries + block.count);
  int64_t low = *ends.first, high = *ends.second, firstSeen = block.hi, lastSeen = -1;
  keyPlaces.forPieces(0, block.hi, [&](int64_t column, int64_t row, int64_t count) {
    const int64_t *ofKeys = positions + keyPlaces.firstPlace() + row;
    for (int64_t i = 0; i < count; ++i) {
      bool hidden = (d.causal && ofKeys[i] > high) || (d.window && low - ofKeys[i] >= d.window);
      if (!hidden)
        firstSeen = std::min(firstSeen, column + i), lastSeen = column + i;
    }
    return true;
  });
  block.lo = firstSeen / 16 * 16;
  block.hi = lastSeen + 1;
}

void AttentionWorker::fillMask(const Block &block, int64_t row) {
  int64_t query = queryPlaces.firstPlace() + block.first + row, sample = block.batch * wholeQueries;
  const int64_t *positions = d.has_positions ? args.positions + sample : nullptr;
  const int64_t *documents = d.has_documents ? args.documents + sample : nullptr;
  const uint8_t *padding = d.has_key_padding ? args.key_padding + sample : nullptr;
  int64_t base = block.batch * d.mask_strides[0] + block.head * d.mask_strides[1] + query * d.mask_strides[2];
  keyPlaces.forPieces(block.lo, block.hi, [&](int64_t column, int64_t firstRow, int64_t count) {
    float *values = mask + column - block.lo;
    int64_t first = keyPlaces.firstPlace() + firstRow;
    if (d.mask == 1) {
      const float *given = static_cast<const float *>(args.mask) + base;
      for (int64_t j = 0; j < count; ++j)
        values[j] = given[(first + j) * d.mask_strides[3]];
    } else if (d.mask == 2) {
      const uint8_t *given = static_cast<const uint8_t *>(args.mask) + base;
      for (int64_t j = 0; j < count; ++j)
        values[j] = given[(first + j) * d.mask_strides[3]] ? 0.0f : -infinity;
    } else {
      std::fill_n(values, count, 0.0f);
    }
    auto hide = [&](auto hidden) {
      for (int64_t j = 0; j < count; ++j)
        values[j] = hidden(first + j) ? -infinity : values[j];
    };
    if (positions && d.causal)
      hide([=, position = positions[query]](int64_t key) { return positions[key] > position; });
    if (positions && d.window)
      hide([=, oldest = positions[query] - d.window](int64_t key) { return positions[key] <= oldest; });
    if (documents)
      hide([=, document = documents[query]](int64_t key) { return documents[key] != document; });
    if (padding)
      hide([=](int64_t key) { return !padding[key]; });
    return true;
  });
  std::fill_n(mask + block.keys(), 16, -infinity); // vectors reach past the end
}

ScoreRow AttentionWorker::makeRow(const Block &block, int64_t row) {
  int64_t index = block.index + row;
  ScoreRow result{probabilities + row * stride, block.keys(), 0, block.keys(), nullptr, static_cast<float>(d.softcap)};
  if (!d.has_positions) {
    if (d.causal)
      result.hi = std::clamp<int64_t>(keyPlaces.columnsBelow(index + 1) - block.lo, 0, result.count);
    if (d.window)
      result.lo = std::clamp<int64_t>(keyPlaces.columnsBelow(index - d.window + 1) - block.lo, 0, result.count);
  }
  if (needsMask()) {
    fillMask(block, row);
    result.mask = mask;
  }
  return result;
}

template <typename Work> bool AttentionWorker::forBlocks(int64_t batch, int64_t head, Work work) {
  for (int64_t i = queryPlaces.size() - 1; i >= 0; --i) {
    const AttentionRun &run = queryPlaces.begin()[i];
    for (int64_t offset = (run.count - 1) / blockRows() * blockRows(); offset >= 0; offset -= blockRows())
      if (!work(makeBlock(batch, head, run, offset)))
        return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

bool AttentionWorker::againstKeys(const Block &block, double alpha, Rows<const float> perQuery,
                                  Rows<const float> perKey, int64_t width, float *tile) {
  return keyPlaces.forPieces(block.lo, block.hi, [&](int64_t column, int64_t row, int64_t count) {
    return product('N', 'T', block.count, count, width, alpha, perQuery.base, perQuery.stride, perKey.row(row),
                   perKey.stride, false, tile + column - block.lo, stride);
  });
}

bool AttentionWorker::sumOverKeys(const Block &block, double alpha, const float *tile, Rows<const float> perKey,
                                  int64_t width, Rows<float> out) {
  return keyPlaces.forPieces(block.lo, block.hi, [&](int64_t column, int64_t row, int64_t count) {
    return product('N', 'N', block.count, width, count, alpha, tile + column - block.lo, stride, perKey.row(row),
                   perKey.stride, column != block.lo, out.base, out.stride);
  });
}

bool AttentionWorker::sumOverQueries(const Block &block, double alpha, const float *tile, Rows<const float> perQuery,
                                     int64_t width, bool accumulate, Rows<float> out) {
  return keyPlaces.forPieces(block.lo, block.hi, [&](int64_t column, int64_t row, int64_t count) {
    return product('T', 'N', count, width, block.count, alpha, tile + column - block.lo, stride, perQuery.base,
                   perQuery.stride, accumulate, out.row(row), out.stride);
  });
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// out and lse over these keys become those over these and the carry's. A side that has seen no key has lse -inf and
/// weighs nothing; a NaN stays one.
void AttentionWorker::mergeCarry(const Block &block, Rows<float> out, float *lse) {
  const float *before = args.carry_lse + lseOffset(block);
  float *memory = blockMemory + 2 * ND_ATTENTION_BLOCK * (d.dim + d.value_dim);
  Rows<const float> carry = readBlock(args.carry_o, d.carry_dtype, d.carry, block, d.value_dim, memory);
  for (int64_t row = 0; row < block.count; ++row) {
    float a = before[row], b = lse[row], larger = std::max(a, b);
    if (a == -infinity && b == -infinity)
      continue; // both are zeros
    float total = larger + std::log(std::exp(a - larger) + std::exp(b - larger));
    float ofCarry = std::exp(a - total), ofThese = std::exp(b - total);
    for (int64_t i = 0; i < d.value_dim; ++i)
      out.row(row)[i] = ofCarry * carry.row(row)[i] + ofThese * out.row(row)[i];
    lse[row] = total;
  }
}

bool AttentionWorker::forwardBlock(const Block &block) {
  float *memory = blockMemory + ND_ATTENTION_BLOCK * d.dim;
  Rows<float> out = target(args.o, d.result_dtype, d.o, block, d.value_dim, memory);
  float *lse = args.lse + lseOffset(block);
  if (block.keys() == 0 || keyHeadOf(block.head) < 0) {
    for (int64_t row = 0; row < block.count; ++row)
      std::fill_n(out.row(row), d.value_dim, 0.0f);
    std::fill_n(lse, block.count, -infinity);
  } else {
    Rows<const float> q = readBlock(args.q, d.dtype, d.q, block, d.dim, blockMemory);
    if (!againstKeys(block, d.scale, q, k, d.dim, probabilities))
      return false;
    for (int64_t row = 0; row < block.count; ++row)
      lse[row] = rows.forward(makeRow(block, row), inverse[row]);
    if (!sumOverKeys(block, 1, probabilities, v, d.value_dim, out))
      return false;
    for (int64_t row = 0; row < block.count; ++row)
      rows.scale(out.row(row), inverse[row], d.value_dim);
  }
  if (d.has_carry)
    mergeCarry(block, out, lse);
  if (d.result_dtype != ND_F32)
    write({out.base, out.stride}, args.o, d.o, block, d.value_dim);
  return true;
}

bool AttentionWorker::forwardHead(int64_t batch, int64_t head) {
  if (int64_t keyHead = keyHeadOf(head); keyHead >= 0)
    readKeys(batch, keyHead);
  return forBlocks(batch, head, [&](const Block &block) { return forwardBlock(block); });
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

bool AttentionWorker::backwardBlock(const Block &block, Rows<float> keyGrad, Rows<float> valueGrad, bool first) {
  if (first) { // it writes its keys' gradients; those of the others start from zero
    for (auto [lo, hi] : {std::pair(int64_t(0), block.lo), {block.hi, d.keys}}) {
      zeroKeyRows(keyGrad, lo, hi, d.dim);
      zeroKeyRows(valueGrad, lo, hi, d.value_dim);
    }
  }
  if (block.keys() == 0) {
    zero(args.dq, d.grad_dtype, d.dq, block, d.dim);
    return true;
  }
  float *memory = blockMemory;
  auto take = [&](int64_t width) { return std::exchange(memory, memory + ND_ATTENTION_BLOCK * width); };
  Rows<const float> q = readBlock(args.q, d.dtype, d.q, block, d.dim, take(d.dim));
  Rows<const float> outGrad = readBlock(args.d_o, d.result_dtype, d.d_o, block, d.value_dim, take(d.value_dim));
  Rows<const float> out = readBlock(args.o_in, d.result_dtype, d.o, block, d.value_dim, take(d.value_dim));
  Rows<float> queryGrad = target(args.dq, d.grad_dtype, d.dq, block, d.dim, take(d.dim));
  const float *lse = args.lse_in + lseOffset(block);
  if (!againstKeys(block, d.scale, q, k, d.dim, probabilities) ||
      !againstKeys(block, 1, outGrad, v, d.value_dim, grads))
    return false;
  for (int64_t row = 0; row < block.count; ++row) {
    float delta = rows.dot(out.row(row), outGrad.row(row), d.value_dim);
    rows.backward(makeRow(block, row), lse[row], delta, grads + row * stride);
  }
  if (!sumOverQueries(block, 1, probabilities, outGrad, d.value_dim, !first, valueGrad) ||
      !sumOverKeys(block, d.scale, grads, k, d.dim, queryGrad) ||
      !sumOverQueries(block, d.scale, grads, q, d.dim, !first, keyGrad))
    return false;
  if (d.grad_dtype != ND_F32)
    write({queryGrad.base, queryGrad.stride}, args.dq, d.dq, block, d.dim);
  return true;
}

bool AttentionWorker::backwardGroup(int64_t batch, int64_t keyHead) {
  Rows<float> keyGrad{at(static_cast<float *>(args.dk), d.dk, batch, keyHead, 0), d.dk.s};
  Rows<float> valueGrad{at(static_cast<float *>(args.dv), d.dv, batch, keyHead, 0), d.dv.s};
  readKeys(batch, keyHead);
  bool first = true;
  for (int64_t head = 0; head < d.heads; ++head) {
    int64_t reads = keyHeadOf(head);
    if (reads < 0 && keyHead == 0) // a padding head belongs to the first
      zero(args.dq, d.grad_dtype, d.dq, {batch, head, 0, d.queries, 0, 0, 0}, d.dim);
    if (reads == keyHead && !forBlocks(batch, head, [&](const Block &block) {
          return backwardBlock(block, keyGrad, valueGrad, std::exchange(first, false));
        }))
      return false;
  }
  if (first) { // no query head reads it
    zeroKeyRows(keyGrad, 0, d.keys, d.dim);
    zeroKeyRows(valueGrad, 0, d.keys, d.value_dim);
  }
  return true;
}

/// Runs work(worker, batch, head) for every pair, split over the threads.
template <typename Work>
void forHeads(nd_rank *rank, const nd_attention_desc *desc, const nd_attention_args *args, int64_t heads, Work work) {
  std::atomic<bool> good{true};
  Placement place(*rank, *desc);
  rank->pool.parallel([&](int thread, int threads) {
    Range range = splitRange(desc->batch * heads, 1, thread, threads);
    AttentionWorker worker(*rank, *desc, *args, place, static_cast<char *>(rank->scratch(thread)));
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
