// RUN: nd-opt %s -pass-pipeline='builtin.module(rt.program(rt-verify-gathers))' -split-input-file -verify-diagnostics

// Gathered once for all microbatches: in front of their loop, however many units that is ahead.
nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]
rt.program @once {
  %a = rt.buffer : memref<4xf32>
  %o = rt.buffer : memref<8xf32>
  %b0 = rt.buffer : memref<8xf32>
  %b1 = rt.buffer : memref<8xf32>
  %b2 = rt.buffer : memref<8xf32>
  %e0 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b0 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.once, nd.unit = "h.0"}
  %e1 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b1 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.once, nd.unit = "h.1"}
  %e2 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b2 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.once, nd.unit = "h.2"}
  rt.wait %e0
  rt.wait %e1
  rt.wait %e2
  rt.repeat count = 2 {
    rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
    rt.copy %b1 to %o : memref<8xf32> to memref<8xf32>
    rt.copy %b2 to %o : memref<8xf32> to memref<8xf32>
  }
}

// -----

// Not marked: it belongs into the loop.
nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]
rt.program @moved_out {
  %a = rt.buffer : memref<4xf32>
  %o = rt.buffer : memref<8xf32>
  %b0 = rt.buffer : memref<8xf32>
  %b1 = rt.buffer : memref<8xf32>
  %b2 = rt.buffer : memref<8xf32>
  %e0 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b0 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.0"}
  %e1 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b1 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.1"}
  // expected-error @+1 {{gathers 'h.2' 2 units before its first reader; at most 1 are allowed}}
  %e2 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b2 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.2"}
  rt.wait %e0
  rt.wait %e1
  rt.wait %e2
  rt.repeat count = 2 {
    rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
    rt.copy %b1 to %o : memref<8xf32> to memref<8xf32>
    rt.copy %b2 to %o : memref<8xf32> to memref<8xf32>
  }
}
