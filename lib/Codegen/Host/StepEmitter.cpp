//===- StepEmitter.cpp - The step function ---------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Structures follow include/nd/Runtime/Core/ABI.h field by field; their sizes are compared with the C compiler's.
//
//===----------------------------------------------------------------------===//

#include "StepEmitter.h"
#include "ConstantBuilder.h"
#include "ProgramDescriptor.h"
#include "nd/Codegen/Host/ObjectEmitter.h"
#include "llvm/IR/IRBuilder.h"

using namespace mlir;
using namespace nd;

namespace {

class StepEmitter {
public:
  StepEmitter(HostProgram &host, llvm::Module &module)
      : host(host), module(module), context(module.getContext()), constants(module), ir(context),
        pointer(llvm::PointerType::get(context, 0)) {}

  LogicalResult emit() {
    if (failed(emitStepFunction()))
      return failure();
    llvm::Constant *program = ProgramDescriptor(host, module, constants).build({step, gemms, attentions, collectives});
    if (failed(checkSize(program, sizeof(nd_program), "nd_program")))
      return failure();
    emitMain(constants.global(program, "program"));
    return success();
  }

private:
  LogicalResult checkSize(llvm::Constant *value, size_t expected, StringRef name) {
    if (constants.sizeOf(value) == static_cast<int64_t>(expected))
      return success();
    return host.module.emitError("nd-compile lays out ")
           << name << " in " << constants.sizeOf(value) << " bytes, the runtime in " << expected
           << ": it was built from another ABI.h";
  }
  llvm::Constant *location(Operation *op) { return constants.string(describeLocation(op->getLoc())); }

  LogicalResult emitStepFunction();
  LogicalResult emitBlock(Block &block);
  LogicalResult emitRepeat(rt::RepeatOp op);
  LogicalResult emitOperation(Operation *op);
  LogicalResult emitLaunch(rt::LaunchOp op);
  LogicalResult emitGemm(rt::GemmOp op);
  LogicalResult emitAttention(rt::AttentionOp op);
  LogicalResult emitAttentionGrad(rt::AttentionGradOp op);
  template <typename AttentionLike>
  LogicalResult emitAttentionCall(AttentionLike op, StringRef callee, ArrayRef<Value> operands);
  /// What a collective's descriptor says.
  struct CollectiveParts {
    int32_t id, kind, reduction;
    bool isScalar;
    ArrayAttr axes;
    SmallVector<nd_collective_operand> operands;
    ArrayRef<int64_t> sources;
    StringRef name;
    Type elementType;
  };
  FailureOr<llvm::Constant *> collectiveDescriptor(Operation *op, CollectiveParts parts);
  LogicalResult emitCollective(rt::CollectiveStartOp op);
  LogicalResult emitAllSlice(rt::AllSliceOp op);
  void emitMain(llvm::Constant *program);
  void call(StringRef name, ArrayRef<llvm::Value *> operands);
  llvm::Value *address(Value buffer);
  llvm::Constant *constantData(rt::ConstantOp op);

  HostProgram &host;
  llvm::Module &module;
  llvm::LLVMContext &context;
  ConstantBuilder constants;
  llvm::IRBuilder<> ir;
  llvm::PointerType *pointer;
  llvm::Function *step = nullptr;
  llvm::AllocaInst *arguments = nullptr;
  SmallVector<llvm::Constant *> gemms, attentions, collectives;
  llvm::DenseMap<Value, llvm::Value *> rows; ///< of loops, in the present turn
  llvm::DenseMap<Operation *, llvm::Constant *> data;
  llvm::DenseMap<Operation *, llvm::Constant *> started;
};

LogicalResult StepEmitter::emitStepFunction() {
  auto *type = llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer, pointer}, false);
  step = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "step", module);
  ir.SetInsertPoint(llvm::BasicBlock::Create(context, "", step));
  unsigned most = sizeof(nd_attention_args) / sizeof(void *);
  host.program.walk([&](Operation *op) {
    if (isa<rt::LaunchOp, rt::CollectiveStartOp>(op))
      most = std::max(most, op->getNumOperands());
  });
  arguments = ir.CreateAlloca(llvm::ArrayType::get(pointer, most));
  if (failed(emitBlock(host.program.getBody().front())))
    return failure();
  ir.CreateRetVoid();
  return success();
}

