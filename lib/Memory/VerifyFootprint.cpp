//===- VerifyFootprint.cpp - What a rank has in memory --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "DimensionFlow.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Memory/Passes.h"
#include "nd/Support/Locations.h"

namespace nd {
#define GEN_PASS_DEF_VERIFYFOOTPRINT
#include "nd/Memory/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

bool isView(Operation *op) { return isa<ReshapeOp, TransposeOp, SliceOp>(op); }

/// `result 0 of 'nd.gemm'`, `input 'mask'`.
std::string describe(func::FuncOp function, Value value) {
  if (auto result = dyn_cast<OpResult>(value))
    return ("result " + Twine(result.getResultNumber()) + " of '" + result.getOwner()->getName().getStringRef() + "'")
        .str();
  unsigned index = cast<BlockArgument>(value).getArgNumber();
  return (names::argKind(function, index) + " '" + names::argName(function, index) + "'").str();
}

/// What is in memory, in the order of the program: arguments, and results that are no views of others. A loop's results
/// are what its turns yield.
void collectBuffers(Block &block, SmallVectorImpl<Value> &buffers) {
  for (Operation &op : block.without_terminator()) {
    if (auto repeat = dyn_cast<RepeatOp>(op))
      collectBuffers(repeat.getBody().front(), buffers);
    else if (!isView(&op))
      llvm::append_range(buffers, op.getResults());
  }
}

class Footprint {
public:
  explicit Footprint(func::FuncOp function) : function(function), flow(function), longest(flow.getLongest()) {
    auto promised = [module = function->getParentOfType<ModuleOp>()](StringRef key) {
      return names::moduleInt(module, names::kPromises, key);
    };
    width = promised(names::promise::kVocabularyWidth);
    chunkedTokens = promised(names::promise::kChunkedTokens);
    chunkedWidth = promised(names::promise::kChunkedWidth);
  }

  LogicalResult check() {
    SmallVector<Value> buffers(function.getArguments().begin(), function.getArguments().end());
    collectBuffers(function.getBody().front(), buffers);
    bool holds = true;
    for (Value buffer : buffers) {
      holds &= succeeded(checkPromises(buffer));
      for (const DimensionFlow::Piece &piece : flow.get(buffer))
        if (!piece.isPart && (flow.getKind(piece) & DimensionKind::Sequence) != DimensionKind::None)
          longest = std::max(longest, piece.extent);
    }
    for (Value buffer : buffers)
      list(buffer);
    return success(holds);
  }

  ArrayRef<Attribute> getListed() const { return listed; }

private:
  /// Elements of a value along the dimensions of some kinds.
  struct Extents {
    int64_t tokens = 1, words = 1, sequence = 1;
    int sequences = 0; ///< dimensions that are a sequence, or a shard of one
  };

  /// With `isBound` only along those that come from arguments: of a value that was made from nothing, words are what
  /// one of its uses takes it for.
  Extents measure(Value value, bool isBound) const {
    Extents extents;
    for (const DimensionFlow::Piece &piece : flow.get(value)) {
      DimensionKind kind = flow.getKind(piece);
      if (isBound && !flow.isBound(piece))
        continue;
      if ((kind & (DimensionKind::Batch | DimensionKind::Sequence)) != DimensionKind::None)
        extents.tokens *= piece.extent;
      if (kind == DimensionKind::Vocabulary)
        extents.words *= piece.extent;
      if ((kind & DimensionKind::Sequence) != DimensionKind::None) {
        extents.sequence *= piece.extent;
        extents.sequences += !piece.isPart;
      }
    }
    return extents;
  }

  LogicalResult checkPromises(Value value) {
    Extents extents = measure(value, /*isBound=*/true);
    auto refuse = [&]() {
      return emitError(value.getLoc()) << "nd-verify-footprint: " << describe(function, value) << ", "
                                       << value.getType() << ", is " << extents.tokens << " tokens x " << extents.words
                                       << " words of the vocabulary in a rank's memory, but ";
    };
    if (width && extents.words > *width)
      return refuse() << "the plan shards the vocabulary into " << *width
                      << " words a rank (nd.promises): a pass behind it has gathered them, which is an error in nd";
    // A single word of each token is no more than its loss.
    if (chunkedTokens && chunkedWidth && extents.words > 1 && extents.tokens >= *chunkedTokens &&
        extents.words >= *chunkedWidth)
      return refuse() << "logits of " << *chunkedTokens << " tokens x " << *chunkedWidth
                      << " words run in chunks (nd.promises): a pass behind nd-chunk-loss has joined them, which is an "
                         "error in nd";
    return success();
  }

  void list(Value value) {
    Extents all = measure(value, /*isBound=*/false), bound = measure(value, /*isBound=*/true);
    if (all.sequences > 1 || all.sequence > longest)
      add("scores", value);
    else if (!isa<BlockArgument>(value) && flow.getTokens() > 1 && bound.words > 1 && bound.tokens >= flow.getTokens())
      add("logits", value);
  }

  void add(StringRef what, Value value) {
    Builder builder(function.getContext());
    RankedTensorType type = tensorTypeOf(value);
    int64_t bits = std::max<int64_t>(8, type.getElementTypeBitWidth());
    std::string element;
    llvm::raw_string_ostream(element) << type.getElementType();
    listed.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("what", builder.getStringAttr(what)),
         builder.getNamedAttr("value", builder.getStringAttr(describe(function, value))),
         builder.getNamedAttr("shape", builder.getDenseI64ArrayAttr(type.getShape())),
         builder.getNamedAttr("type", builder.getStringAttr(element)),
         builder.getNamedAttr("bytes", builder.getI64IntegerAttr(type.getNumElements() * bits / 8)),
         builder.getNamedAttr("location", builder.getStringAttr(describeLocation(value.getLoc())))}));
  }

  func::FuncOp function;
  DimensionFlow flow;
  int64_t longest; ///< sequence, whole
  std::optional<int64_t> width, chunkedTokens, chunkedWidth;
  SmallVector<Attribute> listed;
};

struct VerifyFootprint : nd::impl::VerifyFootprintBase<VerifyFootprint> {
  void runOnOperation() override {
    SmallVector<Attribute> listed;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Footprint footprint(function);
      if (failed(footprint.check()))
        return signalPassFailure();
      llvm::append_range(listed, footprint.getListed());
    }
    if (!listed.empty())
      getOperation()->setAttr(names::kFootprint, ArrayAttr::get(&getContext(), listed));
    markAllAnalysesPreserved();
  }
};

} // namespace
