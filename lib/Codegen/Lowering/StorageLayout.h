//===- StorageLayout.h - How a tensor is stored on ranks --------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_LOWERING_STORAGELAYOUT_H
#define ND_CODEGEN_LOWERING_STORAGELAYOUT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace nd {

/// What `nd.blocks`, `nd.chunks`, `nd.copies` and `nd.pad_value` of an argument or result say, in the terms of
/// rt.tensor; null where they are absent. Chunks and copies are one mechanism: a dimension stored as units in an order.
struct StorageLayout {
  mlir::ArrayAttr blocks;
  mlir::DenseI64ArrayAttr units;
  mlir::IntegerAttr unitsDim, unitSize, padValue;
};

/// Reads the attributes through `attribute`; `what` and `loc` are for errors.
llvm::FailureOr<StorageLayout> readStorageLayout(llvm::function_ref<mlir::Attribute(llvm::StringRef)> attribute,
                                                 const llvm::Twine &what, mlir::Location loc);

} // namespace nd

#endif // ND_CODEGEN_LOWERING_STORAGELAYOUT_H
