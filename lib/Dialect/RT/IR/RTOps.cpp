//===- RTOps.cpp - Operations of the rt dialect ----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/RT/IR/RT.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
namespace rt = nd::rt;
using namespace nd::rt;

#define GET_OP_CLASSES
#include "nd/Dialect/RT/IR/RTOps.cpp.inc"

namespace {

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

void addEffects(Operation *op, ArrayRef<OpOperand *> written, bool alsoRead, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    bool writes = llvm::is_contained(written, &operand);
    if (!writes || alsoRead)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (writes)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

LogicalResult verifyRootLayout(Operation *op, MemRefType type, std::optional<int64_t> offset) {
  if (!type.getLayout().isIdentity())
    return op->emitOpError("allocates a row-major buffer, so its type has no layout, but it is ") << type;
  if (offset && *offset < 0)
    return op->emitOpError("offset must not be negative, but it is ") << *offset;
  return success();
}

} // namespace

//===----------------------------------------------------------------------===//
// Programs and memory
//===----------------------------------------------------------------------===//

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addRegion()->emplaceBlock();
}

/// All operations of a block are of this dialect.
static LogicalResult verifyDialect(Block &block) {
  for (Operation &op : block)
    if (op.getName().getDialectNamespace() != RTDialect::getDialectNamespace())
      return op.emitOpError("is not an operation of the rt dialect, and a program holds only those");
  return success();
}

LogicalResult ProgramOp::verify() {
  llvm::StringSet<> names;
  if (failed(verifyDialect(getBody().front())))
    return failure();
  for (Operation &op : getBody().front()) {
    if (auto tensor = dyn_cast<TensorOp>(op))
      if (!names.insert((tensor.getKind() + "\n" + tensor.getTensorName()).str()).second)
        return tensor.emitOpError("a ") << tensor.getKind() << " named '" << tensor.getTensorName()
                                        << "' exists already";
  }
  return success();
}

/// Blocks and units are as many as dimensions, axes and places say.
static LogicalResult verifyStorage(TensorOp op) {
  int64_t rank = op.getBuffer().getType().getRank();
  auto count = [&](int64_t dim) -> size_t {
    return op.getDimAxes() ? cast<ArrayAttr>((*op.getDimAxes())[dim]).size() : 0;
  };
  if (std::optional<ArrayAttr> blocks = op.getDimBlocks()) {
    if (static_cast<int64_t>(blocks->size()) != rank)
      return op.emitOpError("dim_blocks has ") << blocks->size() << " entries, the tensor " << rank << " dimensions";
    for (auto [dim, entry] : llvm::enumerate(*blocks)) {
      auto sizes = dyn_cast<ArrayAttr>(entry);
      auto isSize = [](Attribute size) { return isa<IntegerAttr>(size) && cast<IntegerAttr>(size).getInt() > 0; };
      if (!sizes || !llvm::all_of(sizes, isSize) || (!sizes.empty() && sizes.size() != count(dim)))
        return op.emitOpError("dim_blocks of dimension ")
               << dim << " must be empty or hold a size for each of its " << count(dim) << " axes";
    }
  }
  if (!op.getUnits())
    return op.getUnitsDim() || op.getUnitSize() ? op.emitOpError("has units_dim or unit_size without units")
                                                : success();
  if (!op.getUnitsDim() || !op.getUnitSize() || static_cast<int64_t>(*op.getUnitsDim()) >= rank ||
      static_cast<int64_t>(*op.getUnitSize()) < 1 || op.getUnits()->empty())
    return op.emitOpError("units must name a dimension and a positive size of units");
  if (op.getDimBlocks() && !cast<ArrayAttr>((*op.getDimBlocks())[*op.getUnitsDim()]).empty())
    return op.emitOpError("dimension ") << *op.getUnitsDim() << " has both units and blocks";
  return success();
}

