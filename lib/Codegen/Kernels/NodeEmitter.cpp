//===- NodeEmitter.cpp - Code of a program's nodes ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace nd;

Type nd::memoryType(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  return element.isBF16() ? Type(IntegerType::get(element.getContext(), 16)) : element;
}

static bool isOne(const Node *node) {
  auto value = node->kind == Node::Constant ? dyn_cast<FloatAttr>(node->constant) : FloatAttr();
  return value && value.getValue().isExactlyValue(1.0);
}

/// The tanh of `tanh(x) + 1`.
static const Node *tanhPlusOne(const Node *node) {
  if (node->kind != Node::Elementwise || !isa<arith::AddFOp>(node->op))
    return nullptr;
  for (unsigned side : {0, 1}) {
    const Node *tanh = node->operands[side];
    if (isOne(node->operands[1 - side]) && tanh->kind == Node::Elementwise && isa<math::TanhOp>(tanh->op))
      return tanh;
  }
  return nullptr;
}

/// An absolute error of one rounding is all that these uses of a tanh can tell; one exponential and one division give
/// it.
void NodeEmitter::findSigmoids() {
  for (const Node &node : program.nodes)
    if (node.kind == Node::Elementwise && isa<math::TanhOp>(node.op) && node.type.isF32() && node.onColumn && lanes > 1)
      shiftedTanhs.insert(&node);
  for (const Node &node : program.nodes) {
    bool isSquare =
        node.kind == Node::Elementwise && isa<arith::MulFOp>(node.op) && node.operands[0] == node.operands[1];
    if (isSquare || tanhPlusOne(&node))
      continue;
    for (const Node *operand : node.operands)
      shiftedTanhs.erase(operand);
  }
  for (const Root &root : program.roots)
    for (const Node *node : root.nodes)
      shiftedTanhs.erase(node);
  for (auto &[node, where] : schedule.kept)
    shiftedTanhs.erase(node);
}

Value NodeEmitter::emitSigmoid(const Node *tanh, RowScope &row) {
  if (Value known = sigmoids.lookup({&row, tanh}))
    return known;
  Value x = b.splat(emit(tanh->operands[0], row), lanes);
  Value e = b.exp(b.create<arith::MulFOp>(x, b.number(x.getType(), -2.0)));
  Value result = b.div(b.number(x.getType(), 2.0), b.create<arith::AddFOp>(e, b.number(x.getType(), 1.0)));
  sigmoids[{&row, tanh}] = result;
  return result;
}

void NodeEmitter::emitUniform() {
  RowScope none;
  for (const Node &node : program.nodes)
    if (!node.onRow && !node.onColumn)
      emit(&node, none);
}

/// The digits of one kind in an access, with the elements that a step of each moves by. Adjacent digits whose steps in
/// memory are adjacent too are one digit.
static SmallVector<std::pair<Index, int64_t>> mergedDigits(Index::Kind kind, const Indices &index,
                                                           ArrayRef<int64_t> strides) {
  SmallVector<std::pair<Index, int64_t>> digits;
  for (auto [part, stride] : llvm::zip(index, strides))
    if (part.kind == kind)
      digits.push_back({part, part.mul * stride});
  llvm::sort(digits, [](auto &a, auto &b) { return a.first.stride < b.first.stride; });
  SmallVector<std::pair<Index, int64_t>> merged;
  for (auto [index, factor] : digits) {
    if (!merged.empty()) {
      auto &[last, lastFactor] = merged.back();
      if (index.stride == last.stride * last.size && factor == lastFactor * last.size) {
        last.size *= index.size;
        continue;
      }
    }
    merged.push_back({index, factor});
  }
  return merged;
}

void NodeEmitter::emitRowNodes(RowScope &row, unsigned level) {
  auto emitDigits = [&](const Indices &index, ArrayRef<int64_t> strides) {
    for (auto [digit, factor] : mergedDigits(Index::Row, index, strides))
      rowDigit(digit.stride, digit.size, row);
  };
  if (row.digits.empty()) {
    for (const Node &node : program.nodes)
      if (node.kind == Node::Load)
        emitDigits(node.index, layout.inputStrides[node.input]);
    for (const Root &root : program.roots)
      emitDigits(root.index, layout.resultStrides[root.result]);
  }
  for (const Node &node : program.nodes)
    if (node.onRow && !node.onColumn && node.level <= level && node.kind != Node::RowReduce)
      emit(&node, row);
}

