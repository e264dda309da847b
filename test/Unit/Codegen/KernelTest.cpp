//===- KernelTest.cpp - Generated kernels against definitions -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each function of Kernels/*.mlir is a test, once for each line `// sizes: R=3 C=5` above it, whose letters stand for
// numbers in the function's text as `${R}`. The function is decomposed, cut into kernels, compiled for each level that
// this CPU has, and its kernels run on random operands: all units at once and in pieces, in place and apart, on
// contiguous and on strided memory.
//
// Attributes of arguments: `test.bound = n` draws integers from [0, n), `test.nan` puts a NaN and infinities among the
// numbers, `test.positive` draws from (0, 1), `test.scale = s` multiplies; `test.tolerance = t` of the function bounds
// the error relative to the largest element (2e-6).
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include "nd/Codegen/Host/ObjectEmitter.h"
#include "nd/Codegen/Kernels/KernelEmitter.h"
#include "nd/Codegen/Kernels/Passes.h"
#include "nd/Dialect/ND/Transforms/Passes.h"
#include "nd/Runtime/Core/ABI.h"
#include "nd/Runtime/Core/BFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/TargetParser/Host.h"

#include <deque>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace nd;
using namespace nd::test;

namespace {

struct Case {
  std::string name, text;
};

/// How GoogleTest names a case.
void PrintTo(const Case &value, std::ostream *stream) { *stream << value.name; }

/// How the operands of kernels lie in memory.
enum class Memory { Contiguous, InPlace, Strided };

/// A buffer of elements in some layout, with guards around it.
struct Buffer {
  Buffer(Type element, ArrayRef<int64_t> shape, bool strided) : element(element) {
    int64_t stride = 1;
    strides.resize(shape.size());
    for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
      strides[dim] = stride;
      stride *= shape[dim] + (strided && dim > 0 ? dim : 0);
    }
    bytes = element.isInteger(1) ? 1 : element.getIntOrFloatBitWidth() / 8;
    memory.assign(stride * bytes + 2 * guard, 0xcd);
    type = MemRefType::get(shape, element,
                           strided ? StridedLayoutAttr::get(element.getContext(), 0, strides)
                                   : MemRefLayoutAttrInterface());
  }
  char *start() { return memory.data() + guard; }
  char *at(const Tensor &tensor, int64_t number) {
    int64_t offset = 0;
    for (auto [index, stride] : llvm::zip(tensor.index(number), strides))
      offset += index * stride;
    return start() + offset * bytes;
  }
  void write(const Tensor &tensor) {
    for (int64_t number = 0; number < tensor.size(); ++number) {
      double value = tensor.data[number];
      char *to = at(tensor, number);
      if (element.isF32())
        *reinterpret_cast<float *>(to) = value;
      else if (element.isBF16())
        *reinterpret_cast<uint16_t *>(to) = rt::floatToBFloat(value);
      else if (element.isInteger(64))
        *reinterpret_cast<int64_t *>(to) = value;
      else if (element.isInteger(32))
        *reinterpret_cast<int32_t *>(to) = value;
      else
        *to = value != 0;
    }
  }
  Tensor read(ArrayRef<int64_t> shape) {
    Tensor tensor(shape);
    for (int64_t number = 0; number < tensor.size(); ++number) {
      char *from = at(tensor, number);
      tensor.data[number] = element.isF32()         ? *reinterpret_cast<float *>(from)
                            : element.isBF16()      ? rt::bfloatToFloat(*reinterpret_cast<uint16_t *>(from))
                            : element.isInteger(64) ? *reinterpret_cast<int64_t *>(from)
                            : element.isInteger(32) ? *reinterpret_cast<int32_t *>(from)
                                                    : *from;
    }
    return tensor;
  }
  bool guardsHold() const {
    auto holds = [](char byte) { return byte == static_cast<char>(0xcd); };
    return std::all_of(memory.begin(), memory.begin() + guard, holds) &&
           std::all_of(memory.end() - guard, memory.end(), holds);
  }

  static constexpr int64_t guard = 64;
  Type element;
  SmallVector<int64_t> strides;
  int64_t bytes;
  std::vector<char> memory;
  MemRefType type;
};

