//===- Staging.cpp - Partial sums on their way to another node ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Staging.h"
#include "mlir/IR/BuiltinOps.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Runtime/Core/ABI.h"

using namespace mlir;
using namespace nd;

namespace {

struct Shape {
  int64_t inside = 1, nodes = 1;
};

/// How many ranks of a group share a node, and over how many nodes it goes.
Shape shapeOf(MeshOp mesh, ArrayAttr axes) {
  int64_t ranks = 1, stride = 1;
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    ranks *= axis.getSize();
  int64_t ofNode = ranks / static_cast<int64_t>(mesh.getNodes());
  Shape shape;
  for (auto axis : llvm::reverse(mesh.getAxes().getAsRange<MeshAxisAttr>())) {
    int64_t inside = std::clamp<int64_t>(ofNode / stride, 1, axis.getSize());
    if (llvm::is_contained(axes.getAsRange<StringAttr>(), axis.getName())) {
      shape.inside *= inside;
      shape.nodes *= axis.getSize() / inside;
    }
    stride *= axis.getSize();
  }
  return shape;
}

} // namespace

int64_t nd::getStagingBytes(rt::ProgramOp program) {
  auto module = program->getParentOfType<ModuleOp>();
  if (!module || module.getOps<MeshOp>().empty())
    return 0;
  MeshOp mesh = *module.getOps<MeshOp>().begin();
  int64_t bytes = 0;
  program.walk([&](rt::CollectiveStartOp start) {
    Shape shape = shapeOf(mesh, start.getAxes());
    if (start.getKind() != rt::CollectiveKind::reduce_scatter || shape.nodes == 1 || shape.inside == 1)
      return;
    int64_t elements = 0;
    for (Value target : start.getTargets())
      elements += cast<MemRefType>(target.getType()).getNumElements();
    Type element = cast<MemRefType>(start.getTargets().front().getType()).getElementType();
    bytes = std::max(bytes, nd_staging_bytes(shape.nodes, elements, rt::getElementBytes(element)));
  });
  return bytes;
}
