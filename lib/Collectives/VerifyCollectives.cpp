//===- VerifyCollectives.cpp - Collectives of all ranks meet --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Collectives/Passes.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/RT/IR/Memory.h"

namespace nd {
#define GEN_PASS_DEF_VERIFYCOLLECTIVES
#include "nd/Collectives/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// One collective between its start and its wait.
struct InFlight {
  rt::CollectiveStartOp start;
  SmallVector<rt::Memory> sources, targets;
};

class Verifier {
public:
  explicit Verifier(MeshOp mesh) : mesh(mesh) {}

  LogicalResult run(Block &block) {
    SmallVector<InFlight> inFlight;
    for (Operation &op : block) {
      if (failed(verifyUses(&op, inFlight)))
        return failure();
      if (auto wait = dyn_cast<rt::WaitOp>(op))
        llvm::erase_if(inFlight, [&](InFlight &moving) { return moving.start.getEvent() == wait.getEvent(); });
      if (auto slice = dyn_cast<rt::AllSliceOp>(op); slice && failed(verifySlice(slice)))
        return failure();
      if (auto start = dyn_cast<rt::CollectiveStartOp>(op)) {
        if (failed(verifySizes(start)) || failed(verifyWait(start)))
          return failure();
        inFlight.push_back({start, llvm::map_to_vector(start.getSources(), rt::getMemory),
                            llvm::map_to_vector(start.getTargets(), rt::getMemory)});
      }
      for (Region &region : op.getRegions())
        for (Block &body : region)
          if (!isa<rt::KernelOp>(op) && failed(run(body)))
            return failure();
    }
    return success();
  }

private:
  /// The number of ranks in the group along the axes.
  FailureOr<int64_t> sizeOf(Operation *op, ArrayAttr axes) {
    int64_t size = 1;
    SmallPtrSet<Attribute, 4> seen;
    for (auto name : axes.getAsRange<StringAttr>()) {
      MeshAxisAttr axis = mesh ? mesh.findAxis(name) : MeshAxisAttr();
      if (!axis)
        return op->emitOpError("is over axis ") << name << ", which no nd.mesh of the module has";
      if (!seen.insert(name).second)
        return op->emitOpError("is over axis ") << name << " twice";
      size *= axis.getSize();
    }
    return size;
  }

  LogicalResult verifySlice(rt::AllSliceOp op) {
    FailureOr<int64_t> size = sizeOf(op, op.getAxes());
    if (failed(size))
      return failure();
    return verifyPart(op, op.getTarget().getType(), op.getSource().getType(), op.getDim(), *size);
  }

  /// `part` is one of `size` equal parts of `whole` along `dim`.
  LogicalResult verifyPart(Operation *op, MemRefType part, MemRefType whole, int64_t dim, int64_t size) {
    SmallVector<int64_t> expected(part.getShape());
    expected[dim] *= size;
    if (whole.getShape() == ArrayRef<int64_t>(expected))
      return success();
    return op->emitOpError("is over a group of ") << size << " ranks, but " << part << " is not one of " << size
                                                  << " parts of " << whole << " along dimension " << dim;
  }

  LogicalResult verifySizes(rt::CollectiveStartOp start) {
    FailureOr<int64_t> size = sizeOf(start, start.getAxes());
    if (failed(size))
      return failure();
    auto typeOf = [](Value value) { return cast<MemRefType>(value.getType()); };
    for (auto [index, values] : llvm::enumerate(llvm::zip_equal(start.getSources(), start.getTargets()))) {
      MemRefType source = typeOf(std::get<0>(values)), target = typeOf(std::get<1>(values));
      if (start.getKind() == rt::CollectiveKind::all_gather &&
          failed(verifyPart(start, source, target, start.getDims()[index], *size)))
        return failure();
      if (start.getKind() == rt::CollectiveKind::reduce_scatter &&
          failed(verifyPart(start, target, source, start.getDims()[index], *size)))
        return failure();
      if (start.getKind() == rt::CollectiveKind::all_to_all && source.getDimSize(start.getDims()[0]) % *size != 0)
        return start.emitOpError("cuts dimension ") << start.getDims()[0] << " of " << source << " into " << *size
                                                    << " parts, one for each rank of its group";
    }
    if (start.getKind() != rt::CollectiveKind::permute)
      return success();
    SmallVector<int64_t> from(start.getPermutation());
    llvm::sort(from);
    if (!llvm::equal(from, llvm::seq<int64_t>(*size)))
      return start.emitOpError("sends nothing to some position and two things to another, or waits for one that its "
                               "group of ")
             << *size << " ranks does not have: [" << start.getPermutation() << ']';
    return success();
  }

  LogicalResult verifyWait(rt::CollectiveStartOp start) {
    for (Operation *user : start.getEvent().getUsers())
      if (isa<rt::WaitOp>(user) && user->getBlock() != start->getBlock()) {
        InFlightDiagnostic diagnostic =
            start.emitOpError("is waited for in another block: once in each turn of a loop, or not in each");
        diagnostic.attachNote(user->getLoc()) << "the wait is here";
        return diagnostic;
      }
    return success();
  }

  /// Nothing that an operation does may touch what is moving.
  LogicalResult verifyUses(Operation *op, MutableArrayRef<InFlight> inFlight) {
    if (inFlight.empty() || isa<rt::ViewOp, rt::WaitOp>(op))
      return success();
    LogicalResult result = success();
    op->walk([&](Operation *inner) {
      if (isa<rt::ViewOp, rt::WaitOp, rt::RepeatOp>(inner))
        return WalkResult::advance();
      rt::Accesses accesses(inner);
      for (const SmallVector<Value> *buffers : {&accesses.read, &accesses.written})
        for (Value buffer : *buffers)
          if (failed(result = verifyUse(inner, buffer, buffers == &accesses.written, inFlight)))
            return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return result;
  }

  LogicalResult verifyUse(Operation *op, Value buffer, bool isWritten, MutableArrayRef<InFlight> inFlight) {
    rt::Memory memory = rt::getMemory(buffer);
    auto overlaps = [&](const rt::Memory &other) { return memory.overlaps(other); };
    for (InFlight &moving : inFlight) {
      bool isReceived = llvm::any_of(moving.targets, overlaps);
      if (!isReceived && !(isWritten && llvm::any_of(moving.sources, overlaps)))
        continue;
      InFlightDiagnostic diagnostic = op->emitOpError(isReceived ? "uses memory that a collective is receiving"
                                                                 : "writes memory that a collective is sending");
      diagnostic << " (" << moving.start.getNameAttr() << "), before it is waited for";
      diagnostic.attachNote(moving.start.getLoc()) << "it is started here";
      return diagnostic;
    }
    return success();
  }

  MeshOp mesh;
};

struct VerifyCollectives : nd::impl::VerifyCollectivesBase<VerifyCollectives> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<MeshOp> meshes(module.getOps<MeshOp>());
    MeshOp mesh = meshes.empty() ? MeshOp() : meshes.front();
    for (auto program : module.getOps<rt::ProgramOp>())
      if (failed(Verifier(mesh).run(program.getBody().front())))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
