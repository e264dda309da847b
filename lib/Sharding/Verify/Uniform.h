//===- Uniform.h - Values that are equal along a dimension ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A tensor that all ranks hold equally can only be used as the shard of a dimension where its elements do not differ
// along it: then any rank's part of it is the same. This follows what is known of that through the operations' rules;
// arguments are taken to differ.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_VERIFY_UNIFORM_H
#define ND_LIB_SHARDING_VERIFY_UNIFORM_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

class Uniform {
public:
  /// Whether all slices of the tensor along the dimension are known to be equal.
  bool isAlong(mlir::Value value, int64_t dim);

private:
  /// The same for the major part of a dimension that merges several: `count` slices that follow one another.
  bool isAlong(mlir::Value value, int64_t dim, int64_t count);
  bool compute(mlir::Value value, int64_t dim, int64_t count);

  llvm::DenseMap<std::tuple<mlir::Value, int64_t, int64_t>, bool> known;
};

} // namespace nd

#endif // ND_LIB_SHARDING_VERIFY_UNIFORM_H
