//===- ProgramDescriptor.cpp - What a program says of itself --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ProgramDescriptor.h"
#include "nd/Codegen/Host/ObjectEmitter.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace nd;

llvm::Constant *ProgramDescriptor::tensorDescriptor(rt::TensorOp tensor) {
  MemRefType type = tensor.getBuffer().getType();
  ArrayRef<int64_t> shape = type.getShape();
  ArrayRef<int64_t> global = tensor.getGlobalShape() ? *tensor.getGlobalShape() : shape;
  SmallVector<llvm::Constant *> sizes, globalSizes, axes, blocks;
  for (int64_t dim = 0; dim < ND_MAX_RANK; ++dim) {
    bool exists = dim < type.getRank();
    sizes.push_back(c.i64(exists ? shape[dim] : 0));
    globalSizes.push_back(c.i64(exists ? global[dim] : 0));
    SmallVector<llvm::Constant *> names(ND_MAX_DIM_AXES, c.i8(-1)), dimBlocks(ND_MAX_DIM_AXES, c.i64(0));
    if (exists && tensor.getDimAxes())
      for (auto [position, name] : llvm::enumerate(cast<ArrayAttr>((*tensor.getDimAxes())[dim])))
        names[position] = c.i8(host.axisPositions(ArrayAttr::get(tensor.getContext(), name)).front());
    if (exists && tensor.getDimBlocks())
      for (auto [position, block] : llvm::enumerate(cast<ArrayAttr>((*tensor.getDimBlocks())[dim])))
        dimBlocks[position] = c.i64(cast<IntegerAttr>(block).getInt());
    axes.push_back(c.array(names));
    blocks.push_back(c.array(dimBlocks));
  }
  SmallVector<llvm::Constant *> units;
  for (int64_t unit : tensor.getUnits().value_or(ArrayRef<int64_t>()))
    units.push_back(c.i64(unit));
  return c.structure({c.string(tensor.getKind()), c.string(tensor.getTensorName()),
                      c.i32(*abiType(type.getElementType())), c.i32(type.getRank()), c.array(sizes),
                      c.array(globalSizes), c.array(axes), c.array(blocks), c.i32(tensor.getUnitsDim().value_or(0)),
                      c.i32(units.size()), c.i64(tensor.getUnitSize().value_or(0)), c.table(units, "units"),
                      c.i64(tensor.getPadValue().value_or(0)), c.i64(*tensor.getOffset()),
                      c.i64(tensor.getBound().value_or(0)), c.i64(tensor.getIgnore().value_or(0))});
}

llvm::Constant *ProgramDescriptor::scheduleDescriptor() {
  auto number = [&](StringRef key) { return c.f64(names::moduleFloat(host.module, names::kStep, key).value_or(0.0)); };
  auto integer = [&](StringRef key) { return c.i64(names::moduleInt(host.module, names::kStep, key).value_or(0)); };
  int32_t kind = llvm::StringSwitch<int32_t>(names::moduleString(host.module, names::kStep, "schedule"))
                     .Case("linear", ND_LINEAR)
                     .Case("cosine", ND_COSINE)
                     .Default(ND_CONSTANT);
  return c.structure({c.i32(kind), number("lr"), number("min_lr"), integer("warmup"), integer("total_steps"),
                      number("beta1"), number("beta2")});
}

llvm::Constant *ProgramDescriptor::kernelTable(StringRef level) {
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, 0), *number = llvm::Type::getInt64Ty(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, number, number, pointer}, false);
  SmallVector<llvm::Constant *> entries;
  for (const std::string &name : host.kernelFunctions)
    entries.push_back(llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name + level, module));
  return c.table(entries, "kernels");
}

llvm::Constant *ProgramDescriptor::build(const StepParts &parts) {
  SmallVector<llvm::Constant *> sizes(ND_MAX_AXES, c.i32(1)), axisNames(ND_MAX_AXES, c.null());
  int32_t numAxes = 0;
  if (host.mesh)
    for (auto axis : host.mesh.getAxes().getAsRange<MeshAxisAttr>()) {
      sizes[numAxes] = c.i32(axis.getSize());
      axisNames[numAxes++] = c.string(axis.getName());
    }
  SmallVector<llvm::Constant *> tensors;
  for (rt::TensorOp tensor : host.tensors)
    tensors.push_back(tensorDescriptor(tensor));
  llvm::Constant *levels =
      c.array({kernelTable(cpuLevelSuffix(CpuLevel::V3)), kernelTable(cpuLevelSuffix(CpuLevel::V4))});
  return c.structure({c.bits32(ND_ABI_VERSION),
                      c.string(host.program.getSymName()),
                      c.i32(numAxes),
                      c.array(sizes),
                      c.array(axisNames),
                      c.i32(host.mesh ? host.mesh.getNodes() : 1),
                      c.i64(*host.program.getArenaBytes()),
                      c.i64(host.program.getStagingBytes().value_or(0)),
                      c.i64(host.threadScratchBytes),
                      c.i32(tensors.size()),
                      c.i32(host.kernelFunctions.size()),
                      c.i32(parts.gemms.size()),
                      c.i32(parts.attentions.size()),
                      c.i32(parts.collectives.size()),
                      c.table(tensors, "tensors"),
                      levels,
                      c.table(parts.gemms, "gemms"),
                      c.table(parts.attentions, "attentions"),
                      c.table(parts.collectives, "collectives"),
                      scheduleDescriptor(),
                      parts.step});
}
