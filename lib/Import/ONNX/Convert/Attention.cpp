//===- Attention.cpp - Attention and rotary embedding ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// What both attention nodes say, in nd's terms.
struct AttentionParts {
  Value query, key, value, keyPadding, mask;
  double scale = 0, softcap = 0, dropout = 0;
  bool causal = false;
  int64_t window = 0;
};

/// Builds the operation after checking that shapes fit: q [B, Hq, S, D], k [B, Hkv, T, D], v [B, Hkv, T, Dv].
FailureOr<AttentionOp> buildAttention(NodeConversion &node, const AttentionParts &parts) {
  RankedTensorType q = tensorTypeOf(parts.query), k = tensorTypeOf(parts.key), v = tensorTypeOf(parts.value);
  bool fits = q.getRank() == 4 && k.getRank() == 4 && v.getRank() == 4 && isa<FloatType>(q.getElementType()) &&
              k.getElementType() == q.getElementType() && v.getElementType() == q.getElementType() &&
              q.getDimSize(0) == k.getDimSize(0) && k.getShape().take_front(3) == v.getShape().take_front(3) &&
              q.getDimSize(3) == k.getDimSize(3) && k.getDimSize(1) > 0 && q.getDimSize(1) % k.getDimSize(1) == 0;
  if (!fits)
    return node.error() << "query " << q << ", key " << k << " and value " << v << " do not fit";
  int64_t batch = q.getDimSize(0), heads = q.getDimSize(1), queries = q.getDimSize(2), keys = k.getDimSize(2);
  if (parts.window < 0 || parts.softcap < 0)
    return node.error() << "a negative window or softcap has no meaning; export the model again";
  if (parts.keyPadding && (tensorTypeOf(parts.keyPadding).getShape() != ArrayRef<int64_t>{batch, keys} ||
                           !tensorTypeOf(parts.keyPadding).getElementType().isInteger(1)))
    return node.error() << "its key padding " << parts.keyPadding.getType() << " is not of booleans [" << batch << ", "
                        << keys << "]";
  Value mask = parts.mask;
  if (mask) {
    RankedTensorType type = tensorTypeOf(mask);
    SmallVector<int64_t> scores = {batch, heads, queries, keys};
    if (TensorBuilder::broadcastShapes(type.getShape(), scores) != scores ||
        (!type.getElementType().isInteger(1) && type.getElementType() != q.getElementType()))
      return node.error() << "its mask " << type << " does not broadcast to the scores";
    // nd wants all four dimensions, and the keys' whole.
    SmallVector<int64_t> shape(4 - type.getRank(), 1);
    llvm::append_range(shape, type.getShape());
    mask = node.reshape(mask, shape);
    shape[3] = keys;
    mask = node.expandTo(mask, shape);
  }
  Builder &builder = node.builder();
  auto attention = AttentionOp::create(
      node.builder(), node.loc(), q.clone({batch, heads, queries, v.getDimSize(3)}),
      RankedTensorType::get({batch, heads, queries}, builder.getF32Type()), parts.query, parts.key, parts.value,
      /*positions=*/Value(), /*documents=*/Value(), parts.keyPadding, mask, llvm::APFloat(parts.scale), parts.causal,
      parts.window, llvm::APFloat(parts.softcap));
  if (parts.dropout > 0)
    attention->setAttr("nd.attention_dropout", builder.getF64FloatAttr(parts.dropout));
  return attention;
}

/// nd_export's node: the attributes are nd's own; `mask_kind` says what the fourth operand is.
LogicalResult convertNdAttention(NodeConversion &node) {
  if (failed(node.requireOperands(3)))
    return failure();
  AttentionParts parts;
  parts.query = node.operand(0), parts.key = node.operand(1), parts.value = node.operand(2);
  if (node.type(0).getRank() != 4)
    return node.error() << "its query " << node.type(0) << " is not [batch, heads, sequence, width]";
  parts.causal = node.intAttr("causal", 0) != 0;
  parts.window = node.intAttr("window", 0);
  parts.scale = node.floatAttr("scale", 1.0 / std::sqrt(double(std::max<int64_t>(1, node.type(0).getDimSize(3)))));
  parts.softcap = node.floatAttr("softcap", 0);
  parts.dropout = node.floatAttr("dropout", 0);
  int64_t kind = node.intAttr("mask_kind", node.has(3) ? 2 : 0);
  if (kind < 0 || kind > 2 || (kind != 0) != node.has(3))
    return node.error() << "mask_kind " << kind << " does not fit its " << node.numOperands()
                        << " operands; export the model again";
  (kind == 1 ? parts.keyPadding : parts.mask) = node.operand(3);
  FailureOr<AttentionOp> attention = buildAttention(node, parts);
  return failed(attention) ? failure() : node.replace({attention->getResult()});
}

