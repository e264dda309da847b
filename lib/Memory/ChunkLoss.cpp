//===- ChunkLoss.cpp - The loss in chunks of tokens -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TokenTiles.h"
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

int64_t tokensOf(Value logits) {
  RankedTensorType type = tensorTypeOf(logits);
  return type.getNumElements() / type.getShape().back();
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
      DenseSet<Value> visited;
      while (Value logits = findLogits(function, visited)) {
        visited.insert(logits);
        if (failed(chunk(function, logits, isAuto ? chooseTokens(logits) : tokens, isAuto, largest)))
          return signalPassFailure();
      }
    }
    if (!largest)
      return markAllAnalysesPreserved();
    getOperation()->setAttr(names::kLossChunk, Builder(&getContext()).getI64IntegerAttr(largest));
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
    tiles->tile(tokens, instance);
    largest = std::max(largest, tokens);
    return success();
  }
};

} // namespace
