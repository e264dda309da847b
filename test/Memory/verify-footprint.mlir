// RUN: nd-opt %s -split-input-file -nd-verify-footprint | FileCheck %s

// Scores in memory are listed, those inside of a kernel are not; nor is a view of them.
// CHECK: module attributes {nd.footprint = [
// CHECK-SAME: {bytes = 8192 : i64, location = "{{.*}}", shape = array<i64: 8, 16, 16>, type = "f32", value = "result 0 of 'nd.gemm'", what = "scores"}
// CHECK-SAME: {bytes = 8192 : i64, location = "{{.*}}", shape = array<i64: 8, 16, 16>, type = "f32", value = "result 0 of 'nd.kernel'", what = "scores"}]}
// CHECK-LABEL: @scores
func.func @scores(%ids: tensor<8x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 1 : i64},
                  %table: tensor<40x16xf32> {nd.kind = "weight", nd.name = "table"}) -> tensor<128x16xf32> {
  %x = nd.take %table[%ids] : tensor<40x16xf32>, tensor<8x16xi64> -> tensor<8x16x16xf32>
  %scores = nd.gemm %x, %x transposed : tensor<8x16x16xf32>, tensor<8x16x16xf32> -> tensor<8x16x16xf32>
  %p = nd.kernel(%scores) : (tensor<8x16x16xf32>) -> tensor<8x16x16xf32> {
  ^bb0(%s: tensor<8x16x16xf32>):
    %e = math.exp %s : tensor<8x16x16xf32>
    nd.yield %e : tensor<8x16x16xf32>
  }
  %view = nd.reshape %p : tensor<8x16x16xf32> -> tensor<8x16x16xf32>
  %y = nd.gemm %view, %x : tensor<8x16x16xf32>, tensor<8x16x16xf32> -> tensor<8x16x16xf32>
  %rows = nd.reshape %y : tensor<8x16x16xf32> -> tensor<128x16xf32>
  return %rows : tensor<128x16xf32>
}

// -----

// A general mask that is computed from places: an attention says what its dimensions are.
// CHECK: nd.footprint = [{{.*}}shape = array<i64: 1, 1, 16, 16>, type = "i1", value = "result 0 of 'nd.kernel'", what = "scores"}]
// CHECK-LABEL: @mask
func.func @mask(%ids: tensor<8x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 1 : i64},
                %table: tensor<40x4x16xf32> {nd.kind = "weight", nd.name = "table"}) -> tensor<8x4x16x16xf32> {
  %x = nd.take %table[%ids] : tensor<40x4x16xf32>, tensor<8x16xi64> -> tensor<8x16x4x16xf32>
  %q = nd.transpose %x permutation = [0, 2, 1, 3] : tensor<8x16x4x16xf32> -> tensor<8x4x16x16xf32>
  %place = nd.iota dim = 0 : tensor<16xi64>
  %mask = nd.kernel(%place) : (tensor<16xi64>) -> tensor<1x1x16x16xi1> {
  ^bb0(%p: tensor<16xi64>):
    %a = nd.broadcast %p dims = [2] : tensor<16xi64> -> tensor<1x1x16x16xi64>
    %b = nd.broadcast %p dims = [3] : tensor<16xi64> -> tensor<1x1x16x16xi64>
    %c = arith.cmpi sge, %a, %b : tensor<1x1x16x16xi64>
    nd.yield %c : tensor<1x1x16x16xi1>
  }
  %y, %lse = nd.attention %q, %q, %q mask(%mask : tensor<1x1x16x16xi1>) scale = 1.0 : tensor<8x4x16x16xf32>, tensor<8x4x16x16xf32>, tensor<8x4x16x16xf32> -> tensor<8x4x16x16xf32>, tensor<8x4x16xf32>
  return %y : tensor<8x4x16x16xf32>
}

// -----

// Attention alone has none, although its heads are as wide as the sequence is long, and as many.
// CHECK-NOT: nd.footprint
// CHECK-LABEL: @attention
func.func @attention(%ids: tensor<16x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 1 : i64},
                     %table: tensor<16x16x16xf32> {nd.kind = "weight", nd.name = "table"}) -> tensor<16x16x16x16xf32> {
  %x = nd.take %table[%ids] : tensor<16x16x16xf32>, tensor<16x16xi64> -> tensor<16x16x16x16xf32>
  %q = nd.transpose %x permutation = [0, 2, 1, 3] : tensor<16x16x16x16xf32> -> tensor<16x16x16x16xf32>
  %y, %lse = nd.attention %q, %q, %q scale = 1.0 causal : tensor<16x16x16x16xf32>, tensor<16x16x16x16xf32>, tensor<16x16x16x16xf32> -> tensor<16x16x16x16xf32>, tensor<16x16x16xf32>
  return %y : tensor<16x16x16x16xf32>
}

// -----

