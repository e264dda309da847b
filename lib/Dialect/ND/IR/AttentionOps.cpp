//===- AttentionOps.cpp - Attention: verifiers ----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What is checked here holds in the global view and in a rank's program alike: without `seq_axes` queries are the whole
// sequence, with them they are a part of it; what is whole in the sequence has its length in both.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/SmallBitVector.h"
#include <limits>

using namespace mlir;
using namespace nd;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Shapes and options that attention and its gradient share.
template <typename AttentionLike> class AttentionVerifier {
public:
  explicit AttentionVerifier(AttentionLike op)
      : op(op), query(op.getQuery().getType()), key(op.getKey().getType()), value(op.getValue().getType()) {}

  LogicalResult run() {
    if (failed(verifyRanks()) || failed(verifyNumbers()))
      return failure();
    batch = query.getDimSize(0), heads = query.getDimSize(1), queries = query.getDimSize(2);
    keyHeads = key.getDimSize(1), keys = key.getDimSize(2);
    length = op.getSequenceLength();
    return success(succeeded(verifyTensors()) && succeeded(verifyHeads()) && succeeded(verifyPlacement()) &&
                   succeeded(verifyOrder()) && succeeded(verifySideInputs()) && succeeded(verifyMask()));
  }

private:
  LogicalResult verifyRanks() {
    for (auto [name, type] : {std::pair("query", query), {"key", key}, {"value", value}})
      if (failed(verify::rank(op, name, type, 4, "batch, heads, sequence, width")))
        return failure();
    return success();
  }

  LogicalResult verifyNumbers() {
    if (failed(verify::inRange(op, "scale", op.getScale().convertToDouble(), -kInfinity, kInfinity)) ||
        failed(verify::inRange(op, "softcap", op.getSoftcap().convertToDouble(), 0, kInfinity)))
      return failure();
    if (static_cast<int64_t>(op.getWindow()) < 0)
      return op.emitOpError() << "expected window to be positive, or 0 for none, but found "
                              << static_cast<int64_t>(op.getWindow());
    int64_t shards = op.getKeyShards(), step = op.getRingStep();
    if (shards < 1)
      return op.emitOpError() << "expected key_shards of 1 (the keys are whole) or more but found " << shards;
    if (step < 0 || step >= shards)
      return op.emitOpError() << "expected ring_step in [0, " << shards << "), as keys come in " << shards
                              << " shards, but found " << step;
    if (std::optional<StringRef> mode = op.getCpMode();
        mode && *mode != "gather" && *mode != "ring" && *mode != "ulysses")
      return op.emitOpError() << "expected cp_mode \"gather\", \"ring\" or \"ulysses\" but found \"" << *mode << '"';
    return success();
  }

  LogicalResult verifyTensors() {
    int64_t width = value.getDimSize(3);
    if (failed(verify::shape(op, "key", key, {batch, keyHeads, keys, query.getDimSize(3)})) ||
        failed(verify::shape(op, "value", value, {batch, keyHeads, keys, width})) ||
        failed(verify::elementType(op, "key", key, query.getElementType())) ||
        failed(verify::elementType(op, "value", value, query.getElementType())) ||
        failed(verify::shape(op, "result", op.getResult().getType(), {batch, heads, queries, width})) ||
        failed(verify::shape(op, "lse", op.getLse().getType(), {batch, heads, queries})))
      return failure();
    Type f32 = Float32Type::get(op.getContext()), result = op.getResult().getType().getElementType();
    if (result != f32 && failed(verify::elementType(op, "result", op.getResult().getType(), query.getElementType())))
      return failure();
    return verify::elementType(op, "lse", op.getLse().getType(), f32);
  }

  LogicalResult verifyHeads() {
    std::optional<ArrayRef<int64_t>> map = op.getKvMap();
    if (!map) {
      if (keyHeads == 0 || heads % keyHeads != 0)
        return op.emitOpError() << "expected the " << heads << " heads of query to be a multiple of the " << keyHeads
                                << " heads of key and value, or a kv_map";
      return success();
    }
    int64_t entries = map->size();
    if (op.getHeadAxes() ? entries == 0 || heads == 0 || entries % heads != 0 : entries != heads)
      return op.emitOpError() << "expected kv_map to have an entry for each of the "
                              << (op.getHeadAxes() ? "query heads of all ranks, a multiple of " : "query heads, ")
                              << heads << ", but found " << entries;
    int64_t all = heads == 0 ? 0 : entries / heads * keyHeads;
    for (auto [head, entry] : llvm::enumerate(*map))
      if (entry < -1 || entry >= all)
        return op.emitOpError() << "kv_map gives query head " << head << " the key head " << entry
                                << ", but it has to be in [0, " << all << "), or -1 for a padding head";
    return success();
  }

  /// Parts of the sequence.
  LogicalResult verifyPlacement() {
    bool shards = op.getKeyShards() != 1;
    if (shards && !op.getSeqAxes())
      return op.emitOpError("has keys in shards (key_shards), but no seq_axes that say along which mesh axes");
    if ((shards || op.isRing()) && queries != keys)
      return op.emitOpError() << "expected as many queries as keys when keys go around in a ring but found " << queries
                              << " and " << keys;
    return success();
  }

  LogicalResult verifyOrder() {
    if (int64_t valid = op.getValid(); valid < 0 || valid > length)
      return op.emitOpError() << "expected valid in [0, " << length << "], the length of the sequence, but found "
                              << valid;
    std::optional<ArrayRef<int64_t>> order = op.getOrder();
    if (!order)
      return success();
    int64_t chunks = order->size();
    if (chunks == 0 || length % chunks != 0)
      return op.emitOpError() << "order has " << chunks << " chunks, which do not divide the sequence of length "
                              << length;
    llvm::SmallBitVector seen(chunks);
    for (int64_t chunk : *order) {
      if (chunk < 0 || chunk >= chunks || seen.test(chunk))
        return op.emitOpError() << "expected order to be a permutation of [0, " << chunks << ") but found "
                                << verify::text(*order);
      seen.set(chunk);
    }
    return requireSelfAttention("order is");
  }

  /// Queries and keys are places of one sequence.
  LogicalResult requireSelfAttention(const Twine &names) {
    if (op.getSeqAxes() ? queries == 0 || length % queries != 0 : queries != length)
      return op.emitOpError() << "expected as many queries as keys when " << names << " given but found " << queries
                              << " and " << length;
    return success();
  }

  LogicalResult verifySideInputs() {
    for (auto [name, ids] : {std::pair("positions", op.getPositions()), {"documents", op.getDocuments()}})
      if (ids && (failed(requireSelfAttention(std::string(name) + " are")) ||
                  failed(verify::shape(op, name, ids.getType(), {batch, length}))))
        return failure();
    if (op.getKeyPadding())
      return verify::shape(op, "key_padding", op.getKeyPadding().getType(), {batch, length});
    return success();
  }

  LogicalResult verifyMask() {
    if (!op.getMask())
      return success();
    RankedTensorType mask = op.getMask().getType();
    if (failed(verify::rank(op, "mask", mask, 4, "batch, heads, queries, keys")))
      return failure();
    SmallVector<int64_t> full = {batch, heads, queries, length};
    for (auto [dim, size] : llvm::enumerate(full)) {
      int64_t found = mask.getDimSize(dim);
      bool wholeQueries = dim == 2 && op.getSeqAxes() && size != 0 && found % size == 0;
      if (found != size && !wholeQueries && (found != 1 || dim == 3))
        return op.emitOpError() << "expected mask of size " << size << (dim == 3 ? "" : " or 1") << " in dimension "
                                << dim << " but found " << found;
    }
    if (!isa<FloatType>(mask.getElementType()) && !mask.getElementType().isInteger(1))
      return op.emitOpError() << "expected mask of floats (added) or booleans (true = visible) but found "
                              << mask.getElementType();
    return success();
  }

  AttentionLike op;
  RankedTensorType query, key, value;
  int64_t batch = 0, heads = 0, queries = 0, keyHeads = 0, keys = 0, length = 0;
};

} // namespace

