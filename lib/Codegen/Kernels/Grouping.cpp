//===- Grouping.cpp - Which operations become one kernel ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Grouping.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Schedule/UnitWindows.h"

using namespace mlir;
using namespace nd;

/// Larger kernels gain nothing: their values no longer fit the registers, and the caches hold what they exchange.
static constexpr size_t maxOperands = 32, maxOperations = 256;
/// A single row is one unit of work: from this width on its reduction is cut into chunks instead.
static constexpr int64_t maxSingleRow = 8192;

bool nd::isView(Operation *op) { return isa<ReshapeOp, TransposeOp, SliceOp>(op); }

bool nd::isPartOfReaders(Operation *op) {
  // Widening 16 bits costs nothing, and what is stored is the narrow value.
  auto widening = dyn_cast<arith::ExtFOp>(op);
  bool isFree = widening && getElementTypeOrSelf(widening.getIn().getType()).getIntOrFloatBitWidth() == 16;
  return isa<BroadcastOp, IotaOp>(op) || isSplatConstant(op) || isFree;
}

bool nd::startsLoop(Operation *op) {
  return isa<arith::ConstantOp>(op) && isZeroSplat(op->getResult(0)) && !op->use_empty() &&
         llvm::all_of(op->getUses(), [](OpOperand &use) {
           auto loop = dyn_cast<RepeatOp>(use.getOwner());
           return loop && use.getOperandNumber() >= loop.getSliced().size() &&
                  use.getOperandNumber() < loop.getSliced().size() + loop.getCarried().size();
         });
}

static bool computes(Operation *op) {
  return isElementwise(op) || isSpecial(op) || isa<ReduceOp, TakeOp, TakeAlongOp, PadOp, ConcatOp>(op);
}

static int64_t elementsOf(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

Grouping::Grouping(Block &block) {
  auto addNode = [&](Operation *op) {
    nodeOf[op] = nodes.size();
    nodes.push_back(op);
    groupOf.push_back(groups.size());
    groups.emplace_back().members.push_back(nodes.size() - 1);
    groups.back().opaque = startsLoop(op) || (!computes(op) && !isPartOfReaders(op));
  };
  // What an operation outside of kernels, or with a loop nest of its own, reads must be in memory, even a constant.
  llvm::SetVector<Operation *> wanted;
  auto want = [&](Value value) {
    Operation *op = value.getDefiningOp();
    while (op && isView(op))
      op = op->getOperand(0).getDefiningOp();
    if (op && isPartOfReaders(op))
      wanted.insert(op);
  };
  for (Operation &op : block) {
    if (isView(&op) || isPartOfReaders(&op) || (computes(&op) && !isSpecial(&op)))
      continue;
    for (Value operand : op.getOperands())
      want(operand);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == &block)
          want(operand);
    });
  }
  for (Operation &op : block)
    if (wanted.contains(&op) || (!isView(&op) && !isPartOfReaders(&op)))
      addNode(&op);

  sources.resize(nodes.size()), users.resize(nodes.size());
  for (auto [number, op] : llvm::enumerate(nodes)) {
    llvm::SetVector<unsigned> found;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        sourcesOf(operand, found);
    });
    found.remove(number);
    sources[number].assign(found.begin(), found.end());
    for (unsigned source : found)
      users[source].push_back(number);
  }
  findTurns(block);
  refusedAfter.resize(groups.size()), refusedBefore.resize(groups.size());
  order.resize(groups.size()), position.resize(groups.size());
  for (unsigned group = 0; group < groups.size(); ++group)
    order[group] = position[group] = group;
}

