//===- TensorFile.h - Slices of tensors in files ----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_TENSORFILE_H
#define ND_RUNTIME_CORE_TENSORFILE_H

#include "nd/Runtime/Core/Rank.h"
#include <string>

namespace nd::rt {

/// A box of elements that a rank holds: its first index in the rank's memory and in the logical tensor, and its extent.
struct TensorBox {
  int64_t local[ND_MAX_RANK], first[ND_MAX_RANK], extent[ND_MAX_RANK];
};

/// What a rank holds of the logical tensor, box by box: one box, or one for each run of consecutive units where a
/// dimension is stored in units. What no box covers is padding. Nothing is allocated.
class LocalBoxes {
public:
  /// `firstOnly`: of a unit that several places hold, only the first place counts.
  LocalBoxes(const nd_rank &rank, const nd_tensor_desc &desc, bool firstOnly = false);

  /// The next box that is not empty; false at the end.
  bool next(TensorBox &box);
  /// Whether the boxes leave elements of the rank's memory out.
  bool hasPadding() const;

private:
  bool isCounted(int64_t place) const;
  /// The part of unit place `place` that this shard holds, in the dimension of units.
  void unitExtent(int64_t place, int64_t &local, int64_t &first, int64_t &extent) const;

  const nd_tensor_desc &desc;
  bool firstOnly;
  TensorBox whole{};               ///< of the dimensions that are not stored in units
  int64_t shardFirst = 0;          ///< of the stored dimension
  int64_t place = 0, placeEnd = 1; ///< units of this shard that remain
};

/// Whether this rank is the first of those that hold the same elements.
bool isFirstReplica(const nd_rank &rank, const nd_tensor_desc &desc);

/// The logical tensor is elements [offset, offset + its own size) of `dim` of a larger one; size 0: it is all of it.
struct TensorPart {
  int32_t dim = 0;
  int64_t offset = 0, size = 0;
};

/// A maximal run of elements that is contiguous both in the rank's memory and in the logical tensor (or in the larger
/// one that it is a part of).
struct Run {
  int64_t local, global, count; ///< element offsets
};

/// Calls visit(Run) for every run of the box, in order, until it returns false.
template <typename Visit>
bool forEachRun(const nd_tensor_desc &desc, const TensorBox &box, const TensorPart &part, Visit visit) {
  int64_t outer[ND_MAX_RANK], first[ND_MAX_RANK];
  for (int32_t dim = 0; dim < desc.rank; ++dim) {
    bool isPart = part.size != 0 && part.dim == dim;
    outer[dim] = isPart ? part.size : desc.global_shape[dim];
    first[dim] = box.first[dim] + (isPart ? part.offset : 0);
  }
  int32_t inner = desc.rank; // dimensions from `inner` on are whole, so that one run spans them
  int64_t count = 1;
  while (inner > 0 && box.extent[inner - 1] == outer[inner - 1] && desc.shape[inner - 1] == box.extent[inner - 1])
    count *= box.extent[--inner];
  if (inner > 0)
    count *= box.extent[--inner];
  int64_t index[ND_MAX_RANK] = {0};
  while (true) {
    Run run{0, 0, count};
    for (int32_t dim = 0; dim < desc.rank; ++dim) {
      run.local = run.local * desc.shape[dim] + box.local[dim] + index[dim];
      run.global = run.global * outer[dim] + first[dim] + index[dim];
    }
    if (!visit(run))
      return false;
    int32_t dim = inner - 1;
    while (dim >= 0 && ++index[dim] >= box.extent[dim])
      index[dim--] = 0;
    if (dim < 0)
      return true;
  }
}

/// Calls visit(Run) for every run that the rank holds, until it returns false.
template <typename Visit>
bool forEachRun(LocalBoxes boxes, const nd_tensor_desc &desc, const TensorPart &part, Visit visit) {
  for (TensorBox box; boxes.next(box);)
    if (!forEachRun(desc, box, part, visit))
      return false;
  return true;
}

/// Fills a tensor with its padding, where it has any; what it holds of the logical tensor is written afterwards.
void fillPadding(nd_rank &rank, const nd_tensor_desc &desc);

/// Converts elements between types: any float to any float, otherwise equal types. False when they do not convert.
bool convertElements(void *dst, int32_t dstType, const void *src, int32_t srcType, int64_t count);

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_TENSORFILE_H
