//===- KernelFunction.cpp - Signature of a kernel -------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace nd;

void nd::emitFunction(OpBuilder &builder, const KernelSpec &spec, bool hasWorkspace, StringRef name,
                      llvm::function_ref<void(LaneBuilder &, KernelFunction &)> body) {
  Location loc = KernelOp(spec.op).getLoc();
  MLIRContext *context = builder.getContext();
  LaneBuilder b(loc, builder);
  Type pointer = LLVM::LLVMPointerType::get(context), i64 = b.getI64Type();
  unsigned numPointers = spec.inputTypes.size() + hasWorkspace;
  for (std::optional<unsigned> input : spec.inPlaceOf)
    numPointers += !input;

  SmallVector<Type> types(numPointers, pointer);
  types.append({i64, i64, pointer});
  std::string bodyName = (name + "_body").str();
  auto inner = b.create<func::FuncOp>(bodyName, b.getFunctionType(types, {}));
  inner->setAttr("llvm.linkage", LLVM::LinkageAttr::get(context, LLVM::Linkage::Internal));
  inner->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  inner.setPrivate();
  for (unsigned number = 0; number < types.size(); ++number)
    if (types[number] == pointer)
      inner.setArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  Block *entry = inner.addEntryBlock();

  KernelFunction function;
  unsigned next = 0;
  for (size_t number = 0; number < spec.inputTypes.size(); ++number)
    function.inputs.push_back(entry->getArgument(next++));
  for (std::optional<unsigned> input : spec.inPlaceOf)
    function.results.push_back(input ? function.inputs[*input] : Value(entry->getArgument(next++)));
  if (hasWorkspace)
    function.workspace = entry->getArgument(next++);
  function.lo = entry->getArgument(next++);
  function.hi = entry->getArgument(next++);
  function.scratch = entry->getArgument(next++);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    body(b, function);
    b.setInsertionPointToEnd(entry);
    b.create<func::ReturnOp>();
  }

  auto outer = b.create<func::FuncOp>(name, b.getFunctionType({pointer, i64, i64, pointer}, {}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(outer.addEntryBlock());
  SmallVector<Value> arguments;
  for (unsigned number = 0; number < numPointers; ++number) {
    Value address = b.create<LLVM::GEPOp>(pointer, pointer, outer.getArgument(0),
                                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
    arguments.push_back(b.create<LLVM::LoadOp>(pointer, address));
  }
  arguments.append({outer.getArgument(1), outer.getArgument(2), outer.getArgument(3)});
  b.create<func::CallOp>(inner, arguments);
  b.create<func::ReturnOp>();
  builder.setInsertionPointAfter(outer);
}