Value NodeEmitter::emit(const Node *node, RowScope &row) {
  Value &known = !node->onRow     ? (node->onColumn ? shared[node] : uniform[node])
                 : node->onColumn ? bodies[{&row, node}]
                                  : row.values[node];
  if (known)
    return known;
  Value value;
  auto kept = schedule.kept.find(node);
  if (node->onColumn && kept != schedule.kept.end() && kept->second.stage < currentStage)
    value = loadKept(node, row);
  else
    value = emitNode(node, row);
  // Emission of the operands may have moved the table.
  if (node->onRow)
    (node->onColumn ? bodies[{&row, node}] : row.values[node]) = value;
  else
    (node->onColumn ? shared : uniform)[node] = value;
  return value;
}

/// Whether an operation may yield, of bf16 operands, what bf16 does not have.
static bool isRounding(const Node *node) {
  if (node->kind == Node::Primitive)
    return node->primitive == Primitive::Convert;
  return !isa<arith::SelectOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
              arith::BitcastOp, math::AbsFOp, math::CopySignOp>(node->op);
}

Value NodeEmitter::emitNode(const Node *node, RowScope &row) {
  if (node->kind == Node::Load) {
    Offset offset = offsetOf(node->index, layout.inputStrides[node->input], row);
    return load(inputs[node->input], node->type, offset, node->onColumn);
  }
  if (node->kind == Node::Constant && node->type.isBF16())
    return b.number(b.getF32Type(), cast<FloatAttr>(node->constant).getValueAsDouble());
  if (node->kind == Node::Constant)
    return b.create<arith::ConstantOp>(node->constant);
  if (node->kind == Node::Digit)
    return emitDigit(node->index.front(), row);
  if (shiftedTanhs.contains(node)) {
    Value sigmoid = emitSigmoid(node, row);
    return b.create<arith::SubFOp>(sigmoid, b.number(sigmoid.getType(), 1.0));
  }
  if (const Node *tanh = tanhPlusOne(node); tanh && shiftedTanhs.contains(tanh))
    return emitSigmoid(tanh, row);
  SmallVector<Value> operands;
  for (const Node *operand : node->operands) {
    Value value = emit(operand, row);
    operands.push_back(node->onColumn ? b.splat(value, lanes) : value);
  }
  Value value = node->kind == Node::Primitive ? emitPrimitive(node, operands) : emitElementwise(node, operands);
  return node->type.isBF16() && isRounding(node) ? b.roundToBF16(value) : value;
}

/// The region's operation on lanes. Vectors of f32 use inlined polynomials; a single value calls the library.
Value NodeEmitter::emitElementwise(const Node *node, ArrayRef<Value> operands) {
  Operation *op = node->op;
  Type element = registerType(node->type);
  bool vector = node->onColumn && lanes > 1 && element.isF32();
  if (vector && isa<math::ExpOp>(op))
    return b.exp(operands[0]);
  if (vector && isa<math::LogOp>(op))
    return b.log(operands[0]);
  if (vector && isa<math::TanhOp>(op))
    return b.tanh(operands[0]);
  if (vector && isa<math::ErfOp>(op))
    return b.erf(operands[0]);
  // MLIR lowers these two to log(1 + x) and exp(x) - 1, which cancel.
  if (element.isF32() && isa<math::Log1pOp>(op))
    return b.log1p(operands[0]);
  if (element.isF32() && isa<math::ExpM1Op>(op))
    return b.expm1(operands[0]);
  if (isa<math::IPowIOp>(op))
    return b.power(operands[0], operands[1]);
  // Between bf16 and f32 nothing is left to do but rounding.
  if (isa<arith::ExtFOp, arith::TruncFOp>(op) && getElementTypeOrSelf(operands[0].getType()) == element)
    return operands[0];
  // Processors round f64 to f32, and f32 to f16, but not one to the other.
  if (isa<arith::TruncFOp>(op) && element.isF16() && node->operands[0]->type.isF64()) {
    int64_t count = node->onColumn ? lanes : 1;
    Value single = b.create<arith::TruncFOp>(laneType(b.getF32Type(), count), operands[0]);
    return b.create<arith::TruncFOp>(laneType(element, count), single);
  }
  if (isa<arith::BitcastOp>(op)) {
    bool fromShort = node->operands[0]->type.isBF16();
    Value bits = b.bitcast(fromShort ? b.packBF16(operands[0]) : operands[0], memoryType(node->type));
    return node->type.isBF16() ? b.unpackBF16(bits) : bits;
  }
  // The processor traps on a zero divisor, which lanes behind the end of a row have.
  SmallVector<Value> safe(operands);
  if (isa<arith::DivSIOp, arith::RemSIOp>(op)) {
    Value zero = b.integer(safe[1].getType(), 0), one = b.integer(safe[1].getType(), 1);
    safe[1] = b.select(b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, safe[1], zero), one, safe[1]);
  }
  OperationState state(b.getLoc(), op->getName());
  state.addOperands(safe);
  state.addAttributes(op->getAttrs());
  state.addTypes(laneType(element, node->onColumn ? lanes : 1));
  if (isa<FloatType>(node->type) && isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp>(op))
    state.attributes.set("fastmath", arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract));
  return b.OpBuilder::create(state)->getResult(0);
}

