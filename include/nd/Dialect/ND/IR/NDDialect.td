//===- NDDialect.td - The nd dialect ------------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDDIALECT_TD
#define ND_DIALECT_ND_IR_NDDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "nd/Dialect/ND/IR/NDInterfaces.td"

def ND_Dialect : Dialect {
  let name = "nd";
  let summary = "Tensor operations of training steps, and their distribution over a mesh";
  let description = [{
    Value semantics on statically shaped tensors. Elementwise arithmetic is upstream `arith` and `math` on tensors;
    this dialect adds explicit broadcasts, data movement, contractions, reductions, the composites whose gradient or
    sharding needs more than their parts (attention, norms, cross-entropy, rotary embedding), the optimizer's updates,
    meshes and collectives.

    Each operation carries its rules through interfaces: its gradient (`DifferentiableOpInterface`), its sharding rule
    (`ShardingRuleOpInterface`), and for composites a decomposition (`DecomposableOpInterface`) that is their numerical
    definition. An operation without a rule that a pass needs is an error, never a silent default.
  }];
  let cppNamespace = "::nd";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasCanonicalizer = 1; // of arith operations on what this dialect computes
}

class ND_Op<string mnemonic, list<Trait> traits = []> : Op<ND_Dialect, mnemonic, traits>;

/// A pure operation with a gradient and a sharding rule: what most of the dialect is.
class ND_PureOp<string mnemonic, list<Trait> traits = []>
    : ND_Op<mnemonic, !listconcat(traits, [Pure, DeclareOpInterfaceMethods<ShardingRuleOpInterface>])>;

class ND_DifferentiableOp<string mnemonic, list<Trait> traits = []>
    : ND_PureOp<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<DifferentiableOpInterface>])>;

/// A composite: its decomposition is its numerical definition.
class ND_CompositeOp<string mnemonic, list<Trait> traits = []>
    : ND_PureOp<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<DecomposableOpInterface>])>;

class ND_DifferentiableCompositeOp<string mnemonic, list<Trait> traits = []>
    : ND_CompositeOp<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<DifferentiableOpInterface>])>;

def ND_Tensor : StaticShapeTensorOf<[AnyType]>;
def ND_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
def ND_IntTensor : StaticShapeTensorOf<[AnySignlessInteger]>;
def ND_BoolTensor : StaticShapeTensorOf<[I1]>;

#endif // ND_DIALECT_ND_IR_NDDIALECT_TD
