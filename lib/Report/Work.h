//===- Work.h - What operations compute and move ----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_REPORT_WORK_H
#define ND_LIB_REPORT_WORK_H

#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/RT/IR/RT.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

/// Of one execution of an operation.
struct Work {
  double products = 0.0;    ///< FLOPs of matrix products, attention's included
  double elementwise = 0.0; ///< operations on single elements
  double bytes = 0.0;       ///< read and written, each operand once
  std::string type;         ///< of the products' operands
};

/// Knows the kernels of a module.
class WorkCounter {
public:
  explicit WorkCounter(mlir::ModuleOp module);
  Work count(mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::StringAttr, double> elementwise; ///< of each kernel
};

/// How tensors' element types are called outside of MLIR: f32, bf16, i64, i1.
std::string typeName(mlir::Type type);

} // namespace nd

#endif // ND_LIB_REPORT_WORK_H
