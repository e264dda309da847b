//===- SumKeyHeadCopies.cpp - Gradients of copied kv heads ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "MeshView.h"
#include "Plan/KeyHeadCopies.h"
#include "Plan/KeyHeads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/IR/Signature.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace nd;

namespace {

/// Inserts the sums over copies of one program.
class Summer {
public:
  explicit Summer(Program &program) : program(program), mesh(program.mesh), attributes(program.function) {}

  LogicalResult run() {
    func::FuncOp function = program.function;
    for (unsigned index : llvm::seq(function.getNumArguments())) {
      Attribute copies = attributes.getArg(index, names::kCopies);
      if (!copies)
        continue;
      BlockArgument argument = function.getArgument(index);
      FailureOr<DictionaryAttr> cut =
          cutCopies(copies, attributes.getArg(index, names::kSharding), attributes.getArg(index, names::kUseSharding),
                    argument, describe(argument));
      if (failed(cut))
        return failure();
      attributes.setArg(index, names::kCopies, *cut);
      attributes.setArg(index, names::kBlocks, {});
      if (names::argKind(function, index) == names::kind::kWeight)
        stored[argument] = StoredHeads::read(cast<DictionaryAttr>(copies));
    }
    for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands())) {
      Attribute copies = attributes.getResult(index, names::kCopies);
      if (!copies)
        continue;
      FailureOr<DictionaryAttr> cut = cutCopies(copies, attributes.getResult(index, names::kSharding), Attribute(),
                                                value, describeResult(function, index));
      if (failed(cut))
        return failure();
      attributes.setResult(index, names::kCopies, *cut);
      attributes.setResult(index, names::kBlocks, {});
    }
    for (Operation &op : llvm::make_early_inc_range(program.getBody()))
      if (isa<AdamWOp, SgdOp>(op))
        if (BlockArgument weight = getWeightBehind(op.getOperand(0), function))
          if (auto it = stored.find(weight); it != stored.end() && failed(sum(&op, weight, it->second)))
            return failure();
    return success();
  }

