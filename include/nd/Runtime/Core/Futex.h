//===- Futex.h - Waiting for a word to change -------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_FUTEX_H
#define ND_RUNTIME_CORE_FUTEX_H

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>
#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nd::rt {

/// How long a wait spins before it sleeps: about a microsecond of pauses where cores are free, measured as the best of
/// both an idle and an oversubscribed machine.
inline constexpr int spinPauses = 2000;

/// Sleeps while *word == expected, at most `milliseconds` (0: no limit). May return early.
inline void futexWait(std::atomic<uint32_t> *word, uint32_t expected, bool shared, int milliseconds = 0) {
  timespec limit{milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  syscall(SYS_futex, word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, expected, milliseconds ? &limit : nullptr, nullptr,
          0);
}

/// Wakes everyone who sleeps on the word.
inline void futexWake(std::atomic<uint32_t> *word, bool shared) {
  syscall(SYS_futex, word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_FUTEX_H
