//===- ArenaPlanner.cpp - Offsets of buffers by liveness -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Memory/ArenaPlanner.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <numeric>

using namespace llvm;
using namespace nd;

namespace {

enum class Fit { Lowest, Tightest };

/// From here on time counts: a placement costs about the square of the number of buffers.
constexpr size_t manyBuffers = 4000;

class Planner {
public:
  Planner(ArrayRef<Lifetime> buffers, int64_t alignment) : buffers(buffers) {
    for (const Lifetime &buffer : buffers)
      sizes.push_back((buffer.bytes + alignment - 1) / alignment * alignment);
    // Sweep by start: what is still alive when a buffer starts overlaps it.
    SmallVector<unsigned> byStart = identity(), alive;
    llvm::sort(byStart,
               [&](unsigned a, unsigned b) { return std::pair(buffers[a].first, a) < std::pair(buffers[b].first, b); });
    neighbours.resize(buffers.size());
    size_t pairs = 0;
    for (unsigned index : byStart) {
      llvm::erase_if(alive, [&](unsigned other) { return buffers[other].last < buffers[index].first; });
      pairs += alive.size();
      if (pairs * 16 > buffers.size() * buffers.size() && buffers.size() > manyBuffers) {
        neighbours.clear();
        return;
      }
      for (unsigned other : alive) {
        neighbours[index].push_back(other);
        neighbours[other].push_back(index);
      }
      alive.push_back(index);
    }
  }

  int64_t peakOf(ArrayRef<int64_t> bytes) const {
    std::map<int64_t, int64_t> change;
    for (auto [buffer, size] : llvm::zip_equal(buffers, bytes)) {
      change[buffer.first] += size;
      change[buffer.last + 1] -= size;
    }
    int64_t live = 0, peak = 0;
    for (auto [time, delta] : change)
      peak = std::max(peak, live += delta);
    return peak;
  }

  ArrayRef<int64_t> alignedSizes() const { return sizes; }

  SmallVector<unsigned> identity() const {
    SmallVector<unsigned> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  /// Buffers in descending order of `weight`.
  SmallVector<unsigned> orderBy(function_ref<double(unsigned)> weight) const {
    SmallVector<double> weights;
    for (unsigned index = 0; index < buffers.size(); ++index)
      weights.push_back(weight(index));
    SmallVector<unsigned> order = identity();
    llvm::sort(order, [&](unsigned a, unsigned b) { return std::pair(-weights[a], a) < std::pair(-weights[b], b); });
    return order;
  }

  int64_t duration(unsigned index) const { return buffers[index].last - buffers[index].first + 1; }

  void place(ArrayRef<unsigned> order, Fit fit, SmallVectorImpl<int64_t> &offsets, int64_t &bytes) const {
    offsets.assign(buffers.size(), -1);
    bytes = 0;
    SmallVector<unsigned> taken, placed; // by offset
    for (unsigned index : order) {
      ArrayRef<unsigned> others = placed;
      if (!neighbours.empty()) {
        taken.clear();
        llvm::copy_if(neighbours[index], std::back_inserter(taken),
                      [&](unsigned other) { return offsets[other] >= 0; });
        llvm::sort(taken, [&](unsigned a, unsigned b) { return offsets[a] < offsets[b]; });
        others = taken;
      }
      offsets[index] = findGap(index, others, fit, offsets);
      bytes = std::max(bytes, offsets[index] + sizes[index]);
      if (neighbours.empty())
        placed.insert(llvm::upper_bound(placed, index, [&](unsigned a, unsigned b) { return offsets[a] < offsets[b]; }),
                      index);
    }
  }

private:
  /// The place of a buffer among others, in ascending order of their offsets. Those that do not overlap it are passed.
  int64_t findGap(unsigned index, ArrayRef<unsigned> others, Fit fit, ArrayRef<int64_t> offsets) const {
    int64_t end = 0, best = -1, bestGap = 0;
    for (unsigned other : others) {
      if (!buffers[index].overlaps(buffers[other]))
        continue;
      int64_t gap = offsets[other] - end;
      if (gap >= sizes[index] && (best < 0 || gap < bestGap)) {
        best = end;
        bestGap = gap;
        if (fit == Fit::Lowest)
          break;
      }
      end = std::max(end, offsets[other] + sizes[other]);
    }
    return best >= 0 ? best : end;
  }

  ArrayRef<Lifetime> buffers;
  SmallVector<int64_t> sizes;
  /// Buffers that overlap each. Empty where these would be too many to list: then all are looked at.
  SmallVector<SmallVector<unsigned>> neighbours;
};

} // namespace

ArenaPlan nd::planArena(ArrayRef<Lifetime> buffers, int64_t alignment, double tolerance) {
  Planner planner(buffers, alignment);
  ArenaPlan best;
  SmallVector<int64_t> exact = llvm::map_to_vector(buffers, [](const Lifetime &buffer) { return buffer.bytes; });
  best.peakBytes = planner.peakOf(exact);
  const int64_t goal = static_cast<int64_t>(planner.peakOf(planner.alignedSizes()) * tolerance);
  best.bytes = INT64_MAX;

  ArrayRef<int64_t> sizes = planner.alignedSizes();
  SmallVector<unsigned> orders[] = {
      planner.orderBy([&](unsigned i) { return static_cast<double>(sizes[i]); }),
      planner.orderBy([&](unsigned i) { return static_cast<double>(sizes[i]) * planner.duration(i); }),
      planner.orderBy([&](unsigned i) { return static_cast<double>(planner.duration(i)); }),
      planner.orderBy([&](unsigned i) { return -static_cast<double>(buffers[i].first); }),
      planner.orderBy([&](unsigned i) { return static_cast<double>(buffers[i].last); }),
  };
  const int repairs = buffers.size() > manyBuffers ? 4 : 64;
  SmallVector<int64_t> offsets;
  int64_t bytes = 0;
  for (SmallVector<unsigned> &order : orders)
    for (Fit fit : {Fit::Lowest, Fit::Tightest})
      for (int repair = 0; repair <= repairs && best.bytes > goal; ++repair) {
        planner.place(order, fit, offsets, bytes);
        if (bytes < best.bytes) {
          best.bytes = bytes;
          best.offsets = offsets;
        }
        // The buffer that ends the arena goes half way to the front.
        auto *top = llvm::find_if(order, [&](unsigned i) { return offsets[i] + sizes[i] == bytes; });
        if (top == order.begin() || top == order.end())
          break;
        std::rotate(order.begin() + (top - order.begin()) / 2, top, top + 1);
      }
  if (buffers.empty())
    best.bytes = 0;
  return best;
}
