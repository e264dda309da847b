//===- StepOptions.cpp - What a training step is made of ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Pipelines/StepOptions.h"
#include "mlir/IR/Builders.h"
#include "nd/Cost/System.h"
#include "nd/Sharding/Options.h"
#include "nd/Sharding/UnitRule.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"
#include <cmath>

using namespace mlir;
using namespace nd;

namespace {

llvm::Error refuse(const std::string &message) { return llvm::createStringError(message); }

std::string toText(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// `value` must be finite and in [0, limit).
llvm::Error checkRange(StringRef option, double value, double limit, StringRef allowed) {
  if (std::isfinite(value) && value >= 0.0 && value < limit)
    return llvm::Error::success();
  return refuse(llvm::formatv("{0}={1}: {2}", option, toText(value), allowed));
}

llvm::Error checkCount(StringRef option, int64_t value) {
  if (value >= 0)
    return llvm::Error::success();
  return refuse(llvm::formatv("{0}={1}: must not be negative", option, value));
}

} // namespace

StringRef nd::stringify(StepOptions::Optimizer optimizer) {
  return optimizer == StepOptions::Optimizer::AdamW ? "adamw" : "sgd";
}

StringRef nd::stringify(StepOptions::Schedule schedule) {
  switch (schedule) {
  case StepOptions::Schedule::Constant:
    return "constant";
  case StepOptions::Schedule::Linear:
    return "linear";
  case StepOptions::Schedule::Cosine:
    return "cosine";
  }
  llvm_unreachable("all schedules are listed");
}

llvm::Error StepOptions::validate() const {
  constexpr StringLiteral notNegative = "must be a finite number, not negative";
  constexpr StringLiteral decayRate = "must be in [0, 1)";
  const double infinity = HUGE_VAL;
  struct {
    StringRef option;
    double value, limit;
    StringRef allowed;
  } ranges[] = {{"--lr", lr, infinity, notNegative},
                {"--betas (first)", beta1, 1.0, decayRate},
                {"--betas (second)", beta2, 1.0, decayRate},
                {"--eps", eps, infinity, notNegative},
                {"--weight-decay", weightDecay, infinity, notNegative},
                {"--momentum", momentum, infinity, notNegative},
                {"--clip", clip, infinity, "must be a finite number, not negative; 0 turns clipping off"},
                {"--min-lr", minLr, infinity, notNegative}};
  for (const auto &range : ranges)
    if (llvm::Error error = checkRange(range.option, range.value, range.limit, range.allowed))
      return error;
  for (auto [option, value] : {std::pair<StringRef, int64_t>{"--seed", seed},
                               {"--warmup", warmup},
                               {"--total-steps", totalSteps},
                               {"--ranks", ranks},
                               {"--nodes", nodes}})
    if (llvm::Error error = checkCount(option, value))
      return error;
  if (microbatches < 1)
    return refuse(llvm::formatv("--microbatches={0}: a step has at least one", microbatches));
  if (momentum != 0.0 && optimizer != Optimizer::SGD)
    return refuse("--momentum belongs to --optimizer=sgd; AdamW takes --betas");
  if (minLr > lr)
    return refuse(llvm::formatv("--min-lr={0} is above --lr={1}", toText(minLr), toText(lr)));
  if (minLr != 0.0 && schedule == Schedule::Constant)
    return refuse("--min-lr has no meaning with --schedule=constant; choose linear or cosine");
  if (totalSteps != 0 && warmup > totalSteps)
    return refuse(llvm::formatv("--warmup={0} is longer than --total-steps={1}", warmup, totalSteps));
  if (dtype != "f32" && dtype != "bf16")
    return refuse(llvm::formatv("--dtype={0}: f32 and bf16 can be computed in", dtype));
  llvm::Expected<ShardingOptions> mesh = ShardingOptions::parse(shard, ranks);
  if (!mesh)
    return mesh.takeError();
  if (!llvm::is_contained({"auto", "ring", "gather", "ulysses"}, StringRef(cpMode)))
    return refuse(llvm::formatv("--cp={0}: modes are auto, ring, gather and ulysses", cpMode));
  int64_t chunk = 0;
  if (lossChunk != "auto" && lossChunk != "off" && (llvm::StringRef(lossChunk).getAsInteger(10, chunk) || chunk < 1))
    return refuse(
        llvm::formatv("--loss-chunk={0}: auto, off, or the number of tokens whose logits exist at once", lossChunk));
  if (zero < 1 || zero > 3)
    return refuse(llvm::formatv("--zero={0}: 1 and 2 shard the optimizer's state, 3 the parameters too", zero));
  if (zero != 3 && keepGathered)
    return refuse(
        llvm::formatv("--keep-gathered keeps what forward gathers; with --zero={0} parameters are not stored in "
                      "shards, and forward gathers none",
                      zero));
  if (fsdpUnit != "block") {
    if (zero != 3 || !mesh->findAxis(AxisRole::shard))
      return refuse(llvm::formatv("--fsdp-unit={0} says which parameters are gathered together; that takes parameters "
                                  "stored in shards, by --zero=3 and an fsdp axis in --shard",
                                  fsdpUnit));
    if (llvm::Expected<UnitRule> rule = UnitRule::parse(fsdpUnit); !rule)
      return rule.takeError();
  }
  if (prefetchUnits < 1)
    return refuse(llvm::formatv("--prefetch-units={0}: a gather starts at least 1 unit ahead", prefetchUnits));
  if (llvm::Expected<System> known = System::find(system); !known)
    return known.takeError();
  if (forwardOnly && microbatches != 1)
    return refuse("--microbatches sums gradients; it cannot be combined with --forward-only");
  if (forwardOnly && keepGradients)
    return refuse("--keep-gradients needs a backward; it cannot be combined with --forward-only");
  for (const std::string &glob : noDecay)
    if (llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob); !pattern)
      return refuse(llvm::formatv("--no-decay={0}: {1}", glob, llvm::toString(pattern.takeError())));
  return llvm::Error::success();
}

DictionaryAttr StepOptions::getAttribute(MLIRContext *context) const {
  Builder builder(context);
  NamedAttrList entries;
  auto number = [&](StringRef name, double value) { entries.append(name, builder.getF64FloatAttr(value)); };
  auto integer = [&](StringRef name, int64_t value) { entries.append(name, builder.getI64IntegerAttr(value)); };
  auto string = [&](StringRef name, StringRef value) { entries.append(name, builder.getStringAttr(value)); };
  string("optimizer", stringify(optimizer));
  number("lr", lr);
  if (optimizer == Optimizer::AdamW) {
    number("beta1", beta1);
    number("beta2", beta2);
    number("eps", eps);
  } else {
    number("momentum", momentum);
  }
  number("weight_decay", weightDecay);
  number("clip", clip);
  string("dtype", dtype);
  integer("microbatches", microbatches);
  string("schedule", stringify(schedule));
  integer("warmup", warmup);
  number("min_lr", minLr);
  integer("total_steps", totalSteps);
  integer("seed", seed);
  return entries.getDictionary(context);
}
