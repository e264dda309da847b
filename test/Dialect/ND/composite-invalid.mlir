// RUN: nd-opt %s -split-input-file -verify-diagnostics
func.func @softmax_dim(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected dim in [0, 2) but found 2}}
  %0 = nd.softmax %x dim = 2 : tensor<2x3xf32>
  return
}

// -----

func.func @layer_norm_weight(%x: tensor<2x3xf32>, %w: tensor<2xf32>) {
  // expected-error @below {{expected weight of shape [3] but found [2]}}
  %0:3 = nd.layer_norm %x, %w eps = 1.0e-5 : tensor<2x3xf32>, tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @layer_norm_statistics(%x: tensor<2x3xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{expected statistics of shape [2] but found [3]}}
  %0:3 = nd.layer_norm %x, %w eps = 1.0e-5 : tensor<2x3xf32>, tensor<3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @layer_norm_eps(%x: tensor<2x3xf32>, %w: tensor<3xf32>) {
  // expected-error @below {{expected eps to be finite and at least 0.000000e+00 but found -1.000000e+00}}
  %0:3 = nd.layer_norm %x, %w eps = -1.0 : tensor<2x3xf32>, tensor<3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @rms_norm_rstd(%x: tensor<2x3xbf16>) {
  // expected-error @below {{expected rstd of element type 'f32' but found 'bf16'}}
  %0:2 = nd.rms_norm %x eps = 1.0e-5 : tensor<2x3xbf16> -> tensor<2xbf16>
  return
}

// -----

func.func @rope_angles(%x: tensor<2x4x3x8xf32>, %c: tensor<2x3x5xf32>) {
  // expected-error @below {{expected at most 4 angles, half the operand's last dimension, but found 5}}
  %0 = nd.rope %x, %c, %c : tensor<2x4x3x8xf32>, tensor<2x3x5xf32>
  return
}

// -----

func.func @rope_positions(%x: tensor<2x4x3x8xf32>, %c: tensor<1x3x4xf32>) {
  // expected-error @below {{expected cos and sin of shape [2, 3, 4] but found [1, 3, 4]}}
  %0 = nd.rope %x, %c, %c : tensor<2x4x3x8xf32>, tensor<1x3x4xf32>
  return
}

// -----

func.func @attention_heads(%q: tensor<2x3x3x8xf32>, %k: tensor<2x2x3x8xf32>) {
  // expected-error @below {{expected the 3 heads of query to be a multiple of the 2 heads of key and value}}
  %0:2 = nd.attention %q, %k, %k scale = 1.0 : tensor<2x3x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32> -> tensor<2x3x3x8xf32>, tensor<2x3x3xf32>
  return
}

// -----

func.func @attention_key(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x7xf32>) {
  // expected-error @below {{expected key of shape [2, 2, 3, 8] but found [2, 2, 3, 7]}}
  %0:2 = nd.attention %q, %k, %k scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x3x7xf32>, tensor<2x2x3x7xf32> -> tensor<2x4x3x7xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_result(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>) {
  // expected-error @below {{expected result of shape [2, 4, 3, 6] but found [2, 4, 3, 8]}}
  %0:2 = nd.attention %q, %k, %v scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_positions(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>, %p: tensor<2x4xi64>) {
  // expected-error @below {{expected positions of shape [2, 3] but found [2, 4]}}
  %0:2 = nd.attention %q, %k, %v positions(%p : tensor<2x4xi64>) scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_documents_of_other_keys(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %p: tensor<2x3xi64>) {
  // expected-error @below {{expected as many queries as keys when documents are given but found 3 and 5}}
  %0:2 = nd.attention %q, %k, %k documents(%p : tensor<2x3xi64>) scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32> -> tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_padding(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>, %p: tensor<2x4xi1>) {
  // expected-error @below {{expected key_padding of shape [2, 3] but found [2, 4]}}
  %0:2 = nd.attention %q, %k, %v key_padding(%p : tensor<2x4xi1>) scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_mask_keys(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>, %m: tensor<1x1x3x1xf32>) {
  // expected-error @below {{expected mask of size 3 in dimension 3 but found 1}}
  %0:2 = nd.attention %q, %k, %v mask(%m : tensor<1x1x3x1xf32>) scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_mask_heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>, %m: tensor<1x2x3x3xf32>) {
  // expected-error @below {{expected mask of size 4 or 1 in dimension 1 but found 2}}
  %0:2 = nd.attention %q, %k, %v mask(%m : tensor<1x2x3x3xf32>) scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_mask_integers(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>, %m: tensor<1x1x3x3xi64>) {
  // expected-error @below {{expected mask of floats (added) or booleans (true = visible) but found 'i64'}}
  %0:2 = nd.attention %q, %k, %v mask(%m : tensor<1x1x3x3xi64>) scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_window(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>) {
  // expected-error @below {{expected window to be positive, or 0 for none, but found -1}}
  %0:2 = nd.attention %q, %k, %v scale = 1.0 {window = -1 : i64} : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_softcap(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>) {
  // expected-error @below {{expected softcap to be finite and at least 0.000000e+00 but found -2.000000e+00}}
  %0:2 = nd.attention %q, %k, %v scale = 1.0 {softcap = -2.0 : f64} : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_scale(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>) {
  // expected-error @below {{expected scale to be finite but found}}
  %0:2 = nd.attention %q, %k, %v scale = 0x7FF0000000000000 : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  return
}

// -----

func.func @attention_grad_of_key(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>, %r: tensor<2x4x3x6xf32>, %l: tensor<2x4x3xf32>) {
  // expected-error @below {{expected key_grad of the shape of key in f32, [2, 2, 3, 8], but found [2, 4, 3, 8]}}
  %0:3 = nd.attention_grad %q, %k, %v result(%r, %l, %r) scale = 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<2x4x3x6xf32> -> tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x2x3x6xf32>
  return
}

// -----

func.func @cross_entropy_labels(%x: tensor<6x11xf32>, %l: tensor<5xi64>) {
  // expected-error @below {{expected labels of shape [6] but found [5]}}
  %0:2 = nd.softmax_cross_entropy %x, %l ignore = -100 : tensor<6x11xf32>, tensor<5xi64> -> tensor<6xf32>
  return
}

// -----

func.func @cross_entropy_rank(%x: tensor<11xf32>, %l: tensor<i64>) {
  // expected-error @below {{expected logits of rank 2 or more (rows, classes) but found rank 1}}
  %0:2 = nd.softmax_cross_entropy %x, %l ignore = -100 : tensor<11xf32>, tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @cross_entropy_grad_lse(%x: tensor<6x11xf32>, %l: tensor<6xi64>, %s: tensor<5xf32>) {
  // expected-error @below {{expected lse and losses_grad of shape [6] but found [5]}}
  %0 = nd.softmax_cross_entropy_grad %x, %l, %s, %s ignore = -100 : tensor<6x11xf32>, tensor<6xi64>, tensor<5xf32>
  return
}

// -----

func.func @dropout_probability(%x: tensor<3xf32>) {
  // expected-error @below {{expected p in [0.000000e+00, 1.000000e+00] but found 1.500000e+00}}
  %0 = nd.dropout %x p = 1.5 : tensor<3xf32>
  return
}