Value NodeEmitter::emitPrimitive(const Node *node, ArrayRef<Value> operands) {
  switch (node->primitive) {
  case Primitive::Add:
    return b.add(operands[0], operands[1]);
  case Primitive::Mul:
    return b.mul(operands[0], operands[1]);
  case Primitive::Div:
    return b.create<arith::DivUIOp>(operands[0], operands[1]);
  case Primitive::Rem:
    return b.create<arith::RemUIOp>(operands[0], operands[1]);
  case Primitive::Min:
    return b.create<arith::MinSIOp>(operands[0], operands[1]);
  case Primitive::Max:
    return b.create<arith::MaxSIOp>(operands[0], operands[1]);
  case Primitive::Less:
    return b.create<arith::CmpIOp>(arith::CmpIPredicate::slt, operands[0], operands[1]);
  case Primitive::Equal:
    return b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, operands[0], operands[1]);
  case Primitive::And:
    return b.create<arith::AndIOp>(operands[0], operands[1]);
  case Primitive::Select:
    return b.select(operands[0], operands[1], operands[2]);
  case Primitive::Convert: {
    Type to = laneType(registerType(node->type), node->onColumn ? lanes : 1);
    Type from = getElementTypeOrSelf(operands[0].getType());
    if (isa<FloatType>(node->type))
      return b.create<arith::SIToFPOp>(to, operands[0]);
    if (from.getIntOrFloatBitWidth() > node->type.getIntOrFloatBitWidth())
      return b.create<arith::TruncIOp>(to, operands[0]);
    return b.create<arith::ExtSIOp>(to, operands[0]);
  }
  }
  llvm_unreachable("all primitives are handled");
}

Value NodeEmitter::rowDigit(int64_t stride, int64_t size, RowScope &row) {
  Value &digit = row.digits[{stride, size}];
  if (digit)
    return digit;
  digit = row.row;
  if (stride != 1)
    digit = b.create<arith::DivUIOp>(digit, b.i64(stride));
  if (stride * size != program.rows)
    digit = b.create<arith::RemUIOp>(digit, b.i64(size));
  return digit;
}

/// A digit of the column numbers of all lanes: an arithmetic sequence where the lanes do not cross a border of it.
NodeEmitter::Offset NodeEmitter::columnDigit(int64_t stride, int64_t size) {
  if (stride == 1 && size >= program.columns)
    return {at.column, Value(), 1};
  bool whole = lanes == 1 || at.aligned;
  if (stride == 1 && whole && size % lanes == 0)
    return {b.create<arith::RemUIOp>(at.column, b.i64(size)), Value(), 1};
  if (whole && stride % lanes == 0) {
    Value digit = b.create<arith::DivUIOp>(at.column, b.i64(stride));
    if (stride * size != program.columns)
      digit = b.create<arith::RemUIOp>(digit, b.i64(size));
    return {digit, Value(), 0};
  }
  Type narrow = laneType(b.getI32Type(), lanes), wide = laneType(b.getI64Type(), lanes);
  Value numbers = b.splat(b.create<arith::TruncIOp>(b.getI32Type(), at.column), lanes);
  numbers = b.create<arith::AddIOp>(numbers, b.laneNumbers(b.getI32Type(), lanes));
  if (stride != 1)
    numbers = b.create<arith::DivUIOp>(numbers, b.integer(narrow, stride));
  if (stride * size != program.columns)
    numbers = b.create<arith::RemUIOp>(numbers, b.integer(narrow, size));
  return {Value(), b.create<arith::ExtSIOp>(wide, numbers), 0};
}