LogicalResult StepEmitter::emitBlock(Block &block) {
  for (Operation &op : block)
    if (failed(emitOperation(&op)))
      return failure();
  return success();
}

/// Each turn's rows follow those of the turn before.
LogicalResult StepEmitter::emitRepeat(rt::RepeatOp op) {
  SmallVector<llvm::Value *> starts;
  for (Value buffer : op.getSliced())
    starts.push_back(address(buffer));
  llvm::BasicBlock *before = ir.GetInsertBlock();
  auto *turn = llvm::BasicBlock::Create(context, "turn", step), *behind = llvm::BasicBlock::Create(context, "", step);
  ir.CreateBr(turn);
  ir.SetInsertPoint(turn);
  llvm::PHINode *index = ir.CreatePHI(ir.getInt64Ty(), 2);
  index->addIncoming(ir.getInt64(0), before);
  for (auto [row, start] : llvm::zip_equal(op.getBody().getArguments(), starts)) {
    llvm::Value *offset = ir.CreateMul(index, ir.getInt64(rt::getBytes(cast<MemRefType>(row.getType()))));
    rows[row] = ir.CreateInBoundsGEP(ir.getInt8Ty(), start, offset);
  }
  if (failed(emitBlock(op.getBody().front())))
    return failure();
  llvm::Value *next = ir.CreateAdd(index, ir.getInt64(1));
  index->addIncoming(next, ir.GetInsertBlock());
  llvm::BranchInst *again = ir.CreateCondBr(ir.CreateICmpULT(next, ir.getInt64(op.getCount())), turn, behind);
  // The program is as long for many turns as for two.
  auto *rolled = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  llvm::MDNode *loop = llvm::MDNode::getDistinct(context, {nullptr, rolled});
  loop->replaceOperandWith(0, loop);
  again->setMetadata(llvm::LLVMContext::MD_loop, loop);
  ir.SetInsertPoint(behind);
  return success();
}

LogicalResult StepEmitter::emitOperation(Operation *op) {
  auto bytes = [&](Value buffer) { return ir.getInt64(rt::getBytes(cast<MemRefType>(buffer.getType()))); };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<rt::TensorOp, rt::BufferOp, rt::ConstantOp, rt::ViewOp>([](auto) { return success(); })
      .Case([&](rt::RepeatOp loop) { return emitRepeat(loop); })
      .Case([&](rt::LaunchOp launch) { return emitLaunch(launch); })
      .Case([&](rt::GemmOp gemm) { return emitGemm(gemm); })
      .Case([&](rt::AttentionOp attention) { return emitAttention(attention); })
      .Case([&](rt::AttentionGradOp gradient) { return emitAttentionGrad(gradient); })
      .Case([&](rt::CollectiveStartOp collective) { return emitCollective(collective); })
      .Case([&](rt::AllSliceOp slice) { return emitAllSlice(slice); })
      .Case([&](rt::WaitOp wait) {
        call("nd_rt_collective_wait", {step->getArg(0), started.lookup(wait.getEvent().getDefiningOp())});
        return success();
      })
      .Case([&](rt::CopyOp copy) {
        call("nd_rt_copy",
             {step->getArg(0), address(copy.getTarget()), address(copy.getSource()), bytes(copy.getSource())});
        return success();
      })
      .Case([&](rt::FillZeroOp fill) {
        call("nd_rt_fill_zero", {step->getArg(0), address(fill.getTarget()), bytes(fill.getTarget())});
        return success();
      })
      .Case([&](rt::PhaseOp phase) {
        call("nd_rt_phase", {step->getArg(0), ir.getInt32(static_cast<uint32_t>(phase.getPhase()))});
        return success();
      })
      .Default([](Operation *other) { return other->emitOpError("has no emission for the host"); });
}

void StepEmitter::call(StringRef name, ArrayRef<llvm::Value *> operands) {
  SmallVector<llvm::Type *> types;
  for (llvm::Value *operand : operands)
    types.push_back(operand->getType());
  auto callee = module.getOrInsertFunction(name, llvm::FunctionType::get(ir.getVoidTy(), types, false));
  ir.CreateCall(callee, operands);
}