/// [B, S, heads * width] as [B, heads, S, width]; a tensor of four dimensions stays.
FailureOr<Value> splitHeads(NodeConversion &node, unsigned i, StringRef attribute) {
  RankedTensorType type = node.type(i);
  if (type.getRank() == 4)
    return node.operand(i);
  int64_t heads = node.intAttr(attribute, 0);
  if (type.getRank() != 3 || heads <= 0 || type.getDimSize(2) % heads != 0)
    return node.error() << "operand " << i << " is " << type << " with " << attribute << " = " << heads
                        << "; it does not split";
  Value split =
      node.reshape(node.operand(i), {type.getDimSize(0), type.getDimSize(1), heads, type.getDimSize(2) / heads});
  return node.transpose(split, {0, 2, 1, 3});
}

LogicalResult convertAttention(NodeConversion &node) {
  if (failed(node.requireOperands(3)))
    return failure();
  if (node.has(4) || node.has(5) || node.has(6))
    return node.error() << "a key/value cache is not supported; export the model with use_cache=False";
  AttentionParts parts;
  FailureOr<Value> query = splitHeads(node, 0, "q_num_heads"), key = splitHeads(node, 1, "kv_num_heads"),
                   value = splitHeads(node, 2, "kv_num_heads");
  if (failed(query) || failed(key) || failed(value))
    return failure();
  parts.query = *query, parts.key = *key, parts.value = *value;
  parts.causal = node.intAttr("is_causal", 0) != 0;
  parts.mask = node.operand(3);
  parts.scale =
      node.floatAttr("scale", 1.0 / std::sqrt(double(std::max<int64_t>(1, tensorTypeOf(*query).getDimSize(3)))));
  parts.softcap = node.floatAttr("softcap", 0);
  FailureOr<AttentionOp> attention = buildAttention(node, parts);
  if (failed(attention))
    return failure();
  Value result = attention->getResult();
  if (node.type(0).getRank() == 3) {
    RankedTensorType type = tensorTypeOf(result);
    result = node.reshape(node.transpose(result, {0, 2, 1, 3}),
                          {type.getDimSize(0), type.getDimSize(2), type.getDimSize(1) * type.getDimSize(3)});
  }
  return node.replace({result});
}

/// Tables are [B, S, R/2], or [positions, R/2] with a fourth operand of positions [B, S].
LogicalResult convertRotaryEmbedding(NodeConversion &node) {
  if (failed(node.requireOperands(3)))
    return failure();
  FailureOr<Value> input = splitHeads(node, 0, "num_heads");
  if (failed(input))
    return failure();
  RankedTensorType type = tensorTypeOf(*input);
  int64_t batch = type.getDimSize(0), length = type.getDimSize(2), width = type.getDimSize(3);
  int64_t rotated = node.intAttr("rotary_embedding_dim", 0);
  if (rotated == 0)
    rotated = width;
  SmallVector<int64_t> shape = {batch, length, rotated / 2};
  SmallVector<Value> tables;
  for (unsigned i : {1u, 2u}) {
    Value table = node.operand(i);
    RankedTensorType tableType = node.type(i);
    if (node.has(3) && tableType.getRank() == 2 && node.type(3).getElementType().isInteger(64))
      table = takeAlong(node, table, wrapNegative(node, node.operand(3), tableType.getDimSize(0)), 0);
    if (tensorTypeOf(table).getShape() != ArrayRef<int64_t>(shape) ||
        tableType.getElementType() != type.getElementType() || rotated % 2 != 0 || rotated < 0 || rotated > width)
      return node.error() << "its tables " << tableType << " do not fit " << type << " with " << rotated
                          << " rotated elements";
    tables.push_back(table);
  }
  Value result =
      RopeOp::create(node.builder(), node.loc(), *input, tables[0], tables[1], node.intAttr("interleaved", 0) != 0);
  if (node.type(0).getRank() == 3)
    result = node.reshape(node.transpose(result, {0, 2, 1, 3}), node.type(0).getShape());
  return node.replace({result});
}

} // namespace

void nd::onnx::populateAttention(OpTable &table) {
  table.onOp("Attention", 1, convertNdAttention, "ai.nd");
  table.onOp("Attention", 23, convertAttention);
  table.onOp("RotaryEmbedding", 23, convertRotaryEmbedding);
}
