// RUN: nd-opt %s -split-input-file -verify-diagnostics -nd-verify-footprint

// The loss runs in chunks, and logits are whole: by whatever name their tokens go.
module attributes {nd.promises = {chunked_tokens = 128 : i64, chunked_width = 512 : i64}} {
  func.func @step(%ids: tensor<8x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 1 : i64},
                  %table: tensor<40x64xf32> {nd.kind = "weight", nd.name = "table"},
                  %head: tensor<512x64xf32> {nd.kind = "weight", nd.name = "head", nd.vocabulary = 0 : i64})
      -> tensor<128xf32> {
    %x = nd.kernel(%table, %ids) : (tensor<40x64xf32>, tensor<8x16xi64>) -> tensor<8x16x64xf32> {
    ^bb0(%t: tensor<40x64xf32>, %i: tensor<8x16xi64>):
      %row = nd.take %t[%i] : tensor<40x64xf32>, tensor<8x16xi64> -> tensor<8x16x64xf32>
      nd.yield %row : tensor<8x16x64xf32>
    }
    %rows = nd.reshape %x : tensor<8x16x64xf32> -> tensor<128x64xf32>
    // expected-error@+1 {{result 0 of 'nd.gemm', 'tensor<128x512xf32>', is 128 tokens x 512 words of the vocabulary in a rank's memory, but logits of 128 tokens x 512 words run in chunks (nd.promises)}}
    %logits = nd.gemm %rows, %head transposed : tensor<128x64xf32>, tensor<512x64xf32> -> tensor<128x512xf32>
    %max = nd.kernel(%logits) : (tensor<128x512xf32>) -> tensor<128xf32> {
    ^bb0(%l: tensor<128x512xf32>):
      %e = math.exp %l : tensor<128x512xf32>
      %m = nd.reduce max %e dims = [1] : tensor<128x512xf32> -> tensor<128xf32>
      nd.yield %m : tensor<128xf32>
    }
    return %max : tensor<128xf32>
  }
}

// -----

// In a loop over microbatches too.
module attributes {nd.promises = {chunked_tokens = 32 : i64, chunked_width = 512 : i64}} {
  func.func @step(%ids: tensor<3x2x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 2 : i64},
                  %table: tensor<40x64xf32> {nd.kind = "weight", nd.name = "table"},
                  %head: tensor<512x64xf32> {nd.kind = "weight", nd.name = "head", nd.vocabulary = 0 : i64}, %zero: tensor<f32>)
      -> tensor<f32> {
    %sum = nd.repeat count = 3 sliced(%ids : tensor<3x2x16xi64>) carried(%zero : tensor<f32>)
        captured(%table, %head : tensor<40x64xf32>, tensor<512x64xf32>) {
    ^bb0(%i: tensor<2x16xi64>, %so_far: tensor<f32>, %t: tensor<40x64xf32>, %h: tensor<512x64xf32>):
      %x = nd.take %t[%i] : tensor<40x64xf32>, tensor<2x16xi64> -> tensor<2x16x64xf32>
      %rows = nd.reshape %x : tensor<2x16x64xf32> -> tensor<32x64xf32>
      // expected-error@+1 {{is 32 tokens x 512 words of the vocabulary in a rank's memory, but logits}}
      %logits = nd.gemm %rows, %h transposed : tensor<32x64xf32>, tensor<512x64xf32> -> tensor<32x512xf32>
      %all = nd.kernel(%logits, %so_far) : (tensor<32x512xf32>, tensor<f32>) -> tensor<f32> {
      ^bb0(%l: tensor<32x512xf32>, %s: tensor<f32>):
        %r = nd.reduce sum %l dims = [0, 1] : tensor<32x512xf32> -> tensor<f32>
        %n = arith.addf %r, %s : tensor<f32>
        nd.yield %n : tensor<f32>
      }
      nd.yield %all : tensor<f32>
    }
    return %sum : tensor<f32>
  }
}

// -----

// Four tokens of every sequence are a chunk, and are gathered along with all others.
module attributes {nd.promises = {vocabulary_width = 256 : i64}} {
  nd.mesh @mesh axes [#nd.axis<"tp" = 2, tensor>]
  func.func @step(%ids: tensor<8x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sequence = 1 : i64},
                  %table: tensor<40x64xf32> {nd.kind = "weight", nd.name = "table"},
                  %head: tensor<256x64xf32> {nd.kind = "weight", nd.name = "head", nd.vocabulary = 0 : i64})
      -> tensor<8x4x512xf32> {
    %x = nd.take %table[%ids] : tensor<40x64xf32>, tensor<8x16xi64> -> tensor<8x16x64xf32>
    %chunk = nd.slice %x starts = [0, 4, 0] strides = [1, 1, 1] : tensor<8x16x64xf32> -> tensor<8x4x64xf32>
    %rows = nd.reshape %chunk : tensor<8x4x64xf32> -> tensor<32x64xf32>
    %shard = nd.gemm %rows, %head transposed : tensor<32x64xf32>, tensor<256x64xf32> -> tensor<32x256xf32>
    %logits = nd.reshape %shard : tensor<32x256xf32> -> tensor<8x4x256xf32>
    // expected-error@+1 {{result 0 of 'nd.all_gather', 'tensor<8x4x512xf32>', is 32 tokens x 512 words of the vocabulary in a rank's memory, but the plan shards the vocabulary into 256 words a rank (nd.promises)}}
    %all = nd.all_gather %logits over @mesh ["tp"] dims = [2] instance = 1 names = ["logits"] reason = "test" : tensor<8x4x256xf32> -> tensor<8x4x512xf32>
    return %all : tensor<8x4x512xf32>
  }
}

// -----

// Nor the weight itself.
module attributes {nd.promises = {vocabulary_width = 256 : i64}} {
  nd.mesh @mesh axes [#nd.axis<"tp" = 2, tensor>]
  func.func @step(%head: tensor<256x64xf32> {nd.kind = "weight", nd.name = "head", nd.vocabulary = 0 : i64}) -> tensor<512x64xf32> {
    // expected-error@+1 {{is 1 tokens x 512 words of the vocabulary}}
    %all = nd.all_gather %head over @mesh ["tp"] dims = [0] instance = 1 names = ["head"] reason = "test" : tensor<256x64xf32> -> tensor<512x64xf32>
    return %all : tensor<512x64xf32>
  }
}
