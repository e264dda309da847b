//===- Schedule.h - The scalars of a step -----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_SCHEDULE_H
#define ND_RUNTIME_CORE_SCHEDULE_H

#include "nd/Runtime/Core/ABI.h"

namespace nd::rt {

/// The learning rate of step `step` (from 1), as transformers' get_scheduler gives it: constant, linear and cosine,
/// each with warm-up. `totalSteps` is the run's, used where the schedule has none of its own.
double learningRate(const nd_schedule_desc &schedule, int64_t step, int64_t totalSteps);

/// 1 - beta1^t and sqrt(1 - beta2^t) of the t-th applied update.
double biasCorrection1(const nd_schedule_desc &schedule, int64_t update);
double sqrtBiasCorrection2(const nd_schedule_desc &schedule, int64_t update);

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_SCHEDULE_H
