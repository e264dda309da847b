//===- Options.cpp - What --shard says ------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Sharding/Options.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/FormatVariadic.h"

using namespace nd;
using llvm::StringRef;

namespace {

struct KnownAxis {
  StringRef name, alias;
  AxisRole role;
};

/// In canonical order.
constexpr KnownAxis knownAxes[] = {{"dp", "dp_replicate", AxisRole::replicate},
                                   {"fsdp", "dp_shard", AxisRole::shard},
                                   {"cp", "cp", AxisRole::context},
                                   {"tp", "tp", AxisRole::tensor}};

constexpr int64_t kOpen = 0; ///< the size of an axis given as `*`, until it is known

llvm::Error error(const llvm::formatv_object_base &message) { return llvm::createStringError(message.str()); }

const KnownAxis *findAxis(StringRef name) {
  const auto *it =
      llvm::find_if(knownAxes, [&](const KnownAxis &axis) { return name == axis.name || name == axis.alias; });
  return it == std::end(knownAxes) ? nullptr : it;
}

size_t canonicalPosition(StringRef name) { return findAxis(name) - std::begin(knownAxes); }

llvm::Expected<ShardingOptions::Axis> parseAxis(StringRef item) {
  StringRef name = item.take_while([](char c) { return llvm::isAlpha(c) || c == '_'; });
  StringRef degree = item.drop_front(name.size());
  const KnownAxis *known = findAxis(name);
  if (!known)
    return error(
        llvm::formatv("--shard: unknown axis '{0}' in '{1}'; axes are dp, fsdp, cp and tp, as in dp2,tp4", name, item));
  if (degree.empty())
    return error(
        llvm::formatv("--shard: axis '{0}' has no size; write {0}2 for two ranks, or {0}* with --ranks", name));
  if (degree == "*")
    return ShardingOptions::Axis{known->name.str(), known->role, kOpen};
  int64_t size;
  if (degree.getAsInteger(10, size))
    return error(
        llvm::formatv("--shard: '{0}' is no size of axis '{1}'; sizes are whole numbers from 1 on", degree, name));
  if (size < 1)
    return error(llvm::formatv("--shard: axis '{0}' has size {1}; a size is at least 1", name, size));
  return ShardingOptions::Axis{known->name.str(), known->role, size};
}

/// The product of the sizes that are given.
std::optional<int64_t> product(llvm::ArrayRef<ShardingOptions::Axis> axes) {
  std::optional<int64_t> result = 1;
  for (const ShardingOptions::Axis &axis : axes)
    if (result && axis.size != kOpen)
      result = llvm::checkedMul(*result, axis.size);
  return result;
}

/// Gives the open axis its size, and compares the product with the number of ranks.
llvm::Error bindRanks(llvm::MutableArrayRef<ShardingOptions::Axis> axes, int64_t ranks, StringRef text) {
  std::optional<int64_t> given = product(axes);
  if (!given)
    return error(llvm::formatv("--shard: the sizes of '{0}' multiply to more ranks than fit in 64 bits", text));
  auto *open = llvm::find_if(axes, [](const ShardingOptions::Axis &axis) { return axis.size == kOpen; });
  if (open == axes.end()) {
    if (ranks == 0 || *given == ranks)
      return llvm::Error::success();
    return error(
        llvm::formatv("--shard: '{0}' is a mesh of {1} ranks but --ranks={2}; leave --ranks out, or one size open "
                      "({3}*)",
                      text, *given, ranks, axes.front().name));
  }
  if (ranks == 0)
    return error(llvm::formatv("--shard: the size of '{0}*' is open; give --ranks=N", open->name));
  if (ranks % *given != 0)
    return error(llvm::formatv("--shard: --ranks={0} is no multiple of {1}, the product of the sizes given in '{2}'",
                               ranks, *given, text));
  open->size = ranks / *given;
  return llvm::Error::success();
}

} // namespace

llvm::Expected<ShardingOptions> ShardingOptions::parse(StringRef text, int64_t ranks) {
  if (ranks < 0)
    return error(llvm::formatv("--ranks={0}: a job has at least 1 rank", ranks));
  ShardingOptions options;
  if (text.trim().empty())
    text = ranks == 0 ? "dp1" : "dp*";
  llvm::SmallVector<StringRef> items;
  text.split(items, ',');
  for (StringRef item : items) {
    llvm::Expected<Axis> axis = parseAxis(item.trim());
    if (!axis)
      return axis.takeError();
    if (llvm::any_of(options.axes, [&](const Axis &other) { return other.name == axis->name; }))
      return error(llvm::formatv("--shard: axis '{0}' is given twice in '{1}'", axis->name, text));
    if (axis->size == kOpen && llvm::any_of(options.axes, [](const Axis &other) { return other.size == kOpen; }))
      return error(llvm::formatv("--shard: two open sizes in '{0}'; only one can follow from --ranks", text));
    options.axes.push_back(*axis);
  }
  llvm::sort(options.axes,
             [](const Axis &a, const Axis &b) { return canonicalPosition(a.name) < canonicalPosition(b.name); });
  if (llvm::Error failed = bindRanks(options.axes, ranks, text))
    return std::move(failed);
  return options;
}

int64_t ShardingOptions::getNumRanks() const { return product(axes).value_or(0); }

const ShardingOptions::Axis *ShardingOptions::findAxis(AxisRole role) const {
  const Axis *it = llvm::find_if(axes, [&](const Axis &axis) { return axis.role == role; });
  return it == axes.end() ? nullptr : it;
}

std::string ShardingOptions::str() const {
  return llvm::join(llvm::map_range(axes, [](const Axis &axis) { return axis.name + std::to_string(axis.size); }), ",");
}
