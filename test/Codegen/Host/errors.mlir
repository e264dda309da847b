// RUN: not nd-compile %t.missing.mlir -o %t 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not nd-compile %s -o %t --runtime-dir=%t/nowhere 2>&1 | FileCheck %s --check-prefix=RUNTIME
// RUN: not nd-compile %s -o %t --target=abacus 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: touch %t.file && not nd-compile %s -o %t.file 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not ls %t/manifest.json

// MISSING: nd-compile: error: cannot open input file '{{.*}}.missing.mlir': No such file or directory
// RUNTIME: nd-compile: error: the runtime library {{.*}}libNDRuntimeCore.a does not exist; build NDRuntimeHost, or name its folder by --runtime-dir
// TARGET: nd-compile: error: --target=abacus does not exist; the only target is host
// FOLDER: nd-compile: error: cannot

func.func @f(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  %0 = nd.dot_general %x, %w contract = [1] x [1] : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
