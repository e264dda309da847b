//===- KernelProgramBuilder.h - Pulling a region into expressions -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// From the results of a region back to its inputs: at which index each result is computed follows from the form of the
// loop nest (KernelProgram.cpp), and what an operation does to the index of its operands from what it is
// (PullOperations.cpp). Where a concatenation or a padding needs the columns to be cut, building starts again with one
// segment more.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_KERNELPROGRAMBUILDER_H
#define ND_LIB_CODEGEN_KERNELS_KERNELPROGRAMBUILDER_H

#include "KernelProgram.h"

namespace nd {

/// Builds a program; every function returns null or false after `error` or `split` has been set.
class KernelProgramBuilder {
public:
  KernelProgramBuilder(const KernelBody &body, KernelProgram &program, std::string &error)
      : body(body), program(program), error(error), context(body.results.front().getContext()) {
    for (auto [number, input] : llvm::enumerate(body.inputs))
      inputs[input] = number;
    program.numInputs = body.inputs.size();
  }

  bool build(bool flat) {
    if (flat ? !chooseFlatDomain() : !chooseDomain())
      return false;
    std::set<int64_t> bounds = {0, program.columns};
    while (true) {
      reset(bounds);
      if (pullRoots())
        return true;
      if (!split)
        return false;
      bounds.insert(*split);
    }
  }

private:
  bool fail(const llvm::Twine &message) {
    error = message.str();
    return false;
  }
  Node *failNode(const llvm::Twine &message) {
    fail(message);
    return nullptr;
  }

  bool chooseFlatDomain();
  bool chooseDomain();
  void reset(const std::set<int64_t> &bounds);
  bool pullRoots();
  bool pullRoot(unsigned result);

  std::optional<Indices> digits(llvm::ArrayRef<int64_t> shape, int64_t columns, int64_t rowStride) const;
  std::optional<Indices> fullIndices(mlir::Value value) const {
    return digits(mlir::cast<mlir::RankedTensorType>(value.getType()).getShape(), program.columns, 1);
  }

  Node *pull(mlir::Value value, const Indices &index);
  Node *pullOp(mlir::Operation *op, const Indices &index);
  Node *pullReduce(ReduceOp op, const Indices &index);
  Node *pullConcat(ConcatOp op, const Indices &index);
  Node *pullPad(PadOp op, const Indices &index);
  bool reshapeIndices(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to, const Indices &index, Indices &out);

  Node *create(Node::Kind kind, mlir::Type type, llvm::ArrayRef<Node *> operands);
  Node *primitive(Primitive op, llvm::ArrayRef<Node *> operands, mlir::Type type = {});
  Node *integer(int64_t value);
  Node *toNode(const Index &index);
  Node *toInteger(Node *node);
  bool isColumn(const Index &index) const {
    return index.kind == Index::Column && index.stride == 1 && index.size == program.columns && index.mul == 1;
  }

  const KernelBody &body;
  KernelProgram &program;
  std::string &error;
  mlir::MLIRContext *context;
  llvm::DenseMap<mlir::Value, unsigned> inputs;
  unsigned segment = 0;
  std::optional<int64_t> split;
  std::map<std::tuple<void *, unsigned, std::vector<Index>>, Node *> memo;
  std::map<Index, Node *> digitNodes;
  std::map<int64_t, Node *> integers;
  llvm::DenseMap<mlir::Operation *, Node *> reduceNodes;
};

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_KERNELPROGRAMBUILDER_H
