//===- ParameterUses.h - How parameters travel ------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_REPORT_PARAMETERUSES_H
#define ND_LIB_REPORT_PARAMETERUSES_H

#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/StringMap.h"

namespace nd {

struct ParameterUse {
  /// Such as `all_gather over fsdp`, once for each collective.
  std::vector<std::string> gathers, reductions;
};

/// By the parameter's name. `function` is on local tensors, before it is lowered: later, collectives of several tensors
/// do not say any more which these are.
llvm::StringMap<ParameterUse> findParameterUses(mlir::func::FuncOp function, MeshOp mesh);

} // namespace nd

#endif // ND_LIB_REPORT_PARAMETERUSES_H
