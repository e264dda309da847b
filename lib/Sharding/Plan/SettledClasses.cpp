//===- SettledClasses.cpp - What annotations say of classes ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Plan/SettledClasses.h"

using namespace mlir;
using namespace nd;

void SettledClasses::add(Value parameter, const TensorSharding &use, bool byUser) {
  if (use.dims.size() < 2)
    return;
  for (auto [dim, axes] : llvm::enumerate(use.dims)) {
    size_t next = 0;
    for (DimensionClasses::Id id : classes.getDim(parameter, dim)) {
      AxisList own;
      int64_t rest = classes.getSize(id);
      for (; next < axes.size() && rest % mesh.getSizes()[axes[next]] == 0; ++next) {
        rest /= mesh.getSizes()[axes[next]];
        own.push_back(axes[next]);
      }
      if (rest != 1) // what is minor to a class that is not sharded whole is not sharded
        next = axes.size();
      auto [it, isFirst] = votes.try_emplace(id, Votes{own});
      it->second.agree &= it->second.axes == own;
      it->second.byUser |= byUser;
    }
  }
}

const AxisList *SettledClasses::find(DimensionClasses::Id id) const {
  auto it = votes.find(id);
  return it != votes.end() && it->second.agree && it->second.byUser ? &it->second.axes : nullptr;
}
