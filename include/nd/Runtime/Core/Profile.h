//===- Profile.h - Where a step's time goes ---------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_PROFILE_H
#define ND_RUNTIME_CORE_PROFILE_H

#include <cstdint>
#include <string>
#include <vector>

namespace nd::rt {

/// Time by operation, when ND_PROFILE is set: printed when the rank closes.
class Profile {
public:
  enum Kind { Kernel, Product, Attention, AttentionGrad, Copy, Collective, NumKinds };

  /// A profile if ND_PROFILE is set, else null.
  static Profile *create();

  void add(Kind kind, int32_t index, const char *location, double milliseconds);

  /// Totals by kind and the longest operations.
  void print(int64_t steps) const;

private:
  struct Entry {
    double milliseconds = 0;
    int64_t calls = 0;
    const char *location = "";
  };
  std::vector<Entry> entries[NumKinds];
};

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_PROFILE_H
