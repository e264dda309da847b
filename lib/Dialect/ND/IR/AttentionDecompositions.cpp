//===- AttentionDecompositions.cpp - Definitions of attention -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Scores are [B, Hq, S, T] in f32. A group of query heads that shares a key head is a dimension of the contractions, so
// that keys and values are never repeated and their gradients are summed over the group by the contraction. With a
// kv_map each query head gets a copy of its key head instead, and a padding head sees nothing.
//
// This is the definition in the global view. A rank's part has none by itself: it knows neither its coordinates nor the
// rest of the sequence.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include <limits>

using namespace mlir;
using namespace nd;

using Values = FailureOr<SmallVector<Value>>;

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// What forward and backward compute alike. `AttentionLike` is nd.attention or nd.attention_grad.
template <typename AttentionLike> class AttentionEmitter : public Emitter {
public:
  AttentionEmitter(OpBuilder &builder, AttentionLike op)
      : Emitter(builder, op.getLoc()), op(op), batch(op.getQuery().getType().getDimSize(0)),
        heads(op.getQuery().getType().getDimSize(1)), queries(op.getQuery().getType().getDimSize(2)),
        keyHeads(op.getKey().getType().getDimSize(1)), keys(op.getKey().getType().getDimSize(2)) {
    if (op.getKvMap())
      keyHeads = heads;
    query = grouped(f32(op.getQuery()));
    key = ofQueryHeads(f32(op.getKey()));
    value = ofQueryHeads(f32(op.getValue()));
  }

  /// Key heads, one for each query head where a kv_map says which. A padding head's is any: it sees no key.
  Value ofQueryHeads(Value tensor) {
    if (!op.getKvMap())
      return tensor;
    SmallVector<Value> copies;
    ArrayRef<int64_t> map = *op.getKvMap();
    for (int64_t entry : map)
      copies.push_back(slice(builder, loc, tensor, 1, std::max<int64_t>(entry, 0), 1));
    return concat(builder, loc, copies, 1);
  }

  /// The other way: the sum over the query heads that read a key head.
  Value ofKeyHeads(Value tensor, RankedTensorType result) {
    if (!op.getKvMap())
      return round(tensor, result);
    SmallVector<Value> sums;
    ArrayRef<int64_t> map = *op.getKvMap();
    for (int64_t keyHead : llvm::seq(result.getDimSize(1))) {
      Value sum;
      for (auto [head, entry] : llvm::enumerate(map))
        if (entry == keyHead) {
          Value part = slice(builder, loc, tensor, 1, head, 1);
          sum = sum ? add(sum, part) : part;
        }
      SmallVector<int64_t> shape(result.getShape());
      shape[1] = 1;
      sums.push_back(sum ? sum : splat(builder, loc, builder.getF32Type(), shape, 0));
    }
    return round(concat(builder, loc, sums, 1), result);
  }

  /// [B, Hq, ...] as [B, Hkv, Hq / Hkv, ...].
  Value grouped(Value tensor) {
    SmallVector<int64_t> shape = {batch, keyHeads, heads / keyHeads};
    llvm::append_range(shape, tensorTypeOf(tensor).getShape().drop_front(2));
    return reshape(tensor, shape);
  }
  Value ungrouped(Value tensor) {
    SmallVector<int64_t> shape = {batch, heads};
    llvm::append_range(shape, tensorTypeOf(tensor).getShape().drop_front(3));
    return reshape(tensor, shape);
  }

  /// Per query and key: `perQuery` [B, Hkv, G, S, D] times `perKey` [B, Hkv, T, D], summed over D.
  Value againstKeys(Value perQuery, Value perKey) { return ungrouped(contract(perQuery, perKey, 4, 3)); }
  /// Per query: `perPair` [B, Hq, S, T] times `perKey` [B, Hkv, T, D], summed over the keys.
  Value sumOverKeys(Value perPair, Value perKey) { return ungrouped(contract(grouped(perPair), perKey, 4, 2)); }
  /// Per key: `perPair` [B, Hq, S, T] times `perQuery` [B, Hkv, G, S, D], summed over queries and the heads of the
  /// group.
  Value sumOverQueries(Value perPair, Value perQuery) { return contract(grouped(perPair), perQuery, {2, 3}, {2, 3}); }

  /// Sets `scores` after scale, softcap and mask; `tanhs` is tanh(score / softcap) where there is a softcap.
  void emitScores() {
    scores = mul(againstKeys(query, key), op.getScale().convertToDouble());
    if (double cap = op.getSoftcap().convertToDouble(); cap > 0) {
      tanhs = tanh(div(scores, cap));
      scores = mul(tanhs, cap);
    }
    Value general = op.getMask() ? generalMask() : Value();
    bool added = general && isa<FloatType>(tensorTypeOf(general).getElementType());
    if (added)
      scores = add(scores, f32(general));
    Value visible = visibility();
    if (general && !added)
      visible = visible ? both(visible, general) : general;
    if (visible)
      scores = select(visible, scores, number(kMinusInfinity, scores));
  }

  AttentionLike op;
  int64_t batch, heads, queries, keyHeads, keys;
  Value query, key, value; ///< in f32; the query grouped
  Value scores, tanhs;

private:
  Value contract(Value lhs, Value rhs, ArrayRef<int64_t> lhsDims, ArrayRef<int64_t> rhsDims) {
    return dotGeneral(builder, loc, lhs, rhs, {0, 1}, {0, 1}, lhsDims, rhsDims, builder.getF32Type());
  }

  SmallVector<int64_t> pairShape() { return {batch, heads, queries, keys}; }

  /// The mask over all pairs. Its dimensions of size 1 are repeated.
  Value generalMask() {
    RankedTensorType type = op.getMask().getType();
    SmallVector<int64_t> shape, dims;
    for (auto [dim, size] : llvm::enumerate(pairShape()))
      if (type.getDimSize(dim) == size) {
        shape.push_back(size);
        dims.push_back(dim);
      }
    return broadcast(reshape(op.getMask(), shape), pairShape(), dims);
  }

  /// Which key a query sees by position, document and padding, over all pairs; null when it sees every key.
  Value visibility() {
    Value visible;
    auto require = [&](Value condition, ArrayRef<int64_t> dims) {
      Value whole = broadcast(condition, pairShape(), dims);
      visible = visible ? both(visible, whole) : whole;
    };
    auto window = static_cast<int64_t>(op.getWindow());
    if (op.getCausal() || window > 0) {
      auto [ofQueries, ofKeys, dims] = positions();
      if (op.getCausal())
        require(compare(arith::CmpIPredicate::sge, ofQueries, ofKeys), dims);
      if (window > 0) {
        Value distance = arith::SubIOp::create(builder, loc, ofQueries, ofKeys);
        require(compare(arith::CmpIPredicate::slt, distance, intSplatLike(builder, loc, distance, window)), dims);
      }
    }
    if (Value documents = op.getDocuments()) {
      SmallVector<int64_t> shape = {batch, queries, keys};
      require(
          compare(arith::CmpIPredicate::eq, broadcast(documents, shape, {0, 1}), broadcast(documents, shape, {0, 2})),
          {0, 2, 3});
    }
    if (Value padding = op.getKeyPadding())
      require(padding, {0, 3});
    if (int64_t valid = op.getValid(); valid != 0 && valid != keys) {
      Value indices = originalIndices({keys}, 0);
      require(compare(arith::CmpIPredicate::slt, indices, intSplatLike(builder, loc, indices, valid)), {3});
    }
    if (op.getKvMap() && llvm::is_contained(*op.getKvMap(), -1)) {
      SmallVector<bool> real = llvm::map_to_vector(*op.getKvMap(), [](int64_t entry) { return entry >= 0; });
      auto type = RankedTensorType::get({heads}, builder.getI1Type());
      require(arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef<bool>(real))), {1});
    }
    return visible;
  }

  /// The index along `dim` in the sequence before it was stored in another order.
  Value originalIndices(ArrayRef<int64_t> shape, int64_t dim) {
    Type index = builder.getI64Type();
    if (!op.getOrder())
      return iota(builder, loc, index, shape, dim);
    ArrayRef<int64_t> order = *op.getOrder();
    int64_t size = shape[dim] / static_cast<int64_t>(order.size());
    SmallVector<int64_t> indices;
    for (int64_t chunk : order)
      llvm::append_range(indices, llvm::seq(chunk * size, (chunk + 1) * size));
    auto type = RankedTensorType::get({shape[dim]}, index);
    Value constant = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef<int64_t>(indices)));
    return broadcast(constant, shape, {dim});
  }

  /// Positions of the queries and of the keys beside each other, and the dimensions of the pairs that they have.
  std::tuple<Value, Value, SmallVector<int64_t>> positions() {
    if (Value given = op.getPositions()) {
      SmallVector<int64_t> shape = {batch, queries, keys};
      return {broadcast(given, shape, {0, 1}), broadcast(given, shape, {0, 2}), SmallVector<int64_t>{0, 2, 3}};
    }
    SmallVector<int64_t> shape = {queries, keys};
    return {originalIndices(shape, 0), originalIndices(shape, 1), SmallVector<int64_t>{2, 3}};
  }
};