LogicalResult TensorOp::verify() {
  MemRefType type = getBuffer().getType();
  size_t rank = type.getRank();
  if (getGlobalShape() && getGlobalShape()->size() != rank)
    return emitOpError("global_shape has ") << getGlobalShape()->size() << " dimensions, the tensor " << rank;
  if (std::optional<ArrayAttr> axes = getDimAxes()) {
    if (axes->size() != rank)
      return emitOpError("dim_axes has ") << axes->size() << " entries, the tensor " << rank << " dimensions";
    auto isNameList = [](Attribute dim) {
      auto names = dyn_cast<ArrayAttr>(dim);
      return names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
    };
    if (!llvm::all_of(*axes, isNameList))
      return emitOpError("dim_axes must hold one list of axis names per dimension");
  }
  if (failed(verifyStorage(*this)))
    return failure();
  return verifyRootLayout(*this, type, getOffset());
}

LogicalResult BufferOp::verify() { return verifyRootLayout(*this, getBuffer().getType(), getOffset()); }

LogicalResult ConstantOp::verify() {
  MemRefType type = getBuffer().getType();
  ShapedType value = getValue().getShapedType();
  if (value.getShape() != type.getShape() || value.getElementType() != type.getElementType())
    return emitOpError("value is ") << value << ", the buffer " << type;
  return verifyRootLayout(*this, type, std::nullopt);
}

LogicalResult ViewOp::verify() {
  MemRefType source = getSource().getType(), result = getResult().getType();
  auto row = dyn_cast<BlockArgument>(getSource());
  bool isRow = row && isa<RepeatOp>(row.getOwner()->getParentOp());
  if (!isRow && !isa_and_nonnull<TensorOp, BufferOp, ConstantOp>(getSource().getDefiningOp()))
    return emitOpError(
        "source must be an rt.tensor, rt.buffer or rt.constant, or a row that an rt.repeat gives: layouts "
        "of views are absolute");
  if (source.getElementType() != result.getElementType())
    return emitOpError("element type ") << result.getElementType() << " differs from the source's "
                                        << source.getElementType();
  Layout layout = getLayout(result);
  if (layout.offset < 0 || llvm::any_of(layout.strides, [](int64_t stride) { return stride < 0; }))
    return emitOpError("strides and offset must not be negative");
  if (getExtent(result) > source.getNumElements())
    return emitOpError("reaches element ") << getExtent(result) << " of a source of " << source.getNumElements();
  return success();
}

void RepeatOp::build(OpBuilder &builder, OperationState &state, int64_t count, ValueRange sliced) {
  state.addAttribute(getCountAttrName(state.name), builder.getI64IntegerAttr(count));
  state.addOperands(sliced);
  Block &block = state.addRegion()->emplaceBlock();
  for (Value buffer : sliced) {
    auto type = cast<MemRefType>(buffer.getType());
    block.addArgument(MemRefType::get(type.getShape().drop_front(), type.getElementType()), state.location);
  }
}

LogicalResult RepeatOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getSliced().size())
    return emitOpError("has ") << getSliced().size() << " sliced buffers, but its region takes "
                               << block.getNumArguments() << " rows";
  for (auto [buffer, row] : llvm::zip_equal(getSliced(), block.getArguments())) {
    auto type = cast<MemRefType>(buffer.getType());
    if (type.getRank() == 0 || type.getDimSize(0) != static_cast<int64_t>(getCount()) || !isContiguous(type))
      return emitOpError("slices contiguous buffers of ") << getCount() << " rows, but one is " << type;
    if (row.getType() != MemRefType::get(type.getShape().drop_front(), type.getElementType()))
      return emitOpError("has a region that takes ") << row.getType() << " as a row of " << type;
  }
  for (Operation &op : block)
    if (isa<TensorOp, BufferOp, ConstantOp>(op))
      return op.emitOpError("is declared inside of a loop: memory belongs to the whole program");
  return verifyDialect(block);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

