//===- HostProgram.cpp - An rt program as emission reads it ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "HostProgram.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace nd;

FailureOr<HostProgram> HostProgram::read(ModuleOp module) {
  HostProgram host;
  host.module = module;
  SmallVector<rt::ProgramOp> programs(module.getOps<rt::ProgramOp>());
  if (programs.size() != 1)
    return module.emitError("expected one rt.program, but there are ") << programs.size() << ": run nd-to-rt";
  host.program = programs.front();
  if (!host.program.getArenaBytes())
    return host.program.emitOpError("has no arena yet: run rt-plan-memory");
  SmallVector<MeshOp> meshes(module.getOps<MeshOp>());
  if (meshes.size() > 1)
    return meshes[1].emitOpError("is the second mesh of the module; a program runs on one");
  if (!meshes.empty())
    host.mesh = meshes.front();
  if (host.mesh && host.mesh.getAxes().size() > ND_MAX_AXES)
    return host.mesh.emitOpError("has more than ") << ND_MAX_AXES << " axes";
  WalkResult walked = host.program.walk([&](Operation *op) -> WalkResult {
    if (!isa<rt::CollectiveStartOp, rt::AllSliceOp>(op))
      return success();
    if (auto collective = dyn_cast<rt::CollectiveStartOp>(op))
      host.collectives.push_back(collective);
    for (auto name : op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>())
      if (!host.mesh || !host.mesh.findAxis(name))
        return op->emitOpError("is over axis ") << name << ", which no nd.mesh of the module has";
    return success();
  });
  if (walked.wasInterrupted())
    return failure();
  if (failed(host.readTensors()) || failed(host.planKernels()))
    return failure();
  return host;
}

LogicalResult HostProgram::readTensors() {
  for (auto tensor : program.getBody().getOps<rt::TensorOp>()) {
    MemRefType type = tensor.getBuffer().getType();
    if (type.getRank() > ND_MAX_RANK)
      return tensor.emitOpError("has more than ") << ND_MAX_RANK << " dimensions";
    if (!abiType(type.getElementType()))
      return tensor.emitOpError("has an element type that programs do not hold: ") << type.getElementType();
    if (!tensor.getOffset())
      return tensor.emitOpError("has no offset: run rt-plan-memory");
    if (std::optional<ArrayAttr> dims = tensor.getDimAxes())
      for (auto names : dims->getAsRange<ArrayAttr>()) {
        if (names.size() > ND_MAX_DIM_AXES)
          return tensor.emitOpError("shards a dimension over more than ") << ND_MAX_DIM_AXES << " axes";
        for (auto name : names.getAsRange<StringAttr>())
          if (!mesh || !mesh.findAxis(name))
            return tensor.emitOpError("is sharded over axis ") << name << ", which no nd.mesh of the module has";
      }
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (failed(checkStorage(tensor, dim)))
        return failure();
    tensors.push_back(tensor);
  }
  return success();
}

/// All ranks together hold every element of a dimension.
LogicalResult HostProgram::checkStorage(rt::TensorOp tensor, int64_t dim) {
  int64_t local = tensor.getBuffer().getType().getDimSize(dim);
  int64_t global = tensor.getGlobalShape() ? (*tensor.getGlobalShape())[dim] : local;
  SmallVector<int64_t> sizes, blocks;
  if (std::optional<ArrayAttr> axes = tensor.getDimAxes())
    for (auto name : cast<ArrayAttr>((*axes)[dim]).getAsRange<StringAttr>())
      sizes.push_back(mesh.findAxis(name).getSize());
  if (std::optional<ArrayAttr> all = tensor.getDimBlocks())
    for (auto block : cast<ArrayAttr>((*all)[dim]).getAsRange<IntegerAttr>())
      blocks.push_back(block.getInt());
  int64_t shards = llvm::product_of(sizes);

  if (tensor.getUnits() && static_cast<int64_t>(*tensor.getUnitsDim()) == dim) {
    ArrayRef<int64_t> units = *tensor.getUnits();
    int64_t size = *tensor.getUnitSize(), count = (global + size - 1) / size;
    llvm::SmallBitVector held(count);
    for (int64_t unit : units) {
      if (unit < -1)
        return tensor.emitOpError("has a negative unit: ") << unit;
      if (unit >= 0 && unit < count)
        held.set(unit);
    }
    if (static_cast<int64_t>(units.size()) * size != local * shards)
      return tensor.emitOpError("stores dimension ") << dim << " as " << units.size() << " units of " << size
                                                     << ", but " << shards << " shards of " << local << " are not that";
    if (!held.all())
      return tensor.emitOpError("stores logical unit ")
             << held.find_first_unset() << " of dimension " << dim << " nowhere";
    return success();
  }
  if (blocks.empty()) {
    if (local * shards < global)
      return tensor.emitOpError("has ") << global << " elements in dimension " << dim << ", but " << shards
                                        << " shards of " << local << " hold fewer";
    return success();
  }
  int64_t enclosing = global;
  for (auto [size, block] : llvm::zip_equal(sizes, blocks)) {
    if (block * size < enclosing)
      return tensor.emitOpError("has ") << size << " blocks of " << block << " in dimension " << dim
                                        << ", which do not cover " << enclosing << " elements";
    enclosing = block;
  }
  if (enclosing > local)
    return tensor.emitOpError("has blocks of ")
           << enclosing << " in dimension " << dim << ", more than the " << local << " elements on a rank";
  return success();
}