/// A compiled library of kernels; the file is gone once it is loaded.
class Library {
public:
  Library(ModuleOp module, CpuLevel level) {
    SmallString<128> object, shared;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("kernel", "o", object));
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("kernel", "so", shared));
    if (llvm::Error error = emitObject(module, level, object, cpuLevelSuffix(level)))
      ADD_FAILURE() << llvm::toString(std::move(error));
    StringRef arguments[] = {ND_TEST_LINKER, "-shared", "-o", shared, object};
    EXPECT_EQ(llvm::sys::ExecuteAndWait(ND_TEST_LINKER, arguments), 0);
    handle = dlopen(shared.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_TRUE(handle) << dlerror();
    llvm::sys::fs::remove(object);
    llvm::sys::fs::remove(shared);
  }
  ~Library() {
    if (handle)
      dlclose(handle);
  }
  nd_kernel find(const std::string &name) {
    return reinterpret_cast<nd_kernel>(handle ? dlsym(handle, name.c_str()) : nullptr);
  }

private:
  void *handle = nullptr;
};

class KernelTest : public testing::TestWithParam<Case> {
public:
  static MLIRContext *context() {
    static MLIRContext *context = [] {
      DialectRegistry registry;
      registry.insert<NDDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
      registerObjectEmission(registry);
      auto *context = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
      context->allowUnregisteredDialects();
      context->loadAllAvailableDialects();
      return context;
    }();
    return context;
  }

protected:
  void check(Memory memory, CpuLevel level);
  void prepare();
  Tensor draw(func::FuncOp function, unsigned argument, std::mt19937 &random);
  bool runKernel(KernelOp kernel, Values &values, Memory memory, CpuLevel level);
  void compare(const Tensor &actual, const Tensor &expected, Type element, double tolerance, unsigned result);

  OwningOpRef<ModuleOp> source, formed;
  Values operands; // of the function, by argument of `source`
  SmallVector<Tensor> arguments, expected;
};

} // namespace

Tensor KernelTest::draw(func::FuncOp function, unsigned argument, std::mt19937 &random) {
  auto type = cast<RankedTensorType>(function.getArgument(argument).getType());
  Tensor tensor(type.getShape());
  auto bound = function.getArgAttrOfType<IntegerAttr>(argument, "test.bound");
  auto scale = function.getArgAttrOfType<FloatAttr>(argument, "test.scale");
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> positive(0.01f, 1.0f);
  for (double &value : tensor.data) {
    if (bound)
      value = std::uniform_int_distribution<int64_t>(0, bound.getInt() - 1)(random);
    else if (type.getElementType().isInteger(1))
      value = random() % 2;
    else if (isa<IntegerType>(type.getElementType()))
      value = std::uniform_int_distribution<int64_t>(-100, 100)(random);
    else
      value = function.getArgAttr(argument, "test.positive") ? positive(random) : normal(random);
    if (scale)
      value = static_cast<float>(value * scale.getValueAsDouble());
    if (type.getElementType().isBF16())
      value = roundToBF16(value);
  }
  if (function.getArgAttr(argument, "test.nan")) {
    tensor.data[random() % tensor.size()] = NAN;
    tensor.data[random() % tensor.size()] = INFINITY;
    tensor.data[random() % tensor.size()] = -INFINITY;
  }
  return tensor;
}

void KernelTest::prepare() {
  source = parseSourceString<ModuleOp>(GetParam().text, context());
  ASSERT_TRUE(source) << GetParam().text;
  PassManager lower(context());
  lower.addPass(createDecompose());
  lower.addPass(createCanonicalizerPass());
  lower.addPass(createCSEPass());
  ASSERT_TRUE(succeeded(lower.run(*source)));
  formed = source->clone();
  PassManager form(context());
  form.addNestedPass<func::FuncOp>(createNDFormKernels());
  ASSERT_TRUE(succeeded(form.run(*formed)));

  auto function = *source->getOps<func::FuncOp>().begin();
  std::mt19937 random(7);
  Values values;
  for (unsigned argument = 0; argument < function.getNumArguments(); ++argument) {
    arguments.push_back(draw(function, argument, random));
    values[function.getArgument(argument)] = arguments.back();
  }
  for (Operation &op : function.getBody().front().without_terminator())
    ASSERT_TRUE(interpret(&op, values)) << op.getName().getStringRef().str();
  for (Value result : function.getBody().front().getTerminator()->getOperands())
    expected.push_back(values.at(result));
}

