//===- ProgramBuilder.cpp - Memory and phases of an rt program -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"
#include "StorageLayout.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

/// Attributes of an argument or result that go into the manifest under their names without `nd.`.
constexpr llvm::StringLiteral kInfoAttributes[] = {names::kTrainable, names::kRank,       names::kStorage,
                                                   names::kAliases,   names::kPaddingIdx, names::kPart};

bool isContiguousAnywhere(ArrayRef<int64_t> shape, rt::Layout layout) {
  layout.offset = 0;
  return layout == contiguousLayout(shape);
}

} // namespace

ProgramBuilder::ProgramBuilder(func::FuncOp function, KernelTable &kernels)
    : function(function), kernels(kernels), assignment(function), builder(function), loc(function.getLoc()) {}

LogicalResult ProgramBuilder::build() {
  program = rt::ProgramOp::create(builder, loc, function.getSymName());
  builder.setInsertionPointToEnd(&program.getBody().front());
  for (auto [index, storage] : llvm::enumerate(assignment.getStorages()))
    if (storage.isTensor() && failed(declareTensor(index)))
      return failure();
  if (!program.getBody().front().empty())
    lastDeclaration = &program.getBody().front().back();
  findForward();
  Block &block = function.getBody().front();
  if (failed(lowerBlock(block)))
    return failure();
  loc = block.getTerminator()->getLoc();
  return finish();
}

/// Permutes that stand side by side and move alike, as those of keys and values: the transport moves them as one.
static bool goTogether(PermuteOp a, PermuteOp b) {
  Value input = b.getInput();
  while (Operation *view = input.getDefiningOp()) {
    if (!isViewOp(view))
      break;
    input = view->getOperand(0);
  }
  return a.getAxes() == b.getAxes() && a.getSources() == b.getSources() &&
         tensorTypeOf(a.getResult()).getElementType() == tensorTypeOf(b.getResult()).getElementType() &&
         input != a.getResult();
}

LogicalResult ProgramBuilder::lowerBlock(Block &block) {
  SmallVector<Operation *> permutes; ///< not lowered yet
  auto flush = [&] {
    if (permutes.empty())
      return success();
    loc = permutes.front()->getLoc();
    enterPhase(permutes.front());
    return lowerPermutes(std::exchange(permutes, {}));
  };
  for (Operation &op : block.without_terminator()) {
    if (isViewOp(&op) || isa<arith::ConstantOp>(op))
      continue;
    auto permute = dyn_cast<PermuteOp>(op);
    bool joins =
        permute && llvm::all_of(permutes, [&](Operation *other) {
          return goTogether(cast<PermuteOp>(other), permute) && forward.contains(other) == forward.contains(&op);
        });
    if (!joins && failed(flush()))
      return failure();
    if (permute) {
      permutes.push_back(&op);
      continue;
    }
    loc = op.getLoc();
    if (!isa<RepeatOp>(op))
      enterPhase(&op);
    if (failed(lower(&op)))
      return failure();
  }
  return flush();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

LogicalResult ProgramBuilder::declareTensor(unsigned index) {
  const Storage &storage = assignment.getStorages()[index];
  bool isArgument = storage.argument.has_value();
  auto attribute = [&](StringRef name) -> Attribute {
    return isArgument ? function.getArgAttr(*storage.argument, name) : function.getResultAttr(*storage.result, name);
  };
  auto text = [&](StringRef name, const Twine &otherwise) {
    auto value = dyn_cast_or_null<StringAttr>(attribute(name));
    return builder.getStringAttr(value && !value.empty() ? Twine(value.getValue()) : otherwise);
  };
  StringAttr kind = text(names::kKind, isArgument ? names::kind::kInput : names::kind::kOutput);
  StringAttr name =
      text(names::kName, isArgument ? "arg" + Twine(*storage.argument) : "result" + Twine(*storage.result));

  SmallVector<NamedAttribute> info;
  for (StringRef key : kInfoAttributes)
    if (Attribute value = attribute(key))
      info.emplace_back(key.substr(StringRef("nd.").size()), value);
  ArrayAttr dimAxes;
  if (auto sharding = dyn_cast_or_null<ShardingAttr>(attribute(names::kSharding))) {
    SmallVector<Attribute> dims;
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
      dims.push_back(builder.getArrayAttr(llvm::to_vector_of<Attribute>(sharding.getDimAxes(dim))));
    dimAxes = builder.getArrayAttr(dims);
  }
  auto integer = [&](StringRef key) -> IntegerAttr {
    auto value = dyn_cast_or_null<IntegerAttr>(attribute(key));
    return value ? builder.getI64IntegerAttr(value.getInt()) : IntegerAttr();
  };
  IntegerAttr ignore;
  if (isArgument && name.getValue() == names::name::kLabels)
    if (auto module = function->getParentOfType<ModuleOp>())
      if (std::optional<int64_t> value = names::moduleInt(module, names::kModel, "ignore_index"))
        ignore = builder.getI64IntegerAttr(*value);
  Location where = isArgument ? function.getArgument(*storage.argument).getLoc() : loc;
  FailureOr<StorageLayout> read = readStorageLayout(attribute, kind.getValue() + " '" + name.getValue() + "'", where);
  if (failed(read))
    return failure();
  const StorageLayout &layout = *read;
  buffers[index] = rt::TensorOp::create(
      builder, where, bufferType(storage.type, contiguousLayout(storage.type.getShape())), kind, name,
      /*offset=*/IntegerAttr(), dyn_cast_or_null<DenseI64ArrayAttr>(attribute(names::kGlobalShape)), dimAxes,
      layout.blocks, layout.units, layout.unitsDim, layout.unitSize, layout.padValue, integer(names::kBound), ignore,
      info.empty() ? DictionaryAttr() : builder.getDictionaryAttr(info),
      /*output=*/!isArgument);
  return success();
}

Value ProgramBuilder::bufferOf(unsigned index) {
  Value &buffer = buffers[index];
  if (buffer)
    return buffer;
  const Storage &storage = assignment.getStorages()[index];
  assert(!storage.row && "rows are given by their loop");
  MemRefType type = bufferType(storage.type, contiguousLayout(storage.type.getShape()));
  OpBuilder declarations(builder.getContext());
  if (lastDeclaration)
    declarations.setInsertionPointAfter(lastDeclaration);
  else
    declarations.setInsertionPointToStart(&program.getBody().front());
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(storage.constant))
    buffer = rt::ConstantOp::create(declarations, constant.getLoc(), type, cast<ElementsAttr>(constant.getValue()));
  else
    buffer = rt::BufferOp::create(declarations, loc, type, /*offset=*/IntegerAttr());
  lastDeclaration = buffer.getDefiningOp();
  return buffer;
}