LogicalResult HostProgram::planKernels() {
  llvm::StringMap<std::pair<int32_t, int32_t>> table;
  for (auto kernel : module.getOps<rt::KernelOp>()) {
    KernelSpec spec;
    spec.op = cast<KernelOp>(kernel.getBody().front().front());
    for (Type type : kernel.getInputTypes().getAsValueRange<TypeAttr>())
      spec.inputTypes.push_back(cast<MemRefType>(type));
    for (Type type : kernel.getResultTypes().getAsValueRange<TypeAttr>())
      spec.resultTypes.push_back(cast<MemRefType>(type));
    for (int64_t input : kernel.getInPlace())
      spec.inPlaceOf.push_back(input < 0 ? std::nullopt : std::optional<unsigned>(input));
    FailureOr<KernelPlan> plan = planKernel(spec);
    if (failed(plan))
      return failure();
    threadScratchBytes = std::max(threadScratchBytes, plan->scratchBytes);
    auto [it, isNew] = table.try_emplace(kernelKey(spec));
    if (isNew) {
      std::string name = ("nd_" + kernel.getSymName()).str();
      it->second.first = kernelFunctions.size();
      kernelFunctions.push_back(name);
      if (plan->finish) {
        it->second.second = kernelFunctions.size();
        kernelFunctions.push_back(name + "_finish");
      }
      functions.push_back({spec, *plan, name});
    }
    kernels[kernel.getSymNameAttr()] = {*plan, it->second.first, it->second.second};
  }
  program.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op).Case<rt::AttentionOp, rt::AttentionGradOp>([&](auto attention) {
      nd_attention_desc desc = describe(attention);
      threadScratchBytes = std::max(threadScratchBytes, nd_attention_scratch_bytes(&desc));
    });
  });
  return success();
}

LogicalResult HostProgram::emitKernels(ModuleOp target) {
  OpBuilder builder = OpBuilder::atBlockEnd(target.getBody());
  for (const Function &function : functions)
    if (failed(emitKernel(builder, function.spec, function.plan, function.name)))
      return failure();
  return success();
}

int64_t HostProgram::numRanks() { return mesh ? mesh.getNumRanks() : 1; }

int64_t HostProgram::groupSize(ArrayAttr names) {
  int64_t size = 1;
  for (auto name : names.getAsRange<StringAttr>())
    size *= mesh.findAxis(name).getSize();
  return size;
}

SmallVector<int64_t> HostProgram::axisPositions(ArrayAttr names) {
  return llvm::map_to_vector(names.getAsRange<StringAttr>(), [&](StringAttr name) -> int64_t {
    auto axes = mesh.getAxes().getAsRange<MeshAxisAttr>();
    return std::distance(axes.begin(), llvm::find_if(axes, [&](MeshAxisAttr axis) { return axis.getName() == name; }));
  });
}

/// [outer, size, inner] around one dimension.
static std::array<int64_t, 3> aroundDim(ArrayRef<int64_t> shape, int64_t dim) {
  return {ShapedType::getNumElements(shape.take_front(dim)), shape[dim],
          ShapedType::getNumElements(shape.drop_front(dim + 1))};
}

/// Rows that follow each other without a gap on both sides are one row.
static nd_collective_operand joined(nd_collective_operand operand) {
  if (operand.middle == 1 || (operand.src.middle == operand.inner && operand.dst.middle == operand.inner)) {
    operand.inner *= operand.middle;
    operand.middle = 1;
  }
  if (operand.middle == 1 &&
      (operand.outer == 1 || (operand.src.outer == operand.inner && operand.dst.outer == operand.inner))) {
    operand.inner *= operand.outer;
    operand.outer = 1;
  }
  return operand;
}