void Grouping::findTurns(Block &block) {
  constexpr unsigned never = std::numeric_limits<unsigned>::max();
  turnOf.assign(nodes.size(), 0), lastTurn.assign(nodes.size(), never);
  llvm::DenseSet<StringAttr> units;
  for (Operation &op : block)
    if (auto unit = op.getAttrOfType<StringAttr>(names::kUnit))
      units.insert(unit);
  if (units.empty())
    return;
  llvm::DenseMap<StringAttr, unsigned> turns;
  for (auto [number, op] : llvm::enumerate(nodes)) {
    for (unsigned source : sources[number]) {
      auto unit = nodes[source]->getAttrOfType<StringAttr>(names::kUnit);
      if (!unit || op->hasAttr(names::kUnit))
        continue;
      unsigned turn = turns.try_emplace(unit, turns.size()).first->second;
      auto again = StringAttr::get(op->getContext(), unit.getValue() + kAgain);
      if (unit.getValue().ends_with(kAgain) || units.contains(again))
        lastTurn[number] = std::min(lastTurn[number], turn + 2);
    }
    turnOf[number] = turns.size();
    lastTurn[number] = std::max(lastTurn[number], turnOf[number]);
  }
}

/// Whether one kernel of these would hold parameters of a unit while the second unit behind is in use, for which they
/// have to be given back.
bool Grouping::keepsGathered(ArrayRef<unsigned> members) const {
  unsigned latest = 0, last = std::numeric_limits<unsigned>::max();
  for (unsigned member : members) {
    latest = std::max(latest, turnOf[member]);
    last = std::min(last, lastTurn[member]);
  }
  return latest > last;
}

void Grouping::sourcesOf(Value value, llvm::SetVector<unsigned> &found) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return;
  if (auto node = nodeOf.find(op); node != nodeOf.end()) {
    found.insert(node->second);
    return;
  }
  if (isView(op) || isPartOfReaders(op))
    for (Value operand : op->getOperands())
      sourcesOf(operand, found);
}

KernelBody Grouping::bodyOf(unsigned group) const { return bodyOf(groups[group].members, groups[group].recomputed); }

KernelBody Grouping::bodyOf(ArrayRef<unsigned> members, const llvm::SetVector<Operation *> &recomputed) const {
  llvm::DenseSet<Operation *> inside(recomputed.begin(), recomputed.end());
  for (unsigned member : members)
    inside.insert(nodes[member]);
  std::function<bool(Value)> isInside = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    // One that must be in memory anyway is read from there: its operand need not be.
    if (inside.contains(op) || (isPartOfReaders(op) && (op->getNumOperands() == 0 || !nodeOf.count(op))))
      return true;
    return isView(op) && isInside(op->getOperand(0));
  };
  KernelBody body;
  llvm::SetVector<Value> inputs;
  std::function<void(Operation *)> add = [&](Operation *op) {
    if (body.ops.contains(op))
      return;
    for (Value operand : op->getOperands()) {
      if (isInside(operand) && !isSpecial(op))
        add(operand.getDefiningOp());
      else
        inputs.insert(operand);
    }
    body.ops.insert(op);
  };
  for (Operation *op : recomputed)
    add(op);
  for (unsigned member : members)
    add(nodes[member]);
  body.inputs = llvm::to_vector(inputs);

  for (unsigned member : members) {
    Operation *op = nodes[member];
    bool isRead = readToRecompute.contains(member) || llvm::any_of(users[member], [&](unsigned user) {
                    return !llvm::is_contained(members, user) && !groups[groupOf[user]].recomputed.contains(op);
                  });
    if (!isRead)
      continue;
    // An operation with a loop nest of its own writes all of its results, read or not.
    for (Value result : op->getResults())
      if (!result.use_empty() || isSpecial(op))
        body.results.push_back(result);
  }
  return body;
}

bool Grouping::isScalar(ArrayRef<unsigned> members) const {
  return llvm::all_of(members, [&](unsigned member) {
    return cast<RankedTensorType>(nodes[member]->getResult(0).getType()).getRank() == 0 &&
           !isa<ReduceOp>(nodes[member]);
  });
}

