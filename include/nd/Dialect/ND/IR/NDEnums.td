//===- NDEnums.td - Enumerations ----------------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDENUMS_TD
#define ND_DIALECT_ND_IR_NDENUMS_TD

include "mlir/IR/EnumAttr.td"

def ND_ReductionKind : I32EnumAttr<"ReductionKind", "how elements are combined", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]> {
  let cppNamespace = "::nd";
  let genSpecializedAttr = 0;
}
def ND_ReductionKindAttr : EnumAttr<ND_Dialect, ND_ReductionKind, "reduction"> {
  let assemblyFormat = "$value";
}

#endif // ND_DIALECT_ND_IR_NDENUMS_TD