LogicalResult rt::KernelOp::verify() {
  Block &block = getBody().front();
  auto kernel = llvm::hasSingleElement(block) ? dyn_cast<nd::KernelOp>(block.front()) : nd::KernelOp();
  if (!kernel || ValueRange(kernel.getInputs()) != ValueRange(block.getArguments()))
    return emitOpError("body must be one nd.kernel of the block's arguments");
  auto check = [&](ArrayAttr types, ValueRange values, StringRef what) -> LogicalResult {
    if (types.size() != values.size())
      return emitOpError("has ") << types.size() << ' ' << what << " types, its nd.kernel has " << values.size();
    for (auto [index, attr, value] : llvm::enumerate(types.getAsValueRange<TypeAttr>(), values)) {
      auto memref = dyn_cast<MemRefType>(attr);
      auto tensor = cast<ShapedType>(value.getType());
      if (!memref || !hasStaticStrides(memref) || memref.getShape() != tensor.getShape() ||
          memref.getElementType() != tensor.getElementType())
        return emitOpError(what) << ' ' << index << " is " << attr << ", which does not hold " << tensor;
    }
    return success();
  };
  if (failed(check(getInputTypes(), kernel.getInputs(), "input")) ||
      failed(check(getResultTypes(), kernel.getResults(), "result")))
    return failure();
  if (getInPlace().size() != getResultTypes().size())
    return emitOpError("in_place has ") << getInPlace().size() << " entries for " << getResultTypes().size()
                                        << " results";
  llvm::SmallSet<int64_t, 4> taken;
  for (auto [result, input] : llvm::enumerate(getInPlace())) {
    if (input == -1)
      continue;
    if (input < 0 || input >= static_cast<int64_t>(getInputTypes().size()))
      return emitOpError("result ") << result << " is in place of operand " << input << ", which does not exist";
    if (!taken.insert(input).second)
      return emitOpError("two results are in place of operand ") << input;
    if (getInputTypes()[input] != getResultTypes()[result])
      return emitOpError("result ") << result << " is in place of operand " << input << " of another type";
  }
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<rt::KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("there is no rt.kernel named ") << getKernelAttr();
  if (kernel.getInPlace() != getInPlace())
    return emitOpError("in_place differs from that of ") << getKernelAttr();
  SmallVector<Type> expected(kernel.getInputTypes().getAsValueRange<TypeAttr>());
  for (auto [type, input] : llvm::zip_equal(kernel.getResultTypes().getAsValueRange<TypeAttr>(), getInPlace()))
    if (input == -1)
      expected.push_back(type);
  SmallVector<Type> actual = llvm::to_vector(getInputs().getTypes());
  llvm::append_range(actual, getOutputs().getTypes());
  if (expected.size() != actual.size())
    return emitOpError("passes ") << actual.size() << " buffers, " << getKernelAttr() << " takes " << expected.size();
  for (auto [index, want, have] : llvm::enumerate(expected, actual)) {
    // A kernel's code knows strides, not where its operand starts.
    auto wanted = cast<MemRefType>(want), given = cast<MemRefType>(have);
    if (wanted.getShape() != given.getShape() || wanted.getElementType() != given.getElementType() ||
        getLayout(wanted).strides != getLayout(given).strides)
      return emitOpError("buffer ") << index << " is " << have << ", " << getKernelAttr() << " takes " << want;
  }
  return success();
}

