//===- Views.h - Layouts through reshapes, transposes, slices ---*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Which strided layout a view of strided memory has, and which one its operand must have. Layouts are normalized: a
// dimension of size 1 has the stride that it would have if memory were contiguous there, so equal memory has equal
// layouts.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_LOWERING_VIEWS_H
#define ND_CODEGEN_LOWERING_VIEWS_H

#include "nd/Dialect/RT/IR/RT.h"

#include <optional>

namespace nd {

/// Row-major without gaps.
rt::Layout contiguousLayout(llvm::ArrayRef<int64_t> shape);
rt::Layout normalized(llvm::ArrayRef<int64_t> shape, rt::Layout layout);
bool operator==(const rt::Layout &a, const rt::Layout &b);

/// The buffer type; without a layout where that is contiguous from offset 0 on.
mlir::MemRefType bufferType(mlir::RankedTensorType tensor, const rt::Layout &layout);

/// nd.reshape, nd.transpose or nd.slice.
bool isViewOp(mlir::Operation *op);

/// The same elements in row-major order under another shape; nothing when no strided layout says that.
std::optional<rt::Layout> reshapeLayout(llvm::ArrayRef<int64_t> from, const rt::Layout &layout,
                                        llvm::ArrayRef<int64_t> to);
/// The layout of a view's result when its operand has `layout`.
std::optional<rt::Layout> viewLayout(mlir::Operation *view, const rt::Layout &layout);
/// The layout of a view's operand that gives its result `layout`; nothing for slices, which do not hold all of the
/// operand.
std::optional<rt::Layout> sourceLayout(mlir::Operation *view, const rt::Layout &layout);

/// Whether elements that are neighbours in the last dimension are neighbours in memory.
bool hasContiguousRows(llvm::ArrayRef<int64_t> shape, const rt::Layout &layout);

} // namespace nd

#endif // ND_CODEGEN_LOWERING_VIEWS_H
