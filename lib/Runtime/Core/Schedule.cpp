//===- Schedule.cpp - The scalars of a step -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Schedule.h"
#include <algorithm>
#include <cmath>

using namespace nd::rt;

double nd::rt::learningRate(const nd_schedule_desc &schedule, int64_t step, int64_t totalSteps) {
  int64_t total = schedule.total_steps ? schedule.total_steps : totalSteps;
  int64_t current = step - 1; // transformers counts the scheduler's steps from 0
  double warmup = static_cast<double>(std::max<int64_t>(1, schedule.warmup));
  if (current < schedule.warmup)
    return schedule.lr * (static_cast<double>(current) / warmup);
  if (schedule.kind == ND_CONSTANT)
    return schedule.lr;
  double span = static_cast<double>(std::max<int64_t>(1, total - schedule.warmup));
  double factor = schedule.kind == ND_LINEAR
                      ? std::max(0.0, static_cast<double>(total - current) / span)
                      : 0.5 * (1.0 + std::cos(M_PI * (static_cast<double>(current - schedule.warmup) / span)));
  double floor = schedule.lr != 0 ? schedule.min_lr / schedule.lr : 0.0;
  return schedule.lr * std::max(0.0, factor * (1 - floor) + floor);
}

double nd::rt::biasCorrection1(const nd_schedule_desc &schedule, int64_t update) {
  return 1.0 - std::pow(schedule.beta1, static_cast<double>(update));
}

double nd::rt::sqrtBiasCorrection2(const nd_schedule_desc &schedule, int64_t update) {
  return std::sqrt(1.0 - std::pow(schedule.beta2, static_cast<double>(update)));
}
