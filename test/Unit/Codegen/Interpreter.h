//===- Interpreter.h - Tensor operations by definition ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What kernels are compared with: every operation that may be in a kernel, one element after the other, in double
// precision.
//
//===----------------------------------------------------------------------===//

#ifndef ND_TEST_UNIT_CODEGEN_INTERPRETER_H
#define ND_TEST_UNIT_CODEGEN_INTERPRETER_H

#include "nd/Dialect/ND/IR/ND.h"

namespace nd::test {

/// Floats, integers and booleans alike; row-major.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;

  explicit Tensor(llvm::ArrayRef<int64_t> shape = {}) : shape(shape.begin(), shape.end()) { data.resize(size()); }
  int64_t size() const;
  double &at(llvm::ArrayRef<int64_t> index) { return data[offset(index)]; }
  double at(llvm::ArrayRef<int64_t> index) const { return data[offset(index)]; }
  int64_t offset(llvm::ArrayRef<int64_t> index) const;
  /// The index of element `number`.
  llvm::SmallVector<int64_t> index(int64_t number) const;
};

using Values = llvm::DenseMap<mlir::Value, Tensor>;

double roundToBF16(double value);

/// Computes the results of one operation whose operands are in `values`; false for an operation that it does not know.
bool interpret(mlir::Operation *op, Values &values);

} // namespace nd::test

#endif // ND_TEST_UNIT_CODEGEN_INTERPRETER_H