template <typename AttentionLike> LogicalResult refuseLocalForm(AttentionLike op) {
  if (!op.isLocalForm())
    return success();
  return op.emitOpError() << "has no definition by itself as one rank's part ("
                          << (op.getSeqAxes()    ? "seq_axes"
                              : op.getHeadAxes() ? "head_axes"
                                                 : "key_shards")
                          << "): decompose it before nd-partition";
}

} // namespace

Values AttentionOp::decompose(OpBuilder &builder) {
  if (failed(refuseLocalForm(*this)))
    return failure();
  if (getCarryResult())
    return emitOpError("has no definition by itself when it merges a carry: decompose it before "
                       "nd-expand-ring-attention");
  AttentionEmitter<AttentionOp> emit(builder, *this);
  emit.emitScores();
  Value max = emit.max(emit.scores, 3);
  // A query that sees no key has the maximum -inf: subtracting 0 instead leaves its exponentials zero, not NaN.
  max = emit.select(emit.equals(max, kMinusInfinity), emit.number(0, max), max);
  Value exps = emit.exp(emit.sub(emit.scores, emit.over(max, emit.scores, 3)));
  Value sum = emit.sum(exps, 3);
  Value lse = emit.add(max, emit.log(sum));
  // Such a query's sum is zero; any other is at least 1, the exponential of the maximum.
  sum = emit.select(emit.equals(sum, 0), emit.number(1, sum), sum);
  Value probabilities = emit.div(exps, emit.over(sum, exps, 3));
  Value result = emit.sumOverKeys(probabilities, emit.value);
  return SmallVector<Value>{emit.round(result, getResult().getType()), lse};
}

