//===- ChunkLoss.cpp - The loss in chunks of tokens -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "DimensionFlow.h"
#include "TokenTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Memory/Passes.h"
#include "llvm/ADT/DenseSet.h"

namespace nd {
#define GEN_PASS_DEF_CHUNKLOSS
#include "nd/Memory/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// Chunks of `auto`: small beside what a model that needs them keeps, and still products of many rows.
constexpr int64_t kChunkBytes = int64_t(64) << 20;
constexpr int64_t kLeastTokens = 256;
/// The program lists chunks one by one.
constexpr int64_t kMostChunks = 64;

/// The first logits, as cross-entropies read them, that are neither chunks nor among those `visited`.
Value findLogits(func::FuncOp function, const DenseSet<Value> &visited) {
  Value found;
  function.walk([&](Operation *op) {
    Value logits = isa<SoftmaxCrossEntropyOp>(op)  ? op->getOperand(0)
                   : op->hasAttr(names::kLogitsOf) ? op->getResult(0)
                                                   : Value();
    if (!logits || op->hasAttr(names::kChunk) || visited.contains(logits))
      return WalkResult::advance();
    found = logits;
    return WalkResult::interrupt();
  });
  return found;
}

int64_t tokensOf(RankedTensorType logits) { return logits.getNumElements() / logits.getShape().back(); }
int64_t tokensOf(Value logits) { return tokensOf(tensorTypeOf(logits)); }

/// All logits that are not chunks.
SmallVector<Value> findAllLogits(func::FuncOp function) {
  DenseSet<Value> visited;
  while (Value logits = findLogits(function, visited))
    visited.insert(logits);
  return llvm::to_vector(visited);
}

/// What could be as many tokens times as many words: `type` has all dimensions of the logits, or these with the tokens
/// merged. By sizes, so that what is none may look like it: nothing is promised then.
bool mayBeWide(RankedTensorType type, RankedTensorType logits) {
  auto contains = [&](ArrayRef<int64_t> sizes) {
    SmallVector<int64_t> own(type.getShape());
    return llvm::all_of(sizes, [&](int64_t size) {
      auto *it = llvm::find(own, size);
      if (size != 1 && it == own.end())
        return false;
      if (size != 1)
        own.erase(it);
      return true;
    });
  };
  return contains(logits.getShape()) || contains({tokensOf(logits), logits.getShape().back()});
}

/// The largest chunk that `auto` makes, or all tokens.
int64_t chooseTokens(Value logits) {
  constexpr int64_t kBytes = sizeof(float); // of the gradient, which is as wide, whatever the logits are rounded to
  int64_t tokens = tokensOf(logits), perToken = tensorTypeOf(logits).getShape().back() * kBytes;
  return tokens * perToken <= kChunkBytes
             ? tokens
             : std::max({kLeastTokens, kChunkBytes / perToken, llvm::divideCeilSigned(tokens, kMostChunks)});
}

struct ChunkLoss : nd::impl::ChunkLossBase<ChunkLoss> {
  using ChunkLossBase::ChunkLossBase;

  void runOnOperation() override {
    int64_t tokens = 0;
    bool isAuto = this->tokens == "auto";
    if (this->tokens == "off")
      return markAllAnalysesPreserved();
    if (!isAuto && (StringRef(this->tokens).getAsInteger(10, tokens) || tokens < 1)) {
      getOperation().emitError() << "nd-chunk-loss: tokens=" << this->tokens.getValue()
                                 << " is neither auto, off, nor a number of tokens from 1 on";
      return signalPassFailure();
    }
    int64_t largest = 0;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto limitOf = [&](Value logits) { return isAuto ? chooseTokens(logits) : tokens; };
      findWide(function, limitOf);
      DenseSet<Value> visited;
      while (Value logits = findLogits(function, visited)) {
        visited.insert(logits);
        if (failed(chunk(function, logits, limitOf(logits), isAuto, largest)))
          return signalPassFailure();
      }
    }
    if (!largest)
      return markAllAnalysesPreserved();
    Builder builder(&getContext());
    getOperation()->setAttr(names::kLossChunk, builder.getI64IntegerAttr(largest));
    if (!promised || !wide.empty())
      return;
    names::setModuleEntry(getOperation(), names::kPromises, names::promise::kChunkedTokens,
                          builder.getI64IntegerAttr(tokensOf(promised)));
    names::setModuleEntry(getOperation(), names::kPromises, names::promise::kChunkedWidth,
                          builder.getI64IntegerAttr(promised.getShape().back()));
  }

  /// What is as wide as logits that have to be in chunks: a promise is given where all of it comes to be.
  void findWide(func::FuncOp function, function_ref<int64_t(Value)> limitOf) {
    SmallVector<RankedTensorType> types;
    for (Value logits : findAllLogits(function))
      if (limitOf(logits) < tokensOf(logits))
        types.push_back(tensorTypeOf(logits));
    if (types.empty())
      return;
    // One promise serves logits of one shape.
    bool isOne = llvm::all_of(types, [&](RankedTensorType type) { return type.getShape() == types[0].getShape(); });
    promised = isOne ? types.front() : RankedTensorType();
    function.walk([&](Operation *op) {
      // Constants are cut where they are read.
      if (isa<arith::ConstantOp>(op))
        return;
      for (Type type : op->getResultTypes())
        if (isOne && mayBeWide(cast<RankedTensorType>(type), promised))
          wide.insert(op);
    });
  }

  /// Forgets what only looks as wide: by structure it is not tokens times words.
  void dropCoincidences(func::FuncOp function) {
    DimensionFlow flow(function);
    for (Operation *op : llvm::to_vector(wide))
      if (llvm::none_of(op->getResults(), [&](Value value) {
            DimensionKind kinds = DimensionKind::None;
            for (const DimensionFlow::Piece &piece : flow.get(value))
              kinds |= flow.getKind(piece);
            return (kinds & DimensionKind::Vocabulary) != DimensionKind::None && kinds != DimensionKind::Vocabulary;
          }))
        wide.erase(op);
  }

  LogicalResult chunk(func::FuncOp function, Value logits, int64_t tokens, bool isAuto, int64_t &largest) {
    if (tokens >= tokensOf(logits))
      return success();
    TokenTiles::Obstacle obstacle;
    std::optional<TokenTiles> tiles = TokenTiles::find(logits, obstacle);
    if (!tiles && isAuto)
      return success();
    if (!tiles)
      return obstacle.op->emitError() << "the loss cannot run in chunks of " << tokens << " tokens: of the logits, "
                                      << obstacle.reason << "; use --loss-chunk=off";
    int64_t instance = 1;
    function.walk([&](Operation *op) {
      if (auto taken = op->getAttrOfType<IntegerAttr>("instance"))
        instance = std::max(instance, taken.getInt() + 1);
    });
    for (Operation *op : tiles->getRegion())
      wide.erase(op);
    if (!wide.empty() && !isFiltered) {
      isFiltered = true;
      dropCoincidences(function);
    }
    tiles->tile(tokens, instance);
    largest = std::max(largest, tokens);
    return success();
  }

  RankedTensorType promised;  ///< of logits that no rank has whole, or null
  DenseSet<Operation *> wide; ///< what may be as wide, and is not in chunks yet
  bool isFiltered = false;
};

} // namespace
