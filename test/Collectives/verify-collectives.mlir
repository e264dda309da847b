// RUN: nd-opt %s -rt-verify-collectives -split-input-file -verify-diagnostics

// Rank programs whose collectives would not meet. First one that is right: what is sent is read meanwhile, what is received only after the wait.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]
rt.program @right {
  %a = rt.buffer at 0 : memref<4xf32>
  %b = rt.buffer at 64 : memref<8xf32>
  %c = rt.buffer at 128 : memref<4xf32>
  %e = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b : memref<8xf32>) axes = ["dp"] dims = [0] reduction = sum name = "a"
  rt.copy %a to %c : memref<4xf32> to memref<4xf32>
  %f = rt.collective_start all_reduce ins(%c : memref<4xf32>) outs(%c : memref<4xf32>) axes = ["tp"] reduction = sum name = "c"
  rt.wait %f
  rt.wait %e
  rt.fill_zero %b : memref<8xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @no_axis {
  %a = rt.buffer : memref<4xf32>
  // expected-error @+1 {{is over axis "tp", which no nd.mesh of the module has}}
  %e = rt.collective_start all_reduce ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) axes = ["tp"] reduction = sum name = "a"
  rt.wait %e
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @twice {
  %a = rt.buffer : memref<4xf32>
  // expected-error @+1 {{is over axis "dp" twice}}
  %e = rt.collective_start all_reduce ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) axes = ["dp", "dp"] reduction = sum name = "a"
  rt.wait %e
}

// -----

// Every rank would wait for a third part.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @size {
  %a = rt.buffer : memref<4xf32>
  %b = rt.buffer : memref<12xf32>
  // expected-error @+1 {{is over a group of 2 ranks, but 'memref<4xf32>' is not one of 2 parts of 'memref<12xf32>' along dimension 0}}
  %e = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b : memref<12xf32>) axes = ["dp"] dims = [0] reduction = sum name = "a"
  rt.wait %e
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @exchange {
  %a = rt.buffer : memref<3x4xf32>
  %b = rt.buffer : memref<3x4xf32>
  // expected-error @+1 {{cuts dimension 0 of 'memref<3x4xf32>' into 2 parts, one for each rank of its group}}
  %e = rt.collective_start all_to_all ins(%a : memref<3x4xf32>) outs(%b : memref<3x4xf32>) axes = ["dp"] dims = [0, 1] reduction = sum name = "a"
  rt.wait %e
}

// -----

// Position 1 sends twice, and nobody takes what position 0 has.
nd.mesh @mesh axes [#nd.axis<"cp" = 3, context>]
rt.program @permutation {
  %a = rt.buffer : memref<4xf32>
  %b = rt.buffer : memref<4xf32>
  // expected-error @+1 {{sends nothing to some position and two things to another, or waits for one that its group of 3 ranks does not have: [1, 2, 1]}}
  %e = rt.collective_start permute ins(%a : memref<4xf32>) outs(%b : memref<4xf32>) axes = ["cp"] permutation = [1, 2, 1] reduction = sum name = "a"
  rt.wait %e
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @received_too_early {
  %a = rt.buffer : memref<4xf32>
  %b = rt.buffer : memref<8xf32>
  %c = rt.buffer : memref<8xf32>
  // expected-note @+1 {{it is started here}}
  %e = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b : memref<8xf32>) axes = ["dp"] dims = [0] reduction = sum name = "a"
  // expected-error @+1 {{uses memory that a collective is receiving ("a"), before it is waited for}}
  rt.copy %b to %c : memref<8xf32> to memref<8xf32>
  rt.wait %e
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @sent_too_late {
  %a = rt.buffer : memref<4xf32>
  %b = rt.buffer : memref<8xf32>
  // expected-note @+1 {{it is started here}}
  %e = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b : memref<8xf32>) axes = ["dp"] dims = [0] reduction = sum name = "a"
  // expected-error @+1 {{writes memory that a collective is sending ("a"), before it is waited for}}
  rt.fill_zero %a : memref<4xf32>
  rt.wait %e
}

// -----

// The plan of the arena gives the memory away while a collective still has it.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @shared_memory {
  %a = rt.buffer at 0 : memref<4xf32>
  %b = rt.buffer at 64 : memref<8xf32>
  %c = rt.buffer at 80 : memref<4xf32>
  // expected-note @+1 {{it is started here}}
  %e = rt.collective_start all_gather ins(%a : memref<4xf32>) outs(%b : memref<8xf32>) axes = ["dp"] dims = [0] reduction = sum name = "a"
  // expected-error @+1 {{uses memory that a collective is receiving}}
  rt.fill_zero %c : memref<4xf32>
  rt.wait %e
}

// -----

// In a loop a start would be waited for once, or never, in many turns.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @loop {
  %a = rt.buffer : memref<4xf32>
  // expected-error @+1 {{is waited for in another block: once in each turn of a loop, or not in each}}
  %e = rt.collective_start all_reduce ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) axes = ["dp"] reduction = sum name = "a"
  rt.repeat count = 3 {
    // expected-note @+1 {{the wait is here}}
    rt.wait %e
  }
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
rt.program @slice {
  %a = rt.buffer : memref<8xf32>
  %b = rt.buffer : memref<2xf32>
  // expected-error @+1 {{is over a group of 2 ranks, but 'memref<2xf32>' is not one of 2 parts of 'memref<8xf32>' along dimension 0}}
  rt.all_slice %a to %b axes = ["dp"] dim = 0 : memref<8xf32> to memref<2xf32>
}
