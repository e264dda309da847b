//===- VerifyMemory.cpp - What is read has been written --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Follows a planned program and remembers of every byte of the arena which buffer it belongs to, and whether that has
// been written. A buffer that is written takes all of its memory: who held it before has lost it. So
//
//   - a buffer is read only where it holds what was written to it;
//   - what an operation reads and writes stays as it is until the operation ends;
//   - tensors of the program, which others read, hold their values at the end;
//   - nothing lies behind the arena, or in its end, which belongs to the transport.
//
// A collective reads and writes at its start; until its wait nothing else may touch that memory
// (rt-verify-collectives). A loop is followed for two turns: the second finds what the first leaves behind.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/RT/IR/Memory.h"
#include "nd/Memory/Passes.h"

#include <map>

using namespace mlir;
using namespace nd;

namespace nd {
#define GEN_PASS_DEF_RTVERIFYMEMORY
#include "nd/Memory/Passes.h.inc"
} // namespace nd

namespace {

/// Whom bytes belong to. They are disjoint pieces; equal neighbours are one.
class Owners {
public:
  struct Piece {
    int64_t end;
    Operation *root;
    bool written;
    Operation *writer; ///< the last
  };

  void assign(rt::Memory memory, Operation *root, bool written, Operation *writer) {
    if (memory.begin >= memory.end)
      return;
    Pieces &pieces = spaces[memory.space];
    split(pieces, memory.begin);
    split(pieces, memory.end);
    auto it = pieces.erase(pieces.lower_bound(memory.begin), pieces.lower_bound(memory.end));
    it = pieces.insert(it, {memory.begin, {memory.end, root, written, writer}});
    if (auto next = std::next(it); next != pieces.end() && isJoined(it->second, *next)) {
      it->second.end = next->second.end;
      pieces.erase(next);
    }
    if (it == pieces.begin())
      return;
    if (auto before = std::prev(it); isJoined(before->second, *it)) {
      before->second.end = it->second.end;
      before->second.writer = writer;
      pieces.erase(it);
    }
  }

  /// Calls `visit` with the bytes of each piece within the memory, and null for what nobody has written.
  void visit(rt::Memory memory, llvm::function_ref<void(rt::Memory, const Piece *)> visit) {
    Pieces &pieces = spaces[memory.space];
    auto it = pieces.upper_bound(memory.begin);
    if (it != pieces.begin())
      --it;
    for (int64_t at = memory.begin; at < memory.end;) {
      while (it != pieces.end() && it->second.end <= at)
        ++it;
      bool isHeld = it != pieces.end() && it->first <= at;
      int64_t end = std::min(memory.end, isHeld ? it->second.end : it != pieces.end() ? it->first : memory.end);
      visit({memory.space, at, end}, isHeld ? &it->second : nullptr);
      at = end;
    }
  }

private:
  using Pieces = std::map<int64_t, Piece>; ///< by their first byte

  static bool isJoined(const Piece &piece, const std::pair<const int64_t, Piece> &next) {
    return piece.end == next.first && piece.root == next.second.root && piece.written == next.second.written;
  }

  static void split(Pieces &pieces, int64_t at) {
    auto it = pieces.lower_bound(at);
    if (it == pieces.begin() || std::prev(it)->second.end <= at)
      return;
    --it;
    Piece rest = it->second;
    it->second.end = at;
    pieces.insert({at, rest});
  }

  llvm::DenseMap<Operation *, Pieces> spaces;
};

/// Whether the bytes from the first to the last are all of the buffer's.
bool isDense(MemRefType type) {
  rt::Layout layout = rt::getLayout(type);
  int64_t elements = 1;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), layout.strides))
    elements *= stride == 0 ? 1 : size;
  return elements == rt::getExtent(type) - layout.offset;
}

