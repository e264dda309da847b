//===- ProgramOperations.cpp - Each operation on buffers -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

LogicalResult ProgramBuilder::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](KernelOp kernel) { return lowerKernel(kernel); })
      .Case([&](GemmOp gemm) { return lowerGemm(gemm); })
      .Case([&](AttentionOp attention) { return lowerAttention(attention); })
      .Case([&](AttentionGradOp gradient) { return lowerAttentionGrad(gradient); })
      .Case([&](ConcatOp concat) { return lowerConcat(concat); })
      .Case([&](AllReduceOp collective) { return lowerAllReduce(collective); })
      .Case([&](AllGatherOp gather) {
        return lowerCollective(gather.getOperation(), rt::CollectiveKind::all_gather, gather.getNames(),
                               gather.getDims());
      })
      .Case([&](ReduceScatterOp scatter) {
        return lowerCollective(scatter.getOperation(), rt::CollectiveKind::reduce_scatter, scatter.getNames(),
                               scatter.getDims());
      })
      .Case([&](AllToAllOp exchange) {
        return lowerCollective(
            exchange.getOperation(), rt::CollectiveKind::all_to_all, builder.getStrArrayAttr(exchange.getName()),
            {static_cast<int64_t>(exchange.getSplitDim()), static_cast<int64_t>(exchange.getConcatDim())});
      })
      .Case([&](AllSliceOp slice) { return lowerAllSlice(slice); })
      .Case([&](RepeatOp loop) { return lowerRepeat(loop); })
      .Default([](Operation *other) {
        return other->emitOpError("cannot run on buffers by itself: nd-form-gemms and nd-form-kernels must have put it "
                                  "into a product or a kernel");
      });
}

LogicalResult ProgramBuilder::lowerKernel(KernelOp op) {
  SmallVector<Value> inputs, outputs;
  SmallVector<MemRefType> inputTypes, resultTypes;
  SmallVector<Place> inputPlaces;
  for (Value input : op.getInputs()) {
    FailureOr<Place> place = locate(input);
    if (failed(place))
      return failure();
    inputPlaces.push_back(*place);
    inputs.push_back(bufferAt(*place, tensorTypeOf(input)));
    inputTypes.push_back(cast<MemRefType>(inputs.back().getType()));
  }
  SmallVector<int64_t> inPlace;
  for (Value result : op.getResults()) {
    const auto *input = llvm::find(inputPlaces, *assignment.find(result));
    Value buffer = target(result);
    resultTypes.push_back(cast<MemRefType>(buffer.getType()));
    inPlace.push_back(input == inputPlaces.end() ? -1 : input - inputPlaces.begin());
    if (inPlace.back() == -1)
      outputs.push_back(buffer);
  }
  FailureOr<KernelEntry> entry = kernels.get(op, inputTypes, resultTypes, inPlace);
  if (failed(entry))
    return failure();
  Value workspace;
  if (entry->workspaceBytes > 0) {
    auto type = RankedTensorType::get({entry->workspaceBytes}, builder.getI8Type());
    workspace = bufferAt(assignment.wholeOf(assignment.addTemporary(type)), type, Access::Write);
  }
  rt::LaunchOp::create(builder, loc, entry->kernel.getSymName(), inputs, outputs, workspace, inPlace);
  return success();
}

LogicalResult ProgramBuilder::lowerGemm(GemmOp op) {
  // A transposed operand is the view that undoes it.
  auto readMatrix = [&](Value value, bool transposed) -> FailureOr<Value> {
    FailureOr<Value> buffer = read(value, isGemmOperand);
    if (failed(buffer) || !transposed)
      return buffer;
    Place place = *locate(value);
    SmallVector<int64_t> shape(tensorTypeOf(value).getShape());
    size_t rank = shape.size();
    std::swap(shape[rank - 1], shape[rank - 2]);
    std::swap(place.layout.strides[rank - 1], place.layout.strides[rank - 2]);
    place.layout = normalized(shape, std::move(place.layout));
    return bufferAt(place, withShape(tensorTypeOf(value), shape));
  };
  FailureOr<Value> a = readMatrix(op.getLhs(), op.getTransposeLhs()), b = readMatrix(op.getRhs(), op.getTransposeRhs());
  if (failed(a) || failed(b))
    return failure();
  Value bias;
  if (op.getBias()) {
    FailureOr<Value> row = readContiguous(op.getBias());
    if (failed(row))
      return failure();
    bias = *row;
  }
  if (op.getAccumulator() && failed(moveInto(op.getAccumulator(), *assignment.find(op.getResult()))))
    return failure();
  rt::GemmOp::create(builder, loc, *a, *b, bias, target(op.getResult()), static_cast<bool>(op.getAccumulator()));
  return success();
}

