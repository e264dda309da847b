//===- ConstantBuilder.h - C structures as LLVM constants -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_HOST_CONSTANTBUILDER_H
#define ND_CODEGEN_HOST_CONSTANTBUILDER_H

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

namespace nd {

/// Builds constants with the layout that C gives the same fields in the same order (no packing: the module's data
/// layout aligns them as the C compiler does).
class ConstantBuilder {
public:
  explicit ConstantBuilder(llvm::Module &module) : module(module), context(module.getContext()) {}

  llvm::Constant *i8(int64_t value) { return llvm::ConstantInt::getSigned(llvm::Type::getInt8Ty(context), value); }
  llvm::Constant *i32(int64_t value) { return llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context), value); }
  /// All 32 bits, for masks.
  llvm::Constant *bits32(uint32_t value) { return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value); }
  llvm::Constant *i64(int64_t value) { return llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(context), value); }
  llvm::Constant *f64(double value) { return llvm::ConstantFP::get(llvm::Type::getDoubleTy(context), value); }
  llvm::Constant *null() { return llvm::ConstantPointerNull::get(llvm::PointerType::get(context, 0)); }

  llvm::Constant *array(llvm::ArrayRef<llvm::Constant *> elements) {
    return llvm::ConstantArray::get(llvm::ArrayType::get(elements.front()->getType(), elements.size()), elements);
  }
  llvm::Constant *structure(llvm::ArrayRef<llvm::Constant *> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }

  /// A pointer to a NUL-terminated string; equal strings are one.
  llvm::Constant *string(llvm::StringRef text) {
    llvm::Constant *&cached = strings[text];
    if (!cached)
      cached = global(llvm::ConstantDataArray::getString(context, text), "text");
    return cached;
  }

  /// A pointer to constant data.
  llvm::GlobalVariable *global(llvm::Constant *value, const llvm::Twine &name, unsigned alignment = 0) {
    auto *variable = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                              llvm::GlobalValue::PrivateLinkage, value, name);
    if (alignment)
      variable->setAlignment(llvm::Align(alignment));
    return variable;
  }
  /// A pointer to an array of values; null when there are none.
  llvm::Constant *table(llvm::ArrayRef<llvm::Constant *> values, const llvm::Twine &name) {
    return values.empty() ? null() : global(array(values), name);
  }

  int64_t sizeOf(llvm::Constant *value) { return module.getDataLayout().getTypeAllocSize(value->getType()); }

private:
  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::StringMap<llvm::Constant *> strings;
};

} // namespace nd

#endif // ND_CODEGEN_HOST_CONSTANTBUILDER_H
