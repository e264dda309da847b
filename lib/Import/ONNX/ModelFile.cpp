//===- ModelFile.cpp - A parsed ONNX file and its data --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <google/protobuf/io/coded_stream.h>
#include <limits>

using namespace mlir;
using namespace nd::onnx;

namespace {

/// ONNX's element types, in the order of their codes. Empty: reserved.
constexpr llvm::StringLiteral typeNames[] = {
    "undefined", "float32",      "uint8",          "int8",       "uint16",         "int16",  "int32",     "int64",
    "string",    "bool",         "float16",        "float64",    "uint32",         "uint64", "complex64", "complex128",
    "bfloat16",  "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",  "int4",      "float4e2m1"};

/// Bytes of one element in `raw_data` and in external files.
unsigned storedBytes(Type type) { return type.isInteger(1) ? 1 : type.getIntOrFloatBitWidth() / 8; }

} // namespace

StringRef nd::onnx::elementTypeName(int32_t code) {
  return code >= 0 && code < int32_t(std::size(typeNames)) ? StringRef(typeNames[code]) : StringRef("unknown");
}

Type nd::onnx::elementType(int32_t code, MLIRContext *context) {
  switch (code) {
  case wire::TensorProto::FLOAT:
    return Float32Type::get(context);
  case wire::TensorProto::INT8:
    return IntegerType::get(context, 8);
  case wire::TensorProto::INT16:
    return IntegerType::get(context, 16);
  case wire::TensorProto::INT32:
    return IntegerType::get(context, 32);
  case wire::TensorProto::INT64:
    return IntegerType::get(context, 64);
  case wire::TensorProto::BOOL:
    return IntegerType::get(context, 1);
  case wire::TensorProto::FLOAT16:
    return Float16Type::get(context);
  case wire::TensorProto::DOUBLE:
    return Float64Type::get(context);
  case wire::TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  default:
    return {};
  }
}

std::optional<int64_t> nd::onnx::checkedElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    empty |= size == 0;
    if (size != 0 && llvm::MulOverflow(count, size, count))
      return std::nullopt;
  }
  if (count > (int64_t(1) << 62) / 16)
    return std::nullopt;
  return empty ? 0 : count;
}

FailureOr<ModelFile> ModelFile::read(StringRef path, MLIRContext *context) {
  ModelFile file(NameLoc::get(StringAttr::get(context, path)));
  file.path = path.str();
  SmallString<128> folder(path);
  llvm::sys::path::remove_filename(folder);
  file.directory = folder.empty() ? "." : folder.str().str();

  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(path, status))
    return file.error() << "cannot read the model: " << code.message() << "; give the path of a .onnx file";
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return file.error() << "is not a regular file; give the path of a .onnx file";
  if (status.getSize() > uint64_t(std::numeric_limits<int>::max()))
    return file.error() << "is larger than 2 GiB, the limit of the format; export with weights as external data";
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return file.error() << "cannot read the model: " << buffer.getError().message();
  file.bytes = std::move(*buffer);

  file.model = std::make_shared<wire::ModelProto>();
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(file.bytes->getBufferStart()),
                                                static_cast<int>(file.bytes->getBufferSize()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (!file.model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return file.error() << "is not an ONNX model, or is damaged or truncated; export it again";
  if (!file.model->has_graph())
    return file.error() << "is an ONNX file without a graph; export the model again";
  return file;
}

FailureOr<RankedTensorType> ModelFile::tensorType(const wire::TensorProto &tensor) const {
  Type element = elementType(tensor.data_type(), loc.getContext());
  if (!element)
    return error() << "tensor '" << tensor.name() << "' has element type " << elementTypeName(tensor.data_type())
                   << " (" << tensor.data_type()
                   << "), which nd does not support; convert the model to float32, int64 or bool";
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  if (!checkedElements(shape))
    return error() << "tensor '" << tensor.name()
                   << "' has a negative or overflowing size; the file is damaged, export it again";
  return RankedTensorType::get(shape, element);
}

bool ModelFile::hasNoData(const wire::TensorProto &tensor) {
  if (tensor.data_location() == wire::TensorProto::EXTERNAL)
    return tensor.external_data().empty();
  return !tensor.has_raw_data() && tensor.float_data().empty() && tensor.int32_data().empty() &&
         tensor.int64_data().empty() && tensor.double_data().empty();
}

FailureOr<FileRange> ModelFile::externalRange(const wire::TensorProto &tensor, uint64_t expected) const {
  auto refuse = [&](const Twine &what) -> FailureOr<FileRange> {
    return error() << "external data of tensor '" << tensor.name() << "': " << what;
  };
  FileRange range;
  range.length = expected;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location") {
      range.file = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      uint64_t &field = entry.key() == "offset" ? range.offset : range.length;
      if (StringRef(entry.value()).getAsInteger(10, field))
        return refuse(entry.key() + " '" + entry.value() + "' is not a number in range; export the model again");
    }
  }
  if (range.file.empty())
    return refuse("no location is given; export the model again");
  if (llvm::sys::path::is_absolute(range.file))
    return refuse("location '" + range.file + "' is an absolute path; it must be relative to the model's folder");
  for (auto part = llvm::sys::path::begin(range.file), end = llvm::sys::path::end(range.file); part != end; ++part)
    if (*part == "..")
      return refuse("location '" + range.file + "' leaves the model's folder; move the file beside the model");

  SmallString<128> path(directory), real, realFolder;
  llvm::sys::path::append(path, range.file);
  if (std::error_code code = llvm::sys::fs::real_path(path, real))
    return refuse("'" + range.file + "' cannot be read: " + code.message() + "; put the file beside the model");
  if (std::error_code code = llvm::sys::fs::real_path(directory, realFolder))
    return refuse("the model's folder cannot be resolved: " + code.message());
  StringRef rest = real;
  if (!rest.consume_front(realFolder) || (realFolder != "/" && !rest.starts_with("/")))
    return refuse("'" + range.file + "' is a link that leaves the model's folder; copy the file beside the model");
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(real, status))
    return refuse("'" + range.file + "' cannot be read: " + code.message());
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return refuse("'" + range.file + "' is not a regular file");
  if (range.length != expected)
    return refuse("its length is " + Twine(range.length) + " bytes where shape and type need " + Twine(expected) +
                  "; export the model again");
  if (range.offset > status.getSize() || range.length > status.getSize() - range.offset)
    return refuse("offset " + Twine(range.offset) + " and length " + Twine(range.length) + " reach past the end of '" +
                  range.file + "' (" + Twine(status.getSize()) +
                  " bytes); the file is truncated or belongs to another model");
  return range;
}