class Verifier {
public:
  LogicalResult run(rt::ProgramOp program) {
    if (failed(verifyPlaces(program)))
      return failure();
    auto tensors = llvm::to_vector(program.getBody().getOps<rt::TensorOp>());
    for (rt::TensorOp tensor : tensors)
      if (!tensor.getOutput())
        write(tensor, tensor.getBuffer());
    if (failed(run(program.getBody().front())))
      return failure();
    for (rt::TensorOp tensor : tensors)
      if (failed(read(tensor, tensor.getBuffer(), "ends the step without its value:")))
        return failure();
    return success();
  }

private:
  static LogicalResult verifyPlaces(rt::ProgramOp program) {
    if (!program.getArenaBytes())
      return success();
    auto end = static_cast<int64_t>(*program.getArenaBytes() - program.getStagingBytes().value_or(0));
    for (Operation &op : program.getBody().front()) {
      if (!isa<rt::TensorOp, rt::BufferOp>(op))
        continue;
      rt::Memory memory = rt::getMemory(op.getResult(0));
      if (!memory.space && memory.end > end)
        return op.emitOpError("ends at byte ") << memory.end << ", but memory for buffers ends at " << end;
    }
    return success();
  }

  LogicalResult run(Block &block) {
    for (Operation &op : block) {
      if (isa<rt::ViewOp, rt::TensorOp, rt::BufferOp, rt::ConstantOp>(op))
        continue;
      if (auto loop = dyn_cast<rt::RepeatOp>(op)) {
        for (int64_t turn = 0; turn < std::min<int64_t>(loop.getCount(), 2); ++turn)
          if (failed(run(loop.getBody().front())))
            return failure();
        continue;
      }
      if (failed(verify(&op)))
        return failure();
    }
    return success();
  }

  LogicalResult verify(Operation *op) {
    rt::Accesses accesses(op);
    for (Value buffer : accesses.read)
      if (failed(read(op, buffer, "reads")))
        return failure();
    bool takes = false;
    for (Value buffer : accesses.written)
      takes |= write(op, buffer);
    if (!takes)
      return success();
    for (Value buffer : llvm::concat<Value>(accesses.read, accesses.written))
      if (failed(read(op, buffer, "writes over")))
        return failure();
    return success();
  }

  /// Whether the memory was another's until now.
  bool write(Operation *op, Value buffer) {
    Value root = rt::getRoot(buffer);
    if (isa<rt::ConstantOp>(root.getDefiningOp()))
      return false;
    bool takes = false;
    SmallVector<rt::Memory> lost;
    owners.visit(rt::getMemory(root), [&](rt::Memory memory, const Owners::Piece *piece) {
      if (piece && piece->root == root.getDefiningOp())
        return;
      takes |= piece != nullptr;
      lost.push_back(memory);
    });
    for (rt::Memory memory : lost)
      owners.assign(memory, root.getDefiningOp(), /*written=*/false, op);
    owners.assign(rt::getMemory(buffer), root.getDefiningOp(), /*written=*/true, op);
    return takes;
  }

  /// A buffer with gaps may have some that nothing writes.
  LogicalResult read(Operation *op, Value buffer, StringRef does) {
    Operation *root = rt::getRoot(buffer).getDefiningOp();
    if (isa<rt::ConstantOp>(root))
      return success();
    rt::Memory memory = rt::getMemory(buffer);
    bool hasAll = true, hasAny = memory.begin >= memory.end;
    Operation *thief = nullptr;
    owners.visit(memory, [&](rt::Memory, const Owners::Piece *piece) {
      bool isWritten = piece && piece->root == root && piece->written;
      hasAll &= isWritten;
      hasAny |= isWritten;
      if (piece && piece->root != root)
        thief = piece->writer;
    });
    if (!thief && (hasAll || (hasAny && !isDense(cast<MemRefType>(buffer.getType())))))
      return success();
    InFlightDiagnostic diagnostic = op->emitOpError(does) << ' ' << describe(root);
    if (!thief)
      return diagnostic << (hasAny ? ", a part of which nothing has written" : ", which nothing has written");
    diagnostic << ", whose memory holds something else";
    diagnostic.attachNote(thief->getLoc()) << "it is written here";
    return diagnostic;
  }

  static std::string describe(Operation *root) {
    std::string text;
    llvm::raw_string_ostream out(text);
    if (auto tensor = dyn_cast<rt::TensorOp>(root))
      out << tensor.getKind() << " '" << tensor.getTensorName() << "'";
    else
      out << "a buffer (" << root->getResult(0).getType() << ")";
    return text;
  }

  Owners owners;
};

struct VerifyMemory : nd::impl::RTVerifyMemoryBase<VerifyMemory> {
  void runOnOperation() override {
    if (failed(Verifier().run(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
