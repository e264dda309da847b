//===- NodeEmitter.h - Code of a program's nodes ----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Emits nodes at a row and a vector of columns. Each node is emitted once per scope: a node on neither row nor column
// at the function's entry, one on the row alone before the loop over the columns, the others in that loop's body.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_NODEEMITTER_H
#define ND_LIB_CODEGEN_KERNELS_NODEEMITTER_H

#include "KernelLayout.h"
#include "VectorMath.h"

namespace nd {

/// Columns [column, column + lanes), of which those under the mask exist (all when null).
struct Columns {
  mlir::Value column;
  mlir::Value mask;
  /// Whether `column` is a multiple of the number of lanes.
  bool aligned = true;
  unsigned segment = 0;
};

/// Where a row's values are kept while it is computed.
struct RowScope {
  mlir::Value row;
  llvm::DenseMap<const Node *, mlir::Value> values;
  llvm::DenseMap<std::pair<int64_t, int64_t>, mlir::Value> digits;
  /// Start of the row's scratch.
  mlir::Value scratch;
};

class NodeEmitter {
public:
  NodeEmitter(LaneBuilder &builder, const KernelLayout &layout, llvm::ArrayRef<mlir::Value> inputs,
              llvm::ArrayRef<mlir::Value> results)
      : b(builder), layout(layout), program(*layout.program), schedule(*layout.schedule), inputs(inputs),
        results(results), lanes(layout.lanes) {
    findSigmoids();
  }

  /// Nodes that depend on nothing; the builder is at the function's entry.
  void emitUniform();
  /// Nodes that depend on the row alone and are of at most this level.
  void emitRowNodes(RowScope &row, unsigned level);
  /// Starts the body of a loop over columns in stage `stage`.
  void enterBody(const Columns &columns, unsigned stage) {
    at = columns, currentStage = stage;
    shared.clear(), bodies.clear(), sigmoids.clear();
  }
  /// The value of a node at the current columns: a vector when it depends on them.
  mlir::Value emit(const Node *node, RowScope &row);
  /// The same, always with all lanes.
  mlir::Value emitLanes(const Node *node, RowScope &row) { return b.splat(emit(node, row), lanes); }
  /// The value if this body has computed it already.
  mlir::Value lookup(const Node *node, RowScope &row) const {
    return node->onRow ? bodies.lookup({&row, node}) : shared.lookup(node);
  }
  /// `value` is in the register type of the root, and rounded.
  void store(mlir::Value value, const Root &root, RowScope &row);
  void keep(mlir::Value value, const Node *node, RowScope &row);

  mlir::Value loadFrom(mlir::Value pointer, mlir::Type element, mlir::Value offset, int64_t lanes);
  void storeTo(mlir::Value pointer, mlir::Type element, mlir::Value offset, mlir::Value value);

private:
  /// An element offset: scalar + lane * number of the lane + vector.
  struct Offset {
    mlir::Value scalar, vector;
    int64_t lane = 0;
  };

  void findSigmoids();
  mlir::Value emitSigmoid(const Node *tanh, RowScope &row);
  mlir::Value emitNode(const Node *node, RowScope &row);
  mlir::Value emitElementwise(const Node *node, llvm::ArrayRef<mlir::Value> operands);
  mlir::Value emitPrimitive(const Node *node, llvm::ArrayRef<mlir::Value> operands);
  mlir::Value emitDigit(const Index &index, RowScope &row);
  mlir::Value loadKept(const Node *node, RowScope &row);
  mlir::Value scratchOf(unsigned slot, RowScope &row);

  Offset columnDigit(int64_t stride, int64_t size);
  mlir::Value rowDigit(int64_t stride, int64_t size, RowScope &row);
  Offset offsetOf(const Indices &index, llvm::ArrayRef<int64_t> strides, RowScope &row);
  mlir::Value load(mlir::Value pointer, mlir::Type element, const Offset &offset, bool vector);
  void storeAt(mlir::Value pointer, mlir::Type element, const Offset &offset, mlir::Value value);
  mlir::Value pointers(mlir::Value pointer, mlir::Type element, const Offset &offset);
  mlir::Value fromMemory(mlir::Value value, mlir::Type element);
  mlir::Value toMemory(mlir::Value value, mlir::Type element);
  mlir::Value allLanes();

  LaneBuilder &b;
  const KernelLayout &layout;
  const KernelProgram &program;
  const KernelSchedule &schedule;
  llvm::ArrayRef<mlir::Value> inputs, results;
  int64_t lanes;

  Columns at;
  unsigned currentStage = 0;
  llvm::DenseMap<const Node *, mlir::Value> uniform, shared;
  llvm::DenseMap<std::pair<RowScope *, const Node *>, mlir::Value> bodies;
  /// Hyperbolic tangents that are only squared or added to 1 (GELU), and 1 + tanh(x) = 2 / (1 + exp(-2 x)) of those in
  /// this body.
  llvm::DenseSet<const Node *> shiftedTanhs;
  llvm::DenseMap<std::pair<RowScope *, const Node *>, mlir::Value> sigmoids;
};

/// The type that an element has in memory: booleans take one byte, bf16 is integers of 16 bits.
mlir::Type memoryType(mlir::Type element);

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_NODEEMITTER_H