Value NodeEmitter::emitDigit(const Index &index, RowScope &row) {
  if (index.kind == Index::Row)
    return rowDigit(index.stride, index.size, row);
  Offset digit = columnDigit(index.stride, index.size);
  if (digit.vector)
    return digit.vector;
  Value numbers = b.splat(digit.scalar, lanes);
  if (digit.lane == 0 || lanes == 1)
    return numbers;
  return b.create<arith::AddIOp>(numbers, b.laneNumbers(b.getI64Type(), lanes));
}

NodeEmitter::Offset NodeEmitter::offsetOf(const Indices &index, ArrayRef<int64_t> strides, RowScope &row) {
  Offset sum;
  int64_t constant = 0;
  auto addTerm = [&](Value &total, Value term, int64_t factor) {
    if (factor != 1)
      term = b.create<arith::MulIOp>(term, b.integer(term.getType(), factor));
    total = total ? b.create<arith::AddIOp>(total, term).getResult() : term;
  };
  for (auto [part, stride] : llvm::zip(index, strides)) {
    constant += part.add * stride;
    if (part.kind == Index::Computed) {
      Value value = emit(part.node, row);
      addTerm(isa<VectorType>(value.getType()) ? sum.vector : sum.scalar, value, part.mul * stride);
    }
  }
  for (auto [digit, factor] : mergedDigits(Index::Row, index, strides))
    addTerm(sum.scalar, rowDigit(digit.stride, digit.size, row), factor);
  for (auto [digit, factor] : mergedDigits(Index::Column, index, strides)) {
    Offset part = columnDigit(digit.stride, digit.size);
    if (part.scalar)
      addTerm(sum.scalar, part.scalar, factor);
    if (part.vector)
      addTerm(sum.vector, part.vector, factor);
    sum.lane += part.lane * factor;
  }
  if (!sum.scalar)
    sum.scalar = b.i64(constant);
  else if (constant != 0)
    sum.scalar = b.create<arith::AddIOp>(sum.scalar, b.i64(constant));
  return sum;
}

static Value elementPointer(LaneBuilder &b, Value pointer, Type element, Value offset) {
  return b.create<LLVM::GEPOp>(LLVM::LLVMPointerType::get(b.getContext()), memoryType(element), pointer,
                               ArrayRef<LLVM::GEPArg>{offset}, LLVM::GEPNoWrapFlags::inbounds);
}

/// One pointer per lane.
Value NodeEmitter::pointers(Value pointer, Type element, const Offset &offset) {
  Value numbers = b.splat(offset.scalar, lanes);
  if (offset.vector)
    numbers = b.create<arith::AddIOp>(numbers, offset.vector);
  if (offset.lane != 0) {
    Value steps = b.laneNumbers(b.getI64Type(), lanes);
    steps = b.create<arith::MulIOp>(steps, b.integer(steps.getType(), offset.lane));
    numbers = b.create<arith::AddIOp>(numbers, steps);
  }
  Type type = VectorType::get({lanes}, LLVM::LLVMPointerType::get(b.getContext()));
  return b.create<LLVM::GEPOp>(type, memoryType(element), pointer, ArrayRef<LLVM::GEPArg>{numbers},
                               LLVM::GEPNoWrapFlags::inbounds);
}

Value NodeEmitter::fromMemory(Value value, Type element) {
  if (element.isInteger(1))
    return b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, value, b.integer(value.getType(), 0));
  return element.isBF16() ? b.unpackBF16(value) : value;
}

