//===- Dtype.cpp - Element types ------------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Dtype.h"
#include "nd/Runtime/Core/ABI.h"

int64_t nd::rt::dtypeBytes(int32_t dtype) {
  static constexpr int64_t bytes[] = {4, 2, 2, 8, 8, 4, 2, 1, 1};
  return dtype >= ND_F32 && dtype <= ND_I1 ? bytes[dtype] : 0;
}

const char *nd::rt::dtypeName(int32_t dtype) {
  static constexpr const char *names[] = {"f32", "bf16", "f16", "f64", "i64", "i32", "i16", "i8", "i1"};
  return dtype >= ND_F32 && dtype <= ND_I1 ? names[dtype] : "unknown";
}

const char *nd::rt::collectiveName(int32_t kind) {
  static constexpr const char *names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                          "all_to_all", "permute",    "all_slice"};
  return kind >= ND_ALL_REDUCE && kind <= ND_ALL_SLICE ? names[kind] : "unknown";
}
