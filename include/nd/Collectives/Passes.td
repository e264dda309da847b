//===- Passes.td - What becomes of collectives --------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_COLLECTIVES_PASSES_TD
#define ND_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def CombineCollectives : Pass<"nd-combine-collectives", "::mlir::ModuleOp"> {
  let summary = "make few large all-reduces of many small ones";
  let description = [{
    All-reduces of one group, reduction and element type become one `nd.all_reduce` of several operands, in program order: that is the order in which
    gradients become ready. One is complete when it holds `bucket-bytes` (a larger tensor has one of its own) and stands where its last operand is ready. Operations that
    wait for it move behind it, unless a later collective waits for them: then it is complete before. All-reduces of single numbers stay apart.
  }];
  let options = [Option<"bucketBytes", "bucket-bytes", "int64_t", "33554432", "bytes on a rank that complete a collective">];
  let dependentDialects = ["::nd::NDDialect"];
}

#endif // ND_COLLECTIVES_PASSES_TD
