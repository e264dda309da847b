//===- KernelEmitter.cpp - Plans, keys and emission of kernels ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Codegen/Kernels/KernelEmitter.h"
#include "KernelLayout.h"
#include "VectorMath.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace nd;

static SmallVector<int64_t> stridesOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    strides.clear();
  return strides;
}

/// Whether an access reaches all of one run of `count` elements, each at its own number.
static bool isContiguous(const Indices &index, ArrayRef<int64_t> strides, int64_t count) {
  int64_t covered = 1;
  for (auto [part, stride] : llvm::zip(index, strides)) {
    if (part.kind == Index::Zero && part.add == 0)
      continue;
    if (part.kind != Index::Column || !part.isPlain() || part.stride != stride)
      return false;
    covered *= part.size;
  }
  return covered == count;
}

static bool isUniform(const Indices &index) {
  return llvm::all_of(index, [](const Index &part) { return part.kind == Index::Zero && part.add == 0; });
}

/// Whether the elements of all operands and results lie one after the other in the same order.
static bool isFlat(const KernelProgram &program, const KernelLayout &layout) {
  for (const Node &node : program.nodes) {
    if (node.kind == Node::Digit || node.kind == Node::Primitive)
      return false;
    if (node.kind == Node::Load && !isUniform(node.index) &&
        !isContiguous(node.index, layout.inputStrides[node.input], program.columns))
      return false;
  }
  return llvm::all_of(program.roots, [&](const Root &root) {
    return isContiguous(root.index, layout.resultStrides[root.result], program.columns);
  });
}

std::unique_ptr<KernelLayout> KernelLayout::create(const KernelSpec &spec, std::string &error) {
  auto layout = std::make_unique<KernelLayout>();
  KernelBody body = KernelBody::of(spec.op);
  if (spec.inputTypes.size() != body.inputs.size() || spec.resultTypes.size() != body.results.size() ||
      spec.inPlaceOf.size() != body.results.size()) {
    error = "it has not one layout for each operand and result";
    return nullptr;
  }
  auto collect = [&](ArrayRef<MemRefType> types, ArrayRef<Value> values, SmallVector<SmallVector<int64_t>> &strides) {
    for (auto [type, value] : llvm::zip(types, values)) {
      strides.push_back(stridesOf(type));
      if (type.getShape() != cast<RankedTensorType>(value.getType()).getShape() ||
          strides.back().size() != type.getShape().size() || llvm::any_of(strides.back(), ShapedType::isDynamic)) {
        error = "a layout is not that of its operand's shape with static strides";
        return false;
      }
    }
    return true;
  };
  if (!collect(spec.inputTypes, body.inputs, layout->inputStrides) ||
      !collect(spec.resultTypes, body.results, layout->resultStrides))
    return nullptr;

  std::string ignored;
  layout->program = KernelProgram::buildFlat(body, ignored);
  if (layout->program && (layout->program->columns == 1 || !isFlat(*layout->program, *layout)))
    layout->program = nullptr;
  if (!layout->program)
    layout->program = KernelProgram::build(body, error);
  if (!layout->program)
    return nullptr;
  KernelProgram &program = *layout->program;
  layout->schedule = std::make_unique<KernelSchedule>(program);
  layout->lanes = program.form == KernelProgram::Flat
                      ? 32
                      : std::min<int64_t>(32, llvm::PowerOf2Ceil(std::max<int64_t>(program.columns, 1)));
  if (program.form == KernelProgram::Rows && program.hasColumnReductions()) {
    int64_t wanted = program.rows <= 512 ? 16 : 32;
    layout->chunkRows = llvm::alignTo(std::max<int64_t>(llvm::divideCeil(program.rows, wanted), 8), rowsPerBlock);
    layout->chunks = llvm::divideCeil(program.rows, layout->chunkRows);
  } else if (program.form == KernelProgram::Total) {
    layout->chunks = llvm::divideCeil(program.columns, totalChunk);
  }
  return layout;
}

int64_t KernelLayout::scratchRowBytes() const {
  int64_t bytes = 0;
  for (int64_t slot : schedule->slots)
    bytes += slot * llvm::alignTo(program->columns, 64);
  return bytes;
}

