// RUN: nd-opt %s --nd-record-step='record={lr = 1.0e-4 : f64, optimizer = "adamw"}' | FileCheck %s
// RUN: not nd-opt %s --nd-record-step='record={1 = 2}' 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: nd-record-step: the record must be entries of a dictionary attribute, got '1 = 2'

// CHECK: module attributes {nd.step = {lr = 1.000000e-04 : f64, optimizer = "adamw"}}
module {}