FailureOr<FileRange> ModelFile::dataRange(const wire::TensorProto &tensor) const {
  FailureOr<RankedTensorType> type = tensorType(tensor);
  if (failed(type))
    return failure();
  uint64_t expected = uint64_t(*checkedElements(type->getShape())) * storedBytes(type->getElementType());
  if (tensor.data_location() == wire::TensorProto::EXTERNAL)
    return externalRange(tensor, expected);

  // Both ways of storing floats put the same little-endian bytes into the file; equal bytes anywhere in it are the same
  // data.
  StringRef data = tensor.raw_data();
  if (!tensor.has_raw_data() && tensor.float_data_size() > 0)
    data =
        StringRef(reinterpret_cast<const char *>(tensor.float_data().data()), tensor.float_data_size() * sizeof(float));
  if (data.size() != expected)
    return error() << "tensor '" << tensor.name() << "' holds " << data.size() << " bytes where shape and type need "
                   << expected << "; the file is damaged, export it again";
  size_t offset = bytes->getBuffer().find(data);
  if (offset == StringRef::npos)
    return error() << "parameter '" << tensor.name()
                   << "' is stored as separate numbers; save the model with raw or external data";
  return FileRange{llvm::sys::path::filename(path).str(), offset, expected};
}

namespace {

/// Elements of a repeated field, converted to `To` one by one.
template <typename To, typename Field> DenseElementsAttr fromField(RankedTensorType type, const Field &field) {
  SmallVector<To> values;
  values.reserve(field.size());
  for (auto value : field)
    values.push_back(static_cast<To>(value));
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef<char>(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(To)));
}

DenseElementsAttr fromBools(RankedTensorType type, ArrayRef<bool> values) {
  return DenseElementsAttr::get(type, values);
}

/// Elements from their bytes in file order.
DenseElementsAttr fromBytes(RankedTensorType type, StringRef data) {
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values;
    for (char byte : data)
      values.push_back(byte != 0);
    return fromBools(type, values);
  }
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(data.data(), data.size()));
}

} // namespace

FailureOr<DenseElementsAttr> ModelFile::read(const wire::TensorProto &tensor) const {
  FailureOr<RankedTensorType> maybeType = tensorType(tensor);
  if (failed(maybeType))
    return failure();
  RankedTensorType type = *maybeType;
  Type element = type.getElementType();
  int64_t count = *checkedElements(type.getShape());
  uint64_t expected = uint64_t(count) * storedBytes(element);
  auto wrongCount = [&](uint64_t found, StringRef unit) -> FailureOr<DenseElementsAttr> {
    return error() << "tensor '" << tensor.name() << "' holds " << found << " " << unit << " where shape and type need "
                   << (unit == "bytes" ? expected : uint64_t(count)) << "; the file is damaged, export it again";
  };

  if (tensor.data_location() == wire::TensorProto::EXTERNAL) {
    FailureOr<FileRange> range = externalRange(tensor, expected);
    if (failed(range))
      return failure();
    SmallString<128> file(directory);
    llvm::sys::path::append(file, range->file);
    auto data = llvm::MemoryBuffer::getFileSlice(file, range->length, range->offset);
    if (!data)
      return error() << "external data of tensor '" << tensor.name() << "': " << data.getError().message();
    return fromBytes(type, (*data)->getBuffer());
  }
  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != expected)
      return wrongCount(tensor.raw_data().size(), "bytes");
    return fromBytes(type, tensor.raw_data());
  }
  auto checked = [&](auto to, const auto &field) -> FailureOr<DenseElementsAttr> {
    if (field.size() != count)
      return wrongCount(field.size(), "numbers");
    return fromField<decltype(to)>(type, field);
  };
  if (element.isF32())
    return checked(float(), tensor.float_data());
  if (element.isF64())
    return checked(double(), tensor.double_data());
  if (element.isF16() || element.isBF16())
    return checked(uint16_t(), tensor.int32_data());
  if (element.isInteger(64))
    return checked(int64_t(), tensor.int64_data());
  if (element.isInteger(32))
    return checked(int32_t(), tensor.int32_data());
  if (element.isInteger(16))
    return checked(int16_t(), tensor.int32_data());
  if (element.isInteger(8))
    return checked(int8_t(), tensor.int32_data());
  if (tensor.int32_data_size() != count)
    return wrongCount(tensor.int32_data_size(), "numbers");
  SmallVector<bool> values(tensor.int32_data().begin(), tensor.int32_data().end());
  return fromBools(type, values);
}
