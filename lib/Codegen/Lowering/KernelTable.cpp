//===- KernelTable.cpp - The distinct kernels of a program -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelTable.h"
#include "Views.h"
#include "nd/Codegen/Kernels/KernelEmitter.h"

using namespace mlir;
using namespace nd;

namespace {

/// A kernel's code does not know where its operands start.
MemRefType withoutOffset(MemRefType type) {
  rt::Layout layout = rt::getLayout(type);
  layout.offset = 0;
  return bufferType(RankedTensorType::get(type.getShape(), type.getElementType()), layout);
}

} // namespace

FailureOr<KernelEntry> KernelTable::get(KernelOp op, ArrayRef<MemRefType> inputs, ArrayRef<MemRefType> results,
                                        ArrayRef<int64_t> inPlace) {
  KernelSpec spec;
  spec.op = op;
  spec.inputTypes = llvm::map_to_vector(inputs, withoutOffset);
  spec.resultTypes = llvm::map_to_vector(results, withoutOffset);
  for (int64_t input : inPlace)
    spec.inPlaceOf.push_back(input < 0 ? std::nullopt : std::optional<unsigned>(input));
  std::string key = kernelKey(spec);
  llvm::raw_string_ostream stream(key);
  llvm::interleaveComma(spec.inputTypes, stream << '\n');
  llvm::interleaveComma(spec.resultTypes, stream << '\n');
  llvm::interleaveComma(inPlace, stream << '\n');
  auto [it, isNew] = entries.try_emplace(key);
  if (!isNew)
    return it->second;

  FailureOr<KernelPlan> plan = planKernel(spec);
  if (failed(plan))
    return failure();
  auto typeList = [&](ArrayRef<MemRefType> types) {
    return builder.getTypeArrayAttr(SmallVector<Type>(types.begin(), types.end()));
  };
  auto kernel = rt::KernelOp::create(builder, op.getLoc(), ("kernel" + Twine(entries.size() - 1)).str(),
                                     typeList(spec.inputTypes), typeList(spec.resultTypes), inPlace);
  Block &body = kernel.getBody().emplaceBlock();
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  for (Value input : op.getInputs())
    body.addArgument(input.getType(), input.getLoc());
  auto clone = cast<KernelOp>(inside.clone(*op));
  clone->setOperands(body.getArguments());
  it->second = {kernel, plan->workspaceBytes};
  return it->second;
}

FailureOr<KernelEntry> KernelTable::getCopy(Location loc, MemRefType from, MemRefType to) {
  auto tensor = RankedTensorType::get(from.getShape(), from.getElementType());
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(loc);
  OpBuilder inside = OpBuilder::atBlockEnd(scratch->getBody());
  // Only its type matters: the entry has arguments of its own.
  Value input = UnrealizedConversionCastOp::create(inside, loc, tensor, ValueRange()).getResult(0);
  auto copy = KernelOp::create(inside, loc, TypeRange{tensor}, ValueRange{input});
  Block &body = copy.getBody().emplaceBlock();
  body.addArgument(tensor, loc);
  inside.setInsertionPointToEnd(&body);
  YieldOp::create(inside, loc, body.getArguments());
  return get(copy, {from}, {to}, {-1});
}