Values AttentionGradOp::decompose(OpBuilder &builder) {
  if (failed(refuseLocalForm(*this)))
    return failure();
  AttentionEmitter<AttentionGradOp> emit(builder, *this);
  emit.emitScores();
  // The lse of a query that sees no key is -inf, and so are its scores: its probabilities become zero, not NaN.
  Value lse = emit.select(emit.equals(getLse(), kMinusInfinity), emit.number(0, getLse()), getLse());
  Value probabilities = emit.exp(emit.sub(emit.scores, emit.over(lse, emit.scores, 3)));
  Value resultGrad = emit.f32(getResultGrad());
  Value groupedGrad = emit.grouped(resultGrad);
  Value valueGrad = emit.sumOverQueries(probabilities, groupedGrad);

  // The softmax's gradient: p (dp - sum(p dp)), where the sum over keys equals that of result times its gradient.
  Value probabilityGrad = emit.againstKeys(groupedGrad, emit.value);
  Value delta = emit.sum(emit.mul(resultGrad, emit.f32(getResult())), 3);
  Value scoreGrad = emit.mul(probabilities, emit.sub(probabilityGrad, emit.over(delta, probabilityGrad, 3)));
  if (emit.tanhs) {
    Value slope = emit.sub(emit.number(1, emit.tanhs), emit.mul(emit.tanhs, emit.tanhs));
    scoreGrad = emit.mul(scoreGrad, slope);
  }
  scoreGrad = emit.mul(scoreGrad, getScale().convertToDouble());
  Value queryGrad = emit.sumOverKeys(scoreGrad, emit.key);
  Value keyGrad = emit.sumOverQueries(scoreGrad, emit.query);
  return SmallVector<Value>{emit.round(queryGrad, getQueryGrad().getType()),
                            emit.ofKeyHeads(keyGrad, getKeyGrad().getType()),
                            emit.ofKeyHeads(valueGrad, getValueGrad().getType())};
}
