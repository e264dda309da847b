//===- RTDialect.cpp - The rt dialect, and layouts of buffers --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "nd/Dialect/RT/IR/RT.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace nd;
using namespace nd::rt;

#include "nd/Dialect/RT/IR/RTDialect.cpp.inc"
#include "nd/Dialect/RT/IR/RTEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "nd/Dialect/RT/IR/RTTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "nd/Dialect/RT/IR/RTAttrs.cpp.inc"

void RTDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "nd/Dialect/RT/IR/RTTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "nd/Dialect/RT/IR/RTAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "nd/Dialect/RT/IR/RTOps.cpp.inc"
      >();
}

/// MLIR reads any layout as an affine map; those of rt are the identity or say their strides, and are asked for often.
static std::optional<Layout> readLayout(MemRefType type) {
  Layout layout;
  if (auto strided = dyn_cast<StridedLayoutAttr>(type.getLayout())) {
    llvm::append_range(layout.strides, strided.getStrides());
    layout.offset = strided.getOffset();
    return layout;
  }
  if (type.getLayout().isIdentity()) {
    layout.strides.resize(type.getRank());
    int64_t stride = 1;
    for (int64_t dim = type.getRank() - 1; dim >= 0; stride *= type.getDimSize(dim--))
      layout.strides[dim] = stride;
    return layout;
  }
  if (failed(type.getStridesAndOffset(layout.strides, layout.offset)))
    return std::nullopt;
  return layout;
}

bool rt::hasStaticStrides(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || !memref.hasStaticShape())
    return false;
  std::optional<Layout> layout = readLayout(memref);
  return layout && !ShapedType::isDynamic(layout->offset) && llvm::none_of(layout->strides, ShapedType::isDynamic);
}

Layout rt::getLayout(MemRefType type) { return readLayout(type).value_or(Layout()); }

bool rt::isContiguous(MemRefType type) {
  Layout layout = getLayout(type);
  int64_t expected = 1;
  for (auto [size, stride] : llvm::reverse(llvm::zip_equal(type.getShape(), layout.strides))) {
    if (size != 1 && stride != expected)
      return false;
    expected *= size;
  }
  return true;
}

int64_t rt::getExtent(MemRefType type) {
  Layout layout = getLayout(type);
  int64_t last = layout.offset;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), layout.strides)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return last + 1;
}

int64_t rt::getElementBytes(Type elementType) { return (elementType.getIntOrFloatBitWidth() + 7) / 8; }

int64_t rt::getBytes(MemRefType type) { return type.getNumElements() * getElementBytes(type.getElementType()); }

Value rt::getBase(Value buffer) {
  if (auto view = buffer.getDefiningOp<ViewOp>())
    return view.getSource();
  return buffer;
}

Value rt::getRoot(Value buffer) {
  Value base = getBase(buffer);
  auto row = dyn_cast<BlockArgument>(base);
  return row ? getRoot(cast<RepeatOp>(row.getOwner()->getParentOp()).getSliced()[row.getArgNumber()]) : base;
}

int64_t rt::getTimes(Operation *op) {
  int64_t times = 1;
  for (auto loop = op->getParentOfType<RepeatOp>(); loop; loop = loop->getParentOfType<RepeatOp>())
    times *= loop.getCount();
  return times;
}