bool Grouping::isWorthwhile(ArrayRef<unsigned> producer, ArrayRef<unsigned> consumer,
                            const KernelProgram &program) const {
  if (program.form == KernelProgram::Rows && program.rows == 1 && program.columns > maxSingleRow)
    return false;
  // A number that several kernels read is computed once, apart from them.
  if (isScalar(producer) && !isScalar(consumer))
    return llvm::all_of(producer, [&](unsigned member) {
      return llvm::all_of(users[member], [&](unsigned user) {
        return llvm::is_contained(producer, user) || llvm::is_contained(consumer, user);
      });
    });
  return true;
}

bool Grouping::tryMerge(unsigned a, unsigned b) {
  if (a == b || groups[a].opaque || groups[b].opaque)
    return false;
  if (position[a] > position[b])
    std::swap(a, b);
  if (refusedAfter[a].contains(b))
    return false;
  auto refuse = [&] {
    refusedAfter[a].insert(b);
    refusedBefore[b].insert(a);
    return false;
  };
  Nodes members = groups[a].members;
  llvm::append_range(members, groups[b].members);
  llvm::sort(members);
  if (keepsGathered(members))
    return refuse();
  KernelBody body = bodyOf(members, {});
  if (body.inputs.size() + body.results.size() > maxOperands || body.ops.size() > maxOperations)
    return refuse();
  std::string error;
  std::unique_ptr<KernelProgram> program = KernelProgram::build(body, error);
  if (!program || !isWorthwhile(groups[a].members, groups[b].members, *program))
    return refuse();

  // What can be reached from a before b would have to come both after and before the merged kernel if it reached b.
  llvm::DenseSet<unsigned> reached;
  Nodes work = {a};
  while (!work.empty()) {
    unsigned group = work.pop_back_val();
    for (unsigned member : groups[group].members)
      for (unsigned user : users[member]) {
        unsigned next = groupOf[user];
        if (next == b && group != a)
          return refuse();
        if (next != a && position[next] < position[b] && reached.insert(next).second)
          work.push_back(next);
      }
  }

  // The merged group takes the place between what it needs and what needs it.
  unsigned begin = position[a], end = position[b];
  Nodes before, after;
  for (unsigned place = begin + 1; place < end; ++place)
    (reached.contains(order[place]) ? after : before).push_back(order[place]);
  before.push_back(b);
  llvm::append_range(before, after);
  before.push_back(a);
  for (auto [offset, group] : llvm::enumerate(before)) {
    order[begin + offset] = group;
    position[group] = begin + offset;
  }
  groups[b].members = members;
  for (unsigned member : members)
    groupOf[member] = b;
  groups[a].members.clear();
  for (unsigned other : refusedAfter[b])
    refusedBefore[other].erase(b);
  for (unsigned other : refusedBefore[b])
    refusedAfter[other].erase(b);
  refusedAfter[b].clear();
  refusedBefore[b].clear();
  return true;
}

static SmallVector<unsigned> latestFirst(ArrayRef<unsigned> producers) {
  SmallVector<unsigned> sorted(producers);
  llvm::sort(sorted, std::greater<unsigned>());
  return sorted;
}

/// A concatenation joins the kernel that computes its parts (a rotary embedding). Else each part is written where it
/// ends up, when a kernel or library call of its own writes it.
void Grouping::leaveConcat(unsigned node) {
  auto concat = cast<ConcatOp>(nodes[node]);
  bool isAlone = llvm::none_of(concat.getInputs(), [&](Value part) {
    llvm::SetVector<unsigned> found;
    sourcesOf(part, found);
    return llvm::any_of(found, [&](unsigned source) { return groupOf[source] == groupOf[node]; });
  });
  llvm::DenseSet<Value> seen;
  bool isWritten = llvm::all_of(concat.getInputs(), [&](Value part) {
    Operation *op = part.getDefiningOp();
    while (op && isView(op) && !isa<SliceOp>(op))
      op = op->getOperand(0).getDefiningOp();
    return op && nodeOf.count(op) && !isa<arith::ConstantOp>(op) && seen.insert(part).second;
  });
  if (isAlone && isWritten)
    groups[groupOf[node]].opaque = true;
}

