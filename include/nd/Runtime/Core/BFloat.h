//===- BFloat.h - bf16 in memory --------------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_BFLOAT_H
#define ND_RUNTIME_CORE_BFLOAT_H

#include <cstdint>
#include <cstring>

namespace nd::rt {

/// bf16 is the upper half of an f32.
inline float bfloatToFloat(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

/// To the nearest, to even at a tie; a NaN stays a NaN.
inline uint16_t floatToBFloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_BFLOAT_H
