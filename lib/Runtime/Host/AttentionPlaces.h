//===- AttentionPlaces.h - Where attention's keys and queries lie -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A rank holds rows of a sequence that may be stored in another order than it has (chunks, of which some are on other
// ranks). Within a run, rows and original indices ascend together. Attention takes its keys in the order of their
// indices, as columns: what a query sees by position is then one interval of columns, whatever the order of storage.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_ATTENTIONPLACES_H
#define ND_LIB_RUNTIME_HOST_ATTENTIONPLACES_H

#include "nd/Runtime/Core/ABI.h"
#include <algorithm>

namespace nd::rt {

/// Rows [row, row + count) have the indices from `index` on, and the columns from `column` on.
struct AttentionRun {
  int64_t row, index, count, column;
};

/// The rows of a shard, as runs in the order of their indices.
class AttentionPlaces {
public:
  /// `rows` rows from place `first` of a sequence of `length` on; `memory` holds num_chunks + 1 runs.
  AttentionPlaces(const nd_attention_desc &desc, int64_t length, int64_t first, int64_t rows, AttentionRun *memory);

  const AttentionRun *begin() const { return runs; }
  const AttentionRun *end() const { return runs + count; }
  int64_t size() const { return count; }
  /// The place of row 0 in the stored sequence.
  int64_t firstPlace() const { return first; }

  /// How many columns have an index below this one.
  int64_t columnsBelow(int64_t index) const {
    int64_t columns = 0;
    for (const AttentionRun &run : *this)
      columns += std::clamp<int64_t>(index - run.index, 0, run.count);
    return columns;
  }

  /// Calls piece(column, row, count) for what columns [lo, hi) are in memory; stops when that returns false.
  template <typename Piece> bool forPieces(int64_t lo, int64_t hi, Piece piece) const {
    for (const AttentionRun &run : *this) {
      int64_t from = std::max(lo, run.column), to = std::min(hi, run.column + run.count);
      if (from < to && !piece(from, run.row + from - run.column, to - from))
        return false;
    }
    return true;
  }

private:
  AttentionRun *runs;
  int64_t count = 0, first;
};

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_ATTENTIONPLACES_H
