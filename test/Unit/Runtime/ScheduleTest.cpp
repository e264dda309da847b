//===- ScheduleTest.cpp - Learning rates of transformers ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Schedule.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace nd::rt;

namespace {

nd_schedule_desc schedule(int32_t kind, int64_t warmup, int64_t total, double minLr = 0) {
  return {kind, 1e-3, minLr, warmup, total, 0.9, 0.999};
}

void expectRates(const nd_schedule_desc &desc, const std::vector<double> &expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_DOUBLE_EQ(learningRate(desc, static_cast<int64_t>(i) + 1, 8), expected[i] * 1e-3) << "step " << i + 1;
}

} // namespace

// The factors are those of transformers.get_scheduler(...).lr_lambdas, version 5.24.
TEST(Schedule, Constant) {
  expectRates(schedule(ND_CONSTANT, 0, 0), {1, 1, 1});
  expectRates(schedule(ND_CONSTANT, 4, 0), {0, 0.25, 0.5, 0.75, 1, 1});
}

TEST(Schedule, Linear) {
  expectRates(schedule(ND_LINEAR, 0, 4), {1, 0.75, 0.5, 0.25, 0, 0});
  expectRates(schedule(ND_LINEAR, 2, 6), {0, 0.5, 1, 0.75, 0.5, 0.25, 0});
  expectRates(schedule(ND_LINEAR, 0, 0), {1, 0.875, 0.75}); // the run's 8 steps
}

TEST(Schedule, Cosine) {
  double quarter = 0.5 * (1 + std::cos(M_PI / 4));
  expectRates(schedule(ND_COSINE, 0, 4), {1, quarter, 0.5, 0.5 * (1 + std::cos(M_PI * 0.75)), 0});
  expectRates(schedule(ND_COSINE, 2, 6), {0, 0.5, 1, quarter, 0.5});
  expectRates(schedule(ND_COSINE, 0, 4, 1e-4), {1, quarter * 0.9 + 0.1, 0.55});
}

TEST(Schedule, BiasCorrections) {
  nd_schedule_desc desc = schedule(ND_CONSTANT, 0, 0);
  EXPECT_DOUBLE_EQ(biasCorrection1(desc, 1), 1 - 0.9);
  EXPECT_DOUBLE_EQ(biasCorrection1(desc, 3), 1 - std::pow(0.9, 3));
  EXPECT_DOUBLE_EQ(sqrtBiasCorrection2(desc, 5), std::sqrt(1 - std::pow(0.999, 5)));
}
