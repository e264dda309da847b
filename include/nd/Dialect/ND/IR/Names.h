//===- Names.h - Attributes of functions, arguments, results ----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The names that docs/architecture.md fixes, each in one place, and accessors that return nothing (or an empty string)
// where an attribute is absent or of another type.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NAMES_H
#define ND_DIALECT_ND_IR_NAMES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace nd::names {

// On arguments and results.
inline constexpr llvm::StringLiteral kKind = "nd.kind";
inline constexpr llvm::StringLiteral kName = "nd.name";
inline constexpr llvm::StringLiteral kTrainable = "nd.trainable";
inline constexpr llvm::StringLiteral kRank = "nd.rank";
inline constexpr llvm::StringLiteral kStorage = "nd.storage";
inline constexpr llvm::StringLiteral kAliases = "nd.aliases";
inline constexpr llvm::StringLiteral kPaddingIdx = "nd.padding_idx";
inline constexpr llvm::StringLiteral kBound = "nd.bound";
inline constexpr llvm::StringLiteral kSharding = "nd.sharding";
inline constexpr llvm::StringLiteral kGlobalShape = "nd.global_shape";
inline constexpr llvm::StringLiteral kPart = "nd.part";
inline constexpr llvm::StringLiteral kBlocks = "nd.blocks";
inline constexpr llvm::StringLiteral kChunks = "nd.chunks";
inline constexpr llvm::StringLiteral kCopies = "nd.copies";
inline constexpr llvm::StringLiteral kPadValue = "nd.pad_value";
/// Of weights: how the computation and the update see them; `nd.sharding` is how they are stored.
inline constexpr llvm::StringLiteral kUseSharding = "nd.use_sharding";
inline constexpr llvm::StringLiteral kUpdateSharding = "nd.update_sharding";
/// Of inputs: which dimension is the sequence.
inline constexpr llvm::StringLiteral kSequence = "nd.sequence";
/// Of weights: which dimension is the vocabulary of the loss.
inline constexpr llvm::StringLiteral kVocabulary = "nd.vocabulary";

// On operations, between propagation and the insertion of reshards: the axes of each factor of the operation's rule.
inline constexpr llvm::StringLiteral kFactorAxes = "nd.factor_axes";
// On operations.
inline constexpr llvm::StringLiteral kRecomputed = "nd.recomputed";
/// Of reshards and collectives: gathers of one unit become one, where the first of them stands.
inline constexpr llvm::StringLiteral kUnit = "nd.unit";
/// Of the same: what is gathered is for all microbatches of the step.
inline constexpr llvm::StringLiteral kOnce = "nd.once";
/// Computes the logits of a cross-entropy that has been expanded.
inline constexpr llvm::StringLiteral kLogitsOf = "nd.logits";
/// Of what `nd-chunk-loss` makes: the number of the chunk of tokens it belongs to.
inline constexpr llvm::StringLiteral kChunk = "nd.chunk";

// On the module.
inline constexpr llvm::StringLiteral kModel = "nd.model";
inline constexpr llvm::StringLiteral kStep = "nd.step";
inline constexpr llvm::StringLiteral kPlan = "nd.plan";
/// Tokens of a rank whose logits exist at once, where the loss runs in chunks.
inline constexpr llvm::StringLiteral kLossChunk = "nd.loss_chunk";
/// What no value in a rank's memory exceeds, and the values that a report lists (`nd-verify-footprint`).
inline constexpr llvm::StringLiteral kPromises = "nd.promises";
inline constexpr llvm::StringLiteral kFootprint = "nd.footprint";

// Entries of `nd.promises`.
namespace promise {
/// Logits of so many tokens, so many words wide, exist in chunks only.
inline constexpr llvm::StringLiteral kChunkedTokens = "chunked_tokens";
inline constexpr llvm::StringLiteral kChunkedWidth = "chunked_width";
/// No value has more words.
inline constexpr llvm::StringLiteral kVocabularyWidth = "vocabulary_width";
} // namespace promise

// Functions.
inline constexpr llvm::StringLiteral kForward = "forward";
inline constexpr llvm::StringLiteral kStepFunction = "step";

