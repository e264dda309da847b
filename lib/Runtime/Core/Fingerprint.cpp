//===- Fingerprint.cpp - A number that stands for a tensor ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Fingerprint.h"

using namespace nd::rt;

namespace {

/// FNV-1a, field by field: padding between fields takes no part.
class Hash {
public:
  Hash &add(int64_t number) {
    for (int byte = 0; byte < 8; ++byte)
      mix(static_cast<unsigned char>(static_cast<uint64_t>(number) >> 8 * byte));
    return *this;
  }
  Hash &add(const char *text) {
    for (; *text; ++text)
      mix(static_cast<unsigned char>(*text));
    mix(0);
    return *this;
  }
  uint64_t get() const { return value; }

private:
  void mix(unsigned char byte) { value = (value ^ byte) * 0x100000001b3; }
  uint64_t value = 0xcbf29ce484222325;
};

} // namespace

uint64_t nd::rt::fingerprint(const nd_tensor_desc &desc) {
  Hash hash;
  hash.add(desc.kind).add(desc.name).add(desc.dtype).add(desc.rank);
  for (int32_t dim = 0; dim < desc.rank; ++dim) {
    hash.add(desc.shape[dim]).add(desc.global_shape[dim]);
    for (int axis = 0; axis < ND_MAX_DIM_AXES; ++axis)
      hash.add(desc.dim_axes[dim][axis]).add(desc.dim_blocks[dim][axis]);
  }
  hash.add(desc.num_units).add(desc.num_units ? desc.units_dim : 0).add(desc.unit_size);
  for (int32_t unit = 0; unit < desc.num_units; ++unit)
    hash.add(desc.units[unit]);
  return hash.add(desc.pad_value).add(desc.offset).add(desc.bound).add(desc.ignore).get();
}

uint64_t nd::rt::meshFingerprint(int32_t numAxes, const int32_t *sizes, const char *const *names) {
  Hash hash;
  for (int32_t axis = 0; axis < numAxes; ++axis)
    hash.add(names[axis] ? names[axis] : "").add(sizes[axis]);
  return hash.get();
}
