//===- StripSharding.cpp - The global view as a program of one rank -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Sharding/Passes.h"

namespace nd {
#define GEN_PASS_DEF_STRIPSHARDING
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// Attributes of an argument or result; setting null removes one.
struct Attributes {
  function_ref<Attribute(StringRef)> get;
  function_ref<void(StringRef, Attribute)> set;
};

/// For each place of a dimension that shards hold in blocks the logical row there, or -1.
SmallVector<int64_t> rowsOfBlocks(ArrayRef<int64_t> axisSizes, ArrayRef<int64_t> blocks, int64_t padded,
                                  int64_t logical) {
  int64_t shards = llvm::product_of(axisSizes), local = padded / shards;
  SmallVector<int64_t> rows;
  for (int64_t place : llvm::seq(padded)) {
    int64_t shard = place / local, stride = shards, start = 0, extent = logical;
    for (auto [size, block] : llvm::zip_equal(axisSizes, blocks)) {
      stride /= size;
      int64_t offset = shard / stride % size * block;
      start += offset;
      extent = std::min(block, extent - offset);
    }
    rows.push_back(place % local < extent ? start + place % local : -1);
  }
  return rows;
}

class Stripper {
public:
  explicit Stripper(Program &program) : program(program), builder(program.function.getContext()) {}

  LogicalResult run() {
    func::FuncOp function = program.function;
    if (llvm::all_of(llvm::seq(function.getNumArguments()),
                     [&](unsigned index) { return function.getArgAttr(index, names::kGlobalShape); }))
      return success(); // a rank's program
    for (BlockArgument argument : program.getBody().getArguments()) {
      unsigned index = argument.getArgNumber();
      auto get = [&](StringRef name) { return function.getArgAttr(index, name); };
      auto set = [&](StringRef name, Attribute value) {
        value ? function.setArgAttr(index, name, value)
              : void(function.removeArgAttr(index, builder.getStringAttr(name)));
      };
      if (failed(unshard({get, set}, argument, describeArgument(function, index))))
        return failure();
    }
    for (auto [position, value] : llvm::enumerate(program.getReturn()->getOperands())) {
      unsigned index = position;
      auto get = [&](StringRef name) { return function.getResultAttr(index, name); };
      auto set = [&](StringRef name, Attribute attr) {
        attr ? function.setResultAttr(index, name, attr)
             : void(function.removeResultAttr(index, builder.getStringAttr(name)));
      };
      if (failed(unshard({get, set}, value, describeResult(function, index))))
        return failure();
    }
    for (BlockArgument argument : program.getBody().getArguments())
      strip(argument);
    for (Operation &op : llvm::make_early_inc_range(program.getBody().without_terminator()))
      visit(&op);
    function.setFunctionType(
        builder.getFunctionType(program.getBody().getArgumentTypes(), program.getReturn()->getOperandTypes()));
    if (program.mesh)
      program.mesh.erase();
    return success();
  }

private:
  LogicalResult unshard(Attributes attributes, Value value, const std::string &what) {
    auto sharding = dyn_cast_or_null<ShardingAttr>(attributes.get(names::kSharding));
    auto blocks = dyn_cast_or_null<ArrayAttr>(attributes.get(names::kBlocks));
    auto logical = dyn_cast_or_null<DenseI64ArrayAttr>(attributes.get(names::kGlobalShape));
    ArrayRef<int64_t> padded = cast<RankedTensorType>(value.getType()).getShape();
    if (sharding && blocks && logical)
      for (auto [dim, list] : llvm::enumerate(blocks.getAsRange<ArrayAttr>())) {
        if (list.empty() || padded[dim] == logical[dim])
          continue;
        if (attributes.get(names::kChunks) || attributes.get(names::kCopies))
          return program.function.emitError()
                 << what << " is stored in an order and has padded blocks; one rank has no "
                 << "storage for that";
        setRows(attributes, dim, sharding.getDimAxes(dim), list, padded[dim], logical[dim]);
      }
    if (auto copies = dyn_cast_or_null<DictionaryAttr>(attributes.get(names::kCopies)))
      attributes.set(names::kCopies, joinRows(copies));
    for (StringRef name : {names::kSharding, names::kUseSharding, names::kUpdateSharding, names::kBlocks})
      attributes.set(name, {});
    return success();
  }

  /// One rank has the units of all shards, one after the other.
  DictionaryAttr joinRows(DictionaryAttr copies) {
    SmallVector<Attribute> units;
    if (auto table = copies.getAs<ArrayAttr>("table"))
      for (Attribute row : table)
        if (auto entries = dyn_cast<ArrayAttr>(row))
          llvm::append_range(units, entries);
    NamedAttrList joined(copies);
    joined.set("table", builder.getArrayAttr(builder.getArrayAttr(units)));
    return joined.getDictionary(builder.getContext());
  }

  void setRows(Attributes attributes, int64_t dim, ArrayRef<StringAttr> axes, ArrayAttr list, int64_t padded,
               int64_t logical) {
    SmallVector<int64_t> sizes =
        llvm::map_to_vector(axes, [&](StringAttr axis) { return program.mesh.findAxis(axis).getSize(); });
    SmallVector<int64_t> blocks =
        llvm::map_to_vector(list, [](Attribute block) { return cast<IntegerAttr>(block).getInt(); });
    SmallVector<int64_t> rows = rowsOfBlocks(sizes, blocks, padded, logical);
    attributes.set(
        names::kCopies,
        builder.getDictionaryAttr({builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim)),
                                   builder.getNamedAttr("table", builder.getArrayAttr(builder.getI64ArrayAttr(rows))),
                                   builder.getNamedAttr("unit", builder.getI64IntegerAttr(1))}));
  }

  void strip(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    value.setType(RankedTensorType::get(type.getShape(), type.getElementType()));
  }

  void visit(Operation *op) {
    op->removeDiscardableAttr(names::kFactorAxes);
    if (isa<ReshardOp, AsPartialOp>(op)) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
      return;
    }
    for (Value result : op->getResults())
      strip(result);
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      stripElements(constant);
    if (auto scale = dyn_cast<ScaleOp>(op))
      multiply(scale);
  }

  void stripElements(arith::ConstantOp constant) {
    auto type = cast<RankedTensorType>(constant.getType());
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue()))
      constant.setValueAttr(DenseResourceElementsAttr::get(type, resource.getRawHandle()));
    else
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).reshape(type));
  }

  void multiply(ScaleOp scale) {
    builder.setInsertionPoint(scale);
    auto type = cast<RankedTensorType>(scale.getInput().getType());
    Value factor = scale.getFactor();
    if (type.getRank() != 0)
      factor = BroadcastOp::create(builder, scale.getLoc(), type, factor, ArrayRef<int64_t>());
    scale.getResult().replaceAllUsesWith(arith::MulFOp::create(builder, scale.getLoc(), scale.getInput(), factor));
    scale.erase();
  }

  Program &program;
  OpBuilder builder;
};

struct StripSharding : nd::impl::StripShardingBase<StripSharding> {
  void runOnOperation() override {
    FailureOr<Program> program = Program::get(getOperation());
    if (failed(program) || failed(Stripper(*program).run()))
      signalPassFailure();
  }
};

} // namespace
