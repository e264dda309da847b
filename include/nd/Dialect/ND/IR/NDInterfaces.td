//===- NDInterfaces.td - Rules that operations carry --------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDINTERFACES_TD
#define ND_DIALECT_ND_IR_NDINTERFACES_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::nd";
  let description = [{
    An operation that can emit the gradient of its operands from that of its results (a vector-Jacobian product).
  }];
  let methods = [InterfaceMethod<[{
      Emits the gradient at the builder's insertion point. `resultGrads` has one entry per result, null where no gradient
      arrives (at least one is not null); `wanted` has one entry per operand, false where nobody will read the gradient, so
      that no dead work is emitted. Returns one value per operand, of the operand's type; null where no gradient flows
      (integer operands, or not wanted). Failure means that an error was emitted on the operation.
    }],
    "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildGradient",
    (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$resultGrads,
         "::llvm::ArrayRef<bool>":$wanted)>];
}

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::nd";
  let description = [{
    A composite operation with a definition in terms of simpler ones: `arith`, `math` and structural `nd` operations.
  }];
  let methods = [InterfaceMethod<[{
      Emits the definition at the builder's insertion point and returns one value per result, of the result's type.
    }],
    "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose", (ins "::mlir::OpBuilder &":$builder)>];
}

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::nd";
  let description = [{
    An operation that knows how its dimensions relate: one name per factor, each operand and result dimension a list of
    factors. Propagation, reshard insertion, partitioning and cost all read this one rule.
  }];
  let methods = [InterfaceMethod<
      "Returns the rule for this operation's shapes and attributes.",
      "::nd::ShardingRule", "getShardingRule", (ins)>];
}

#endif // ND_DIALECT_ND_IR_NDINTERFACES_TD
