//===- ConvertedGemm.h - Products of bf16 in f32 ----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_CONVERTEDGEMM_H
#define ND_LIB_RUNTIME_HOST_CONVERTEDGEMM_H

#include "nd/Runtime/Host/Gemm.h"

namespace nd::rt {

/// A slice of bf16 operands on a processor without products of bf16: tiles are converted to f32 in the workspace,
/// multiplied there, and rounded once. Sums are those of f32, so results are within rounding of the other slices'.
std::shared_ptr<GemmSlice> makeConvertedSlice(const nd_gemm_desc &desc);

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_CONVERTEDGEMM_H
