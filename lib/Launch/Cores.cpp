//===- Cores.cpp - Cores that ranks may run on ----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Cores.h"
#include "ControlGroups.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace llvm;
using namespace nd::launch;

namespace {

SmallVector<int> visibleCores() {
  SmallVector<int> cores;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set))
        cores.push_back(core);
  return cores;
}

/// The tightest limit of this process's control groups and those around them; 0: none.
double coreLimit() {
  double tightest = 0;
  auto apply = [&](double limit) {
    if (limit > 0)
      tightest = tightest == 0 ? limit : std::min(tightest, limit);
  };
  forEachControlGroup("cpu", SystemFiles(), [&](StringRef folder, bool unified) {
    if (unified) {
      std::string limit = readLine(folder + "/cpu.max");
      auto [quota, period] = StringRef(limit).split(' ');
      apply(parseCoreLimit(quota, period));
    } else {
      apply(parseCoreLimit(readLine(folder + "/cpu.cfs_quota_us"), readLine(folder + "/cpu.cfs_period_us")));
    }
  });
  return tightest;
}

} // namespace

double nd::launch::parseCoreLimit(StringRef quota, StringRef period) {
  double time, of;
  if (quota.trim().getAsDouble(time) || period.trim().getAsDouble(of) || time <= 0 || of <= 0)
    return 0; // `max` or -1: no limit
  return time / of;
}

int nd::launch::availableCores() {
  int cores = std::max<int>(1, visibleCores().size());
  double limit = coreLimit();
  return limit > 0 ? std::clamp(static_cast<int>(std::floor(limit)), 1, cores) : cores;
}

bool CoreClaims::claim(int64_t count) {
  if (count > availableCores())
    return false;
  // A core's hardware threads are listed from the lowest: those that are the n-th of their core come in round n.
  SmallVector<std::pair<int, int>> order;
  for (int core : visibleCores()) {
    std::string siblings = readLine("/sys/devices/system/cpu/cpu" + Twine(core) + "/topology/thread_siblings_list");
    int turn = 0;
    for (StringRef range : split(siblings, ',')) {
      int low, high;
      auto [from, to] = range.split('-');
      if (from.getAsInteger(10, low) || (to.empty() ? from : to).getAsInteger(10, high))
        continue;
      turn += std::clamp(core - low, 0, high - low + 1);
    }
    order.push_back({turn, core});
  }
  llvm::sort(order);
  for (auto [turn, core] : order) {
    if (static_cast<int64_t>(cores.size()) == count)
      break;
    // A name that one process can hold, gone with it: of the abstract namespace, so in no file system.
    int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string name = "nd-core-" + std::to_string(core);
    memcpy(address.sun_path + 1, name.data(), name.size());
    auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (socket < 0 || bind(socket, reinterpret_cast<sockaddr *>(&address), length) != 0) {
      if (socket >= 0)
        close(socket);
      continue;
    }
    cores.push_back(core);
    sockets.push_back(socket);
  }
  if (static_cast<int64_t>(cores.size()) == count)
    return true;
  release();
  return false;
}

void CoreClaims::release() {
  for (int socket : sockets)
    close(socket);
  cores.clear();
  sockets.clear();
}
