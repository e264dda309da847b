//===- TokenFile.h - Samples of a token file --------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_TOKENFILE_H
#define ND_RUNTIME_CORE_TOKENFILE_H

#include "nd/Runtime/Core/Rank.h"
#include <string>

namespace nd::rt {

/// A permutation of [0, size) that is computed, not stored: a Feistel network over the next power of four, walked until
/// it lands inside. Equal arguments give equal permutations on every machine.
class Permutation {
public:
  Permutation(uint64_t size, uint64_t seed, uint64_t epoch);
  uint64_t operator()(uint64_t index) const;

private:
  uint64_t size, keys[4];
  unsigned halfBits;
};

/// How a run reads its tokens.
struct TokenSource {
  std::string path;
  int32_t tokenBytes = 2; ///< 2 or 4, unsigned
  bool shuffle = true;
  uint64_t seed = 0;
};

/// A memory-mapped file of tokens, and the step's inputs that are made of it: `input_ids`, `labels`, `position_ids` and
/// `attention_mask`. Sample i is tokens i*S .. i*S+S; the first S are inputs, the last S labels: this is the only
/// shift. Step k takes the samples from (k-1)*M*B on, in order or permuted within each epoch; microbatch m the m-th B
/// of them.
class TokenFile {
public:
  TokenFile() = default;
  TokenFile(const TokenFile &) = delete;
  TokenFile &operator=(const TokenFile &) = delete;
  ~TokenFile();

  [[nodiscard]] bool open(const nd_rank &rank, const TokenSource &source, std::string &error);

  /// Writes this rank's part of the inputs of step `step` (from 1). False, with a message, for a token that is out of
  /// bounds.
  [[nodiscard]] bool fill(nd_rank &rank, int64_t step, std::string &error) const;

private:
  bool fillTensor(nd_rank &rank, const nd_tensor_desc &desc, int64_t firstSample, std::string &error) const;
  int64_t token(int64_t index) const;
  int64_t sampleAt(int64_t position) const;

  TokenSource source;
  const char *data = nullptr;
  int64_t bytes = 0, samples = 0, sequence = 0, samplesPerStep = 0;
};

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_TOKENFILE_H