Type nd::sumType(const Root &root) { return registerType(root.nodes.front()->type); }

int64_t KernelLayout::partialOffset(const Root &root) const {
  int64_t bytes = 0;
  for (const Root &other : program->roots) {
    if (&other == &root)
      break;
    if (other.kind == Root::ColumnReduce)
      bytes += elementBytes(sumType(other)) * chunks * llvm::alignTo(program->columns, 64);
    else if (other.kind == Root::Total)
      bytes += elementBytes(sumType(other)) * llvm::alignTo(chunks, 64);
  }
  return bytes;
}

int64_t KernelLayout::partialBytes() const {
  if (form() == KernelProgram::Columns || chunks == 0 || (form() == KernelProgram::Total && chunks == 1))
    return 0;
  static const Root none{};
  return partialOffset(none);
}

FailureOr<KernelPlan> nd::planKernel(const KernelSpec &spec) {
  if (Operation *special = specialOf(spec.op))
    return planSpecial(special, spec);
  std::string error;
  std::unique_ptr<KernelLayout> layout = KernelLayout::create(spec, error);
  if (!layout)
    return KernelOp(spec.op).emitOpError("is not one loop nest: ") << error << "; run nd-form-kernels to form kernels";
  const KernelProgram &program = *layout->program;
  KernelPlan plan;
  plan.workspaceBytes = layout->partialBytes();
  switch (program.form) {
  case KernelProgram::Flat:
    plan.extent = program.columns, plan.grain = elementGrain;
    break;
  case KernelProgram::Rows:
    plan.scratchBytes = layout->scratchRowBytes() * (layout->chunks ? rowsPerBlock : 1);
    plan.extent = layout->chunks ? layout->chunks : program.rows;
    plan.grain = layout->chunks || program.columns >= 4096 ? 1 : std::min(rowsPerBlock, program.rows);
    if (plan.workspaceBytes)
      plan.finish = KernelPhase{program.columns, elementGrain};
    break;
  case KernelProgram::Columns:
    if (program.outer == 1)
      plan.extent = program.columns, plan.grain = elementGrain;
    else
      plan.extent = program.outer, plan.grain = 1;
    break;
  case KernelProgram::Total:
    plan.extent = layout->chunks, plan.grain = 1;
    if (plan.workspaceBytes)
      plan.finish = KernelPhase{1, 1};
    break;
  }
  return plan;
}

bool nd::canComputeInPlace(KernelOp op, unsigned result, unsigned input, MemRefType inputType, MemRefType resultType) {
  if (inputType.getElementType() != resultType.getElementType() || inputType.getShape() != resultType.getShape() ||
      stridesOf(inputType) != stridesOf(resultType))
    return false;
  if (Operation *special = specialOf(op)) {
    auto scatter = dyn_cast<ScatterAddOp>(special);
    Block &body = op.getBody().front();
    return scatter && scatter.getInit() == body.getArgument(input);
  }
  std::string error;
  std::unique_ptr<KernelProgram> program = KernelProgram::build(KernelBody::of(op), error);
  if (!program || program->form == KernelProgram::Columns || program->form == KernelProgram::Total)
    return false;
  const Root *root = llvm::find_if(program->roots, [&](const Root &root) { return root.result == result; });
  if (root->kind == Root::ColumnReduce)
    return false;
  KernelSchedule schedule(*program);
  // In rows, values that depend on the row alone are loaded before the stage of their level and stored after the last
  // stage.
  unsigned write = root->kind == Root::Full ? schedule.firstWrite.lookup(root) : schedule.numStages;
  for (const Node &node : program->nodes) {
    if (node.kind != Node::Load || node.input != input)
      continue;
    unsigned read = node.onColumn ? schedule.lastUse.lookup(&node) : node.level;
    if (read > write)
      return false;
    if (node.index == root->index)
      continue;
    // One element of the same row, read before the row is written.
    bool sameRow =
        !node.onColumn && root->kind == Root::Full && llvm::all_of(llvm::zip(node.index, root->index), [](auto pair) {
          auto [mine, other] = pair;
          return mine == other || (other.kind == Index::Column && mine.kind != Index::Row);
        });
    if (!sameRow)
      return false;
  }
  return true;
}

