//===- VerifySharding.cpp - Recompute the state of every value ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Verify/GlobalVerifier.h"
#include "Verify/LocalVerifier.h"
#include "nd/Sharding/Passes.h"

namespace nd {
#define GEN_PASS_DEF_VERIFYSHARDING
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

bool hasEncodings(Program &program) {
  auto isEncoded = [](Type type) { return static_cast<bool>(cast<RankedTensorType>(type).getEncoding()); };
  return llvm::any_of(program.function.getArgumentTypes(), isEncoded) ||
         llvm::any_of(program.function.getResultTypes(), isEncoded);
}

/// There is one as long as every pass since the last verification has preserved all, so has changed nothing.
struct Verified {
  explicit Verified(Operation *) {}
};

struct VerifySharding : nd::impl::VerifyShardingBase<VerifySharding> {
  void runOnOperation() override {
    if (getCachedAnalysis<Verified>())
      return markAllAnalysesPreserved();
    FailureOr<Program> program = Program::getWithMesh(getOperation());
    if (failed(program))
      return signalPassFailure();
    if (failed(hasEncodings(*program) ? GlobalVerifier(*program).run() : LocalVerifier(*program).run()))
      return signalPassFailure();
    getAnalysis<Verified>();
    markAllAnalysesPreserved();
  }
};

} // namespace