Value ProgramBuilder::bufferAt(const Place &place, RankedTensorType type, Access access) {
  waitBefore(place.storage, access);
  Value buffer = bufferOf(place.storage);
  MemRefType view = bufferType(type, place.layout);
  if (view == buffer.getType())
    return buffer;
  Value &cached = views[{buffer, view}];
  if (!cached)
    cached = rt::ViewOp::create(builder, loc, view, buffer);
  return cached;
}

FailureOr<Place> ProgramBuilder::locate(Value value) {
  if (auto it = copies.find(value); it != copies.end())
    return it->second;
  if (std::optional<Place> place = assignment.find(value))
    return *place;
  // Some view on the way is none of strided memory: it or what it views has been copied, or is copied now.
  Operation *view = value.getDefiningOp();
  FailureOr<Place> source = locate(view->getOperand(0));
  if (failed(source))
    return failure();
  Place place = *source;
  if (std::optional<rt::Layout> layout = viewLayout(view, source->layout)) {
    place.layout = std::move(*layout);
    return place;
  }
  Place fresh = assignment.wholeOf(assignment.addTemporary(tensorTypeOf(value)));
  Place asSource = fresh;
  RankedTensorType sourceType = tensorTypeOf(view->getOperand(0));
  asSource.layout = contiguousLayout(sourceType.getShape());
  if (failed(copy(*source, asSource, sourceType)))
    return failure();
  copies[value] = fresh;
  return fresh;
}

FailureOr<Value> ProgramBuilder::read(Value value, Accepts accepts) {
  FailureOr<Place> place = locate(value);
  if (failed(place))
    return failure();
  RankedTensorType type = tensorTypeOf(value);
  if (!accepts(type.getShape(), place->layout)) {
    Place fresh = assignment.wholeOf(assignment.addTemporary(type));
    if (failed(copy(*place, fresh, type)))
      return failure();
    copies[value] = fresh;
    place = fresh;
  }
  return bufferAt(*place, type);
}

FailureOr<Value> ProgramBuilder::readAny(Value value) {
  return read(value, [](ArrayRef<int64_t>, const rt::Layout &) { return true; });
}

