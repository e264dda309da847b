//===- Bfloat.h - bf16 in memory, f32 in registers --------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_BFLOAT_H
#define ND_LIB_RUNTIME_HOST_BFLOAT_H

#include <cstdint>
#include <cstring>

namespace nd::rt {

inline float bfloatToFloat(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

/// To the nearest, ties to even; a NaN stays one.
inline uint16_t floatToBfloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_BFLOAT_H
