//===- Profile.cpp - Where a step's time goes -----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Profile.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace nd::rt;

Profile *Profile::create() { return getenv("ND_PROFILE") ? new Profile : nullptr; }

void Profile::add(Kind kind, int32_t index, const char *location, double milliseconds) {
  std::vector<Entry> &table = entries[kind];
  if (static_cast<size_t>(index) >= table.size())
    table.resize(index + 1);
  Entry &entry = table[index];
  entry.milliseconds += milliseconds;
  ++entry.calls;
  entry.location = location;
}

void Profile::print(int64_t steps) const {
  static constexpr const char *names[] = {"kernels",        "products", "attention",
                                          "attention_grad", "copies",   "collectives"};
  struct Line {
    int kind;
    size_t index;
    Entry entry;
  };
  std::vector<Line> lines;
  double perStep = 1.0 / static_cast<double>(std::max<int64_t>(1, steps));
  fprintf(stderr, "profile of %ld steps, ms a step:", steps);
  for (int kind = 0; kind < NumKinds; ++kind) {
    double total = 0;
    for (size_t index = 0; index < entries[kind].size(); ++index) {
      total += entries[kind][index].milliseconds;
      lines.push_back({kind, index, entries[kind][index]});
    }
    fprintf(stderr, "  %s %.3f", names[kind], total * perStep);
  }
  fprintf(stderr, "\n");
  std::sort(lines.begin(), lines.end(),
            [](const Line &a, const Line &b) { return a.entry.milliseconds > b.entry.milliseconds; });
  constexpr size_t shown = 40;
  for (size_t i = 0; i < std::min(shown, lines.size()); ++i)
    fprintf(stderr, "  %9.3f ms  %4ld calls  %s %zu  %s\n", lines[i].entry.milliseconds * perStep, lines[i].entry.calls,
            names[lines[i].kind], lines[i].index, lines[i].entry.location);
}
