//===- Dtype.h - Element types ----------------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_DTYPE_H
#define ND_RUNTIME_CORE_DTYPE_H

#include <cstdint>

namespace nd::rt {

/// Bytes of an element; 0 for what is no type.
int64_t dtypeBytes(int32_t dtype);

/// The name that IR and manifests use.
const char *dtypeName(int32_t dtype);

/// The name of an nd_collective_kind.
const char *collectiveName(int32_t kind);

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_DTYPE_H
