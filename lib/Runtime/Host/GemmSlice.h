//===- GemmSlice.h - Making the slices of a product -------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_GEMMSLICE_H
#define ND_LIB_RUNTIME_HOST_GEMMSLICE_H

#include "nd/Runtime/Host/Gemm.h"

namespace nd::rt {

/// A slice whose sizes are those of `desc` (its id and location are not looked at). Null, with a message, when oneDNN
/// does not serve it.
std::shared_ptr<GemmSlice> makeGemmSlice(const nd_gemm_desc &desc, std::string &error);

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_GEMMSLICE_H