void LaunchOp::getEffects(Effects &effects) {
  auto segments = getODSOperandIndexAndLength(0);
  for (auto [index, operand] : llvm::enumerate((*this)->getOpOperands())) {
    bool isInput = index < segments.second;
    if (isInput)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (!isInput || llvm::is_contained(getInPlace(), static_cast<int64_t>(index)))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

//===----------------------------------------------------------------------===//
// Library operations
//===----------------------------------------------------------------------===//

LogicalResult GemmOp::verify() {
  MemRefType a = getA().getType(), b = getB().getType(), c = getC().getType();
  int64_t rank = c.getRank();
  if (rank != 2 && rank != 3)
    return emitOpError("c must have 2 or 3 dimensions, but is ") << c;
  if (a.getRank() != rank || b.getRank() != rank)
    return emitOpError("a, b and c must have equally many dimensions, but are ") << a << ", " << b << ", " << c;
  auto dim = [rank](MemRefType type, int64_t i) { return type.getDimSize(rank - 2 + i); };
  if (dim(a, 0) != dim(c, 0) || dim(b, 1) != dim(c, 1) || dim(a, 1) != dim(b, 0))
    return emitOpError("shapes do not fit [M, K] x [K, N] = [M, N]: ") << a << ", " << b << ", " << c;
  if (rank == 3 && (a.getDimSize(0) != c.getDimSize(0) || b.getDimSize(0) != c.getDimSize(0)))
    return emitOpError("batch sizes differ: ") << a << ", " << b << ", " << c;
  if (getBias() &&
      (getBias().getType().getShape() != ArrayRef<int64_t>{dim(c, 1)} || !isContiguous(getBias().getType())))
    return emitOpError("bias must be contiguous of shape [") << dim(c, 1) << "], but is " << getBias().getType();
  auto isUnit = [&](MemRefType type, int64_t i) {
    return dim(type, i) == 1 || getLayout(type).strides[rank - 2 + i] == 1;
  };
  for (auto [name, type] : {std::pair("a", a), std::pair("b", b)})
    if (!isUnit(type, 0) && !isUnit(type, 1))
      return emitOpError(name) << " needs an inner stride of 1: " << type;
  if (!isUnit(c, 1))
    return emitOpError("rows of c must be contiguous: ") << c;
  return success();
}

void GemmOp::getEffects(Effects &effects) { addEffects(*this, {&getCMutable()}, getAccumulate(), effects); }

namespace {

/// Checks what attention and its gradient share: [B, H, S, D] operands with contiguous rows and contiguous side inputs.
template <typename OpTy>
LogicalResult verifyAttention(OpTy op, ArrayRef<std::pair<StringRef, TypedValue<MemRefType>>> rows, Value lse) {
  for (auto [name, value] : rows) {
    MemRefType type = value.getType();
    if (type.getRank() != 4)
      return op.emitOpError() << name << " must be [B, H, S, D], but is " << type;
    if (type.getDimSize(3) != 1 && getLayout(type).strides[3] != 1)
      return op.emitOpError() << name << " needs an innermost stride of 1: " << type;
    if (!type.getElementType().isF32() && !type.getElementType().isBF16())
      return op.emitOpError() << name << " must be of f32 or bf16, but is " << type;
  }
  if (Value mask = op.getMask()) {
    Type element = cast<MemRefType>(mask.getType()).getElementType();
    if (!element.isF32() && !element.isInteger(1))
      return op.emitOpError() << "mask must be of f32 (added) or i1 (true = visible), but is " << mask.getType();
  }
  for (auto [name, value] : {std::pair<StringRef, Value>("lse", lse),
                             {"positions", op.getPositions()},
                             {"documents", op.getDocuments()},
                             {"key_padding", op.getKeyPadding()}})
    if (value && !isContiguous(cast<MemRefType>(value.getType())))
      return op.emitOpError() << name << " must be contiguous: " << value.getType();
  return success();
}

} // namespace

LogicalResult rt::AttentionOp::verify() {
  SmallVector<std::pair<StringRef, TypedValue<MemRefType>>> rows = {
      {"query", getQuery()}, {"key", getKey()}, {"value", getValue()}, {"result", getResult()}};
  if (getCarryResult())
    rows.emplace_back("carry_result", getCarryResult());
  if (getCarryLse() && !isContiguous(getCarryLse().getType()))
    return emitOpError() << "carry_lse must be contiguous: " << getCarryLse().getType();
  return verifyAttention(*this, rows, getLse());
}

SmallVector<OpOperand *> rt::AttentionOp::getWritten() { return {&getResultMutable(), &getLseMutable()}; }

void rt::AttentionOp::getEffects(Effects &effects) { addEffects(*this, getWritten(), false, effects); }

LogicalResult rt::AttentionGradOp::verify() {
  return verifyAttention(*this,
                         {{"query", getQuery()},
                          {"key", getKey()},
                          {"value", getValue()},
                          {"result", getResult()},
                          {"result_grad", getResultGrad()},
                          {"query_grad", getQueryGrad()},
                          {"key_grad", getKeyGrad()},
                          {"value_grad", getValueGrad()}},
                         getLse());
}

SmallVector<OpOperand *> rt::AttentionGradOp::getWritten() {
  return {&getQueryGradMutable(), &getKeyGradMutable(), &getValueGradMutable()};
}

void rt::AttentionGradOp::getEffects(Effects &effects) { addEffects(*this, getWritten(), false, effects); }

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

LogicalResult CopyOp::verify() {
  MemRefType source = getSource().getType(), target = getTarget().getType();
  if (!isContiguous(source) || !isContiguous(target))
    return emitOpError("copies contiguous memory, but has ") << source << " to " << target;
  if (getBytes(source) != getBytes(target))
    return emitOpError("source has ") << getBytes(source) << " bytes, target " << getBytes(target);
  return success();
}

LogicalResult FillZeroOp::verify() {
  if (!isContiguous(getTarget().getType()))
    return emitOpError("fills contiguous memory, but has ") << getTarget().getType();
  return success();
}

int64_t CollectiveStartOp::getPayloadElements() {
  int64_t elements = 0;
  for (Value whole : getKind() == CollectiveKind::all_gather ? getTargets() : getSources())
    elements += cast<MemRefType>(whole.getType()).getNumElements();
  return elements;
}

LogicalResult CollectiveStartOp::verify() {
  if (getSources().empty() || getSources().size() != getTargets().size())
    return emitOpError("has ") << getSources().size() << " sources and " << getTargets().size() << " targets";
  Type elementType = cast<MemRefType>(getSources().front().getType()).getElementType();
  for (auto [index, values] : llvm::enumerate(llvm::zip_equal(getSources(), getTargets()))) {
    auto source = cast<MemRefType>(std::get<0>(values).getType());
    auto target = cast<MemRefType>(std::get<1>(values).getType());
    if (!isContiguous(source) || !isContiguous(target))
      return emitOpError("moves contiguous memory, but has ") << source << " to " << target;
    if (source.getElementType() != elementType || target.getElementType() != elementType)
      return emitOpError("element types differ: ") << source << " to " << target;
    bool keepsSize = getKind() != CollectiveKind::all_gather && getKind() != CollectiveKind::reduce_scatter;
    if (keepsSize && source.getNumElements() != target.getNumElements())
      return emitOpError("an ") << stringifyCollectiveKind(getKind()) << " keeps the number of elements: " << source
                                << " to " << target;
    int64_t whole = getKind() == CollectiveKind::all_gather ? target.getRank() : source.getRank();
    bool hasDim = !keepsSize;
    if (hasDim && (getDims().size() != getSources().size() || getDims()[index] < 0 || getDims()[index] >= whole))
      return emitOpError("needs a dimension of each operand, but has dims = [") << getDims() << ']';
  }
  if (getKind() == CollectiveKind::all_to_all) {
    int64_t rank = cast<MemRefType>(getSources().front().getType()).getRank();
    if (getSources().size() != 1 || getDims().size() != 2 ||
        llvm::any_of(getDims(), [&](int64_t dim) { return dim < 0 || dim >= rank; }))
      return emitOpError("moves one tensor between two of its dimensions, but has dims = [") << getDims() << ']';
  }
  if ((getKind() == CollectiveKind::permute) == getPermutation().empty())
    return emitOpError("a permute has a permutation, and nothing else has");
  if (getAxes().empty())
    return emitOpError("needs at least one mesh axis");
  if (llvm::count_if(getEvent().getUsers(), llvm::IsaPred<WaitOp>) != 1)
    return emitOpError("must be waited for exactly once");
  return success();
}

LogicalResult AllSliceOp::verify() {
  MemRefType source = getSource().getType(), target = getTarget().getType();
  if (!isContiguous(source) || !isContiguous(target))
    return emitOpError("copies contiguous memory, but has ") << source << " to " << target;
  if (source.getElementType() != target.getElementType() || source.getRank() != target.getRank())
    return emitOpError("target is no part of the source: ") << source << " to " << target;
  if (getDim() >= static_cast<uint64_t>(source.getRank()))
    return emitOpError("has no dimension ") << static_cast<int64_t>(getDim()) << ": " << source;
  if (getAxes().empty())
    return emitOpError("needs at least one mesh axis");
  return success();
}
