//===- Interpreter.cpp - Tensor operations by definition ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include "nd/Runtime/Core/BFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace nd;
using namespace nd::test;

int64_t Tensor::size() const {
  int64_t product = 1;
  for (int64_t dim : shape)
    product *= dim;
  return product;
}

int64_t Tensor::offset(ArrayRef<int64_t> index) const {
  int64_t result = 0;
  for (auto [dim, at] : llvm::zip(shape, index))
    result = result * dim + at;
  return result;
}

SmallVector<int64_t> Tensor::index(int64_t number) const {
  SmallVector<int64_t> result(shape.size());
  for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
    result[dim] = number % shape[dim];
    number /= shape[dim];
  }
  return result;
}

double nd::test::roundToBF16(double value) { return rt::bfloatToFloat(rt::floatToBFloat(static_cast<float>(value))); }

static double compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  case arith::CmpFPredicate::UNO:
    return unordered;
  default:
    return predicate == arith::CmpFPredicate::AlwaysTrue;
  }
}

static double compareIntegers(arith::CmpIPredicate predicate, double a, double b) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return a < b;
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return a <= b;
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return a > b;
  default:
    return a >= b;
  }
}

static double maximum(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b); }
static double minimum(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b); }

/// One element of an elementwise operation; nothing for an operation that is not known.
static std::optional<double> element(Operation *op, ArrayRef<double> x) {
  auto integer = [&](unsigned operand) { return static_cast<int64_t>(x[operand]); };
  return TypeSwitch<Operation *, std::optional<double>>(op)
      .Case<arith::AddFOp, arith::AddIOp>([&](auto) { return x[0] + x[1]; })
      .Case<arith::SubFOp, arith::SubIOp>([&](auto) { return x[0] - x[1]; })
      .Case<arith::MulFOp, arith::MulIOp>([&](auto) { return x[0] * x[1]; })
      .Case<arith::DivFOp>([&](auto) { return x[0] / x[1]; })
      .Case<arith::DivSIOp>([&](auto) { return integer(0) / integer(1); })
      .Case<arith::RemSIOp>([&](auto) { return integer(0) % integer(1); })
      .Case<arith::MaximumFOp>([&](auto) { return maximum(x[0], x[1]); })
      .Case<arith::MinimumFOp>([&](auto) { return minimum(x[0], x[1]); })
      .Case<arith::MaxSIOp>([&](auto) { return std::max(x[0], x[1]); })
      .Case<arith::MinSIOp>([&](auto) { return std::min(x[0], x[1]); })
      .Case<arith::AndIOp>([&](auto) { return integer(0) & integer(1); })
      .Case<arith::OrIOp>([&](auto) { return integer(0) | integer(1); })
      .Case<arith::XOrIOp>([&](auto) { return integer(0) ^ integer(1); })
      .Case<arith::NegFOp>([&](auto) { return -x[0]; })
      .Case<arith::CmpFOp>([&](auto op) { return compareFloats(op.getPredicate(), x[0], x[1]); })
      .Case<arith::CmpIOp>([&](auto op) { return compareIntegers(op.getPredicate(), x[0], x[1]); })
      .Case<arith::SelectOp>([&](auto) { return x[0] != 0 ? x[1] : x[2]; })
      .Case<arith::FPToSIOp>([&](auto) { return std::trunc(x[0]); })
      .Case<arith::SIToFPOp, arith::UIToFPOp, arith::ExtSIOp, arith::ExtUIOp, arith::ExtFOp, arith::TruncFOp,
            arith::TruncIOp>([&](auto) { return x[0]; })
      .Case<math::AbsFOp>([&](auto) { return std::fabs(x[0]); })
      .Case<math::CeilOp>([&](auto) { return std::ceil(x[0]); })
      .Case<math::FloorOp>([&](auto) { return std::floor(x[0]); })
      .Case<math::ExpOp>([&](auto) { return std::exp(x[0]); })
      .Case<math::ExpM1Op>([&](auto) { return std::expm1(x[0]); })
      .Case<math::LogOp>([&](auto) { return std::log(x[0]); })
      .Case<math::Log1pOp>([&](auto) { return std::log1p(x[0]); })
      .Case<math::SqrtOp>([&](auto) { return std::sqrt(x[0]); })
      .Case<math::RsqrtOp>([&](auto) { return 1 / std::sqrt(x[0]); })
      .Case<math::TanhOp>([&](auto) { return std::tanh(x[0]); })
      .Case<math::ErfOp>([&](auto) { return std::erf(x[0]); })
      .Case<math::SinOp>([&](auto) { return std::sin(x[0]); })
      .Case<math::CosOp>([&](auto) { return std::cos(x[0]); })
      .Case<math::PowFOp>([&](auto) { return std::pow(x[0], x[1]); })
      .Default([](Operation *) { return std::nullopt; });
}

