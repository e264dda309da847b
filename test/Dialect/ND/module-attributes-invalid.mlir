// RUN: nd-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{attribute "nd.model": batch = "four", expected a positive integer}}
module attributes {nd.model = {batch = "four"}} {}

// -----

// expected-error @below {{attribute "nd.model": ignore_index = -1.000000e+00 : f64, expected an integer}}
module attributes {nd.model = {ignore_index = -1.0 : f64}} {}

// -----

// expected-error @below {{attribute "nd.model": files = [1], expected a list of strings}}
module attributes {nd.model = {files = [1]}} {}

// -----

// expected-error @below {{attribute "nd.model" = 3 : i64, expected a dictionary}}
module attributes {nd.model = 3 : i64} {}

// -----

// expected-error @below {{attribute "nd.step": lr = 0x7FF8000000000000 : f64, expected a finite number that is not negative}}
module attributes {nd.step = {lr = 0x7FF8000000000000 : f64}} {}

// -----

// expected-error @below {{attribute "nd.step": schedule = "cosin", expected one of constant, linear, cosine}}
module attributes {nd.step = {schedule = "cosin"}} {}

// -----

// expected-error @below {{attribute "nd.step": warmup = -1 : i64, expected an integer that is not negative}}
module attributes {nd.step = {warmup = -1 : i64}} {}

// -----

// What nobody reads may be anything.
module attributes {nd.model = {note = 1.0 : f32}, nd.step = {after = true}} {}

// -----

// expected-error @below {{has the attribute "nd.step", which belongs to the module}}
func.func @f() attributes {nd.step = {}} {
  return
}