bool KernelTest::runKernel(KernelOp kernel, Values &values, Memory memory, CpuLevel level) {
  KernelSpec spec;
  spec.op = kernel;
  std::deque<Buffer> inputs, results;
  auto add = [&](std::deque<Buffer> &buffers, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    buffers.emplace_back(type.getElementType(), type.getShape(), memory == Memory::Strided);
    return buffers.back().type;
  };
  for (Value input : kernel.getInputs())
    spec.inputTypes.push_back(add(inputs, input));
  for (Value result : kernel.getResults())
    spec.resultTypes.push_back(add(results, result));
  spec.inPlaceOf.resize(kernel.getNumResults());
  if (memory == Memory::InPlace) {
    llvm::DenseSet<unsigned> taken;
    for (unsigned result = 0; result < kernel.getNumResults(); ++result)
      for (unsigned input = 0; input < kernel.getNumOperands(); ++input)
        if (!spec.inPlaceOf[result] && !taken.contains(input) &&
            canComputeInPlace(kernel, result, input, spec.inputTypes[input], spec.resultTypes[result])) {
          spec.inPlaceOf[result] = input;
          taken.insert(input);
        }
  }
  FailureOr<KernelPlan> plan = planKernel(spec);
  if (failed(plan))
    return false;
  OwningOpRef<ModuleOp> module(ModuleOp::create(kernel.getLoc()));
  OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
  if (failed(emitKernel(builder, spec, *plan, "kernel")))
    return false;
  std::string key = kernelKey(spec);
  EXPECT_EQ(key, kernelKey(spec));
  Library library(*module, level);
  std::string suffix = cpuLevelSuffix(level).str();
  nd_kernel function = library.find("kernel" + suffix);
  nd_kernel finish = plan->finish ? library.find("kernel_finish" + suffix) : nullptr;
  EXPECT_TRUE(function);
  if (!function || (plan->finish && !finish))
    return false;

  std::vector<std::vector<char>> first;
  // All units at once, then in pieces from the last to the first.
  for (int64_t pieces : {1, 3}) {
    for (auto [buffer, input] : llvm::zip(inputs, kernel.getInputs()))
      buffer.write(values.at(input));
    std::vector<char> workspace(plan->workspaceBytes + 64, 0x7f);
    SmallVector<void *> pointers;
    for (Buffer &buffer : inputs)
      pointers.push_back(buffer.start());
    for (auto [buffer, input] : llvm::zip(results, spec.inPlaceOf))
      if (!input)
        pointers.push_back(buffer.start());
    if (plan->workspaceBytes)
      pointers.push_back(workspace.data());
    auto launch = [&](nd_kernel function, const KernelPhase &phase) {
      int64_t grains = (phase.extent + phase.grain - 1) / phase.grain, share = (grains + pieces - 1) / pieces;
      for (int64_t piece = pieces - 1; piece >= 0; --piece) {
        int64_t lo = std::min(piece * share * phase.grain, phase.extent);
        int64_t hi = std::min((piece + 1) * share * phase.grain, phase.extent);
        std::vector<char> scratch(plan->scratchBytes + 64, 0x7f);
        if (lo < hi)
          function(pointers.data(), lo, hi, scratch.data());
      }
    };
    launch(function, *plan);
    if (plan->finish)
      launch(finish, *plan->finish);
    for (auto [number, buffer] : llvm::enumerate(results)) {
      Buffer &where = spec.inPlaceOf[number] ? inputs[*spec.inPlaceOf[number]] : buffer;
      EXPECT_TRUE(where.guardsHold()) << "result " << number << " is written out of bounds";
      if (pieces == 1)
        first.push_back(where.memory);
      else
        EXPECT_EQ(first[number], where.memory) << "the pieces of the work change result " << number;
      values[kernel.getResult(number)] =
          where.read(cast<RankedTensorType>(kernel.getResult(number).getType()).getShape());
    }
  }
  return true;
}

