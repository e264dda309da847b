//===- Reduce.cpp - Sums over ranks in a fixed order ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Reduce.h"
#include "nd/Runtime/Core/BFloat.h"
#include <algorithm>
#include <cstring>
#include <immintrin.h>

using namespace nd::rt;

namespace {

/// Elements that are summed at a time: the accumulator stays in the first cache level.
constexpr int64_t block = 1024;

struct Sum {
  template <typename T> static T apply(T a, T b) { return a + b; }
};
struct Max { // a NaN on either side wins, as in the compiler's maximum
  template <typename T> static T apply(T a, T b) { return a > b || a != a ? a : b; }
};
struct Min {
  template <typename T> static T apply(T a, T b) { return a < b || a != a ? a : b; }
};

struct Plain {
  template <typename T> static T load(T value) { return value; }
  template <typename T> static T store(T value) { return value; }
};
struct Brain {
  static float load(uint16_t bits) { return bfloatToFloat(bits); }
  static uint16_t store(float value) { return floatToBFloat(value); }
};

template <typename Stored, typename Computed, typename Form, typename Operation>
void reduceTyped(const char *const *in, int parts, char *const *out, int targets, int64_t count, bool streamed) {
  alignas(64) Computed accumulator[block];
  alignas(64) Stored result[block];
  for (int64_t start = 0; start < count; start += block) {
    int64_t length = std::min(block, count - start);
    const auto *first = reinterpret_cast<const Stored *>(in[0]) + start;
    for (int64_t i = 0; i < length; ++i)
      accumulator[i] = Form::load(first[i]);
    for (int part = 1; part < parts; ++part) {
      const auto *operand = reinterpret_cast<const Stored *>(in[part]) + start;
      for (int64_t i = 0; i < length; ++i)
        accumulator[i] = Operation::apply(accumulator[i], static_cast<Computed>(Form::load(operand[i])));
    }
    for (int64_t i = 0; i < length; ++i)
      result[i] = Form::store(accumulator[i]);
    for (int target = 0; target < targets; ++target)
      copyRow(out[target] + start * sizeof(Stored), reinterpret_cast<const char *>(result), length * sizeof(Stored),
              streamed);
  }
}

template <typename Operation>
void reduceWith(int32_t dtype, const char *const *in, int parts, char *const *out, int targets, int64_t count,
                bool streamed) {
  switch (dtype) {
  case ND_F32:
    return reduceTyped<float, float, Plain, Operation>(in, parts, out, targets, count, streamed);
  case ND_F64:
    return reduceTyped<double, double, Plain, Operation>(in, parts, out, targets, count, streamed);
  case ND_BF16:
    return reduceTyped<uint16_t, float, Brain, Operation>(in, parts, out, targets, count, streamed);
  case ND_I64:
    return reduceTyped<int64_t, int64_t, Plain, Operation>(in, parts, out, targets, count, streamed);
  case ND_I32:
    return reduceTyped<int32_t, int32_t, Plain, Operation>(in, parts, out, targets, count, streamed);
  default:
    return;
  }
}

void copyPastCaches(char *to, const char *from, int64_t bytes) {
  constexpr int64_t line = 64;
  int64_t head = std::min(bytes, (line - static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % line)) % line);
  memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= line; to += line, from += line, bytes -= line)
    for (int64_t at = 0; at < line; at += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i *>(to + at),
                       _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + at)));
  memcpy(to, from, bytes);
}

} // namespace

void nd::rt::copyRow(char *to, const char *from, int64_t bytes, bool streamed) {
  constexpr int64_t shortRow = 2048;
  if (from == to)
    return;
  if (streamed && bytes >= shortRow)
    copyPastCaches(to, from, bytes);
  else
    memcpy(to, from, bytes);
}

bool nd::rt::canReduce(int32_t dtype, int32_t reduction) {
  bool known = dtype == ND_F32 || dtype == ND_F64 || dtype == ND_BF16 || dtype == ND_I64 || dtype == ND_I32;
  return known && reduction >= ND_SUM && reduction <= ND_MIN;
}

void nd::rt::reduceParts(int32_t dtype, int32_t reduction, const char *const *in, int parts, char *const *out,
                         int targets, int64_t count, bool streamed) {
  if (reduction == ND_SUM)
    reduceWith<Sum>(dtype, in, parts, out, targets, count, streamed);
  else if (reduction == ND_MAX)
    reduceWith<Max>(dtype, in, parts, out, targets, count, streamed);
  else
    reduceWith<Min>(dtype, in, parts, out, targets, count, streamed);
}
