//===- MeshView.cpp - Between attributes and plain shardings --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "MeshView.h"
#include "Program.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace nd;

MeshView::MeshView(MeshOp mesh) : symbol(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
    sizes.push_back(axis.getSize());
    names.push_back(axis.getName());
    roles.push_back(axis.getRole());
  }
}

std::string MeshView::str(ArrayRef<unsigned> axes) const {
  return llvm::join(llvm::map_range(axes, [&](unsigned axis) { return names[axis].getValue(); }), "+");
}

ArrayAttr MeshView::toArray(ArrayRef<unsigned> axes) const {
  SmallVector<Attribute> list = llvm::map_to_vector(axes, [&](unsigned axis) -> Attribute { return names[axis]; });
  return ArrayAttr::get(symbol.getContext(), list);
}

ShardingAttr MeshView::toAttr(const TensorSharding &sharding) const {
  SmallVector<Attribute> dims =
      llvm::map_to_vector(sharding.dims, [&](const AxisList &axes) -> Attribute { return toArray(axes); });
  return ShardingAttr::get(symbol.getContext(), symbol, ArrayAttr::get(symbol.getContext(), dims),
                           toArray(sharding.unreduced),
                           sharding.unreduced.empty() ? ReductionKind::sum : sharding.kind);
}

namespace {

/// `1, 2, 4`: the sizes of an axis that would divide, when other axes make `others` parts already.
std::string workingSizes(int64_t extent, int64_t others) {
  SmallVector<std::string> divisors;
  if (extent % others == 0)
    for (int64_t size = 1; size <= extent / others && divisors.size() < 16; ++size)
      if (extent / others % size == 0)
        divisors.push_back(std::to_string(size));
  return llvm::join(divisors, ", ");
}

} // namespace

FailureOr<TensorSharding> MeshView::fromAttr(ShardingAttr attr, ArrayRef<int64_t> shape, StringRef tensor,
                                             function_ref<InFlightDiagnostic()> emitError) const {
  if (attr.getMesh() != symbol)
    return emitError() << "the sharding of " << tensor << " names mesh " << attr.getMesh() << ", but the mesh is "
                       << symbol;
  if (attr.getRank() != static_cast<int64_t>(shape.size()))
    return emitError() << "the sharding of " << tensor << " has " << attr.getRank()
                       << " dimensions, but the tensor has " << shape.size();
  FailureOr<TensorSharding> sharding = fromAxes(attr, tensor, emitError);
  if (failed(sharding))
    return failure();
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t shards = 1;
    for (unsigned axis : sharding->dims[dim]) {
      if (size % (shards * sizes[axis]) != 0)
        return emitError() << "axis " << names[axis] << " of size " << sizes[axis] << " does not divide dimension "
                           << dim << " of " << tensor << ", which has size " << size
                           << (shards == 1 ? "" : " in " + std::to_string(shards) + " parts") << "; sizes of "
                           << names[axis] << " that work: " << workingSizes(size, shards);
      shards *= sizes[axis];
    }
  }
  return sharding;
}

FailureOr<AxisList> MeshView::axesOf(ArrayAttr list, function_ref<InFlightDiagnostic()> emitError,
                                     StringRef tensor) const {
  AxisList axes;
  for (auto name : list.getAsRange<StringAttr>()) {
    const auto *it = llvm::find(names, name);
    if (it == names.end())
      return emitError() << "axis " << name << (tensor.empty() ? "" : " in the sharding of ") << tensor
                         << " is not in mesh " << symbol << "; its axes are "
                         << str(llvm::to_vector(llvm::seq<unsigned>(names.size())));
    axes.push_back(it - names.begin());
  }
  return axes;
}

FailureOr<TensorSharding> MeshView::fromAxes(ShardingAttr attr, StringRef tensor,
                                             function_ref<InFlightDiagnostic()> emitError) const {
  TensorSharding sharding = TensorSharding::replicated(attr.getRank());
  for (auto [dim, axes] : llvm::enumerate(sharding.dims)) {
    FailureOr<AxisList> list = axesOf(cast<ArrayAttr>(attr.getDims()[dim]), emitError, tensor);
    if (failed(list))
      return failure();
    axes = *list;
  }
  FailureOr<AxisList> unreduced = axesOf(attr.getUnreduced(), emitError, tensor);
  if (failed(unreduced))
    return failure();
  sharding.unreduced = *unreduced;
  llvm::sort(sharding.unreduced);
  sharding.kind = attr.getKind();
  return sharding;
}

FailureOr<TensorSharding> MeshView::fromArgument(func::FuncOp function, BlockArgument argument) const {
  auto attr = function.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(), nd::names::kSharding);
  if (!attr)
    return function.emitError() << describe(argument) << " has no nd.sharding; run nd-annotate first";
  return fromAttr(attr, cast<RankedTensorType>(argument.getType()).getShape(), describe(argument),
                  [&] { return function.emitError(); });
}

FailureOr<TensorSharding> MeshView::fromType(Value value, Operation *op) const {
  auto type = cast<RankedTensorType>(value.getType());
  auto attr = dyn_cast_or_null<ShardingAttr>(type.getEncoding());
  if (!attr)
    return op->emitError() << describe(value) << " has no sharding in its type " << type
                           << "; run nd-insert-reshards first";
  return fromAttr(attr, type.getShape(), describe(value), [&] { return op->emitError(); });
}

SmallVector<int64_t> MeshView::localShape(ArrayRef<int64_t> shape, const TensorSharding &sharding) const {
  SmallVector<int64_t> local(shape);
  for (auto [size, axes] : llvm::zip_equal(local, sharding.dims))
    size /= numShards(sizes, axes);
  return local;
}

ArrayAttr MeshView::toLists(ArrayRef<AxisList> lists) const {
  return ArrayAttr::get(symbol.getContext(),
                        llvm::map_to_vector(lists, [&](const AxisList &axes) -> Attribute { return toArray(axes); }));
}

FailureOr<FactorAxes> MeshView::readLists(ArrayAttr lists, function_ref<InFlightDiagnostic()> emitError) const {
  FactorAxes result;
  for (Attribute list : lists) {
    AxisList &axes = result.emplace_back();
    auto entries = dyn_cast<ArrayAttr>(list);
    if (!entries)
      return emitError() << "expected a list of axes but found " << list;
    for (Attribute entry : entries) {
      const auto *it = llvm::find(names, entry);
      if (it == names.end())
        return emitError() << "axis " << entry << " is not in mesh " << symbol;
      axes.push_back(it - names.begin());
    }
  }
  return result;
}