// Logits of all tokens are listed, and an error only where something else was promised. A hidden layer that is as wide
// is no vocabulary, and zeros that both of them read do not make it one.
// CHECK: module attributes {nd.footprint = [
// CHECK-SAME: shape = array<i64: 8, 16, 32>, type = "f32", value = "result 0 of 'nd.kernel'", what = "logits"}]
// CHECK-SAME: nd.promises = {vocabulary_width = 32 : i64}}
// CHECK-LABEL: @logits
module attributes {nd.promises = {vocabulary_width = 32 : i64}} {
  func.func @logits(%ids: tensor<8x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 1 : i64},
                    %table: tensor<32x32xf32> {nd.kind = "weight", nd.name = "table"},
                    %up: tensor<32x32xf32> {nd.kind = "weight", nd.name = "up"},
                    %head: tensor<32x32xf32> {nd.kind = "weight", nd.name = "head", nd.vocabulary = 0 : i64},
                    %bias: tensor<f32> {nd.kind = "scalar", nd.name = "bias"})
      -> (tensor<8x16x32xf32>, tensor<8x16x32xf32>) {
    %same = nd.broadcast %bias dims = [] : tensor<f32> -> tensor<8x16x32xf32>
    %x = nd.take %table[%ids] : tensor<32x32xf32>, tensor<8x16xi64> -> tensor<8x16x32xf32>
    %h = nd.kernel(%x, %up, %same) : (tensor<8x16x32xf32>, tensor<32x32xf32>, tensor<8x16x32xf32>) -> tensor<8x16x32xf32> {
    ^bb0(%a: tensor<8x16x32xf32>, %w: tensor<32x32xf32>, %z: tensor<8x16x32xf32>):
      %p = nd.dot_general %a, %w contract = [2] x [1] : tensor<8x16x32xf32>, tensor<32x32xf32> -> tensor<8x16x32xf32>
      %m = arith.maximumf %p, %z : tensor<8x16x32xf32>
      nd.yield %m : tensor<8x16x32xf32>
    }
    %l = nd.kernel(%h, %head, %same) : (tensor<8x16x32xf32>, tensor<32x32xf32>, tensor<8x16x32xf32>) -> tensor<8x16x32xf32> {
    ^bb0(%a: tensor<8x16x32xf32>, %w: tensor<32x32xf32>, %z: tensor<8x16x32xf32>):
      %p = nd.dot_general %a, %w contract = [2] x [1] : tensor<8x16x32xf32>, tensor<32x32xf32> -> tensor<8x16x32xf32>
      %m = arith.maximumf %p, %z : tensor<8x16x32xf32>
      nd.yield %m : tensor<8x16x32xf32>
    }
    return %l, %h : tensor<8x16x32xf32>, tensor<8x16x32xf32>
  }
}

// -----

// A mask that is an input is in memory as well.
// CHECK: nd.footprint = [{{.*}}shape = array<i64: 8, 1, 16, 16>, type = "f32", value = "input 'mask'", what = "scores"}]
// CHECK-LABEL: @input
func.func @input(%ids: tensor<8x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 1 : i64},
                 %mask: tensor<8x1x16x16xf32> {nd.kind = "input", nd.name = "mask"},
                 %table: tensor<40x4x16xf32> {nd.kind = "weight", nd.name = "table"}) -> tensor<8x4x16x16xf32> {
  %x = nd.take %table[%ids] : tensor<40x4x16xf32>, tensor<8x16xi64> -> tensor<8x16x4x16xf32>
  %q = nd.transpose %x permutation = [0, 2, 1, 3] : tensor<8x16x4x16xf32> -> tensor<8x4x16x16xf32>
  %y, %lse = nd.attention %q, %q, %q mask(%mask : tensor<8x1x16x16xf32>) scale = 1.0 : tensor<8x4x16x16xf32>, tensor<8x4x16x16xf32>, tensor<8x4x16x16xf32> -> tensor<8x4x16x16xf32>, tensor<8x4x16xf32>
  return %y : tensor<8x4x16x16xf32>
}

// -----

// A shard of the queries beside all keys is two sequences.
// CHECK: nd.footprint = [{{.*}}shape = array<i64: 2, 8, 16>, type = "f32", value = "result 0 of 'nd.gemm'", what = "scores"}]
// CHECK-LABEL: @gathered_keys
nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]
func.func @gathered_keys(%ids: tensor<2x8xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 1 : i64, nd.sharding = #nd.sharding<@mesh, [{}, {"cp"}]>},
                         %table: tensor<40x16xf32> {nd.kind = "weight", nd.name = "table"}) -> tensor<2x8x16xf32> {
  %x = nd.take %table[%ids] : tensor<40x16xf32>, tensor<2x8xi64> -> tensor<2x8x16xf32>
  %k = nd.all_gather %x over @mesh ["cp"] dims = [1] instance = 1 names = ["keys"] reason = "test" : tensor<2x8x16xf32> -> tensor<2x16x16xf32>
  %scores = nd.gemm %x, %k transposed : tensor<2x8x16xf32>, tensor<2x16x16xf32> -> tensor<2x8x16xf32>
  return %scores : tensor<2x8x16xf32>
}

// -----

// A single word of each token, in a shard of the vocabulary, is no more than a loss, and no more can be told.
// CHECK-LABEL: @single_word
module attributes {nd.promises = {chunked_tokens = 8 : i64, chunked_width = 1 : i64}} {
  func.func @single_word(%ids: tensor<8xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 0 : i64},
                         %table: tensor<40x64xf32> {nd.kind = "weight", nd.name = "table"}) -> tensor<8x64xf32> {
    %x = nd.take %table[%ids] : tensor<40x64xf32>, tensor<8xi64> -> tensor<8x64xf32>
    return %x : tensor<8x64xf32>
  }
}
