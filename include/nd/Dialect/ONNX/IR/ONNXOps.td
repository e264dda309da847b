//===- ONNXOps.td - A model's nodes, kept verbatim ----------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ONNX_IR_ONNXOPS_TD
#define ND_DIALECT_ONNX_IR_ONNXOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def ONNX_Dialect : Dialect {
  let name = "onnx";
  let summary = "The nodes of an ONNX model, verbatim";
  let description = [{
    One generic operation for every node type and opset version: what a node means is decided by `nd-convert-onnx`, which
    replaces all of them by operations of `nd`, `arith` and `math`. Nothing of this dialect survives the import.
  }];
  let cppNamespace = "::nd::onnx";
}

class ONNX_Op<string mnemonic, list<Trait> traits = []> : Op<ONNX_Dialect, mnemonic, traits>;

def ONNX_NodeOp : ONNX_Op<"node", [Pure]> {
  let summary = "one node of the graph: its type, domain, opset version, attributes, operands and results";
  let description = [{
    An optional operand that the node leaves out is `onnx.absent`. A result has the type that the file states, with sizes bound;
    `none` when it states none.

    ```mlir
    %y = onnx.node "Concat" version 13 name "node_cat" (%a, %b) {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins StrAttr:$op_type, DefaultValuedAttr<StrAttr, "\"\"">:$domain, I64Attr:$version,
                       DefaultValuedAttr<StrAttr, "\"\"">:$node_name, DictionaryAttr:$fields,
                       Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    $op_type (`domain` $domain^)? `version` $version (`name` $node_name^)? `(` $inputs `)` $fields attr-dict
    `:` functional-type($inputs, $outputs)
  }];
}

def ONNX_ConstantOp : ONNX_Op<"constant", [Pure]> {
  let summary = "an initializer that is not a parameter";
  let arguments = (ins StrAttr:$name, ElementsAttr:$value);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$name $value attr-dict `:` type($result)";
}

def ONNX_AbsentOp : ONNX_Op<"absent", [Pure]> {
  let summary = "stands for an optional operand that a node leaves out";
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif // ND_DIALECT_ONNX_IR_ONNXOPS_TD
