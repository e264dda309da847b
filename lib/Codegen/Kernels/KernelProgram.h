//===- KernelProgram.h - A kernel as scalar expressions ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A kernel computes over a domain of R rows and C columns. Its region is rewritten by pulling from the results: what is
// asked of a tensor is one element at an index that is a function of the row r and the column j, and so on down to
// elements of the inputs. Broadcasts, reshapes, transposes, slices and gathers are then index arithmetic, and the rest
// is a graph of scalar nodes. A reduction along the columns splits the work on a row into stages.
//
// Invariants: a node is computed at (r, j) only from nodes at the same (r, j), except that a row reduction reads all j
// of its row; `level` is the number of row reductions below a node, so stage `level` is the first that can compute it.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_KERNELPROGRAM_H
#define ND_LIB_CODEGEN_KERNELS_KERNELPROGRAM_H

#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace nd {

struct Node;

/// One index of an access: base * mul + add, where base is 0, a digit of the row or of the column ((r / stride) %
/// size), or an integer node.
struct Index {
  enum Kind { Zero, Row, Column, Computed };
  Kind kind = Zero;
  int64_t stride = 1, size = 1;
  int64_t mul = 1, add = 0;
  Node *node = nullptr;

  static Index digit(Kind kind, int64_t stride, int64_t size) {
    Index index;
    if (size == 1)
      return index;
    index.kind = kind, index.stride = stride, index.size = size;
    return index;
  }
  static Index computed(Node *node) {
    Index index;
    index.kind = Computed, index.node = node;
    return index;
  }
  Index scaled(int64_t factor, int64_t offset) const {
    Index index = *this;
    index.mul *= factor, index.add = index.add * factor + offset;
    return index;
  }
  bool isPlain() const { return mul == 1 && add == 0; }
  auto tie() const { return std::make_tuple(kind, stride, size, kind == Zero ? 1 : mul, add, node); }
  bool operator==(const Index &other) const { return tie() == other.tie(); }
  bool operator<(const Index &other) const { return tie() < other.tie(); }
};

using Indices = llvm::SmallVector<Index, 4>;

/// Integer arithmetic that indices need; the regions' own operations are Elementwise nodes.
enum class Primitive { Add, Mul, Div, Rem, Min, Max, Less, Equal, And, Select, Convert };

struct Node {
  enum Kind { Load, Constant, Elementwise, Primitive, Digit, RowReduce };
  Kind kind;
  mlir::Type type;               // of the element
  mlir::Operation *op = nullptr; // Elementwise, RowReduce
  nd::Primitive primitive{};     // Primitive
  unsigned input = 0;            // Load
  Indices index;                 // Load: one per dimension of the input; Digit: one
  mlir::TypedAttr constant;      // Constant
  llvm::SmallVector<Node *, 3> operands;
  bool onRow = false, onColumn = false;
  unsigned level = 0;
  unsigned cost = 0; // of computing it from the inputs; one cheap operation or load is 1
  unsigned id = 0;
};

/// Columns [begin, end) that every concatenation along the columns answers with one of its parts.
struct Segment {
  int64_t begin, end;
};

struct Root {
  enum Kind { Full, Row, ColumnReduce, Total };
  Kind kind;
  unsigned result;
  Indices index;                      // where the element lands in the result
  llvm::SmallVector<Node *, 1> nodes; // one per segment (Row: one)
  ReductionKind reduction{};          // ColumnReduce, Total
};

/// What a kernel is: a list of operations, what they read and what is wanted of them.
struct KernelBody {
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> inputs, results;
  static KernelBody of(KernelOp op);
};

class KernelProgram {
public:
  /// The kinds of loop nest.
  enum Form {
    Flat,    // R = 1: one run of C elements, in place or not, of any length
    Rows,    // row by row, in stages; column reductions go through partial sums of chunks of rows
    Columns, // reductions over the middle of [outer, R / outer, C], each column by itself
    Total    // reductions of everything to one element, in chunks
  };

  /// Rewrites the body. On failure `error` says why it is not one loop nest.
  static std::unique_ptr<KernelProgram> build(const KernelBody &body, std::string &error);
  /// The same on a domain of one row, for kernels whose every access may turn out to be contiguous.
  static std::unique_ptr<KernelProgram> buildFlat(const KernelBody &body, std::string &error);

  Form form = Rows;
  int64_t rows = 1, columns = 1;
  int64_t outer = 1; // Columns only
  llvm::SmallVector<Segment> segments;
  llvm::SmallVector<Root> roots;
  std::deque<Node> nodes;               // operands before users
  llvm::SmallVector<Node *> reductions; // RowReduce nodes; operands are one per segment
  unsigned numInputs = 0;

  /// Whether any result is reduced over the rows.
  bool hasColumnReductions() const {
    return llvm::any_of(roots, [](const Root &root) { return root.kind == Root::ColumnReduce; });
  }

private:
  friend class ProgramBuilder;
};

/// Dimensions that an `nd.reduce` removes, as [outer, reduced, inner] sizes when they are adjacent.
struct ReduceShape {
  int64_t outer, reduced, inner;
};
std::optional<ReduceShape> reduceShape(ReduceOp op);

/// The operations that have a kernel of their own (KernelSpecials.cpp) and mix with nothing.
bool isSpecial(mlir::Operation *op);
/// Elementwise arithmetic of arith and math on tensors.
bool isElementwise(mlir::Operation *op);
/// A constant whose elements are all equal: part of every kernel that reads it.
bool isSplatConstant(mlir::Operation *op);
/// How much slower than an addition.
unsigned costOf(mlir::Operation *op);

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_KERNELPROGRAM_H
