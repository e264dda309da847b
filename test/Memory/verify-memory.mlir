// RUN: nd-opt %s -pass-pipeline='builtin.module(rt.program(rt-verify-memory))' -split-input-file -verify-diagnostics

// What is right: parts make a whole, memory is used again behind its last reader, columns are written and read with gaps between them, and a
// loop reads what each of its turns writes.
rt.program @right {
  %w = rt.tensor "weight" "w" at 0 : memref<4xf32>
  %rows = rt.tensor "input" "rows" at 64 : memref<3x4xf32>
  %o = rt.tensor output "output" "o" at 128 : memref<8xf32>
  %a = rt.buffer at 192 : memref<8xf32>
  %upper = rt.view %a : memref<8xf32> to memref<4xf32, strided<[1]>>
  %lower = rt.view %a : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  rt.copy %w to %upper : memref<4xf32> to memref<4xf32, strided<[1]>>
  rt.copy %w to %lower : memref<4xf32> to memref<4xf32, strided<[1], offset: 4>>
  rt.copy %a to %o : memref<8xf32> to memref<8xf32>
  %m = rt.buffer at 192 : memref<2x2xf32>
  %n = rt.buffer at 256 : memref<2x4xf32>
  %left = rt.view %n : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1]>>
  rt.fill_zero %m : memref<2x2xf32>
  rt.gemm %m, %m into %left : memref<2x2xf32>, memref<2x2xf32> into memref<2x2xf32, strided<[4, 1]>>
  rt.gemm %left, %m into %m accumulate : memref<2x2xf32, strided<[4, 1]>>, memref<2x2xf32> into memref<2x2xf32>
  %c = rt.buffer at 320 : memref<4xf32>
  %d = rt.buffer at 320 : memref<4xf32>
  rt.repeat count = 3 sliced(%rows : memref<3x4xf32>) {
  ^bb0(%row: memref<4xf32>):
    rt.copy %row to %c : memref<4xf32> to memref<4xf32>
    rt.copy %c to %w : memref<4xf32> to memref<4xf32>
    rt.fill_zero %d : memref<4xf32>
    rt.copy %d to %w : memref<4xf32> to memref<4xf32>
  }
}

// -----

rt.program @never_written {
  %a = rt.buffer at 0 : memref<4xf32>
  %b = rt.buffer at 64 : memref<4xf32>
  // expected-error @+1 {{reads a buffer (memref<4xf32>), which nothing has written}}
  rt.copy %a to %b : memref<4xf32> to memref<4xf32>
}

// -----

rt.program @half_written {
  %a = rt.buffer at 0 : memref<8xf32>
  %b = rt.buffer at 64 : memref<8xf32>
  %lower = rt.view %a : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  rt.fill_zero %lower : memref<4xf32, strided<[1], offset: 4>>
  // expected-error @+1 {{reads a buffer (memref<8xf32>), a part of which nothing has written}}
  rt.copy %a to %b : memref<8xf32> to memref<8xf32>
}

// -----

// The gather starts behind what reads it.
nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]
rt.program @gathered_late {
  %w = rt.tensor "weight" "w" at 0 : memref<4xf32>
  %a = rt.buffer at 64 : memref<8xf32>
  %b = rt.buffer at 128 : memref<8xf32>
  // expected-error @+1 {{reads a buffer (memref<8xf32>), which nothing has written}}
  rt.copy %a to %b : memref<8xf32> to memref<8xf32>
  %e = rt.collective_start all_gather ins(%w : memref<4xf32>) outs(%a : memref<8xf32>) axes = ["fsdp"] dims = [0] reduction = sum name = "w"
  rt.wait %e
}

// -----

// The plan has given the memory away.
rt.program @read_behind_its_end {
  %a = rt.buffer at 0 : memref<4xf32>
  %b = rt.buffer at 0 : memref<8xf32>
  %c = rt.buffer at 64 : memref<4xf32>
  rt.fill_zero %a : memref<4xf32>
  // expected-note @+1 {{it is written here}}
  rt.fill_zero %b : memref<8xf32>
  // expected-error @+1 {{reads a buffer (memref<4xf32>), whose memory holds something else}}
  rt.copy %a to %c : memref<4xf32> to memref<4xf32>
}

// -----

rt.program @written_over_while_read {
  %a = rt.buffer at 0 : memref<4xf32>
  %b = rt.buffer at 8 : memref<4xf32>
  rt.fill_zero %a : memref<4xf32>
  // expected-error @+2 {{writes over a buffer (memref<4xf32>), whose memory holds something else}}
  // expected-note @+1 {{it is written here}}
  rt.copy %a to %b : memref<4xf32> to memref<4xf32>
}

// -----

// The first turn takes what the second needs.
rt.program @loop {
  %a = rt.buffer at 0 : memref<4xf32>
  %b = rt.buffer at 0 : memref<4xf32>
  %c = rt.buffer at 64 : memref<4xf32>
  rt.fill_zero %a : memref<4xf32>
  rt.repeat count = 2 {
    // expected-error @+1 {{reads a buffer (memref<4xf32>), whose memory holds something else}}
    rt.copy %a to %c : memref<4xf32> to memref<4xf32>
    // expected-note @+1 {{it is written here}}
    rt.fill_zero %b : memref<4xf32>
  }
}

// -----

rt.program @lost_state {
  // expected-error @+1 {{ends the step without its value: weight 'w', whose memory holds something else}}
  %w = rt.tensor "weight" "w" at 0 : memref<4xf32>
  %a = rt.buffer at 0 : memref<4xf32>
  // expected-note @+1 {{it is written here}}
  rt.fill_zero %a : memref<4xf32>
}

// -----

rt.program @missing_output {
  // expected-error @+1 {{ends the step without its value: output 'o', which nothing has written}}
  %o = rt.tensor output "output" "o" at 0 : memref<4xf32>
}

// -----

// The last 64 bytes are the transport's.
rt.program @behind_the_end attributes {arena_bytes = 192 : i64, staging_bytes = 64 : i64} {
  %a = rt.buffer at 112 : memref<4xf32>
  // expected-error @+1 {{ends at byte 144, but memory for buffers ends at 128}}
  %b = rt.buffer at 128 : memref<4xf32>
}