static Tensor reduce(ReduceOp op, const Tensor &input, Tensor result) {
  double initial = op.getKind() == ReductionKind::sum ? 0 : op.getKind() == ReductionKind::max ? -INFINITY : INFINITY;
  llvm::fill(result.data, initial);
  for (int64_t number = 0; number < input.size(); ++number) {
    SmallVector<int64_t> index = input.index(number), kept;
    for (auto [dim, at] : llvm::enumerate(index))
      if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)))
        kept.push_back(at);
    double &sum = result.at(kept), value = input.data[number];
    sum = op.getKind() == ReductionKind::sum   ? sum + value
          : op.getKind() == ReductionKind::max ? maximum(sum, value)
                                               : minimum(sum, value);
  }
  return result;
}

static void topK(const Tensor &input, Tensor &values, Tensor &indices) {
  int64_t width = input.shape.back(), kept = values.shape.back();
  for (int64_t row = 0; row < input.size() / width; ++row) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, width));
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      double x = input.data[row * width + a], y = input.data[row * width + b];
      return std::isnan(x) ? !std::isnan(y) : x > y;
    });
    for (int64_t slot = 0; slot < kept; ++slot) {
      indices.data[row * kept + slot] = order[slot];
      values.data[row * kept + slot] = input.data[row * width + order[slot]];
    }
  }
}

