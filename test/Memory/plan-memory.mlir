// RUN: nd-opt %s -rt-plan-memory -split-input-file | FileCheck %s

// Scalars and metrics first, then what lasts from step to step; %a dies before %c starts, %b does not.
// CHECK-LABEL: rt.program @share attributes {arena_bytes = 1152 : i64, fixed_bytes = 640 : i64, peak_live_bytes = 1032 : i64}
rt.program @share {
  // CHECK: rt.tensor "weight" "w" at 128
  // CHECK: rt.tensor "scalar" "lr" at 0
  // CHECK: rt.tensor output "metric" "loss" at 64
  // CHECK: %[[A:.*]] = rt.buffer at 640 : memref<64xf32>
  // CHECK: %[[B:.*]] = rt.buffer at 896 : memref<64xf32>
  // CHECK: %[[C:.*]] = rt.buffer at 640 : memref<64xf32>
  %w = rt.tensor "weight" "w" : memref<128xf32>
  %lr = rt.tensor "scalar" "lr" : memref<f32>
  %loss = rt.tensor output "metric" "loss" : memref<f32>
  %a = rt.buffer : memref<64xf32>
  %b = rt.buffer : memref<64xf32>
  %c = rt.buffer : memref<64xf32>
  %v = rt.view %w : memref<128xf32> to memref<64xf32, strided<[1], offset: 64>>
  rt.copy %v to %a : memref<64xf32, strided<[1], offset: 64>> to memref<64xf32>
  rt.copy %a to %b : memref<64xf32> to memref<64xf32>
  rt.copy %b to %c : memref<64xf32> to memref<64xf32>
}

// -----

// An output lives to the end, whatever is written before or after it.
// CHECK-LABEL: rt.program @output
rt.program @output {
  // CHECK: rt.tensor output "output" "y" at [[Y:[0-9]+]]
  // CHECK-NEXT: rt.buffer at [[A:[0-9]+]]
  // CHECK-NEXT: rt.buffer at [[A]]
  %y = rt.tensor output "output" "y" : memref<16xf32>
  %a = rt.buffer : memref<32xf32>
  %b = rt.buffer : memref<32xf32>
  rt.fill_zero %y : memref<16xf32>
  rt.fill_zero %a : memref<32xf32>
  rt.fill_zero %b : memref<32xf32>
}

// -----

// A buffer in a collective belongs to the transport until the wait.
// CHECK-LABEL: rt.program @in_flight attributes {arena_bytes = 128 : i64
rt.program @in_flight {
  %a = rt.buffer : memref<16xf32>
  %b = rt.buffer : memref<16xf32>
  %e = rt.collective_start all_reduce ins(%a : memref<16xf32>) outs(%a : memref<16xf32>) axes = ["dp"] reduction = sum name = "a"
  rt.fill_zero %b : memref<16xf32>
  rt.wait %e
}

// -----

// What a loop's turn starts with lives through all turns; what a turn writes before it reads shares with other such.
// CHECK-LABEL: rt.program @loop attributes {arena_bytes = 960 : i64
rt.program @loop {
  // CHECK: %[[X:.*]] = rt.tensor "input" "x" at 0 : memref<3x16xf32>
  // CHECK: rt.buffer at [[OLD:[0-9]+]] : memref<64xf32>
  // CHECK-NEXT: rt.buffer at [[A:[0-9]+]] : memref<64xf32>
  // CHECK-NEXT: rt.buffer at [[B:[0-9]+]] : memref<64xf32>
  // CHECK-NEXT: rt.buffer at [[A]] : memref<64xf32>
  %x = rt.tensor "input" "x" : memref<3x16xf32>
  %old = rt.buffer : memref<64xf32>
  %a = rt.buffer : memref<64xf32>
  %b = rt.buffer : memref<64xf32>
  %c = rt.buffer : memref<64xf32>
  rt.fill_zero %old : memref<64xf32>
  rt.repeat count = 3 sliced(%x : memref<3x16xf32>) {
  ^bb0(%row: memref<16xf32>):
    rt.copy %old to %a : memref<64xf32> to memref<64xf32>
    rt.copy %a to %b : memref<64xf32> to memref<64xf32>
    rt.copy %b to %c : memref<64xf32> to memref<64xf32>
  }
}

// -----

// A group with two ranks on each of two nodes adds up inside the nodes first: two halves of two slots of 32 f32, at the end of the arena.
nd.mesh @mesh axes [#nd.axis<"fsdp" = 4, shard>, #nd.axis<"tp" = 2, tensor>] nodes 2
// CHECK-LABEL: rt.program @staging attributes {arena_bytes = 1152 : i64, fixed_bytes = 0 : i64, peak_live_bytes = 1132 : i64, staging_bytes = 512 : i64}
rt.program @staging {
  %g = rt.buffer : memref<124xf32>
  %s = rt.buffer : memref<31xf32>
  rt.fill_zero %g : memref<124xf32>
  %e = rt.collective_start reduce_scatter ins(%g : memref<124xf32>) outs(%s : memref<31xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "g"
  rt.wait %e
}

// -----

// Nothing has to be added up where a group has one rank on a node (dp), or is on one (tp).
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>] nodes 2
// CHECK-LABEL: rt.program @no_staging attributes {arena_bytes = 192 : i64, fixed_bytes = 0 : i64, peak_live_bytes = 192 : i64}
rt.program @no_staging {
  %g = rt.buffer : memref<32xf32>
  %s = rt.buffer : memref<16xf32>
  rt.fill_zero %g : memref<32xf32>
  %d = rt.collective_start reduce_scatter ins(%g : memref<32xf32>) outs(%s : memref<16xf32>) axes = ["dp"] dims = [0] reduction = sum name = "g"
  rt.wait %d
  %e = rt.collective_start reduce_scatter ins(%g : memref<32xf32>) outs(%s : memref<16xf32>) axes = ["tp"] dims = [0] reduction = sum name = "g"
  rt.wait %e
}
