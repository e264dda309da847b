//===- Contraction.cpp - Matrix products ----------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

LogicalResult requireFloats(NodeConversion &node, unsigned count) {
  if (failed(node.requireOperands(count)))
    return failure();
  for (unsigned i = 0; i < count; ++i)
    if (!isa<FloatType>(node.type(i).getElementType()) ||
        node.type(i).getElementType() != node.type(0).getElementType())
      return node.error() << "operand " << i << " is " << node.type(i)
                          << "; only products of equal float types are supported";
  return success();
}

LogicalResult convertMatMul(NodeConversion &node) {
  if (failed(requireFloats(node, 2)))
    return failure();
  Value product = node.matmul(node.operand(0), node.operand(1));
  if (!product)
    return node.error() << "operands " << node.type(0) << " and " << node.type(1) << " cannot be multiplied";
  return node.replace({product});
}

/// alpha op(A) op(B) + beta C
LogicalResult convertGemm(NodeConversion &node) {
  if (failed(requireFloats(node, node.has(2) ? 3 : 2)))
    return failure();
  int64_t contractA = node.intAttr("transA", 0) ? 0 : 1, contractB = node.intAttr("transB", 0) ? 1 : 0;
  RankedTensorType a = node.type(0), b = node.type(1);
  if (a.getRank() != 2 || b.getRank() != 2 || a.getDimSize(contractA) != b.getDimSize(contractB))
    return node.error() << "operands " << a << " and " << b << " cannot be multiplied";
  Value result = nd::dotGeneral(node.builder(), node.loc(), node.operand(0), node.operand(1), {}, {}, {contractA},
                                {contractB}, a.getElementType());
  if (double alpha = node.floatAttr("alpha", 1); alpha != 1)
    result = node.create<arith::MulFOp>(result, node.number(result, alpha));
  double beta = node.floatAttr("beta", 1);
  if (!node.has(2) || beta == 0)
    return node.replace({result});
  ArrayRef<int64_t> shape = tensorTypeOf(result).getShape();
  if (TensorBuilder::broadcastShapes(node.type(2).getShape(), shape) != SmallVector<int64_t>(shape))
    return node.error() << "its addend " << node.type(2) << " does not broadcast to " << result.getType();
  Value addend = node.operand(2);
  if (beta != 1)
    addend = node.create<arith::MulFOp>(addend, node.number(addend, beta));
  return node.replace({node.create<arith::AddFOp>(result, node.expandTo(addend, shape))});
}

/// A tensor whose dimensions have letters.
struct Lettered {
  Value value;
  std::string letters;
};

/// The diagonal over repeated letters is not supported; letters that no one else uses are summed.
Lettered sumUnused(NodeConversion &node, Lettered operand, StringRef needed) {
  SmallVector<int64_t> dims;
  std::string kept;
  for (auto [dim, letter] : llvm::enumerate(operand.letters)) {
    if (needed.contains(letter))
      kept += letter;
    else
      dims.push_back(dim);
  }
  return {node.reduce(ReductionKind::sum, operand.value, dims, /*keep=*/false), kept};
}

/// The contraction of two operands over the letters that they share and that are not `needed` later.
Lettered contract(NodeConversion &node, Lettered lhs, Lettered rhs, StringRef needed) {
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  std::string letters, free;
  for (auto [dim, letter] : llvm::enumerate(lhs.letters)) {
    size_t other = rhs.letters.find(letter);
    if (other == std::string::npos) {
      free += letter;
      continue;
    }
    bool isBatch = needed.contains(letter);
    (isBatch ? lhsBatch : lhsContract).push_back(dim);
    (isBatch ? rhsBatch : rhsContract).push_back(other);
    if (isBatch)
      letters += letter;
  }
  letters += free;
  for (char letter : rhs.letters)
    if (lhs.letters.find(letter) == std::string::npos)
      letters += letter;
  Value product = nd::dotGeneral(node.builder(), node.loc(), lhs.value, rhs.value, lhsBatch, rhsBatch, lhsContract,
                                 rhsContract, tensorTypeOf(lhs.value).getElementType());
  return {product, letters};
}

LogicalResult convertEinsum(NodeConversion &node) {
  if (node.numOperands() == 0 || failed(requireFloats(node, node.numOperands())))
    return node.numOperands() == 0 ? LogicalResult(node.error() << "has no operands") : failure();
  std::string equation;
  for (char c : node.stringAttr("equation", ""))
    if (c != ' ')
      equation += c;
  if (StringRef(equation).contains('.'))
    return node.error() << "equation '" << equation
                        << "' has an ellipsis, which is not supported; write out its dimensions";
  auto [left, right] = StringRef(equation).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  std::string output = right.str();
  if (!StringRef(equation).contains("->"))
    for (char letter = 'A'; letter <= 'z'; ++letter)
      if (isalpha(letter) && left.count(letter) == 1)
        output += letter;
  if (terms.size() != node.numOperands())
    return node.error() << "equation '" << equation << "' does not have one term for each operand";
  llvm::DenseMap<char, int64_t> sizes;
  for (auto [i, term] : llvm::enumerate(terms)) {
    RankedTensorType type = node.type(i);
    if (int64_t(term.size()) != type.getRank())
      return node.error() << "term '" << term << "' does not fit its operand " << type;
    for (auto [dim, letter] : llvm::enumerate(term)) {
      if (!isalpha(letter) || term.count(letter) != 1)
        return node.error() << "term '" << term << "' repeats a letter or has another sign, which is not supported";
      auto [entry, isNew] = sizes.try_emplace(letter, type.getDimSize(dim));
      if (!isNew && entry->second != type.getDimSize(dim))
        return node.error() << "letter '" << StringRef(&letter, 1) << "' has the sizes " << entry->second << " and "
                            << type.getDimSize(dim);
    }
  }
  for (char letter : output)
    if (!sizes.contains(letter) || StringRef(output).count(letter) != 1)
      return node.error() << "the result of equation '" << equation << "' has a letter that no term has, or twice";

  auto neededAfter = [&](size_t next) {
    std::string needed = output;
    for (StringRef term : ArrayRef(terms).drop_front(next))
      needed += term;
    return needed;
  };
  auto termOf = [&](size_t i) {
    std::string others = output;
    for (auto [j, term] : llvm::enumerate(terms))
      if (j != i)
        others += term;
    return sumUnused(node, {node.operand(i), terms[i].str()}, others);
  };
  Lettered result = termOf(0);
  for (size_t i = 1; i < terms.size(); ++i)
    result = contract(node, result, termOf(i), neededAfter(i + 1));
  result = sumUnused(node, result, output);
  SmallVector<int64_t> permutation;
  for (char letter : output)
    permutation.push_back(result.letters.find(letter));
  return node.replace({node.transpose(result.value, permutation)});
}

} // namespace

void nd::onnx::populateContraction(OpTable &table) {
  table.onOp("MatMul", 1, convertMatMul);
  table.onOp("Gemm", 7, convertGemm);
  table.onOp("Einsum", 12, convertEinsum);
}