void AttentionOp::build(OpBuilder &builder, OperationState &state, Type result, Type lse, Value query, Value key,
                        Value value, Value positions, Value documents, Value keyPadding, Value mask,
                        const APFloat &scale, bool causal, int64_t window, const APFloat &softcap) {
  build(builder, state, result, lse, query, key, value, positions, documents, keyPadding, mask,
        /*carry_result=*/Value(), /*carry_lse=*/Value(), builder.getFloatAttr(builder.getF64Type(), scale),
        causal ? builder.getUnitAttr() : UnitAttr(), builder.getI64IntegerAttr(window),
        builder.getFloatAttr(builder.getF64Type(), softcap), /*order=*/DenseI64ArrayAttr(),
        /*valid=*/builder.getI64IntegerAttr(0), /*kv_map=*/DenseI64ArrayAttr(), /*cp_mode=*/StringAttr(),
        /*seq_axes=*/ArrayAttr(), /*head_axes=*/ArrayAttr(), /*key_shards=*/builder.getI64IntegerAttr(1),
        /*ring_step=*/builder.getI64IntegerAttr(0));
}

LogicalResult AttentionOp::verify() {
  if (failed(AttentionVerifier<AttentionOp>(*this).run()))
    return failure();
  if (static_cast<bool>(getCarryResult()) != static_cast<bool>(getCarryLse()))
    return emitOpError("expected carry to be a result and its lse, but found one without the other");
  if (!getCarryResult())
    return success();
  RankedTensorType result = getResult().getType(), carry = getCarryResult().getType();
  if (failed(verify::shape(*this, "carry's result", carry, result.getShape())) ||
      failed(verify::sameTensor(*this, "carry's lse", getCarryLse().getType(), "lse", getLse().getType())))
    return failure();
  if (carry.getElementType().isF32())
    return success();
  return verify::elementType(*this, "carry's result", carry, result.getElementType());
}

LogicalResult AttentionGradOp::verify() {
  RankedTensorType query = getQuery().getType(), key = getKey().getType(), value = getValue().getType();
  Type f32 = Float32Type::get(getContext());
  if (getQueryGrad().getType().getElementType() == f32)
    query = query.clone(f32);
  if (failed(AttentionVerifier<AttentionGradOp>(*this).run()) ||
      failed(verify::sameTensor(*this, "result_grad", getResultGrad().getType(), "result", getResult().getType())) ||
      failed(verify::sameTensor(*this, "query_grad", getQueryGrad().getType(), "query", query)) ||
      failed(verify::sameTensor(*this, "key_grad", getKeyGrad().getType(), "key in f32", key.clone(f32))))
    return failure();
  return verify::sameTensor(*this, "value_grad", getValueGrad().getType(), "value in f32", value.clone(f32));
}
