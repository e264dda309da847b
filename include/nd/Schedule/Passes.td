//===- Passes.td - When collectives start -------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SCHEDULE_PASSES_TD
#define ND_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ScheduleCollectives : Pass<"nd-schedule-collectives", "::mlir::ModuleOp"> {
  let summary = "start collectives early, and read their results late";
  let description = [{
    A collective starts where its operation stands and is waited for before its first reader. This pass puts computation between the two.

    Gathers of a unit (those with one `nd.unit`, and what they need of the arguments) move to the first reader of the unit before, in the order in which the
    program needs units: then at most this unit and the next are gathered. With `prefetch-units` = N a gather moves up to N units ahead, but no farther than
    the computation in between hides it on the `system`.

    Reductions that no product or attention waits for are those of gradients and metrics. What reads them is held back until as many bytes (at most N buckets of 32 MiB) have started behind, or
    until the end, in the order of the program.

    Hops of a ring of keys and values stand before the attention that runs meanwhile.

    Runs on the sharded step, and once more when kernels are formed: that moves computation, and the gathers keep their distance (`nd.ahead`).

    ```mlir
    %g1 = nd.all_gather %w1 ... {nd.unit = "h.1"}
    %x1 = nd.dot_general %x0, %g0 ...
    %x2 = nd.dot_general %x1, %g1 ...
    ```
  }];
  let options = [
    Option<"prefetchUnits", "prefetch-units", "int64_t", "0", "units that gathers run ahead at most; 0: as nd.plan says, or 1">,
    Option<"systemName", "system", "std::string", "\"host\"", "what the step runs on: a system's name, or a file">
  ];
}

def VerifyGathers : Pass<"rt-verify-gathers", "::nd::rt::ProgramOp"> {
  let summary = "check that parameters are gathered neither too early nor kept too long";
  let description = [{
    Fails where the gathers of a unit start more units before its first reader than `nd.plan` says (`prefetch_units`), or where a unit that is gathered again
    for backward is still read when the second unit after it is in use. What is marked as gathered once a step (`nd.once`) may stand in front of the loop over
    microbatches.
  }];
}

#endif // ND_SCHEDULE_PASSES_TD
