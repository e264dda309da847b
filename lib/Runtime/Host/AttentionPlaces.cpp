//===- AttentionPlaces.cpp - Where attention's keys and queries lie -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "AttentionPlaces.h"

using namespace nd::rt;

AttentionPlaces::AttentionPlaces(const nd_attention_desc &desc, int64_t length, int64_t first, int64_t rows,
                                 AttentionRun *memory)
    : runs(memory), first(first) {
  int64_t size = desc.num_chunks ? length / desc.num_chunks : std::max<int64_t>(first + rows, 1);
  for (int64_t place = first; place < first + rows;) {
    int64_t chunk = place / size, end = std::min((chunk + 1) * size, first + rows);
    int64_t index = (desc.num_chunks ? desc.order[chunk] : chunk) * size + place % size;
    AttentionRun *last = count ? &runs[count - 1] : nullptr;
    if (last && last->index + last->count == index)
      last->count += end - place;
    else
      runs[count++] = {place - first, index, end - place, 0};
    place = end;
  }
  std::sort(runs, runs + count, [](const AttentionRun &a, const AttentionRun &b) { return a.index < b.index; });
  for (int64_t i = 0, column = 0; i < count; column += runs[i++].count)
    runs[i].column = column;
}
