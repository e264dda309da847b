//===- AttentionRows.h - Rows of attention scores ---------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_ATTENTIONROWS_H
#define ND_LIB_RUNTIME_HOST_ATTENTIONROWS_H

#include <cstdint>

namespace nd::rt {

/// A row of scores in a tile: `count` of them, of which [lo, hi) may be visible. The tile has at least 16 more floats
/// behind.
struct ScoreRow {
  float *scores;
  int64_t count, lo, hi;
  const float *mask; ///< added to each score, -inf where a key is not visible; null: none
  float softcap;     ///< 0: none
};

/// Row kernels of one CPU level.
struct AttentionRows {
  /// Makes scores into unnormalised probabilities exp(s - max), zeros outside. `inverse` is 1 / their sum, 0 where
  /// nothing is visible; returns the log of the sum of exponentials, -inf where nothing is visible.
  float (*forward)(const ScoreRow &row, float &inverse);

  /// Makes scores into probabilities, and `grads`, the gradient of the probabilities, into that of the scores.
  void (*backward)(const ScoreRow &row, float lse, float delta, float *grads);

  /// a . b, of `count` elements.
  float (*dot)(const float *a, const float *b, int64_t count);

  /// a *= factor.
  void (*scale)(float *a, float factor, int64_t count);
};

extern const AttentionRows attentionRowsV3, attentionRowsV4;

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_ATTENTIONROWS_H
