//===- StepOptionsCL.cpp - The step's options on command lines ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Pipelines/StepOptionsCL.h"
#include "nd/Sharding/Options.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace nd;
namespace cl = llvm::cl;

struct StepOptionsCL::Options {
  using Optimizer = StepOptions::Optimizer;
  using Schedule = StepOptions::Schedule;
  enum class Switch { Off, On };

  StepOptions defaults;
  cl::OptionCategory category{"Options of the training step"};

  cl::opt<bool> train{"train", cl::desc("Build the training step, with the defaults of the other options"),
                      cl::cat(category)};
  cl::opt<bool> forwardOnly{"forward-only", cl::desc("The graph alone: no loss, backward or optimizer"),
                            cl::cat(category)};
  cl::opt<Optimizer> optimizer{"optimizer", cl::desc("Optimizer [adamw]"), cl::init(defaults.optimizer),
                               cl::values(clEnumValN(Optimizer::AdamW, "adamw", "AdamW with PyTorch's semantics"),
                                          clEnumValN(Optimizer::SGD, "sgd", "SGD with PyTorch's semantics")),
                               cl::cat(category)};
  cl::opt<double> lr{"lr", cl::desc("Learning rate [1e-4]"), cl::init(defaults.lr), cl::cat(category)};
  cl::list<double> betas{"betas", cl::desc("Decay rates of AdamW's moments [0.9,0.999]"), cl::value_desc("beta1,beta2"),
                         cl::CommaSeparated, cl::cat(category)};
  cl::opt<double> eps{"eps", cl::desc("AdamW's epsilon [1e-8]"), cl::init(defaults.eps), cl::cat(category)};
  cl::opt<double> weightDecay{"weight-decay", cl::init(defaults.weightDecay), cl::cat(category),
                              cl::desc("Weight decay of parameters with two or more dimensions [0.01]")};
  cl::opt<double> momentum{"momentum", cl::desc("Momentum of SGD [0]"), cl::init(defaults.momentum), cl::cat(category)};
  cl::opt<double> clip{"clip", cl::desc("Largest global gradient norm, 0 = not clipped [1.0]"), cl::init(defaults.clip),
                       cl::cat(category)};
  cl::opt<bool> decayAll{"decay-all", cl::desc("Weight decay for parameters with one dimension too"),
                         cl::cat(category)};
  cl::list<std::string> noDecay{"no-decay", cl::desc("No weight decay for parameters of these names"),
                                cl::value_desc("glob,..."), cl::CommaSeparated, cl::cat(category)};
  cl::opt<std::string> dtype{"dtype", cl::init(defaults.dtype), cl::value_desc("f32|bf16"), cl::cat(category),
                             cl::desc("Type of computation; weights, their gradients and the optimizer are f32 [f32]")};
  cl::opt<int64_t> microbatches{"microbatches", cl::desc("Batches whose gradients are summed before each update [1]"),
                                cl::init(defaults.microbatches), cl::value_desc("M"), cl::cat(category)};
  cl::opt<Schedule> schedule{"schedule", cl::desc("How the learning rate develops [constant]"),
                             cl::init(defaults.schedule),
                             cl::values(clEnumValN(Schedule::Constant, "constant", "the same after warm-up"),
                                        clEnumValN(Schedule::Linear, "linear", "falls linearly to --min-lr"),
                                        clEnumValN(Schedule::Cosine, "cosine", "falls as half a cosine to --min-lr")),
                             cl::cat(category)};
  cl::opt<int64_t> warmup{"warmup", cl::desc("Steps in which the learning rate rises from 0 [0]"),
                          cl::init(defaults.warmup), cl::cat(category)};
  cl::opt<double> minLr{"min-lr", cl::desc("Learning rate at the schedule's end [0]"), cl::init(defaults.minLr),
                        cl::cat(category)};
  cl::opt<int64_t> totalSteps{"total-steps", cl::desc("Horizon of the schedule [the run's number of steps]"),
                              cl::init(defaults.totalSteps), cl::cat(category)};
  cl::opt<int64_t> seed{"seed", cl::desc("Seed of the order of the data [0]"), cl::init(defaults.seed),
                        cl::cat(category)};
  cl::opt<bool> keepGradients{"keep-gradients", cl::desc("The step also returns every gradient, before clipping"),
                              cl::cat(category)};
  cl::opt<std::string> shard{"shard", cl::desc("Mesh to shard the step over, such as dp4"), cl::value_desc("axis,..."),
                             cl::cat(category)};
  cl::opt<int64_t> ranks{"ranks", cl::desc("Number of ranks, where --shard leaves one degree open"),
                         cl::init(defaults.ranks), cl::cat(category)};

