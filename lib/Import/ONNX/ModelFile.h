//===- ModelFile.h - A parsed ONNX file and its data ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_MODELFILE_H
#define ND_LIB_IMPORT_ONNX_MODELFILE_H

#include "OnnxWire.pb.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace nd::onnx {
namespace wire = ::nd::onnx_wire;

/// Bytes of a tensor that lie in a file: relative to the model's folder, checked to be inside it and long enough.
struct FileRange {
  std::string file;
  uint64_t offset = 0;
  uint64_t length = 0;
};

/// A model as parsed. Nothing in `proto` has been checked: every reader checks what it reads.
class ModelFile {
public:
  /// Reads and parses `path`; an error names the file and what is wrong with it.
  static mlir::FailureOr<ModelFile> read(llvm::StringRef path, mlir::MLIRContext *context);

  wire::ModelProto &proto() { return *model; }
  const wire::ModelProto &proto() const { return *model; }
  llvm::StringRef folder() const { return directory; }
  mlir::Location location() const { return loc; }
  mlir::InFlightDiagnostic error() const { return mlir::emitError(loc); }

  /// The type of a tensor, its dimensions checked: not negative, and their product representable.
  mlir::FailureOr<mlir::RankedTensorType> tensorType(const wire::TensorProto &tensor) const;

  /// True when the tensor states neither bytes nor a place for them: a parameter of a model exported without weights.
  static bool hasNoData(const wire::TensorProto &tensor);

  /// Where the bytes of `tensor` are: in its external file, or in the model file itself.
  mlir::FailureOr<FileRange> dataRange(const wire::TensorProto &tensor) const;

  /// The elements of `tensor`, from the model or from its external file.
  mlir::FailureOr<mlir::DenseElementsAttr> read(const wire::TensorProto &tensor) const;

private:
  ModelFile(mlir::Location loc) : loc(loc) {}
  mlir::FailureOr<FileRange> externalRange(const wire::TensorProto &tensor, uint64_t expected) const;

  std::shared_ptr<wire::ModelProto> model;
  std::shared_ptr<llvm::MemoryBuffer> bytes;
  std::string path;
  std::string directory;
  mlir::Location loc;
};

/// The element type of ONNX's code `code`; null for types that nd has no values of.
mlir::Type elementType(int32_t code, mlir::MLIRContext *context);

/// The name of ONNX's element type `code`.
llvm::StringRef elementTypeName(int32_t code);

/// The product of `shape`, or nothing when a size is negative or the product exceeds 2^62.
std::optional<int64_t> checkedElements(llvm::ArrayRef<int64_t> shape);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_MODELFILE_H
