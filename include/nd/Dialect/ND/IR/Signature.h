//===- Signature.h - Many arguments and results at once ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A step of a large model has thousands of arguments. MLIR keeps their attributes as one list, built anew at every
// change of one, and finding an argument by name looks at all of them: who does either for each argument takes
// quadratic time.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_SIGNATURE_H
#define ND_DIALECT_ND_IR_SIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

/// Finds arguments and results by (`nd.kind`, `nd.name`), as names::findArg and names::findResult do. Holds as long as
/// the function's signature does not change.
class SignatureIndex {
public:
  explicit SignatureIndex(mlir::func::FuncOp function);

  std::optional<unsigned> findArg(llvm::StringRef kind, llvm::StringRef name) const {
    return find(arguments, kind, name);
  }
  std::optional<unsigned> findResult(llvm::StringRef kind, llvm::StringRef name) const {
    return find(results, kind, name);
  }

private:
  using Key = std::pair<llvm::StringRef, llvm::StringRef>;
  static std::optional<unsigned> find(const llvm::DenseMap<Key, unsigned> &index, llvm::StringRef kind,
                                      llvm::StringRef name);

  llvm::DenseMap<Key, unsigned> arguments, results;
};

/// The attributes of all arguments and results: changed one by one here, and written to the function in one go, at the
/// latest when this is destroyed. Reading them from the function before that yields the old ones.
class SignatureAttrs {
public:
  explicit SignatureAttrs(mlir::func::FuncOp function);
  SignatureAttrs(const SignatureAttrs &) = delete;
  SignatureAttrs &operator=(const SignatureAttrs &) = delete;
  ~SignatureAttrs() { commit(); }

  mlir::Attribute getArg(unsigned index, llvm::StringRef name) const { return arguments[index].get(name); }
  mlir::Attribute getResult(unsigned index, llvm::StringRef name) const { return results[index].get(name); }
  /// A null value removes the attribute.
  void setArg(unsigned index, llvm::StringRef name, mlir::Attribute value);
  void setResult(unsigned index, llvm::StringRef name, mlir::Attribute value);
  void commit();

private:
  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::NamedAttrList, 0> arguments, results;
  bool changedArguments = false, changedResults = false;
};

} // namespace nd

#endif // ND_DIALECT_ND_IR_SIGNATURE_H