private:
  /// `nd.copies` with a row for each shard. Fails where shards are no copies, and where what is stored whole, all
  /// copies of it, is used in shards, which are some.
  FailureOr<DictionaryAttr> cutCopies(Attribute copies, Attribute sharding, Attribute used, Value value,
                                      const std::string &tensor) {
    StoredHeads heads = StoredHeads::read(cast<DictionaryAttr>(copies));
    auto given = cast<ShardingAttr>(sharding);
    SmallVector<StringAttr> axes = given.getDimAxes(heads.dim);
    auto isTensor = [&](StringAttr axis) { return program.mesh.findAxis(axis).getRole() == AxisRole::tensor; };
    bool isUsedInShards = used && llvm::any_of(cast<ShardingAttr>(used).getDimAxes(heads.dim), isTensor);
    if (axes.empty() ? isUsedInShards
                     : !isTensor(axes.front()) || !std::is_partitioned(axes.begin(), axes.end(), isTensor))
      return program.function.emitError()
             << tensor << " has kv heads that ranks along tp share otherwise than in equal parts, but is annotated "
             << given << ": tp has to be the first axis of dimension " << heads.dim << ", as in [tp+fsdp,_]";
    return heads.cut(program.function.getContext(), tensorTypeOf(value).getDimSize(heads.dim),
                     shardsOf(given, heads.dim));
  }

  int64_t shardsOf(ShardingAttr sharding, int64_t dim, bool withTensorAxes = true) const {
    int64_t shards = 1;
    for (StringAttr axis : sharding.getDimAxes(dim))
      if (MeshAxisAttr found = program.mesh.findAxis(axis); withTensorAxes || found.getRole() != AxisRole::tensor)
        shards *= found.getSize();
    return shards;
  }

  /// What the gradient is summed to. Where storage cuts the heads' dimension again, places of a rank stay places, so
  /// that the sum runs on these shards: heads in one slot are groups. Otherwise heads are, and nothing is reduced that
  /// no rank has.
  struct Layout {
    int64_t unit, units;
    SmallVector<int64_t> groups;
    int64_t count, places; ///< sizes of the two dimensions
  };
  static Layout layoutOf(const StoredHeads &heads, int64_t size, int64_t cuts) {
    Layout layout{};
    if (cuts == 1) {
      layout = {heads.unit, 1, {}, heads.heads(), heads.unit};
      for (const auto &row : heads.table)
        layout.groups.append(row.begin(), row.end());
      return layout;
    }
    layout.places = size / heads.ranks();
    layout.unit = std::gcd(heads.unit, layout.places / cuts);
    layout.units = layout.places / layout.unit;
    layout.count = llvm::divideCeil(heads.heads(), heads.slots());
    for (int64_t rank : llvm::seq(heads.ranks()))
      for (int64_t place = 0; place < layout.places; place += layout.unit) {
        int64_t element = heads.elementAt(rank, place);
        layout.groups.push_back(element < 0 ? -1 : element / heads.unit / heads.slots());
      }
    return layout;
  }

  LogicalResult sum(Operation *update, BlockArgument weight, const StoredHeads &heads) {
    Value gradient = update->getOperand(1);
    RankedTensorType type = tensorTypeOf(gradient);
    auto sharding = cast<ShardingAttr>(attributes.getArg(weight.getArgNumber(), names::kUpdateSharding));
    Layout layout = layoutOf(heads, type.getDimSize(heads.dim), shardsOf(sharding, heads.dim, false));
    SmallVector<int64_t> shape(type.getShape());
    shape[heads.dim] = layout.places;
    shape.insert(shape.begin() + heads.dim, layout.count);

    SmallVector<OpOperand *> uses = llvm::map_to_vector(gradient.getUses(), [](OpOperand &use) { return &use; });
    OpBuilder builder(update);
    builder.setInsertionPointAfterValue(gradient);
    Location loc = gradient.getLoc();
    Value summed = SumCopiesOp::create(builder, loc, withShape(type, shape), gradient, heads.dim, layout.unit,
                                       layout.units, layout.groups, ArrayAttr(), ArrayAttr());
    builder.setInsertionPoint(update);
    Value copies = MakeCopiesOp::create(builder, loc, type, summed, heads.dim, layout.unit, layout.units, layout.groups,
                                        ArrayAttr(), ArrayAttr());
    llvm::SmallSetVector<Operation *, 2> readers;
    for (OpOperand *use : uses) {
      bool isStored = use->getOwner() == update || isa<func::ReturnOp>(use->getOwner());
      use->set(isStored ? copies : summed);
      if (!isStored)
        readers.insert(use->getOwner());
    }
    for (Operation *reader : readers)
      if (failed(retype(reader, summed)))
        return failure();
    return success();
  }

  /// The norm is computed element by element, up to a sum over all of them.
  LogicalResult retype(Operation *user, Value summed) {
    RankedTensorType type = tensorTypeOf(summed);
    if (auto reduce = dyn_cast<ReduceOp>(user); reduce && tensorTypeOf(reduce.getResult()).getRank() == 0) {
      reduce.setDims(sequence(type.getRank()));
      return success();
    }
    if (!isa<arith::MulFOp>(user) || user->getOperand(0) != user->getOperand(1))
      return user->emitError() << "'" << user->getName()
                               << "' reads a gradient whose parts lie on several ranks, but nd knows only its norm and "
                                  "its update; use a size of tp that the numbers of query and kv heads allow, or leave "
                                  "this reader out";
    Value square = user->getResult(0);
    square.setType(type);
    for (Operation *next : square.getUsers())
      if (failed(retype(next, square)))
        return failure();
    return success();
  }

  Program &program;
  MeshView mesh;
  SignatureAttrs attributes;
  llvm::DenseMap<BlockArgument, StoredHeads> stored;
};

} // namespace

LogicalResult nd::sumKeyHeadCopies(Program &program) { return Summer(program).run(); }
