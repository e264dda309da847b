// RUN: nd-opt %s -pass-pipeline='builtin.module(rt.program(rt-verify-gathers))' -split-input-file -verify-diagnostics

// A unit ahead; h.0 is read while h.1 is in use, and given back before h.2 is. The unit inside of h.1 does not count, and the head is kept.
nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]
rt.program @right {
  %a = rt.buffer : memref<4xf32>
  %o = rt.buffer : memref<8xf32>
  %b0 = rt.buffer : memref<8xf32>
  %b1 = rt.buffer : memref<8xf32>
  %b2 = rt.buffer : memref<8xf32>
  %b3 = rt.buffer : memref<8xf32>
  %b4 = rt.buffer : memref<8xf32>
  %b5 = rt.buffer : memref<8xf32>
  %e0 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b0 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.0"}
  rt.wait %e0
  %e1 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b1 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.1"}
  rt.wait %e1
  rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
  %e2 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b2 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.1.mlp"}
  rt.wait %e2
  rt.copy %b1 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
  %e3 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b3 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.2"}
  rt.wait %e3
  rt.copy %b2 to %o : memref<8xf32> to memref<8xf32>
  %e4 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b4 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "head"}
  rt.wait %e4
  rt.copy %b3 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b1 to %o : memref<8xf32> to memref<8xf32>
  %e5 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b5 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.1, again"}
  rt.wait %e5
  rt.copy %b4 to %o : memref<8xf32> to memref<8xf32>
  %e6 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b0 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.0, again"}
  rt.wait %e6
  rt.copy %b5 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b4 to %o : memref<8xf32> to memref<8xf32>
}

// -----

// Two units ahead: three are gathered at a time.
nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]
rt.program @early {
  %a = rt.buffer : memref<4xf32>
  %o = rt.buffer : memref<8xf32>
  %b0 = rt.buffer : memref<8xf32>
  %b1 = rt.buffer : memref<8xf32>
  %b2 = rt.buffer : memref<8xf32>
  %e0 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b0 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.0"}
  rt.wait %e0
  %e1 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b1 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.1"}
  rt.wait %e1
  // expected-error @+1 {{gathers 'h.2' 2 units before its first reader; at most 1 are allowed}}
  %e2 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b2 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.2"}
  rt.wait %e2
  rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b1 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b2 to %o : memref<8xf32> to memref<8xf32>
}

// -----

// Unless the plan says so.
module attributes {nd.plan = {prefetch_units = 2 : i64}} {
nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]
rt.program @planned {
  %a = rt.buffer : memref<4xf32>
  %o = rt.buffer : memref<8xf32>
  %b0 = rt.buffer : memref<8xf32>
  %b1 = rt.buffer : memref<8xf32>
  %b2 = rt.buffer : memref<8xf32>
  %e0 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b0 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.0"}
  rt.wait %e0
  %e1 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b1 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.1"}
  rt.wait %e1
  %e2 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b2 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.2"}
  rt.wait %e2
  rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b1 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b2 to %o : memref<8xf32> to memref<8xf32>
}
}

// -----

// Backward gathers h.0 again, but something still reads what forward gathered.
nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]
rt.program @kept {
  %a = rt.buffer : memref<4xf32>
  %o = rt.buffer : memref<8xf32>
  %b0 = rt.buffer : memref<8xf32>
  %b1 = rt.buffer : memref<8xf32>
  %b2 = rt.buffer : memref<8xf32>
  %b3 = rt.buffer : memref<8xf32>
  %e0 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b0 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.0"}
  rt.wait %e0
  %e1 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b1 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.1"}
  rt.wait %e1
  rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
  %e2 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b2 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.2"}
  rt.wait %e2
  rt.copy %b1 to %o : memref<8xf32> to memref<8xf32>
  rt.copy %b2 to %o : memref<8xf32> to memref<8xf32>
  // expected-error @+1 {{reads gathered parameters of 'h.0' behind the first reader of 'h.2', two units later; they have to be given back before}}
  rt.copy %b0 to %o : memref<8xf32> to memref<8xf32>
  %e3 = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b3 : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w" {nd.unit = "h.0, again"}
  rt.wait %e3
  rt.copy %b3 to %o : memref<8xf32> to memref<8xf32>
}
