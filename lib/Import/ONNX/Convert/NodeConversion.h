//===- NodeConversion.h - What the conversion of one node sees --*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_CONVERT_NODECONVERSION_H
#define ND_LIB_IMPORT_ONNX_CONVERT_NODECONVERSION_H

#include "ConstantEvaluator.h"
#include "TensorBuilder.h"
#include "nd/Dialect/ONNX/IR/ONNX.h"

namespace nd::onnx {

/// A converted value: a tensor, or a sequence of tensors (what SplitToSequence makes), or nothing (an absent operand).
struct Converted {
  mlir::Value tensor;
  llvm::SmallVector<mlir::Value, 0> sequence;
};

/// One node during its conversion: typed access to operands and attributes, builders at the right place, and errors
/// that say which node they are about. A handler checks what it reads and ends with `replace`, or returns the failure
/// of `error`.
class NodeConversion : public TensorBuilder {
public:
  NodeConversion(NodeOp node, mlir::OpBuilder &builder, llvm::ArrayRef<const Converted *> operands,
                 ConstantEvaluator &evaluator)
      : TensorBuilder(builder, node.getLoc()), node(node), operands(operands.begin(), operands.end()),
        evaluator(evaluator) {}

  NodeOp getNode() const { return node; }
  int64_t version() const { return node.getVersion(); }
  unsigned numOperands() const { return operands.size(); }
  unsigned numResults() const { return node.getNumResults(); }

  /// Operand `i`, null when it is absent or a sequence.
  mlir::Value operand(unsigned i) const { return i < operands.size() ? operands[i]->tensor : mlir::Value(); }
  bool has(unsigned i) const { return static_cast<bool>(operand(i)); }
  mlir::RankedTensorType type(unsigned i) const { return tensorTypeOf(operand(i)); }
  llvm::ArrayRef<mlir::Value> sequence(unsigned i) const {
    return i < operands.size() ? llvm::ArrayRef<mlir::Value>(operands[i]->sequence) : llvm::ArrayRef<mlir::Value>();
  }
  /// Fails with an error unless the first `count` operands are tensors.
  mlir::LogicalResult requireOperands(unsigned count);
  mlir::LogicalResult requireOperand(unsigned i);

  bool hasAttr(llvm::StringRef name) const { return node.getFields().contains(name); }
  mlir::Attribute attr(llvm::StringRef name) const { return node.getFields().get(name); }
  int64_t intAttr(llvm::StringRef name, int64_t otherwise) const;
  double floatAttr(llvm::StringRef name, double otherwise) const;
  llvm::StringRef stringAttr(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::optional<llvm::SmallVector<int64_t>> intsAttr(llvm::StringRef name) const;

  /// The elements of an integer operand whose value does not depend on data; an error otherwise.
  mlir::FailureOr<llvm::SmallVector<int64_t>> constantInts(unsigned i, llvm::StringRef what);
  /// The same where it is one number.
  mlir::FailureOr<int64_t> constantInt(unsigned i, llvm::StringRef what);
  mlir::FailureOr<double> constantFloat(unsigned i, llvm::StringRef what);
  std::optional<ConstantTensor> evaluate(mlir::Value value) { return evaluator.evaluate(value); }
  /// Integers given as operand `i` in newer versions, as attribute `name` in older ones; nothing when given by neither.
  mlir::FailureOr<std::optional<llvm::SmallVector<int64_t>>> intsFrom(unsigned i, llvm::StringRef name);

  /// An axis counted from the front; an error when it is outside [-rank, rank).
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank);
  mlir::FailureOr<llvm::SmallVector<int64_t>> axes(llvm::ArrayRef<int64_t> axes, int64_t rank);

  /// The node's results; results that are missing at the end were not asked for. Refuses sizes that are negative or
  /// overflow.
  mlir::LogicalResult replace(llvm::ArrayRef<mlir::Value> values);
  mlir::LogicalResult replaceBySequence(llvm::ArrayRef<mlir::Value> values);
  llvm::ArrayRef<Converted> results() const { return converted; }

  mlir::InFlightDiagnostic error();
  mlir::InFlightDiagnostic warning();

private:
  mutable NodeOp node; // accessors of operations are not const
  llvm::SmallVector<const Converted *> operands;
  ConstantEvaluator &evaluator;
  llvm::SmallVector<Converted, 1> converted;
};

using Handler = mlir::LogicalResult (*)(NodeConversion &);

/// Which handler converts a node type, from which version of its operator set on.
class OpTable {
public:
  void onOp(llvm::StringRef name, int64_t sinceVersion, Handler handler, llvm::StringRef domain = "");
  /// The handler of the newest version up to `version`; null when there is none.
  Handler lookup(llvm::StringRef name, llvm::StringRef domain, int64_t version) const;

private:
  llvm::StringMap<llvm::SmallVector<std::pair<int64_t, Handler>, 1>> table;
};

/// Elements of `table` along `dim` at `indices`, whose dimensions take the place of `dim`. Indices lie in [0, size).
mlir::Value takeAlong(TensorBuilder &builder, mlir::Value table, mlir::Value indices, int64_t dim);

/// ONNX counts negative indices from the end, nd has none: adds `size` to them, unless there can be none.
mlir::Value wrapNegative(TensorBuilder &builder, mlir::Value indices, int64_t size);

/// Positions in several leading dimensions of a tensor as one index into rows of `rowsShape`.
struct FlatIndex {
  mlir::Value indices;
  llvm::SmallVector<int64_t> rowsShape;
};
FlatIndex flattenIndex(TensorBuilder &builder, llvm::ArrayRef<mlir::Value> components, mlir::RankedTensorType type);

mlir::Value softmax(TensorBuilder &builder, mlir::Value x, int64_t dim);
/// x - max - log(sum(exp(x - max)))
mlir::Value logSoftmax(TensorBuilder &builder, mlir::Value x, int64_t dim);

/// The families, one file each.
void populateAttention(OpTable &table);
void populateContraction(OpTable &table);
void populateElementwise(OpTable &table);
void populateIndex(OpTable &table);
void populateLogic(OpTable &table);
void populateLoss(OpTable &table);
void populateNorm(OpTable &table);
void populateReduction(OpTable &table);
void populateScatter(OpTable &table);
void populateSequence(OpTable &table);
void populateShape(OpTable &table);
void populateSource(OpTable &table);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_CONVERT_NODECONVERSION_H