  cl::list<std::string> annotate{
      "annotate", cl::value_desc("GLOB=[AXES,...]"), cl::cat(category),
      cl::desc(
          "Sharding of the parameters and inputs of these names: an entry a dimension, axes joined by +, _ for none")};
  cl::opt<int64_t> zero{"zero", cl::init(defaults.zero), cl::value_desc("1|2|3"), cl::cat(category),
                        cl::desc("What fsdp shards: 1 and 2 the optimizer's state, 3 the parameters too [3]")};
  cl::opt<bool> keepGathered{"keep-gathered", cl::desc("Keep parameters that forward gathered for backward"),
                             cl::cat(category)};
  cl::opt<std::string> fsdpUnit{
      "fsdp-unit", cl::init(defaults.fsdpUnit), cl::value_desc("block|whole|GLOB"), cl::cat(category),
      cl::desc(
          "Parameters that fsdp gathers together, in forward and again in backward: each block; whole, everything, "
          "once, kept until backward ends; or a unit of each module whose path GLOB matches, the outermost, and "
          "the rest by blocks [block]")};
  cl::opt<int64_t> prefetchUnits{"prefetch-units", cl::init(defaults.prefetchUnits), cl::cat(category),
                                 cl::desc("Units of parameters (a block...) that gathers run ahead at most [1]")};
  cl::opt<std::string> cpMode{"cp", cl::init(defaults.cpMode), cl::value_desc("auto|ring|gather|ulysses"),
                              cl::desc("How attention reaches keys of other ranks [auto]"), cl::cat(category)};
  cl::opt<Switch> sequenceParallel{
      "sequence-parallel", cl::init(Switch::On), cl::cat(category),
      cl::desc("Between tensor-parallel products, shard the sequence over the tensor axes [on]"),
      cl::values(clEnumValN(Switch::On, "on", "one gather and one reduce-scatter around each pair of products"),
                 clEnumValN(Switch::Off, "off", "one all-reduce behind each pair of products"))};

  cl::opt<std::string> lossChunk{
      "loss-chunk", cl::init(defaults.lossChunk), cl::value_desc("auto|off|tokens"), cl::cat(category),
      cl::desc(
          "Tokens of a rank whose logits exist at once; auto chunks where all would take more than 64 MiB [auto]")};

  cl::opt<std::string> system{
      "system", cl::init(defaults.system), cl::value_desc("name|file"), cl::cat(category),
      cl::desc("What the step runs on: host, a100x8, h100x8, h200x8, b200x8, or a file [host]")};
  cl::opt<int64_t> nodes{"nodes", cl::init(defaults.nodes), cl::cat(category),
                         cl::desc("Nodes that the ranks fill, one after the other [as few as the system needs]")};

  /// Whether any was given that makes a step: a system only says what to build it for.
  bool anyGiven() const {
    auto given = [](const auto &...option) { return (option.getNumOccurrences() + ...) > 0; };
    return given(train, forwardOnly, optimizer, lr, betas, eps, weightDecay, momentum, clip, decayAll, noDecay, dtype,
                 microbatches, schedule, warmup, minLr, totalSteps, seed, keepGradients, shard, ranks, zero,
                 keepGathered, fsdpUnit, sequenceParallel, prefetchUnits, lossChunk);
  }
};

StepOptionsCL::StepOptionsCL() : options(std::make_unique<Options>()) {}
StepOptionsCL::~StepOptionsCL() = default;

bool StepOptionsCL::anyGiven() const { return options->anyGiven(); }

