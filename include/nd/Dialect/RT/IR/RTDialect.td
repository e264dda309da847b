//===- RTDialect.td - The rt dialect ------------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_RT_IR_RTDIALECT_TD
#define ND_DIALECT_RT_IR_RTDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def RT_Dialect : Dialect {
  let name = "rt";
  let summary = "What a rank executes: kernels, products, collectives and copies on one arena, in a straight line with loops";
  let description = [{
    Buffers are memrefs with static shapes. A *root* is an allocation: a named tensor of the program (`rt.tensor`), a
    temporary (`rt.buffer`) or constant data (`rt.constant`), always row-major contiguous. `rt.view` names elements of a
    root under another shape and strided layout. Operations read and write views; nothing is computed on memory
    implicitly, and the order of the operations is the order of execution. `rt-plan-memory` gives every root but
    constants its offset in the arena.

    The dialect knows no target: the emitters read the same program.
  }];
  let cppNamespace = "::nd::rt";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class RT_Op<string mnemonic, list<Trait> traits = []> : Op<RT_Dialect, mnemonic, traits>;

def RT_EventType : TypeDef<RT_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "a collective in flight";
}

class RT_EnumAttr<I32EnumAttr info, string name> : EnumAttr<RT_Dialect, info, name> {
  let assemblyFormat = "$value";
}

def RT_CollectiveKind : I32EnumAttr<"CollectiveKind", "what a collective does; values are those of the runtime's ABI", [
    I32EnumAttrCase<"all_reduce", 0>, I32EnumAttrCase<"all_gather", 1>, I32EnumAttrCase<"reduce_scatter", 2>,
    I32EnumAttrCase<"all_to_all", 3>, I32EnumAttrCase<"permute", 4>]> {
  let cppNamespace = "::nd::rt";
  let genSpecializedAttr = 0;
}
def RT_CollectiveKindAttr : RT_EnumAttr<RT_CollectiveKind, "collective">;

def RT_Reduction : I32EnumAttr<"Reduction", "how a collective combines; values are those of the runtime's ABI", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]> {
  let cppNamespace = "::nd::rt";
  let genSpecializedAttr = 0;
}
def RT_ReductionAttr : RT_EnumAttr<RT_Reduction, "reduction">;

def RT_Phase : I32EnumAttr<"Phase", "a part of the step; values are those of the runtime's ABI", [
    I32EnumAttrCase<"forward", 0>, I32EnumAttrCase<"backward", 1>, I32EnumAttrCase<"reduce", 2>,
    I32EnumAttrCase<"update", 3>]> {
  let cppNamespace = "::nd::rt";
  let genSpecializedAttr = 0;
}
def RT_PhaseAttr : RT_EnumAttr<RT_Phase, "phase_kind">;

/// A statically shaped memref whose layout is the identity or strided.
def RT_Buffer : ConfinedType<AnyStaticShapeMemRef, [CPred<"::nd::rt::hasStaticStrides($_self)">],
                             "memref of static shape, strides and offset", "::mlir::MemRefType">;
def RT_FloatBuffer : ConfinedType<RT_Buffer,
      [CPred<"::llvm::isa<::mlir::FloatType>(::llvm::cast<::mlir::MemRefType>($_self).getElementType())">],
                                  "memref of floats of static shape, strides and offset", "::mlir::MemRefType">;

#endif // ND_DIALECT_RT_IR_RTDIALECT_TD
