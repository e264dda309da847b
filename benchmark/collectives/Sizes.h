//===- Sizes.h - What both sides of the benchmark run -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_BENCHMARK_COLLECTIVES_SIZES_H
#define ND_BENCHMARK_COLLECTIVES_SIZES_H

#include <algorithm>
#include <cstdint>
#include <vector>

/// Many short rounds: the best one met no other process.
constexpr int benchmarkRounds = 40;

/// Bytes of the whole tensor.
inline const std::vector<int64_t> &benchmarkSizes() {
  static const std::vector<int64_t> sizes = {4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  return sizes;
}

inline int benchmarkRepeats(int64_t bytes) { return static_cast<int>(std::clamp<int64_t>((4 << 20) / bytes, 1, 50)); }

#endif // ND_BENCHMARK_COLLECTIVES_SIZES_H