llvm::Expected<StepOptions> StepOptionsCL::get() const {
  StepOptions result;
  result.optimizer = options->optimizer;
  result.lr = options->lr;
  if (!options->betas.empty()) {
    if (options->betas.size() != 2)
      return llvm::createStringError("--betas takes two numbers, such as --betas=0.9,0.95");
    result.beta1 = options->betas[0];
    result.beta2 = options->betas[1];
  }
  const cl::Option *ofAdamW[] = {std::addressof(options->betas), std::addressof(options->eps)};
  if (options->optimizer == StepOptions::Optimizer::SGD)
    for (const cl::Option *option : ofAdamW)
      if (option->getNumOccurrences())
        return llvm::createStringError("--" + option->ArgStr + " belongs to --optimizer=adamw; SGD takes --momentum");
  result.eps = options->eps;
  result.weightDecay = options->weightDecay;
  result.momentum = options->momentum;
  result.clip = options->clip;
  result.decayAll = options->decayAll;
  result.noDecay.assign(options->noDecay.begin(), options->noDecay.end());
  result.dtype = options->dtype;
  result.microbatches = options->microbatches;
  result.schedule = options->schedule;
  result.warmup = options->warmup;
  result.minLr = options->minLr;
  result.totalSteps = options->totalSteps;
  result.seed = options->seed;
  result.forwardOnly = options->forwardOnly;
  result.keepGradients = options->keepGradients;
  if (options->shard.getNumOccurrences() && options->shard.empty())
    return llvm::createStringError("--shard names no axis; write a mesh such as --shard=dp4, or leave it out");
  if (options->ranks.getNumOccurrences() && options->ranks < 1)
    return llvm::createStringError(
        "--ranks=" + llvm::Twine(options->ranks) +
        ": a mesh has at least one rank; leave the option out where --shard names every degree");
  result.shard = options->shard;
  result.ranks = options->ranks;
  result.annotations.assign(options->annotate.begin(), options->annotate.end());
  result.zero = options->zero;
  result.cpMode = options->cpMode;
  result.keepGathered = options->keepGathered;
  result.fsdpUnit = options->fsdpUnit;
  result.lossChunk = options->lossChunk;
  result.prefetchUnits = options->prefetchUnits;
  result.sequenceParallel = options->sequenceParallel == Options::Switch::On;
  result.system = options->system;
  result.nodes = options->nodes;
  if (result.forwardOnly && options->train)
    return llvm::createStringError("--train and --forward-only exclude each other");
  if (llvm::Error error = result.validate())
    return std::move(error);
  return result;
}

std::vector<std::string> StepOptionsCL::getWarnings() const {
  ShardingOptions mesh = llvm::cantFail(ShardingOptions::parse(options->shard, options->ranks));
  auto sizeOf = [&](AxisRole role) {
    const ShardingOptions::Axis *axis = mesh.findAxis(role);
    return axis ? axis->size : 0;
  };
  // fsdp goes over the ranks of cp too, once it is named.
  int64_t fsdp = sizeOf(AxisRole::shard), cp = sizeOf(AxisRole::context), tp = sizeOf(AxisRole::tensor);
  int64_t sharded = fsdp * std::max<int64_t>(cp, 1);
  constexpr llvm::StringLiteral ofFSDP = "shards parameters, gradients and optimizer state over N ranks";
  struct {
    const cl::Option &option;
    llvm::StringRef axis;
    int64_t ranks;
    llvm::StringRef does;
  } const about[] = {{options->zero, "fsdp", sharded, ofFSDP},
                     {options->keepGathered, "fsdp", sharded, ofFSDP},
                     {options->fsdpUnit, "fsdp", sharded, ofFSDP},
                     {options->cpMode, "cp", cp, "shards the sequence over N ranks"},
                     {options->sequenceParallel, "tp", tp, "shards products over N ranks"}};
  std::vector<std::string> warnings;
  for (const auto &entry : about)
    if (entry.option.getNumOccurrences() && entry.ranks <= 1)
      warnings.push_back(llvm::formatv(
          "--{0} changes nothing: the mesh {1} has {2}; {3}N in --shard {4}", entry.option.ArgStr, mesh.str(),
          entry.ranks == 0 ? ("no axis " + entry.axis).str() : ("one rank along " + entry.axis).str(), entry.axis,
          entry.does));
  return warnings;
}