FailureOr<Value> ProgramBuilder::readRows(Value value) { return read(value, hasContiguousRows); }

FailureOr<Value> ProgramBuilder::readContiguous(Value value) { return read(value, isContiguousAnywhere); }

Value ProgramBuilder::target(Value result) {
  return bufferAt(*assignment.find(result), tensorTypeOf(result), Access::Write);
}

LogicalResult ProgramBuilder::copy(const Place &from, const Place &to, RankedTensorType type) {
  Value source = bufferAt(from, type), target = bufferAt(to, type, Access::Write);
  auto sourceType = cast<MemRefType>(source.getType()), targetType = cast<MemRefType>(target.getType());
  if (rt::isContiguous(sourceType) && rt::isContiguous(targetType)) {
    rt::CopyOp::create(builder, loc, source, target);
    return success();
  }
  FailureOr<KernelEntry> entry = kernels.getCopy(loc, sourceType, targetType);
  if (failed(entry))
    return failure();
  rt::LaunchOp::create(builder, loc, entry->kernel.getSymName(), ValueRange{source}, ValueRange{target}, Value(),
                       ArrayRef<int64_t>{-1});
  return success();
}

LogicalResult ProgramBuilder::moveInto(Value value, const Place &place) {
  FailureOr<Place> source = locate(value);
  if (failed(source))
    return failure();
  return *source == place ? success() : copy(*source, place, tensorTypeOf(value));
}

//===----------------------------------------------------------------------===//
// The end of the program
//===----------------------------------------------------------------------===//

LogicalResult ProgramBuilder::finish() {
  SmallVector<Move, 0> moves;
  for (auto [index, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands())) {
    FailureOr<Place> source = locate(value);
    if (failed(source))
      return failure();
    Place place = assignment.wholeOf(assignment.getResultStorage(index));
    if (*source == place)
      continue;
    moves.push_back({*source, place, tensorTypeOf(value)});
  }
  if (!moves.empty() && hasBackward)
    setPhase(rt::Phase::update);
  if (failed(moveAll(moves)))
    return failure();
  waitForAll();
  return success();
}

LogicalResult ProgramBuilder::moveAll(MutableArrayRef<Move> moves) {
  llvm::DenseSet<unsigned> written;
  for (const Move &move : moves)
    written.insert(move.to.storage);
  // A tensor that is both read and written by these copies is read first.
  for (Move &move : moves) {
    if (!written.contains(move.from.storage))
      continue;
    Place fresh = assignment.wholeOf(assignment.addTemporary(move.type));
    if (failed(copy(move.from, fresh, move.type)))
      return failure();
    move.from = fresh;
  }
  for (const Move &move : moves)
    if (failed(copy(move.from, move.to, move.type)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

/// What the loss depends on is the forward phase. Without a loss everything is.
void ProgramBuilder::findForward() {
  SmallVector<Value> worklist;
  for (auto [index, value] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands()))
    if (names::resultKind(function, index) == names::kind::kMetric &&
        names::resultName(function, index) == names::name::kLoss && value.getDefiningOp())
      worklist.push_back(value);
  hasBackward = !worklist.empty();
  while (!worklist.empty()) {
    auto result = dyn_cast<OpResult>(worklist.pop_back_val());
    if (!result)
      continue;
    if (auto loop = dyn_cast<RepeatOp>(result.getOwner()))
      worklist.push_back(loop.getYield().getOperand(result.getResultNumber()));
    else if (forward.insert(result.getOwner()).second)
      llvm::append_range(worklist, result.getOwner()->getOperands());
  }
}

void ProgramBuilder::enterPhase(Operation *op) {
  auto updatesState = [&](Value result) {
    std::optional<Place> place = assignment.find(result);
    if (!place)
      return false;
    const Storage &storage = assignment.getStorages()[place->storage];
    return storage.argument && storage.result;
  };
  if (!hasBackward || forward.contains(op))
    setPhase(rt::Phase::forward);
  else if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op))
    setPhase(rt::Phase::reduce);
  else if (llvm::any_of(op->getResults(), updatesState))
    setPhase(rt::Phase::update);
  else
    setPhase(rt::Phase::backward);
}

void ProgramBuilder::setPhase(rt::Phase next) {
  if (phase == next)
    return;
  phase = next;
  rt::PhaseOp::create(builder, loc, next);
}
