//===- NDAttrs.td - Meshes and shardings --------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDATTRS_TD
#define ND_DIALECT_ND_IR_NDATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "nd/Dialect/ND/IR/NDDialect.td"
include "nd/Dialect/ND/IR/NDEnums.td"

def ND_AxisRole : I32EnumAttr<"AxisRole", "what a mesh axis is for", [
    I32EnumAttrCase<"replicate", 0>, I32EnumAttrCase<"shard", 1>, I32EnumAttrCase<"context", 2>,
    I32EnumAttrCase<"tensor", 3>]> {
  let cppNamespace = "::nd";
  let genSpecializedAttr = 0;
}

def ND_MeshAxisAttr : AttrDef<ND_Dialect, "MeshAxis"> {
  let mnemonic = "axis";
  let summary = "a named axis of a mesh: its size and its role";
  let description = [{
    The role says what plans may do with an axis (`replicate`: data parallel; `shard`: data parallel with sharded state;
    `context`: the sequence; `tensor`: heads, hidden and vocabulary dimensions); the name is only a name.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size, EnumParameter<ND_AxisRole>:$role);
  let assemblyFormat = "`<` $name `=` $size `,` $role `>`";
  let genVerifyDecl = 1;
}

def ND_ShardingAttr : AttrDef<ND_Dialect, "Sharding", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "sharding";
  let summary = "how a tensor is distributed over a mesh";
  let description = [{
    The encoding of a tensor type in the global view: per dimension the axes that shard it, major to minor, and the axes over
    which it is *unreduced*: every rank along them holds a partial value, and the tensor is their combination. Over all
    other axes it is replicated.

    ```mlir
    tensor<8x64xf32, #nd.sharding<@mesh, [{"dp"}, {} ]>>
    tensor<64x32xf32, #nd.sharding<@mesh, [{}, {} ], unreduced = sum {"dp"}>>
    ```

    Clauses after the dimensions are optional and named. An axis occurs at most once.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh, "::mlir::ArrayAttr":$dims, "::mlir::ArrayAttr":$unreduced,
                        "::nd::ReductionKind":$kind);
  let builders = [AttrBuilder<(ins "::mlir::FlatSymbolRefAttr":$mesh,
      "::llvm::ArrayRef<::llvm::SmallVector<::mlir::StringAttr>>":$dims,
      CArg<"::llvm::ArrayRef<::mlir::StringAttr>", "{}">:$unreduced,
      CArg<"::nd::ReductionKind", "::nd::ReductionKind::sum">:$kind)>];
  let extraClassDeclaration = [{
    int64_t getRank() const { return getDims().size(); }
    /// Axes of one dimension, major to minor.
    llvm::SmallVector<mlir::StringAttr> getDimAxes(int64_t dim) const;
    llvm::SmallVector<mlir::StringAttr> getUnreducedAxes() const;
    bool isUnreduced() const { return !getUnreduced().empty(); }
    /// No axis anywhere.
    bool isReplicated() const;
    /// Unsharded and reduced, for a tensor of `rank` dimensions.
    static ShardingAttr getReplicated(mlir::FlatSymbolRefAttr mesh, int64_t rank);
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // ND_DIALECT_ND_IR_NDATTRS_TD