void KernelTest::compare(const Tensor &actual, const Tensor &expected, Type element, double tolerance,
                         unsigned result) {
  double largest = 0;
  for (double value : expected.data)
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  for (int64_t number = 0; number < expected.size(); ++number) {
    double a = actual.data[number], e = expected.data[number];
    bool equal = std::isnan(e)              ? std::isnan(a)
                 : std::isinf(e)            ? a == e
                 : !isa<FloatType>(element) ? a == e
                                            : std::fabs(a - e) <= tolerance * largest;
    ASSERT_TRUE(equal) << "result " << result << " element " << number << ": " << a << " instead of " << e
                       << " (largest " << largest << ")";
  }
}

void KernelTest::check(Memory memory, CpuLevel level) {
  prepare();
  if (HasFatalFailure())
    return;
  auto function = *formed->getOps<func::FuncOp>().begin();
  Values values;
  for (auto [argument, tensor] : llvm::zip(function.getArguments(), arguments))
    values[argument] = tensor;
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      ASSERT_TRUE(runKernel(kernel, values, memory, level));
    else
      ASSERT_TRUE(interpret(&op, values)) << op.getName().getStringRef().str();
  }
  auto tolerance = function->getAttrOfType<FloatAttr>("test.tolerance");
  for (auto [number, result] : llvm::enumerate(function.getBody().front().getTerminator()->getOperands()))
    compare(values.at(result), expected[number], getElementTypeOrSelf(result.getType()),
            tolerance ? tolerance.getValueAsDouble() : 2e-6, number);
}

static bool hasAvx512() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return features.lookup("avx512f") && features.lookup("avx512bw") && features.lookup("avx512dq") &&
         features.lookup("avx512vl");
}

/// The highest level that this CPU runs.
static CpuLevel highest() { return hasAvx512() ? CpuLevel::V4 : CpuLevel::V3; }

TEST_P(KernelTest, Contiguous) { check(Memory::Contiguous, highest()); }
TEST_P(KernelTest, InPlace) { check(Memory::InPlace, CpuLevel::V3); }
TEST_P(KernelTest, Strided) { check(Memory::Strided, highest()); }

/// Functions with the sizes above them put in.
static std::vector<Case> readCases() {
  std::vector<Case> cases;
  std::error_code code;
  std::vector<std::string> files;
  for (llvm::sys::fs::directory_iterator it(ND_TEST_KERNELS, code), end; !code && it != end; it.increment(code))
    if (llvm::sys::path::extension(it->path()) == ".mlir")
      files.push_back(it->path());
  llvm::sort(files);
  for (const std::string &file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer)
      continue;
    SmallVector<StringRef> blocks;
    (*buffer)->getBuffer().split(blocks, "// -----\n");
    for (StringRef block : blocks) {
      SmallVector<StringRef> lines, sizes;
      block.split(lines, '\n');
      for (StringRef line : lines)
        if (line.consume_front("// sizes:"))
          sizes.push_back(line.trim());
      if (!block.contains("func.func"))
        continue;
      StringRef name = block.split("func.func @").second.split('(').first;
      if (sizes.empty())
        sizes.push_back("");
      for (StringRef line : sizes) {
        Case result{(llvm::sys::path::stem(file) + "_" + name).str(), block.str()};
        SmallVector<StringRef> assignments;
        line.split(assignments, ' ', -1, /*KeepEmpty=*/false);
        for (StringRef assignment : assignments) {
          auto [letter, number] = assignment.split('=');
          std::string pattern = ("${" + letter + "}").str();
          for (size_t at; (at = result.text.find(pattern)) != std::string::npos;)
            result.text.replace(at, pattern.size(), number.str());
          result.name += ("_" + letter + number).str();
        }
        for (char &character : result.name)
          if (!isalnum(character))
            character = '_';
        cases.push_back(std::move(result));
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelTest, testing::ValuesIn(readCases()),
                         [](const testing::TestParamInfo<Case> &info) { return info.param.name; });
