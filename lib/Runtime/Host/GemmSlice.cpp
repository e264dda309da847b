//===- GemmSlice.cpp - Single-thread products by oneDNN -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "GemmSlice.h"
#include "ConvertedGemm.h"
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

} // namespace

std::shared_ptr<GemmSlice> nd::rt::makeGemmSlice(const nd_gemm_desc &desc, std::string &error) {
  auto served = [](int32_t dtype) { return dtype == ND_F32 || dtype == ND_BF16; };
  if (!served(desc.dtype_ab) || !served(desc.dtype_c)) {
    error = std::string("a product of ") + dtypeName(desc.dtype_ab) + " into " + dtypeName(desc.dtype_c) +
            " is not supported; f32 and bf16 are";
    return nullptr;
  }
  try {
    return makeMatmul(desc);
  } catch (const dnnl::error &problem) {
    // Processors without AVX-512 have no products of bf16.
    if (problem.status == dnnl_unimplemented && desc.dtype_ab == ND_BF16)
      return makeConvertedSlice(desc);
    error = std::string("oneDNN: ") + problem.what();
    return nullptr;
  }
}