/// Reductions over rows that only share an operand with another kernel read it there.
void Grouping::mergeColumnReductions() {
  for (unsigned node = 0; node < nodes.size(); ++node) {
    auto reduce = dyn_cast<ReduceOp>(nodes[node]);
    std::optional<ReduceShape> shape = reduce ? reduceShape(reduce) : std::nullopt;
    if (!shape || shape->inner == 1)
      continue;
    std::string error;
    std::unique_ptr<KernelProgram> program = KernelProgram::build(bodyOf(groupOf[node]), error);
    if (!program || program->form != KernelProgram::Columns)
      continue;
    llvm::SetVector<unsigned> candidates;
    for (unsigned member : groups[groupOf[node]].members)
      for (unsigned source : sources[member])
        for (unsigned user : users[source])
          candidates.insert(user);
    for (unsigned user : candidates)
      if (tryMerge(groupOf[user], groupOf[node]))
        break;
  }
}

/// The elementwise operations of group `home` that lead to `op`, down to values that come from elsewhere, are small, or
/// are stored in any case.
bool Grouping::chainOf(Operation *op, unsigned home, ArrayRef<Value> stored, llvm::SetVector<Operation *> &chain,
                       llvm::SetVector<Value> &leaves) const {
  if (chain.contains(op))
    return true;
  // Sines and powers call a library for each element.
  if (!isElementwise(op) || isa<math::SinOp, math::CosOp, math::PowFOp>(op) || chain.size() > 24)
    return false;
  int64_t size = elementsOf(op->getResult(0));
  std::function<bool(Value)> follow = [&](Value value) {
    Operation *source = value.getDefiningOp();
    if (source && (isView(source) || isPartOfReaders(source)) && !nodeOf.count(source))
      return llvm::all_of(source->getOperands(), follow);
    // Gathered parameters are given back before backward, and are not kept to compute something again.
    if (source && source->hasAttr(names::kUnit))
      return false;
    auto node = source ? nodeOf.find(source) : nodeOf.end();
    if (node == nodeOf.end() || groupOf[node->second] != home || elementsOf(value) * 8 <= size ||
        llvm::is_contained(stored, value)) {
      leaves.insert(value);
      return true;
    }
    return chainOf(source, home, stored, chain, leaves);
  };
  if (!llvm::all_of(op->getOperands(), follow))
    return false;
  chain.insert(op);
  return true;
}

/// Computes again what another kernel would have to write to memory only for this one, when that reads no more memory.
void Grouping::recompute(unsigned group) {
  KernelBody body = bodyOf(group);
  llvm::SetVector<unsigned> read;
  for (Value input : body.inputs)
    sourcesOf(input, read);
  for (unsigned source : read) {
    unsigned home = groupOf[source];
    if (home == group || groups[home].opaque || nodes[source]->getNumResults() != 1)
      continue;
    llvm::SetVector<Operation *> chain;
    llvm::SetVector<Value> leaves;
    if (!chainOf(nodes[source], home, bodyOf(home).results, chain, leaves))
      continue;
    int64_t size = elementsOf(nodes[source]->getResult(0));
    if (size < 64)
      continue;
    auto isRead = [&](Value leaf) {
      llvm::SetVector<unsigned> found;
      sourcesOf(leaf, found);
      return llvm::is_contained(body.inputs, leaf) ||
             (!found.empty() && llvm::all_of(found, [&](unsigned node) { return read.contains(node); }));
    };
    unsigned more = llvm::count_if(leaves, [&](Value leaf) { return elementsOf(leaf) * 8 > size && !isRead(leaf); });
    if (more > 1)
      continue;
    llvm::SetVector<Operation *> recomputed = groups[group].recomputed;
    recomputed.insert(chain.begin(), chain.end());
    KernelBody larger = bodyOf(groups[group].members, recomputed);
    std::string error;
    if (larger.inputs.size() + larger.results.size() > maxOperands || !KernelProgram::build(larger, error))
      continue;
    // What the chain reads of other groups becomes a result there, if that can be one.
    Nodes added;
    for (Operation *op : chain)
      for (Value operand : op->getOperands()) {
        llvm::SetVector<unsigned> found;
        sourcesOf(operand, found);
        for (unsigned node : found)
          if (!recomputed.contains(nodes[node]) && groupOf[node] != group && readToRecompute.insert(node).second)
            added.push_back(node);
      }
    bool isHeld = llvm::all_of(added, [&](unsigned node) {
      return groups[groupOf[node]].opaque || KernelProgram::build(bodyOf(groupOf[node]), error);
    });
    if (isHeld)
      groups[group].recomputed = std::move(recomputed);
    else
      for (unsigned node : added)
        readToRecompute.erase(node);
  }
}