Value NodeEmitter::toMemory(Value value, Type element) {
  if (element.isBF16())
    return b.packBF16(value);
  if (!element.isInteger(1))
    return value;
  auto vector = dyn_cast<VectorType>(value.getType());
  return b.create<arith::ExtUIOp>(laneType(b.getI8Type(), vector ? vector.getNumElements() : 1), value);
}

Value NodeEmitter::allLanes() {
  return at.mask ? at.mask
                 : b.create<arith::ConstantOp>(DenseElementsAttr::get(VectorType::get({lanes}, b.getI1Type()), true));
}

Value NodeEmitter::load(Value pointer, Type element, const Offset &offset, bool vector) {
  Type stored = memoryType(element);
  unsigned alignment = elementBytes(element);
  Value result;
  if (!vector || lanes == 1) {
    result = b.create<LLVM::LoadOp>(stored, elementPointer(b, pointer, element, offset.scalar), alignment);
  } else if (!offset.vector && offset.lane == 0) {
    result = b.create<LLVM::LoadOp>(stored, elementPointer(b, pointer, element, offset.scalar), alignment);
    result = b.splat(result, lanes);
  } else {
    Type type = laneType(stored, lanes);
    if (!offset.vector && offset.lane == 1) {
      Value address = elementPointer(b, pointer, element, offset.scalar);
      if (at.mask)
        result = b.create<LLVM::MaskedLoadOp>(type, address, at.mask, b.number(type, 0), alignment);
      else
        result = b.create<LLVM::LoadOp>(type, address, alignment);
    } else {
      result = b.create<LLVM::masked_gather>(type, pointers(pointer, element, offset), allLanes(),
                                             ValueRange{b.number(type, 0)}, alignment);
    }
  }
  return fromMemory(result, element);
}

void NodeEmitter::storeAt(Value pointer, Type element, const Offset &offset, Value value) {
  unsigned alignment = elementBytes(element);
  value = toMemory(value, element);
  if (!isa<VectorType>(value.getType())) {
    b.create<LLVM::StoreOp>(value, elementPointer(b, pointer, element, offset.scalar), alignment);
  } else if (!offset.vector && offset.lane == 1) {
    Value address = elementPointer(b, pointer, element, offset.scalar);
    if (at.mask)
      b.create<LLVM::MaskedStoreOp>(value, address, at.mask, alignment);
    else
      b.create<LLVM::StoreOp>(value, address, alignment);
  } else {
    b.create<LLVM::masked_scatter>(value, pointers(pointer, element, offset), allLanes(), alignment);
  }
}

Value NodeEmitter::loadFrom(Value pointer, Type element, Value offset, int64_t count) {
  return load(pointer, element, {offset, Value(), 1}, count > 1);
}

void NodeEmitter::storeTo(Value pointer, Type element, Value offset, Value value) {
  storeAt(pointer, element, {offset, Value(), 1}, value);
}

void NodeEmitter::store(Value value, const Root &root, RowScope &row) {
  Type element = root.nodes.front()->type;
  storeAt(results[root.result], element, offsetOf(root.index, layout.resultStrides[root.result], row), value);
}

Value NodeEmitter::scratchOf(unsigned slot, RowScope &row) {
  int64_t bytes = 0;
  for (unsigned before = 0; before < slot; ++before)
    bytes += schedule.slots[before] * llvm::alignTo(program.columns, 64);
  return elementPointer(b, row.scratch, b.getI8Type(), b.i64(bytes));
}

Value NodeEmitter::loadKept(const Node *node, RowScope &row) {
  const KernelSchedule::Kept &kept = schedule.kept.find(node)->second;
  if (kept.slot)
    return loadFrom(scratchOf(*kept.slot, row), node->type, at.column, lanes);
  return load(results[kept.root->result], node->type,
              offsetOf(kept.root->index, layout.resultStrides[kept.root->result], row), true);
}

void NodeEmitter::keep(Value value, const Node *node, RowScope &row) {
  const KernelSchedule::Kept &kept = schedule.kept.find(node)->second;
  if (kept.slot)
    storeTo(scratchOf(*kept.slot, row), node->type, at.column, value);
  else
    store(value, *kept.root, row);
}
