//===- GemmSlice.cpp - Single-thread products by oneDNN -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "GemmSlice.h"
#include "nd/Runtime/Core/Rank.h"
#include <cstring>
#include <dnnl.hpp>

using namespace nd::rt;
using dnnl::memory;

namespace {

dnnl::engine &cpuEngine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// Streams hold no state that matters here, but are not promised to be shared by threads.
dnnl::stream &threadStream() {
  static thread_local dnnl::stream stream(cpuEngine());
  return stream;
}

memory::data_type dataType(int32_t dtype) {
  return dtype == ND_BF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

/// A primitive with its memory objects; a call sets their handles and executes.
class PrimitiveSlice : public GemmSlice {
public:
  struct Operand {
    memory object;
    int argument;
  };
  PrimitiveSlice(dnnl::primitive primitive, Operand a, Operand b, Operand c, Operand bias,
                 const memory::desc &scratchpad)
      : primitive(std::move(primitive)), operands{std::move(a), std::move(b), std::move(c), std::move(bias)},
        scratchpad(scratchpad, cpuEngine(), nullptr), scratchpadBytes(scratchpad.get_size()) {
    for (const Operand &operand : operands)
      if (operand.object)
        arguments.push_back({operand.argument, operand.object.get()});
    if (scratchpadBytes)
      arguments.push_back({DNNL_ARG_SCRATCHPAD, this->scratchpad.get()});
  }

  int64_t workspaceBytes() const override { return scratchpadBytes; }

  bool run(const void *a, const void *b, const void *bias, void *c, void *workspace) override {
    const void *handles[] = {a, b, c, bias};
    for (int i = 0; i < 4; ++i)
      if (operands[i].object)
        dnnl_memory_set_data_handle(operands[i].object.get(), const_cast<void *>(handles[i]));
    if (scratchpadBytes)
      dnnl_memory_set_data_handle(scratchpad.get(), workspace);
    return dnnl_primitive_execute(primitive.get(), threadStream().get(), static_cast<int>(arguments.size()),
                                  arguments.data()) == dnnl_success;
  }

private:
  dnnl::primitive primitive;
  Operand operands[4]; ///< a, b, c, bias
  memory scratchpad;
  int64_t scratchpadBytes;
  std::vector<dnnl_exec_arg_t> arguments;
};

class SgemmSlice : public GemmSlice {
public:
  explicit SgemmSlice(const nd_gemm_desc &desc) : desc(desc) {}

  int64_t workspaceBytes() const override { return 0; }

  bool run(const void *a, const void *b, const void *, void *c, void *) override {
    for (int64_t g = 0; g < desc.batch; ++g)
      if (dnnl_sgemm(desc.transpose_a ? 'T' : 'N', desc.transpose_b ? 'T' : 'N', desc.m, desc.n, desc.k, 1.0f,
                     static_cast<const float *>(a) + g * desc.batch_stride_a, desc.lda,
                     static_cast<const float *>(b) + g * desc.batch_stride_b, desc.ldb, desc.accumulate ? 1.0f : 0.0f,
                     static_cast<float *>(c) + g * desc.batch_stride_c, desc.ldc) != dnnl_success)
        return false;
    return true;
  }

private:
  nd_gemm_desc desc;
};

/// A matrix of the descriptor as oneDNN sees it: [rows, cols], stored transposed or not.
memory::desc matrix(int64_t rows, int64_t cols, bool transposed, int64_t ld, int32_t dtype) {
  return {{rows, cols}, dataType(dtype), transposed ? memory::dims{1, ld} : memory::dims{ld, 1}};
}

memory::desc batched(const nd_gemm_desc &desc, int64_t rows, int64_t cols, bool transposed, int64_t ld, int64_t stride,
                     int32_t dtype) {
  if (desc.batch == 1)
    return matrix(rows, cols, transposed, ld, dtype);
  int64_t batch = stride ? desc.batch : 1;
  return {{batch, rows, cols}, dataType(dtype), transposed ? memory::dims{stride, 1, ld} : memory::dims{stride, ld, 1}};
}

std::shared_ptr<GemmSlice> makeMatmul(const nd_gemm_desc &desc) {
  memory::desc a = batched(desc, desc.m, desc.k, desc.transpose_a, desc.lda, desc.batch_stride_a, desc.dtype_ab);
  memory::desc b = batched(desc, desc.k, desc.n, desc.transpose_b, desc.ldb, desc.batch_stride_b, desc.dtype_ab);
  memory::desc c = batched(desc, desc.m, desc.n, false, desc.ldc, desc.batch_stride_c, desc.dtype_c);
  memory::desc bias;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (desc.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  if (desc.has_bias)
    bias = desc.batch == 1 ? memory::desc({1, desc.n}, memory::data_type::f32, memory::dims{desc.n, 1})
                           : memory::desc({1, 1, desc.n}, memory::data_type::f32, memory::dims{desc.n, desc.n, 1});
  dnnl::matmul::desc operation = desc.has_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  dnnl::matmul::primitive_desc primitive(operation, attributes, cpuEngine());
  memory biasObject;
  if (desc.has_bias)
    biasObject = memory(bias, cpuEngine(), nullptr);
  return std::make_shared<PrimitiveSlice>(
      dnnl::matmul(primitive), PrimitiveSlice::Operand{memory(a, cpuEngine(), nullptr), DNNL_ARG_SRC},
      PrimitiveSlice::Operand{memory(b, cpuEngine(), nullptr), DNNL_ARG_WEIGHTS},
      PrimitiveSlice::Operand{memory(c, cpuEngine(), nullptr), DNNL_ARG_DST},
      PrimitiveSlice::Operand{biasObject, DNNL_ARG_BIAS}, primitive.scratchpad_desc());
}

/// y[M, N] = x[M, K] w[N, K]^T is the forward that the two backward forms need as a hint.
dnnl::inner_product_forward::primitive_desc innerForward(const memory::desc &x, const memory::desc &w,
                                                         const memory::desc &y) {
  return {dnnl::inner_product_forward::desc(dnnl::prop_kind::forward_training, x, w, y), cpuEngine()};
}

/// c = a b as the gradient of x: a is the gradient of y, b is w.
std::shared_ptr<GemmSlice> makeInnerData(const nd_gemm_desc &desc) {
  memory::desc y = matrix(desc.m, desc.k, false, desc.lda, desc.dtype_ab);
  memory::desc w = matrix(desc.k, desc.n, desc.transpose_b, desc.ldb, desc.dtype_ab);
  memory::desc x = matrix(desc.m, desc.n, false, desc.ldc, desc.dtype_c);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::inner_product_backward_data::primitive_desc primitive(dnnl::inner_product_backward_data::desc(x, w, y),
                                                              attributes, cpuEngine(), innerForward(x, w, y));
  return std::make_shared<PrimitiveSlice>(dnnl::inner_product_backward_data(primitive),
                                          PrimitiveSlice::Operand{memory(y, cpuEngine(), nullptr), DNNL_ARG_DIFF_DST},
                                          PrimitiveSlice::Operand{memory(w, cpuEngine(), nullptr), DNNL_ARG_WEIGHTS},
                                          PrimitiveSlice::Operand{memory(x, cpuEngine(), nullptr), DNNL_ARG_DIFF_SRC},
                                          PrimitiveSlice::Operand{memory(), DNNL_ARG_BIAS},
                                          primitive.scratchpad_desc());
}

/// c[m, n] = a[k, m]^T b[k, n] as the gradient of w, seen as [n, m]: b is the gradient of y, a is x.
std::shared_ptr<GemmSlice> makeInnerWeights(const nd_gemm_desc &desc) {
  memory::desc x = matrix(desc.k, desc.m, false, desc.lda, desc.dtype_ab);
  memory::desc y = matrix(desc.k, desc.n, false, desc.ldb, desc.dtype_ab);
  memory::desc w = matrix(desc.n, desc.m, true, desc.ldc, desc.dtype_c);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::inner_product_backward_weights::primitive_desc primitive(dnnl::inner_product_backward_weights::desc(x, w, y),
                                                                 attributes, cpuEngine(), innerForward(x, w, y));
  return std::make_shared<PrimitiveSlice>(
      dnnl::inner_product_backward_weights(primitive),
      PrimitiveSlice::Operand{memory(x, cpuEngine(), nullptr), DNNL_ARG_SRC},
      PrimitiveSlice::Operand{memory(y, cpuEngine(), nullptr), DNNL_ARG_DIFF_DST},
      PrimitiveSlice::Operand{memory(w, cpuEngine(), nullptr), DNNL_ARG_DIFF_WEIGHTS},
      PrimitiveSlice::Operand{memory(), DNNL_ARG_BIAS}, primitive.scratchpad_desc());
}

} // namespace

bool nd::rt::methodServes(const nd_gemm_desc &desc, GemmMethod method) {
  bool plain = desc.batch == 1 && !desc.has_bias && !desc.accumulate;
  switch (method) {
  case GemmMethod::Matmul:
    return true;
  case GemmMethod::Sgemm:
    return desc.dtype_ab == ND_F32 && desc.dtype_c == ND_F32 && !desc.has_bias;
  case GemmMethod::InnerProductData:
    return plain && !desc.transpose_a;
  case GemmMethod::InnerProductWeights:
    return plain && desc.transpose_a && !desc.transpose_b;
  }
  return false;
}

std::shared_ptr<GemmSlice> nd::rt::makeGemmSlice(const nd_gemm_desc &desc, GemmMethod method, std::string &error) {
  auto served = [](int32_t dtype) { return dtype == ND_F32 || dtype == ND_BF16; };
  if (!served(desc.dtype_ab) || !served(desc.dtype_c)) {
    error = std::string("a product of ") + dtypeName(desc.dtype_ab) + " into " + dtypeName(desc.dtype_c) +
            " is not supported; f32 and bf16 are";
    return nullptr;
  }
  try {
    switch (method) {
    case GemmMethod::Sgemm:
      return std::make_shared<SgemmSlice>(desc);
    case GemmMethod::InnerProductData:
      return makeInnerData(desc);
    case GemmMethod::InnerProductWeights:
      return makeInnerWeights(desc);
    case GemmMethod::Matmul:
      return makeMatmul(desc);
    }
  } catch (const dnnl::error &problem) {
    error = std::string("oneDNN: ") + problem.what();
  }
  return nullptr;
}
