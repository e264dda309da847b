// RUN: nd-opt %s -nd-propagate-sharding -verify-diagnostics

// An operation without a rule is an error by name, never silent replication.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @no_rule(%a: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>}, %b: tensor<8x2xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>}) {
  // expected-error @+1 {{'nd.gemm' has no sharding rule (ShardingRuleOpInterface), so nd cannot tell how it runs on shards}}
  %0 = nd.gemm %a, %b : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
  return
}
