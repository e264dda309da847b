//===- UserAnnotations.h - What --annotate says -----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PLAN_USERANNOTATIONS_H
#define ND_LIB_SHARDING_PLAN_USERANNOTATIONS_H

#include "Program.h"

namespace nd {

/// Puts `GLOB=[fsdp+tp,_]` (an entry a dimension, axes joined by `+`, major first) on the parameters and inputs of
/// these names, as `nd.sharding`; where kv heads split an axis, annotations that name it, these and those that are
/// there, name its parts. Fails for text of another form, an axis that the mesh lacks, a glob that names no tensor, a
/// tensor of another number of dimensions, and two annotations of one tensor.
llvm::LogicalResult applyUserAnnotations(Program &program, llvm::ArrayRef<std::string> annotations);

} // namespace nd

#endif // ND_LIB_SHARDING_PLAN_USERANNOTATIONS_H