void Grouping::merge() {
  // Single numbers come last: a sum over everything must not tie the kernels before it to those after it.
  auto isNumber = [&](unsigned node) {
    return nodes[node]->getNumResults() > 0 && cast<ShapedType>(nodes[node]->getResult(0).getType()).getRank() == 0;
  };
  // What is computed again for the backward belongs to its readers: beside its operands it would be kept after all.
  auto isNear = [&](unsigned producer, unsigned node) {
    return !nodes[node]->hasAttr(names::kRecomputed) || nodes[producer]->hasAttr(names::kRecomputed);
  };
  for (unsigned node = 0; node < nodes.size(); ++node) {
    if (groups[groupOf[node]].opaque || isNumber(node))
      continue;
    for (unsigned producer : latestFirst(sources[node]))
      if (isNear(producer, node) && (groups[groupOf[producer]].opaque || !isNumber(producer)))
        tryMerge(groupOf[producer], groupOf[node]);
    if (isa<ConcatOp>(nodes[node]))
      leaveConcat(node);
  }
  mergeColumnReductions();
  for (unsigned node = 0; node < nodes.size(); ++node)
    for (unsigned producer : latestFirst(sources[node]))
      if (isNear(producer, node))
        tryMerge(groupOf[producer], groupOf[node]);
  llvm::erase_if(order, [&](unsigned group) { return groups[group].members.empty(); });
  for (auto [place, group] : llvm::enumerate(order))
    position[group] = place;
  for (unsigned group : order)
    if (!groups[group].opaque && !isSpecial(nodes[groups[group].members.front()]))
      recompute(group);
  sinkToReaders();
}

/// What is in memory only for readers outside of kernels (the f32 form of a gathered bias) comes right before the first
/// of them: merging has moved it, and what it reads may be given back sooner.
void Grouping::sinkToReaders() {
  llvm::SetVector<unsigned> held;
  std::vector<unsigned> sunk;
  auto readBy = [&](unsigned group) {
    llvm::SetVector<unsigned> read;
    for (unsigned member : groups[group].members)
      read.insert(sources[member].begin(), sources[member].end());
    for (Operation *op : groups[group].recomputed)
      for (Value operand : op->getOperands())
        sourcesOf(operand, read);
    return read;
  };
  std::function<void(unsigned)> place = [&](unsigned group) {
    for (unsigned node : readBy(group))
      if (held.remove(groupOf[node]))
        place(groupOf[node]);
    sunk.push_back(group);
  };
  for (unsigned group : order)
    if (llvm::all_of(groups[group].members, [&](unsigned member) { return isPartOfReaders(nodes[member]); }))
      held.insert(group);
    else
      place(group);
  while (!held.empty())
    place(held.pop_back_val());
  order = std::move(sunk);
}