LogicalResult nd::emitKernel(OpBuilder &moduleBuilder, const KernelSpec &spec, const KernelPlan &plan, StringRef name) {
  if (Operation *special = specialOf(spec.op)) {
    emitSpecial(moduleBuilder, special, spec, name);
    return success();
  }
  std::string error;
  std::unique_ptr<KernelLayout> layout = KernelLayout::create(spec, error);
  if (!layout)
    return KernelOp(spec.op).emitOpError("is not one loop nest: ") << error;
  emitProgram(moduleBuilder, *layout, spec, plan, name);
  return success();
}

namespace {
/// Writes a program so that equal text means equal code.
class KeyWriter {
public:
  KeyWriter(const KernelLayout &layout, const KernelSpec &spec) : layout(layout), spec(spec), stream(text) {}

  std::string write() {
    const KernelProgram &program = *layout.program;
    bool flat = program.form == KernelProgram::Flat;
    stream << "form " << program.form;
    if (!flat)
      stream << " domain " << program.outer << ' ' << program.rows << ' ' << program.columns;
    for (const Segment &segment : program.segments)
      if (!flat)
        stream << " segment " << segment.begin << ' ' << segment.end;
    for (const Node &node : program.nodes)
      writeNode(node, flat);
    for (const Root &root : program.roots) {
      stream << "\nroot " << root.kind << ' ' << root.result << ' ' << static_cast<int>(root.reduction);
      for (const Node *node : root.nodes)
        stream << " %" << node->id;
      if (!flat)
        writeIndex(root.index, layout.resultStrides[root.result]);
    }
    for (std::optional<unsigned> input : spec.inPlaceOf)
      stream << (input ? " in place of " : " ") << (input ? *input : 0);
    stream << "\ninputs " << program.numInputs;
    return text;
  }

private:
  void writeIndex(const Indices &index, ArrayRef<int64_t> strides) {
    for (auto [part, stride] : llvm::zip(index, strides)) {
      stream << " [" << part.kind << ' ' << part.stride << ' ' << part.size << ' ' << part.mul << ' ' << part.add
             << " by " << stride;
      if (part.node)
        stream << " %" << part.node->id;
      stream << ']';
    }
  }

  void writeNode(const Node &node, bool flat) {
    stream << "\n%" << node.id << ' ' << node.kind << ' ' << node.type;
    if (node.op)
      stream << ' ' << node.op->getName() << ' ' << node.op->getAttrDictionary();
    if (node.kind == Node::Primitive)
      stream << ' ' << static_cast<int>(node.primitive);
    if (node.constant)
      stream << ' ' << node.constant;
    for (const Node *operand : node.operands)
      stream << " %" << operand->id;
    if (node.kind == Node::Load) {
      stream << " input " << node.input;
      if (flat)
        stream << (isUniform(node.index) ? " uniform" : "");
      else
        writeIndex(node.index, layout.inputStrides[node.input]);
    } else if (node.kind == Node::Digit) {
      writeIndex(node.index, {0});
    }
  }

  const KernelLayout &layout;
  const KernelSpec &spec;
  std::string text;
  llvm::raw_string_ostream stream;
};
} // namespace

std::string nd::kernelKey(const KernelSpec &spec) {
  std::string error;
  if (Operation *special = specialOf(spec.op)) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << special->getName() << ' ' << special->getAttrDictionary();
    Block &body = KernelOp(spec.op).getBody().front();
    for (Value operand : special->getOperands())
      stream << ' ' << llvm::find(body.getArguments(), operand) - body.getArguments().begin();
    for (MemRefType type : spec.inputTypes)
      stream << ' ' << type;
    for (MemRefType type : spec.resultTypes)
      stream << ' ' << type;
    for (std::optional<unsigned> input : spec.inPlaceOf)
      stream << (input ? " in place" : " apart");
    return text;
  }
  std::unique_ptr<KernelLayout> layout = KernelLayout::create(spec, error);
  // A kernel that cannot be emitted shares nothing; its emission reports why.
  return layout ? KeyWriter(*layout, spec).write()
                : llvm::formatv("kernel {0}", KernelOp(spec.op).getOperation()).str();
}