/// One part of [outer, inner] and a whole of [outer, parts, inner].
static nd_collective_operand partAndWhole(MemRefType part, int64_t dim, int64_t parts, bool wholeIsSource) {
  auto [outer, size, rest] = aroundDim(part.getShape(), dim);
  int64_t inner = size * rest;
  nd_part_strides whole{parts * inner, inner, inner}, alone{inner, inner, 0};
  return joined({outer, 1, inner, wholeIsSource ? whole : alone, wholeIsSource ? alone : whole});
}

/// The parts are [a, b / n, c] of a source and [a / n, ...] of a target, or the other way round.
static nd_collective_operand exchanged(MemRefType source, int64_t split, int64_t concat, int64_t parts) {
  SmallVector<int64_t> part(source.getShape());
  part[split] /= parts;
  int64_t major = std::min(split, concat), minor = std::max(split, concat);
  auto [outer, majorSize, within] = aroundDim(part, major);
  auto [before, minorSize, inner] = aroundDim(part, minor);
  int64_t middle = before / outer; // with the major dimension
  int64_t row = minorSize * inner;
  // Along the major dimension parts are blocks of rows; along the minor one they are parts of a row.
  nd_part_strides alongMajor{parts * middle * row, row, middle * row},
      alongMinor{middle * parts * row, parts * row, row};
  bool splitsMajor = split == major;
  return joined({outer, middle, row, splitsMajor ? alongMajor : alongMinor, splitsMajor ? alongMinor : alongMajor});
}

SmallVector<nd_collective_operand> nd::describeOperands(rt::CollectiveStartOp op, int64_t ranks) {
  SmallVector<nd_collective_operand> operands;
  for (auto [index, source, target] : llvm::enumerate(op.getSources(), op.getTargets())) {
    auto from = cast<MemRefType>(source.getType()), to = cast<MemRefType>(target.getType());
    switch (op.getKind()) {
    case rt::CollectiveKind::all_reduce:
    case rt::CollectiveKind::permute:
      operands.push_back({1, 1, from.getNumElements(), {0, 0, 0}, {0, 0, 0}});
      break;
    case rt::CollectiveKind::all_gather:
      operands.push_back(partAndWhole(from, op.getDims()[index], ranks, /*wholeIsSource=*/false));
      break;
    case rt::CollectiveKind::reduce_scatter:
      operands.push_back(partAndWhole(to, op.getDims()[index], ranks, /*wholeIsSource=*/true));
      break;
    case rt::CollectiveKind::all_to_all:
      operands.push_back(exchanged(from, op.getDims()[0], op.getDims()[1], ranks));
      break;
    }
  }
  return operands;
}

nd_collective_operand nd::describeOperand(rt::AllSliceOp op, int64_t ranks) {
  return partAndWhole(op.getTarget().getType(), op.getDim(), ranks, /*wholeIsSource=*/true);
}

std::array<int8_t, 4> HostProgram::axisIndices(std::optional<ArrayAttr> names) {
  std::array<int8_t, 4> indices;
  indices.fill(-1);
  if (names && mesh)
    for (auto [place, name] : llvm::zip(indices, *names))
      for (auto [index, axis] : llvm::enumerate(mesh.getAxes().getAsRange<MeshAxisAttr>()))
        if (axis.getName() == name)
          place = static_cast<int8_t>(index);
  return indices;
}

std::optional<nd_dtype> nd::abiType(Type type) {
  if (type.isF32())
    return ND_F32;
  if (type.isBF16())
    return ND_BF16;
  if (type.isF16())
    return ND_F16;
  if (type.isF64())
    return ND_F64;
  if (auto integer = dyn_cast<IntegerType>(type))
    switch (integer.getWidth()) {
    case 64:
      return ND_I64;
    case 32:
      return ND_I32;
    case 16:
      return ND_I16;
    case 8:
      return ND_I8;
    case 1:
      return ND_I1;
    }
  return std::nullopt;
}

StringRef nd::dtypeName(Type type) {
  constexpr llvm::StringLiteral names[] = {"f32", "bf16", "f16", "f64", "i64", "i32", "i16", "i8", "i1"};
  std::optional<nd_dtype> dtype = abiType(type);
  return dtype ? StringRef(names[*dtype]) : "unknown";
}

//===----------------------------------------------------------------------===//
// Library operations in the ABI's terms
//===----------------------------------------------------------------------===//

