//===- CollectiveRows.h - The rows that a collective moves ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The parts of a collective's operands, one operand after the other, are one stream of elements. Work on a collective
// is work on ranges of its stream, which any number of threads or ranks can share.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_COLLECTIVEROWS_H
#define ND_RUNTIME_CORE_COLLECTIVEROWS_H

#include "nd/Runtime/Core/ABI.h"
#include "nd/Runtime/Core/ThreadPool.h"
#include <algorithm>

namespace nd::rt {

inline int64_t partElements(const nd_collective_operand &operand) {
  return operand.outer * operand.middle * operand.inner;
}

/// Elements of the stream.
inline int64_t streamElements(const nd_collective_desc &desc) {
  int64_t elements = 0;
  for (int32_t i = 0; i < desc.num_operands; ++i)
    elements += partElements(desc.operands[i]);
  return elements;
}

/// Calls row(operand's index, element in a part at src, element in a part at dst, number of elements) for the
/// neighbours in memory that make up a range of the stream.
template <typename Function> void forRows(const nd_collective_desc &desc, Range range, Function row) {
  int64_t begin = 0; // of the operand, in the stream
  for (int32_t i = 0; i < desc.num_operands && begin < range.hi; ++i) {
    const nd_collective_operand &operand = desc.operands[i];
    int64_t size = partElements(operand);
    int64_t at = std::max<int64_t>(range.lo - begin, 0), end = std::min(range.hi - begin, size);
    begin += size;
    while (at < end) {
      int64_t line = at / operand.inner, within = at % operand.inner;
      int64_t outer = line / operand.middle, middle = line % operand.middle;
      int64_t count = std::min(operand.inner - within, end - at);
      row(i, outer * operand.src.outer + middle * operand.src.middle + within,
          outer * operand.dst.outer + middle * operand.dst.middle + within, count);
      at += count;
    }
  }
}

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_COLLECTIVEROWS_H
