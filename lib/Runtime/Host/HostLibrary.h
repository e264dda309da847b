//===- HostLibrary.h - Library state of a rank on the host ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_HOSTLIBRARY_H
#define ND_LIB_RUNTIME_HOST_HOSTLIBRARY_H

#include "nd/Runtime/Core/Library.h"
#include "nd/Runtime/Host/Gemm.h"

namespace nd::rt {

class HostLibrary : public Library {
public:
  int64_t workspaceBytes() const override { return gemms.workspaceBytes(); }

  GemmTable gemms;
};

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_HOSTLIBRARY_H
