//===- GemmSlice.h - Making the slices of a product -------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_GEMMSLICE_H
#define ND_LIB_RUNTIME_HOST_GEMMSLICE_H

#include "nd/Runtime/Host/Gemm.h"

namespace nd::rt {

/// A slice whose sizes are those of `desc` (its id and location are not looked at). Null, with a message, when it
/// cannot be served by `method`.
std::shared_ptr<GemmSlice> makeGemmSlice(const nd_gemm_desc &desc, GemmMethod method, std::string &error);

/// Whether the method computes what the descriptor says.
bool methodServes(const nd_gemm_desc &desc, GemmMethod method);

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_GEMMSLICE_H