namespace {

/// Reads optional operands: null stays null.
template <typename Read> FailureOr<Value> readOptional(Value value, Read read) {
  return value ? read(value) : FailureOr<Value>(Value());
}

template <typename AttentionLike> LogicalResult refuseRing(AttentionLike op) {
  if (!op.isRing())
    return success();
  return op.emitOpError("still has keys that go around in a ring (cp_mode = \"ring\"): run nd-expand-ring-attention "
                        "before lowering");
}

} // namespace

LogicalResult ProgramBuilder::lowerAttention(AttentionOp op) {
  if (failed(refuseRing(op)))
    return failure();
  auto contiguous = [&](Value value) { return readOptional(value, [&](Value v) { return readContiguous(v); }); };
  FailureOr<Value> query = readRows(op.getQuery()), key = readRows(op.getKey()), value = readRows(op.getValue());
  FailureOr<Value> positions = contiguous(op.getPositions()), documents = contiguous(op.getDocuments());
  FailureOr<Value> padding = contiguous(op.getKeyPadding());
  FailureOr<Value> mask = readOptional(op.getMask(), [&](Value v) { return readAny(v); });
  FailureOr<Value> carry = readOptional(op.getCarryResult(), [&](Value v) { return readRows(v); });
  FailureOr<Value> carryLse = contiguous(op.getCarryLse());
  if (failed(query) || failed(key) || failed(value) || failed(positions) || failed(documents) || failed(padding) ||
      failed(mask) || failed(carry) || failed(carryLse))
    return failure();
  rt::AttentionOp::create(builder, loc, *query, *key, *value, *positions, *documents, *padding, *mask, *carry,
                          *carryLse, target(op.getResult()), target(op.getLse()), op.getScaleAttr(), op.getCausalAttr(),
                          op.getWindowAttr(), op.getSoftcapAttr(), op.getOrderAttr(), op.getValidAttr(),
                          op.getKvMapAttr(), op.getSeqAxesAttr(), op.getHeadAxesAttr(), op.getKeyShardsAttr(),
                          op.getRingStepAttr());
  return success();
}

LogicalResult ProgramBuilder::lowerAttentionGrad(AttentionGradOp op) {
  if (failed(refuseRing(op)))
    return failure();
  auto contiguous = [&](Value value) { return readOptional(value, [&](Value v) { return readContiguous(v); }); };
  FailureOr<Value> query = readRows(op.getQuery()), key = readRows(op.getKey()), value = readRows(op.getValue());
  FailureOr<Value> result = readRows(op.getResult()), lse = readContiguous(op.getLse());
  FailureOr<Value> resultGrad = readRows(op.getResultGrad());
  FailureOr<Value> positions = contiguous(op.getPositions()), documents = contiguous(op.getDocuments());
  FailureOr<Value> padding = contiguous(op.getKeyPadding());
  FailureOr<Value> mask = readOptional(op.getMask(), [&](Value v) { return readAny(v); });
  if (failed(query) || failed(key) || failed(value) || failed(result) || failed(lse) || failed(resultGrad) ||
      failed(positions) || failed(documents) || failed(padding) || failed(mask))
    return failure();
  rt::AttentionGradOp::create(builder, loc, *query, *key, *value, *result, *lse, *resultGrad, *positions, *documents,
                              *padding, *mask, target(op.getQueryGrad()), target(op.getKeyGrad()),
                              target(op.getValueGrad()), op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(),
                              op.getSoftcapAttr(), op.getOrderAttr(), op.getValidAttr(), op.getKvMapAttr(),
                              op.getSeqAxesAttr(), op.getHeadAxesAttr(), op.getKeyShardsAttr(), op.getRingStepAttr());
  return success();
}

LogicalResult ProgramBuilder::lowerConcat(ConcatOp op) {
  Place whole = *assignment.find(op.getResult());
  for (auto [index, input] : llvm::enumerate(op.getInputs()))
    if (failed(moveInto(input, assignment.partOf(op, index, whole))))
      return failure();
  return success();
}
