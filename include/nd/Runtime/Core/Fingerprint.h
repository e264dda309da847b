//===- Fingerprint.h - A number that stands for a tensor --------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_FINGERPRINT_H
#define ND_RUNTIME_CORE_FINGERPRINT_H

#include "nd/Runtime/Core/ABI.h"

namespace nd::rt {

/// Equal for equal descriptions, by content: names and tables are followed, not compared as pointers. The launcher
/// compares those of a manifest with those of the executables.
uint64_t fingerprint(const nd_tensor_desc &desc);
/// That of the mesh.
uint64_t meshFingerprint(int32_t numAxes, const int32_t *sizes, const char *const *names);

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_FINGERPRINT_H
