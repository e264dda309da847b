//===- ThreadPool.h - The one team of threads of a rank ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_THREADPOOL_H
#define ND_RUNTIME_CORE_THREADPOOL_H

#include <atomic>
#include <cstdint>
#include <pthread.h>
#include <string>
#include <type_traits>
#include <vector>

namespace nd::rt {

/// A range of work, [lo, hi).
struct Range {
  int64_t lo, hi;
};

/// The part of [0, extent) that thread `thread` of `threads` does: static, in multiples of `grain` but for the end.
inline Range splitRange(int64_t extent, int64_t grain, int thread, int threads) {
  int64_t units = (extent + grain - 1) / grain, each = units / threads, extra = units % threads;
  int64_t first = thread * each + (thread < extra ? thread : extra);
  int64_t lo = first * grain, hi = (first + each + (thread < extra ? 1 : 0)) * grain;
  return {lo < extent ? lo : extent, hi < extent ? hi : extent};
}

/// Persistent threads with fork and join: workers spin briefly, then sleep in a futex, and so does the caller. The
/// caller is thread 0; with one thread a task is a plain call. Denormals are flushed and OpenMP is held to one thread
/// in every thread.
class ThreadPool {
public:
  using Task = void (*)(int thread, int threads, void *context);

  ThreadPool() = default;
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool();

  /// Starts `threads` - 1 workers. False, with a message, when the system refuses.
  [[nodiscard]] bool start(int threads, std::string &error);

  /// Binds each thread to its core, the caller too. False, with a message, when the system refuses.
  [[nodiscard]] bool bind(const int32_t *cores, std::string &error);

  int size() const { return threads; }

  /// Runs task(t, size()) on every thread and waits for all.
  void run(Task task, void *context);

  template <typename Function> void parallel(Function &&function) {
    run([](int thread, int count,
           void *context) { (*static_cast<std::remove_reference_t<Function> *>(context))(thread, count); },
        &function);
  }

private:
  struct Worker {
    ThreadPool *pool;
    int index;
    pthread_t handle;
  };
  static void *work(void *argument);

  std::vector<Worker> workers;
  int threads = 1;
  Task task = nullptr;
  void *context = nullptr;
  bool stopping = false;
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<uint32_t> left{0};
  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::atomic<uint32_t> callerSleeps{0};
};

/// Flushes denormals to zero and keeps OpenMP (oneDNN's) to this thread. Called once in each thread.
void prepareThread();

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_THREADPOOL_H