bool nd::test::interpret(Operation *op, Values &values) {
  SmallVector<Tensor> in, out;
  for (Value operand : op->getOperands())
    in.push_back(values.at(operand));
  for (Value result : op->getResults())
    out.emplace_back(cast<RankedTensorType>(result.getType()).getShape());
  auto fill = [&](llvm::function_ref<double(ArrayRef<int64_t>)> value) {
    for (int64_t number = 0; number < out[0].size(); ++number)
      out[0].data[number] = value(out[0].index(number));
    return true;
  };
  bool known = TypeSwitch<Operation *, bool>(op)
                   .Case([&](arith::ConstantOp op) {
                     auto elements = cast<DenseElementsAttr>(op.getValue());
                     bool isFloat = isa<FloatType>(elements.getElementType());
                     for (int64_t number = 0; number < out[0].size(); ++number)
                       out[0].data[number] = isFloat ? elements.getValues<APFloat>()[number].convertToDouble()
                                             : elements.getElementType().isInteger(1)
                                                 ? elements.getValues<bool>()[number]
                                                 : elements.getValues<APInt>()[number].getSExtValue();
                     return true;
                   })
                   .Case([&](BroadcastOp op) {
                     return fill([&](ArrayRef<int64_t> index) {
                       SmallVector<int64_t> from;
                       for (int64_t dim : op.getDims())
                         from.push_back(index[dim]);
                       return in[0].at(from);
                     });
                   })
                   .Case([&](ReshapeOp) {
                     out[0].data = in[0].data;
                     return true;
                   })
                   .Case([&](TransposeOp op) {
                     return fill([&](ArrayRef<int64_t> index) {
                       SmallVector<int64_t> from(index.size());
                       for (auto [dim, source] : llvm::enumerate(op.getPermutation()))
                         from[source] = index[dim];
                       return in[0].at(from);
                     });
                   })
                   .Case([&](SliceOp op) {
                     return fill([&](ArrayRef<int64_t> index) {
                       SmallVector<int64_t> from;
                       for (auto [dim, at] : llvm::enumerate(index))
                         from.push_back(op.getStarts()[dim] + at * op.getStrides()[dim]);
                       return in[0].at(from);
                     });
                   })
                   .Case([&](PadOp op) {
                     llvm::fill(out[0].data, in[1].data[0]);
                     for (int64_t number = 0; number < in[0].size(); ++number) {
                       SmallVector<int64_t> index = in[0].index(number);
                       for (auto [dim, at] : llvm::enumerate(index))
                         at = op.getLow()[dim] + at * (op.getInterior()[dim] + 1);
                       out[0].at(index) = in[0].data[number];
                     }
                     return true;
                   })
                   .Case([&](ConcatOp op) {
                     return fill([&](ArrayRef<int64_t> index) {
                       SmallVector<int64_t> from(index);
                       for (const Tensor &part : in) {
                         if (from[op.getDim()] < part.shape[op.getDim()])
                           return part.at(from);
                         from[op.getDim()] -= part.shape[op.getDim()];
                       }
                       return std::nan("");
                     });
                   })
                   .Case([&](IotaOp op) {
                     return fill([&](ArrayRef<int64_t> index) { return static_cast<double>(index[op.getDim()]); });
                   })
                   .Case([&](ReduceOp op) {
                     out[0] = reduce(op, in[0], out[0]);
                     return true;
                   })
                   .Case([&](TakeOp) {
                     int64_t rank = in[1].shape.size();
                     return fill([&](ArrayRef<int64_t> index) {
                       SmallVector<int64_t> from = {static_cast<int64_t>(in[1].at(index.take_front(rank)))};
                       llvm::append_range(from, index.drop_front(rank));
                       return in[0].at(from);
                     });
                   })
                   .Case([&](TakeAlongOp op) {
                     return fill([&](ArrayRef<int64_t> index) {
                       SmallVector<int64_t> from(index);
                       from[op.getDim()] = static_cast<int64_t>(in[1].at(index));
                       return in[0].at(from);
                     });
                   })
                   .Case([&](ScatterAddOp op) {
                     if (op.getInit())
                       out[0] = in[2];
                     int64_t rank = in[0].shape.size();
                     for (int64_t number = 0; number < in[1].size(); ++number) {
                       SmallVector<int64_t> index = in[1].index(number);
                       int64_t row = in[0].at(ArrayRef<int64_t>(index).take_front(rank));
                       if (op.getPaddingIdx() && row == static_cast<int64_t>(*op.getPaddingIdx()))
                         continue;
                       SmallVector<int64_t> to = {row};
                       llvm::append_range(to, ArrayRef<int64_t>(index).drop_front(rank));
                       out[0].at(to) += in[1].data[number];
                     }
                     return true;
                   })
                   .Case([&](ScatterAddAlongOp op) {
                     for (int64_t number = 0; number < in[1].size(); ++number) {
                       SmallVector<int64_t> to = in[1].index(number);
                       to[op.getDim()] = in[0].data[number];
                       out[0].at(to) += in[1].data[number];
                     }
                     return true;
                   })
                   .Case([&](CumSumOp op) {
                     int64_t size = in[0].shape[op.getDim()];
                     return fill([&](ArrayRef<int64_t> index) {
                       int64_t at = index[op.getDim()];
                       double sum = 0;
                       for (int64_t other = 0; other < size; ++other) {
                         bool counts = op.getReverse() ? other > at : other < at;
                         SmallVector<int64_t> from(index);
                         from[op.getDim()] = other;
                         if (counts || (other == at && !op.getExclusive()))
                           sum += in[0].at(from);
                       }
                       return sum;
                     });
                   })
                   .Case([&](ArgMaxOp op) {
                     return fill([&](ArrayRef<int64_t> index) {
                       SmallVector<int64_t> from(index);
                       from.insert(from.begin() + op.getDim(), 0);
                       int64_t best = 0;
                       double largest = in[0].at(from);
                       for (int64_t other = 1; other < in[0].shape[op.getDim()]; ++other) {
                         from[op.getDim()] = other;
                         double value = in[0].at(from);
                         if (!std::isnan(largest) && (std::isnan(value) || value > largest))
                           best = other, largest = value;
                       }
                       return static_cast<double>(best);
                     });
                   })
                   .Case([&](TopKOp) {
                     topK(in[0], out[0], out[1]);
                     return true;
                   })
                   .Default([&](Operation *op) {
                     for (int64_t number = 0; number < out[0].size(); ++number) {
                       SmallVector<double> operands;
                       for (const Tensor &tensor : in)
                         operands.push_back(tensor.data[number]);
                       std::optional<double> value = element(op, operands);
                       if (!value)
                         return false;
                       out[0].data[number] = *value;
                     }
                     return true;
                   });
  if (!known)
    return false;
  for (auto [value, tensor] : llvm::zip(op->getResults(), out)) {
    if (cast<RankedTensorType>(value.getType()).getElementType().isBF16())
      llvm::transform(tensor.data, tensor.data.begin(), roundToBF16);
    values[value] = std::move(tensor);
  }
  return true;
}
