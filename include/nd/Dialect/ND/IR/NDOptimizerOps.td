//===- NDOptimizerOps.td - Parameter updates ----------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDOPTIMIZEROPS_TD
#define ND_DIALECT_ND_IR_NDOPTIMIZEROPS_TD

include "nd/Dialect/ND/IR/NDDialect.td"

def ND_Scalar : 0DTensorOf<[F32]>;
def ND_Flag : 0DTensorOf<[I1]>;

def ND_AdamWOp : ND_CompositeOp<"adamw", [AllTypesMatch<["param", "exp_avg", "exp_avg_sq", "new_param", "new_exp_avg", "new_exp_avg_sq"]>,
    AllTypesMatch<["lr", "bias1", "sqrt_bias2", "grad_scale"]>]> {
  let summary = "one AdamW update with PyTorch's semantics";
  let description = [{
    With g = grad * grad_scale, m' = b1 m + (1-b1) g, v' = b2 v + (1-b2) g^2, the new parameter is
    p (1 - lr wd) - (lr / bias1) m' / (sqrt(v') / sqrt(bias2) + eps), where bias1 = 1 - b1^t and sqrt_bias2 = sqrt(1 - b2^t) come from
    the step's scalars. When `apply` is false all three results equal the operands.
  }];
  let arguments = (ins ND_FloatTensor:$param, ND_FloatTensor:$grad, ND_FloatTensor:$exp_avg, ND_FloatTensor:$exp_avg_sq,
      ND_Scalar:$lr, ND_Scalar:$bias1, ND_Scalar:$sqrt_bias2, ND_Scalar:$grad_scale, ND_Flag:$apply,
      F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay);
  let results = (outs ND_FloatTensor:$new_param, ND_FloatTensor:$new_exp_avg, ND_FloatTensor:$new_exp_avg_sq);
  let assemblyFormat = [{
    $param `grad` $grad `moments` $exp_avg `,` $exp_avg_sq `scalars` $lr `,` $bias1 `,` $sqrt_bias2 `,` $grad_scale `,` $apply
    attr-dict `:` type($param) `,` type($grad) `,` type($lr) `,` type($apply)
  }];
  let hasVerifier = 1;
}

def ND_SgdOp : ND_CompositeOp<"sgd", [AllTypesMatch<["param", "new_param"]>, AllTypesMatch<["lr", "grad_scale"]>]> {
  let summary = "one SGD update with PyTorch's semantics";
  let description = [{
    With g = grad * grad_scale + wd p: without momentum p' = p - lr g; with momentum buf' = momentum * buf + g (the buffer starts at zero,
    which equals PyTorch's first step), p' = p - lr buf'. When `apply` is false the results equal the operands.
  }];
  let arguments = (ins ND_FloatTensor:$param, ND_FloatTensor:$grad, Optional<ND_FloatTensor>:$momentum_buffer,
      ND_Scalar:$lr, ND_Scalar:$grad_scale, ND_Flag:$apply, F64Attr:$momentum, F64Attr:$weight_decay);
  let results = (outs ND_FloatTensor:$new_param, Optional<ND_FloatTensor>:$new_momentum_buffer);
  let assemblyFormat = [{
    $param `grad` $grad (`momentum` $momentum_buffer^)? `scalars` $lr `,` $grad_scale `,` $apply attr-dict
    `:` type($param) `,` type($grad) `,` type($lr) `,` type($apply) (`,` type($momentum_buffer)^ `->` type($new_momentum_buffer))?
  }];
  let hasVerifier = 1;
}

#endif // ND_DIALECT_ND_IR_NDOPTIMIZEROPS_TD