/// Null for an operand that is absent.
llvm::Value *StepEmitter::address(Value buffer) {
  if (!buffer)
    return constants.null();
  auto type = cast<MemRefType>(buffer.getType());
  int64_t offset = rt::getLayout(type).offset * rt::getElementBytes(type.getElementType());
  Value start = rt::getBase(buffer);
  Operation *root = start.getDefiningOp();
  llvm::Value *base = step->getArg(1);
  if (!root)
    base = rows.lookup(start);
  else if (auto constant = dyn_cast<rt::ConstantOp>(root))
    base = constantData(constant);
  else if (auto tensor = dyn_cast<rt::TensorOp>(root))
    offset += *tensor.getOffset();
  else
    offset += *cast<rt::BufferOp>(root).getOffset();
  return offset == 0 ? base : ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), base, offset);
}

llvm::Constant *StepEmitter::constantData(rt::ConstantOp op) {
  llvm::Constant *&cached = data[op];
  if (cached)
    return cached;
  auto elements = cast<DenseElementsAttr>(op.getValue());
  Type type = elements.getElementType();
  std::string bytes;
  auto append = [&](const llvm::APInt &value) {
    llvm::APInt whole = value.zext(64);
    for (int64_t byte = 0; byte < rt::getElementBytes(type); ++byte)
      bytes.push_back(static_cast<char>(whole.extractBitsAsZExtValue(8, byte * 8)));
  };
  if (isa<FloatType>(type))
    for (const llvm::APFloat &value : elements.getValues<llvm::APFloat>())
      append(value.bitcastToAPInt());
  else
    for (const llvm::APInt &value : elements.getValues<llvm::APInt>())
      append(value);
  cached =
      constants.global(llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/false), "constant", ND_ALIGNMENT);
  return cached;
}

LogicalResult StepEmitter::emitLaunch(rt::LaunchOp op) {
  const KernelLaunch &launch = host.kernels.find(op.getKernelAttr().getAttr())->second;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    ir.CreateStore(address(operand), ir.CreateConstInBoundsGEP1_64(pointer, arguments, index));
  auto emitPhase = [&](int32_t function, const KernelPhase &phase) -> LogicalResult {
    llvm::Constant *desc =
        constants.structure({constants.i32(function), constants.i32(op->getNumOperands()), constants.i64(phase.extent),
                             constants.i64(phase.grain), constants.i64(launch.plan.scratchBytes), location(op)});
    if (failed(checkSize(desc, sizeof(nd_launch_desc), "nd_launch_desc")))
      return failure();
    call("nd_rt_launch", {step->getArg(0), step->getArg(2), constants.global(desc, "launch"), arguments});
    return success();
  };
  if (failed(emitPhase(launch.function, launch.plan)))
    return failure();
  return launch.plan.finish ? emitPhase(launch.finishFunction, *launch.plan.finish) : success();
}

LogicalResult StepEmitter::emitGemm(rt::GemmOp op) {
  nd_gemm_desc d = describe(op);
  ConstantBuilder &c = constants;
  llvm::Constant *desc =
      c.structure({c.i32(gemms.size()), c.i32(d.dtype_ab), c.i32(d.dtype_c), c.i32(d.transpose_a), c.i32(d.transpose_b),
                   c.i32(d.accumulate), c.i32(d.has_bias), c.i64(d.batch), c.i64(d.m), c.i64(d.n), c.i64(d.k),
                   c.i64(d.lda), c.i64(d.ldb), c.i64(d.ldc), c.i64(d.batch_stride_a), c.i64(d.batch_stride_b),
                   c.i64(d.batch_stride_c), location(op)});
  if (failed(checkSize(desc, sizeof(nd_gemm_desc), "nd_gemm_desc")))
    return failure();
  gemms.push_back(c.global(desc, "gemm"));
  call("nd_rt_gemm", {step->getArg(0), gemms.back(), address(op.getA()), address(op.getB()), address(op.getBias()),
                      address(op.getC())});
  return success();
}

