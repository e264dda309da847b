//===- Grouping.h - Which operations become one kernel ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Groups the operations of a block. Nodes are the operations that compute or that stay outside of kernels; views
// (reshape, transpose, slice) and what is part of every reader (broadcast, iota, constants of one number, widening) are
// no nodes but lie on the edges between them.
//
// Invariants: the groups, in `order`, are a topological order of the graph that has one node per group; each group that
// is not opaque is one loop nest (KernelProgram::build).
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_GROUPING_H
#define ND_LIB_CODEGEN_KERNELS_GROUPING_H

#include "KernelProgram.h"

namespace nd {

/// A reshape, transpose or slice.
bool isView(mlir::Operation *op);
/// A broadcast, iota or constant of one number, or the conversion of a short float to a longer one.
bool isPartOfReaders(mlir::Operation *op);
/// Zeros that only loops read, as what they carry at first.
bool startsLoop(mlir::Operation *op);

class Grouping {
public:
  explicit Grouping(mlir::Block &block);

  /// Merges as far as kernels gain from it.
  void merge();

  struct Group {
    llvm::SmallVector<unsigned> members; // nodes, ascending
    bool opaque = false;                 // stays outside of kernels
    /// Operations of other groups that this one computes again.
    llvm::SetVector<mlir::Operation *> recomputed;
  };
  llvm::ArrayRef<unsigned> getOrder() const { return order; }
  const Group &getGroup(unsigned group) const { return groups[group]; }
  mlir::Operation *getOp(unsigned node) const { return nodes[node]; }

  /// The kernel of a group: its operations with all that is part of them, what they read, and what others need of them.
  KernelBody bodyOf(unsigned group) const;

private:
  using Nodes = llvm::SmallVector<unsigned>;

  KernelBody bodyOf(llvm::ArrayRef<unsigned> members, const llvm::SetVector<mlir::Operation *> &recomputed) const;
  void sourcesOf(mlir::Value value, llvm::SetVector<unsigned> &sources) const;
  void findTurns(mlir::Block &block);
  bool keepsGathered(llvm::ArrayRef<unsigned> members) const;
  bool isScalar(llvm::ArrayRef<unsigned> members) const;
  bool tryMerge(unsigned a, unsigned b);
  bool isWorthwhile(llvm::ArrayRef<unsigned> producer, llvm::ArrayRef<unsigned> consumer,
                    const KernelProgram &program) const;
  void mergeColumnReductions();
  void leaveConcat(unsigned node);
  void recompute(unsigned group);
  void sinkToReaders();
  bool chainOf(mlir::Operation *op, unsigned home, llvm::ArrayRef<mlir::Value> stored,
               llvm::SetVector<mlir::Operation *> &chain, llvm::SetVector<mlir::Value> &leaves) const;

  std::vector<mlir::Operation *> nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> nodeOf;
  std::vector<Nodes> sources, users;
  /// Nodes that other groups read for the operations that they compute again.
  llvm::DenseSet<unsigned> readToRecompute;
  /// How many units of gathered parameters the program has read from when a node runs, and how many those may be at
  /// most: then parameters that it reads are given back.
  std::vector<unsigned> turnOf, lastTurn;
  std::vector<unsigned> groupOf;
  std::vector<Group> groups;
  std::vector<unsigned> order, position; // of groups
  /// Groups that do not merge as they are, for each group: those after it, and those before it, when that was found
  /// out.
  std::vector<llvm::SmallDenseSet<unsigned, 2>> refusedAfter, refusedBefore;
};

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_GROUPING_H
