//===- TokenFile.cpp - Samples of a token file ----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/TokenFile.h"
#include "nd/Runtime/Core/TensorFile.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace nd::rt;

namespace {

uint64_t mix(uint64_t value) { // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

enum class InputKind { Ids, Labels, Positions, Mask, Unknown };

InputKind inputKind(const nd_tensor_desc &desc) {
  if (!strcmp(desc.name, "input_ids"))
    return InputKind::Ids;
  if (!strcmp(desc.name, "labels"))
    return InputKind::Labels;
  if (!strcmp(desc.name, "position_ids"))
    return InputKind::Positions;
  if (!strcmp(desc.name, "attention_mask"))
    return InputKind::Mask;
  return InputKind::Unknown;
}

bool isInput(const nd_tensor_desc &desc) { return !strcmp(desc.kind, "input"); }

} // namespace

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t epoch) : size(size), halfBits(1) {
  while (halfBits < 32 && (uint64_t(1) << (2 * halfBits)) < size)
    ++halfBits;
  for (int round = 0; round < 4; ++round)
    keys[round] = mix(mix(seed) ^ mix(epoch * 4 + round + 1));
}

uint64_t Permutation::operator()(uint64_t index) const {
  uint64_t mask = (uint64_t(1) << halfBits) - 1;
  do {
    uint64_t left = index >> halfBits, right = index & mask;
    for (uint64_t key : keys) {
      uint64_t next = left ^ (mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    index = left << halfBits | right;
  } while (index >= size);
  return index;
}

TokenFile::~TokenFile() {
  if (data)
    munmap(const_cast<char *>(data), bytes);
}

bool TokenFile::open(const nd_rank &rank, const TokenSource &newSource, std::string &error) {
  source = newSource;
  const nd_tensor_desc *ids = nullptr;
  for (int32_t i = 0; i < rank.program->num_tensors; ++i) {
    const nd_tensor_desc &desc = rank.program->tensors[i];
    if (!isInput(desc))
      continue;
    if (inputKind(desc) == InputKind::Unknown) {
      error = std::string("the program has an input '") + desc.name +
              "', which a token file does not give; a step takes input_ids, labels, position_ids and attention_mask";
      return false;
    }
    bool integers = desc.dtype == ND_I64 || desc.dtype == ND_I32 || desc.dtype == ND_I1;
    if ((desc.rank != 2 && desc.rank != 3) || !integers) {
      error = std::string("input '") + desc.name +
              "' must be integers of [batch, sequence] or [microbatches, batch, sequence]";
      return false;
    }
    if (inputKind(desc) == InputKind::Ids || inputKind(desc) == InputKind::Labels)
      ids = &desc;
  }
  if (!ids) {
    error = "the program has no input 'input_ids' to be filled from a token file";
    return false;
  }
  sequence = ids->global_shape[ids->rank - 1];
  samplesPerStep = ids->global_shape[ids->rank - 2] * (ids->rank == 3 ? ids->global_shape[0] : 1);
  int fd = ::open(source.path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) {
    error = "cannot open token file " + source.path + ": " + strerror(errno);
    if (fd >= 0)
      close(fd);
    return false;
  }
  bytes = info.st_size;
  int64_t tokens = bytes / source.tokenBytes;
  samples = (tokens - 1) / sequence;
  if (bytes % source.tokenBytes != 0)
    error = source.path + ": " + std::to_string(bytes) + " bytes are no whole number of " +
            std::to_string(source.tokenBytes * 8) + "-bit tokens: the file is truncated, or --data-dtype is wrong";
  else if (tokens < sequence + 1)
    error = source.path + " holds " + std::to_string(tokens) + " tokens; one sample needs " +
            std::to_string(sequence + 1) + " (the sequence length and the last label)";
  if (error.empty()) {
    void *memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
      error = "cannot map token file " + source.path + ": " + strerror(errno);
    else
      data = static_cast<const char *>(memory);
  }
  close(fd);
  return error.empty();
}

int64_t TokenFile::token(int64_t index) const {
  if (source.tokenBytes == 2) {
    uint16_t value;
    memcpy(&value, data + index * 2, 2);
    return value;
  }
  uint32_t value;
  memcpy(&value, data + index * 4, 4);
  return value;
}

int64_t TokenFile::sampleAt(int64_t position) const {
  int64_t epoch = position / samples, index = position % samples;
  if (!source.shuffle)
    return index;
  return static_cast<int64_t>(Permutation(samples, source.seed, epoch)(index));
}

bool TokenFile::fillTensor(nd_rank &rank, const nd_tensor_desc &desc, int64_t firstSample, std::string &error) const {
  InputKind kind = inputKind(desc);
  char *base = rank.arena + desc.offset;
  bool bounded = kind == InputKind::Ids || kind == InputKind::Labels;
  fillPadding(rank, desc);
  return forEachRun(LocalBoxes(rank, desc), desc, TensorPart(), [&](Run run) {
    int64_t row = -1, start = 0;
    for (int64_t i = 0; i < run.count; ++i) {
      int64_t element = run.global + i, position = element % sequence;
      if (bounded && element / sequence != row) {
        row = element / sequence;
        start = sampleAt(firstSample + row) * sequence;
      }
      int64_t value = kind == InputKind::Mask        ? 1
                      : kind == InputKind::Positions ? position
                                                     : token(start + position + (kind == InputKind::Labels));
      if (desc.bound && value >= desc.bound) {
        error = bounded ? source.path + ": token " + std::to_string(value) + " at index " +
                              std::to_string(start + position + (kind == InputKind::Labels)) +
                              " is outside the vocabulary [0, " + std::to_string(desc.bound) +
                              "); tokenize the data with this model's tokenizer"
                        : "position " + std::to_string(value) + " is outside the model's [0, " +
                              std::to_string(desc.bound) + "); import with a shorter sequence";
        return false;
      }
      int64_t at = run.local + i;
      if (desc.dtype == ND_I64)
        reinterpret_cast<int64_t *>(base)[at] = value;
      else if (desc.dtype == ND_I32)
        reinterpret_cast<int32_t *>(base)[at] = static_cast<int32_t>(value);
      else
        base[at] = value != 0;
    }
    return true;
  });
}

bool TokenFile::fill(nd_rank &rank, int64_t step, std::string &error) const {
  int64_t firstSample = (step - 1) * samplesPerStep;
  for (int32_t i = 0; i < rank.program->num_tensors; ++i) {
    const nd_tensor_desc &desc = rank.program->tensors[i];
    if (isInput(desc) && !fillTensor(rank, desc, firstSample, error))
      return false;
  }
  return true;
}
