//===- NDLoopOps.td - Microbatches and loops ----------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDLOOPOPS_TD
#define ND_DIALECT_ND_IR_NDLOOPOPS_TD

include "nd/Dialect/ND/IR/NDDialect.td"

def ND_Count : ConfinedAttr<I64Attr, [IntPositive]>;

//===----------------------------------------------------------------------===//
// The borders of the part of a step that runs once per microbatch
//===----------------------------------------------------------------------===//

def ND_MicrobatchOp : ND_PureOp<"microbatch", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "the part of a tensor that belongs to the present microbatch";
  let description = [{
    A step of M microbatches stays a straight line until `nd-form-repeat`: what is computed from an `nd.microbatch`, up to
    an `nd.accumulate`, is computed M times, for each entry of dimension 0 of `input` in turn, and what `nd.accumulate`
    gives is the sum over all M. So passes before that need to know nothing of loops; `MicrobatchLoop`
    (`nd/Dialect/ND/IR/MicrobatchLoop.h`) says which operations run how often.

    ```mlir
    %x = nd.microbatch %all : tensor<4x2x16xi64> -> tensor<2x16xi64>
    ```
  }];
  let arguments = (ins ND_Tensor:$input);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def ND_AccumulateOp : ND_PureOp<"accumulate", [AllTypesMatch<["input", "result"]>]> {
  let summary = "the sum of a tensor over all microbatches";
  let description = [{
    Linear in its operand, so a partial sum can cross the loop and be reduced once behind it.

    ```mlir
    %gradient = nd.accumulate %part count = 4 : tensor<64x32xf32>
    ```
  }];
  let arguments = (ins ND_FloatTensor:$input, ND_Count:$count);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = "$input `count` `=` $count attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

def ND_RepeatOp : ND_Op<"repeat", [Pure, IsolatedFromAbove, SingleBlock, AttrSizedOperandSegments,
    RangedTypesMatchWith<"results have the types of the carried operands", "carried", "results", "$_self">]> {
  let summary = "a loop of `count` turns with carried values";
  let description = [{
    Turn i sees, as arguments of the region: of each `sliced` operand (of `count` rows) row i, without that dimension;
    the carried values, at first the operands, then what the turn before yielded; and the `captured` operands as they
    are. The results are what the last turn yields. All that the region reads is an operand, so that liveness and
    dependences can be read off the operation.

    ```mlir
    %sum = nd.repeat count = 4 sliced(%x : tensor<4x8xf32>) carried(%zero : tensor<8xf32>)
        captured(%w : tensor<8xf32>) {
    ^bb0(%row: tensor<8xf32>, %so_far: tensor<8xf32>, %weight: tensor<8xf32>):
      %product = arith.mulf %row, %weight : tensor<8xf32>
      %next = arith.addf %so_far, %product : tensor<8xf32>
      nd.yield %next : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins ND_Count:$count, Variadic<ND_Tensor>:$sliced, Variadic<ND_Tensor>:$carried,
                       Variadic<ND_Tensor>:$captured);
  let results = (outs Variadic<ND_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `count` `=` $count (`sliced` `(` $sliced^ `:` type($sliced) `)`)? (`carried` `(` $carried^ `:` type($carried) `)`)?
    (`captured` `(` $captured^ `:` type($captured) `)`)? attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// The region's arguments for each kind of operand.
    ::mlir::Block::BlockArgListType getSlices();
    ::mlir::Block::BlockArgListType getCarriedArguments();
    ::mlir::Block::BlockArgListType getCapturedArguments();
    YieldOp getYield();
  }];
  let hasVerifier = 1;
}

#endif // ND_DIALECT_ND_IR_NDLOOPOPS_TD