// Values of `nd.kind`. Kinds are extensible: a pass keeps what it does not know.
namespace kind {
inline constexpr llvm::StringLiteral kInput = "input";
inline constexpr llvm::StringLiteral kWeight = "weight";
inline constexpr llvm::StringLiteral kExpAvg = "exp_avg";
inline constexpr llvm::StringLiteral kExpAvgSq = "exp_avg_sq";
inline constexpr llvm::StringLiteral kMomentum = "momentum";
inline constexpr llvm::StringLiteral kScalar = "scalar";
inline constexpr llvm::StringLiteral kCoordinate = "coordinate";
inline constexpr llvm::StringLiteral kLogits = "logits";
inline constexpr llvm::StringLiteral kLossSum = "loss_sum";
inline constexpr llvm::StringLiteral kLossCount = "loss_count";
inline constexpr llvm::StringLiteral kOutput = "output";
inline constexpr llvm::StringLiteral kMetric = "metric";
inline constexpr llvm::StringLiteral kGradient = "gradient";
} // namespace kind

// Values of `nd.name` that the compiler itself gives.
namespace name {
inline constexpr llvm::StringLiteral kInputIds = "input_ids";
inline constexpr llvm::StringLiteral kLabels = "labels";
inline constexpr llvm::StringLiteral kPositionIds = "position_ids";
inline constexpr llvm::StringLiteral kLr = "lr";
inline constexpr llvm::StringLiteral kBias1 = "bias1";
inline constexpr llvm::StringLiteral kSqrtBias2 = "sqrt_bias2";
inline constexpr llvm::StringLiteral kLoss = "loss";
inline constexpr llvm::StringLiteral kGradNorm = "grad_norm";
inline constexpr llvm::StringLiteral kTokens = "tokens";
inline constexpr llvm::StringLiteral kApplied = "applied";
} // namespace name

llvm::StringRef argKind(mlir::func::FuncOp function, unsigned index);
llvm::StringRef argName(mlir::func::FuncOp function, unsigned index);
llvm::StringRef resultKind(mlir::func::FuncOp function, unsigned index);
llvm::StringRef resultName(mlir::func::FuncOp function, unsigned index);
void setArg(mlir::func::FuncOp function, unsigned index, llvm::StringRef kind, llvm::StringRef name);
void setResult(mlir::func::FuncOp function, unsigned index, llvm::StringRef kind, llvm::StringRef name);

/// A weight without `nd.trainable`, or with `true`.
bool isTrainableWeight(mlir::func::FuncOp function, unsigned index);
/// Dimensions in the user's model: `nd.rank`, or the argument's own rank.
int64_t userRank(mlir::func::FuncOp function, unsigned index);
/// The name in the user's model: `w` of its part `w#1`.
llvm::StringRef userName(mlir::func::FuncOp function, unsigned index);
/// All names by which a user may call an argument: its own, that of the parameter it is a part of, those of tied ones.
llvm::SmallVector<llvm::StringRef> userNames(mlir::func::FuncOp function, unsigned index);
std::optional<int64_t> argInt(mlir::func::FuncOp function, unsigned index, llvm::StringRef attribute);

/// The argument (result) of that kind and name.
std::optional<unsigned> findArg(mlir::func::FuncOp function, llvm::StringRef kind, llvm::StringRef name);
std::optional<unsigned> findResult(mlir::func::FuncOp function, llvm::StringRef kind, llvm::StringRef name);

/// One entry of the module's `nd.model` (or `nd.step`) dictionary; null when absent.
mlir::Attribute moduleEntry(mlir::ModuleOp module, llvm::StringRef dictionary, llvm::StringRef key);
std::optional<int64_t> moduleInt(mlir::ModuleOp module, llvm::StringRef dictionary, llvm::StringRef key);
std::optional<double> moduleFloat(mlir::ModuleOp module, llvm::StringRef dictionary, llvm::StringRef key);
llvm::StringRef moduleString(mlir::ModuleOp module, llvm::StringRef dictionary, llvm::StringRef key);
void setModuleEntry(mlir::ModuleOp module, llvm::StringRef dictionary, llvm::StringRef key, mlir::Attribute value);

} // namespace nd::names

#endif // ND_DIALECT_ND_IR_NAMES_H