LogicalResult StepEmitter::emitAttention(rt::AttentionOp op) {
  return emitAttentionCall(op, "nd_rt_attention",
                           {op.getQuery(), op.getKey(), op.getValue(), Value(), Value(), Value(), op.getPositions(),
                            op.getDocuments(), op.getKeyPadding(), op.getMask(), op.getResult(), Value(), Value(),
                            Value(), op.getLse(), op.getCarryResult(), op.getCarryLse()});
}

LogicalResult StepEmitter::emitAttentionGrad(rt::AttentionGradOp op) {
  return emitAttentionCall(op, "nd_rt_attention_grad",
                           {op.getQuery(), op.getKey(), op.getValue(), op.getResult(), op.getResultGrad(), op.getLse(),
                            op.getPositions(), op.getDocuments(), op.getKeyPadding(), op.getMask(), Value(),
                            op.getQueryGrad(), op.getKeyGrad(), op.getValueGrad(), Value(), Value(), Value()});
}

/// `operands` are the fields of nd_attention_args, in order.
template <typename AttentionLike>
LogicalResult StepEmitter::emitAttentionCall(AttentionLike op, StringRef callee, ArrayRef<Value> operands) {
  static_assert(sizeof(nd_attention_args) == 17 * sizeof(void *));
  for (std::optional<ArrayAttr> names : {op.getSeqAxes(), op.getHeadAxes()})
    for (Attribute name : names ? names->getValue() : ArrayRef<Attribute>())
      if (!host.mesh || !host.mesh.findAxis(cast<StringAttr>(name)))
        return op.emitOpError() << "holds a part by its coordinate along mesh axis " << name
                                << ", which the program's mesh lacks";
  nd_attention_desc d = describe(op);
  ConstantBuilder &c = constants;
  auto strides = [&](const nd_attention_strides &s) { return c.structure({c.i64(s.b), c.i64(s.h), c.i64(s.s)}); };
  llvm::Constant *maskStrides =
      c.array({c.i64(d.mask_strides[0]), c.i64(d.mask_strides[1]), c.i64(d.mask_strides[2]), c.i64(d.mask_strides[3])});
  auto axes = [&](std::optional<ArrayAttr> names) {
    SmallVector<llvm::Constant *> indices;
    for (int8_t index : host.axisIndices(names))
      indices.push_back(c.i8(index));
    return c.array(indices);
  };
  auto list = [&](const int64_t *values, int64_t count) {
    return c.table(llvm::map_to_vector(ArrayRef(values, count), [&](int64_t v) { return c.i64(v); }), "list");
  };
  llvm::Constant *desc = c.structure({c.i32(attentions.size()),
                                      c.i32(d.dtype),
                                      c.i32(d.result_dtype),
                                      c.i32(d.carry_dtype),
                                      c.i32(d.grad_dtype),
                                      c.i32(d.has_carry),
                                      c.i64(d.batch),
                                      c.i64(d.heads),
                                      c.i64(d.kv_heads),
                                      c.i64(d.queries),
                                      c.i64(d.keys),
                                      c.i64(d.dim),
                                      c.i64(d.value_dim),
                                      strides(d.q),
                                      strides(d.k),
                                      strides(d.v),
                                      strides(d.o),
                                      strides(d.carry),
                                      strides(d.dq),
                                      strides(d.dk),
                                      strides(d.dv),
                                      strides(d.d_o),
                                      c.f64(d.scale),
                                      c.f64(d.softcap),
                                      c.i64(d.causal),
                                      c.i64(d.window),
                                      c.i32(d.has_positions),
                                      c.i32(d.has_documents),
                                      c.i32(d.has_key_padding),
                                      c.i32(d.mask),
                                      maskStrides,
                                      axes(op.getSeqAxes()),
                                      axes(op.getHeadAxes()),
                                      c.i64(d.key_shards),
                                      c.i64(d.ring_step),
                                      c.i64(d.valid),
                                      c.i64(d.num_chunks),
                                      list(d.order, d.num_chunks),
                                      c.i64(d.num_map),
                                      list(d.kv_map, d.num_map),
                                      location(op)});
  if (failed(checkSize(desc, sizeof(nd_attention_desc), "nd_attention_desc")))
    return failure();
  attentions.push_back(c.global(desc, "attention"));
  for (auto [index, operand] : llvm::enumerate(operands))
    ir.CreateStore(address(operand), ir.CreateConstInBoundsGEP1_64(pointer, arguments, index));
  call(callee, {step->getArg(0), attentions.back(), arguments});
  return success();
}

