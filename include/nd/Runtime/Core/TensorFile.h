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

/// The box of the logical tensor that a rank holds: its first index and extent in each dimension. The extent is smaller
/// than the local shape where a tail is padded.
struct TensorBox {
  int64_t first[ND_MAX_RANK], extent[ND_MAX_RANK];
};
TensorBox localBox(const nd_rank &rank, const nd_tensor_desc &desc);

/// Whether this rank is the first of those that hold the same box.
bool isFirstReplica(const nd_rank &rank, const nd_tensor_desc &desc);

/// A maximal run of elements that is contiguous both in the rank's memory and in the file.
struct Run {
  int64_t local, global, count; ///< element offsets
};

/// Calls visit(Run) for every run of the box, in order, until it returns false.
template <typename Visit> bool forEachRun(const nd_tensor_desc &desc, const TensorBox &box, Visit visit) {
  for (int32_t dim = 0; dim < desc.rank; ++dim)
    if (box.extent[dim] == 0) // all of it is padding
      return true;
  int32_t inner = desc.rank; // dimensions from `inner` on are whole, so that one run spans them
  int64_t count = 1;
  while (inner > 0 && box.extent[inner - 1] == desc.global_shape[inner - 1] &&
         desc.shape[inner - 1] == box.extent[inner - 1])
    count *= box.extent[--inner];
  if (inner > 0)
    count *= box.extent[--inner];
  int64_t index[ND_MAX_RANK] = {0};
  while (true) {
    Run run{0, 0, count};
    for (int32_t dim = 0; dim < desc.rank; ++dim) {
      run.local = run.local * desc.shape[dim] + index[dim];
      run.global = run.global * desc.global_shape[dim] + box.first[dim] + index[dim];
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

/// Converts elements between types: any float to any float, otherwise equal types. False when they do not convert.
bool convertElements(void *dst, int32_t dstType, const void *src, int32_t srcType, int64_t count);

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_TENSORFILE_H