namespace {

nd_attention_strides rowStrides(Value buffer) {
  rt::Layout layout = rt::getLayout(cast<MemRefType>(buffer.getType()));
  return {layout.strides[0], layout.strides[1], layout.strides[2]};
}

template <typename OpTy> nd_attention_desc describeShared(OpTy op) {
  nd_attention_desc desc = {};
  ArrayRef<int64_t> query = op.getQuery().getType().getShape(), key = op.getKey().getType().getShape();
  desc.dtype = *abiType(op.getQuery().getType().getElementType());
  desc.result_dtype = *abiType(op.getResult().getType().getElementType());
  desc.batch = query[0];
  desc.heads = query[1];
  desc.queries = query[2];
  desc.dim = query[3];
  desc.kv_heads = key[1];
  desc.keys = key[2];
  desc.value_dim = op.getValue().getType().getDimSize(3);
  desc.q = rowStrides(op.getQuery());
  desc.k = rowStrides(op.getKey());
  desc.v = rowStrides(op.getValue());
  desc.o = rowStrides(op.getResult());
  desc.scale = op.getScale().convertToDouble();
  desc.softcap = op.getSoftcap().convertToDouble();
  desc.causal = op.getCausal();
  desc.window = op.getWindow();
  desc.has_positions = static_cast<bool>(op.getPositions());
  desc.has_documents = static_cast<bool>(op.getDocuments());
  desc.has_key_padding = static_cast<bool>(op.getKeyPadding());
  if (Value mask = op.getMask()) {
    auto type = cast<MemRefType>(mask.getType());
    desc.mask = type.getElementType().isInteger(1) ? 2 : 1;
    rt::Layout layout = rt::getLayout(type);
    for (int dim = 0; dim < 4; ++dim)
      desc.mask_strides[dim] = type.getDimSize(dim) == 1 ? 0 : layout.strides[dim];
  }
  desc.key_shards = op.getKeyShards();
  desc.ring_step = op.getRingStep();
  desc.valid = op.getValid();
  if (std::optional<ArrayRef<int64_t>> order = op.getOrder())
    desc.num_chunks = order->size(), desc.order = order->data();
  if (std::optional<ArrayRef<int64_t>> map = op.getKvMap())
    desc.num_map = map->size(), desc.kv_map = map->data();
  return desc;
}

} // namespace

nd_attention_desc nd::describe(rt::AttentionOp op) {
  nd_attention_desc desc = describeShared(op);
  if (Value carry = op.getCarryResult()) {
    desc.has_carry = 1;
    desc.carry_dtype = *abiType(op.getCarryResult().getType().getElementType());
    desc.carry = rowStrides(carry);
  }
  return desc;
}

nd_attention_desc nd::describe(rt::AttentionGradOp op) {
  nd_attention_desc desc = describeShared(op);
  desc.grad_dtype = *abiType(op.getQueryGrad().getType().getElementType());
  desc.dq = rowStrides(op.getQueryGrad());
  desc.dk = rowStrides(op.getKeyGrad());
  desc.dv = rowStrides(op.getValueGrad());
  desc.d_o = rowStrides(op.getResultGrad());
  return desc;
}

nd_gemm_desc nd::describe(rt::GemmOp op) {
  nd_gemm_desc desc = {};
  MemRefType a = op.getA().getType(), b = op.getB().getType(), c = op.getC().getType();
  int64_t rank = c.getRank();
  desc.dtype_ab = *abiType(a.getElementType());
  desc.dtype_c = *abiType(c.getElementType());
  desc.accumulate = op.getAccumulate();
  desc.has_bias = static_cast<bool>(op.getBias());
  desc.batch = rank == 3 ? c.getDimSize(0) : 1;
  desc.m = c.getDimSize(rank - 2);
  desc.n = c.getDimSize(rank - 1);
  desc.k = a.getDimSize(rank - 1);
  auto matrix = [rank](MemRefType type, int32_t *transposed, int64_t &rowStride, int64_t &batchStride) {
    rt::Layout layout = rt::getLayout(type);
    bool rowMajor = layout.strides[rank - 1] == 1 || type.getDimSize(rank - 1) == 1;
    rowStride = layout.strides[rowMajor ? rank - 2 : rank - 1];
    batchStride = rank == 3 ? layout.strides[0] : 0;
    if (transposed)
      *transposed = !rowMajor;
  };
  matrix(a, &desc.transpose_a, desc.lda, desc.batch_stride_a);
  matrix(b, &desc.transpose_b, desc.ldb, desc.batch_stride_b);
  matrix(c, nullptr, desc.ldc, desc.batch_stride_c);
  return desc;
}