FailureOr<llvm::Constant *> StepEmitter::collectiveDescriptor(Operation *op, CollectiveParts parts) {
  ConstantBuilder &c = constants;
  std::optional<nd_dtype> dtype = abiType(parts.elementType);
  if (!dtype)
    return op->emitOpError("moves elements that programs do not hold: ") << parts.elementType;
  SmallVector<llvm::Constant *> axes(ND_MAX_AXES, c.i8(-1)), operands, sources;
  for (auto [position, axis] : llvm::enumerate(host.axisPositions(parts.axes)))
    axes[position] = c.i8(axis);
  auto strides = [&](const nd_part_strides &s) {
    return c.structure({c.i64(s.outer), c.i64(s.middle), c.i64(s.part)});
  };
  for (const nd_collective_operand &operand : parts.operands)
    operands.push_back(c.structure({c.i64(operand.outer), c.i64(operand.middle), c.i64(operand.inner),
                                    strides(operand.src), strides(operand.dst)}));
  for (int64_t source : parts.sources)
    sources.push_back(c.i32(source));
  if (failed(checkSize(operands.front(), sizeof(nd_collective_operand), "nd_collective_operand")))
    return failure();
  llvm::Constant *desc = c.structure(
      {c.i32(parts.id), c.i32(parts.kind), c.i32(*dtype), c.i32(parts.reduction), c.i32(parts.isScalar),
       c.i32(parts.axes.size()), c.array(axes), c.i32(operands.size()), c.table(operands, "operands"),
       c.table(sources, "sources"), c.string(host.mesh.getGroupLabel(parts.axes)), c.string(parts.name), location(op)});
  if (failed(checkSize(desc, sizeof(nd_collective_desc), "nd_collective_desc")))
    return failure();
  return c.global(desc, "collective");
}

LogicalResult StepEmitter::emitCollective(rt::CollectiveStartOp op) {
  FailureOr<llvm::Constant *> desc =
      collectiveDescriptor(op, {static_cast<int32_t>(collectives.size()), static_cast<int32_t>(op.getKind()),
                                static_cast<int32_t>(op.getReduction()), op.getScalar(), op.getAxes(),
                                describeOperands(op, host.groupSize(op.getAxes())), op.getPermutation(), op.getName(),
                                cast<MemRefType>(op.getSources().front().getType()).getElementType()});
  if (failed(desc))
    return failure();
  collectives.push_back(*desc);
  started[op] = *desc;
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    ir.CreateStore(address(operand), ir.CreateConstInBoundsGEP1_64(pointer, arguments, index));
  call("nd_rt_collective_start", {step->getArg(0), *desc, arguments});
  return success();
}

LogicalResult StepEmitter::emitAllSlice(rt::AllSliceOp op) {
  FailureOr<llvm::Constant *> desc = collectiveDescriptor(op, {-1,
                                                               ND_ALL_SLICE,
                                                               ND_SUM,
                                                               false,
                                                               op.getAxes(),
                                                               {describeOperand(op, host.groupSize(op.getAxes()))},
                                                               {},
                                                               "shard",
                                                               op.getSource().getType().getElementType()});
  if (failed(desc))
    return failure();
  call("nd_rt_all_slice", {step->getArg(0), *desc, address(op.getSource()), address(op.getTarget())});
  return success();
}

void StepEmitter::emitMain(llvm::Constant *program) {
  auto *type = llvm::FunctionType::get(ir.getInt32Ty(), {ir.getInt32Ty(), pointer}, false);
  auto *function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "main", module);
  ir.SetInsertPoint(llvm::BasicBlock::Create(context, "", function));
  auto callee = module.getOrInsertFunction(
      "nd_rank_main", llvm::FunctionType::get(ir.getInt32Ty(), {ir.getInt32Ty(), pointer, pointer}, false));
  ir.CreateRet(ir.CreateCall(callee, {function->getArg(0), function->getArg(1), program}));
}

} // namespace

LogicalResult nd::emitStep(HostProgram &host, llvm::Module &module) { return StepEmitter(host, module).emit(); }
