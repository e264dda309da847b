//===- ThreadPool.cpp - The one team of threads of a rank -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/ThreadPool.h"
#include "nd/Runtime/Core/Futex.h"
#include <cstring>

extern "C" void omp_set_num_threads(int);

using namespace nd::rt;

void nd::rt::prepareThread() {
  constexpr unsigned flushToZero = 0x8000, denormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | flushToZero | denormalsAreZero);
  omp_set_num_threads(1);
}

bool ThreadPool::start(int count, std::string &error) {
  prepareThread();
  threads = count;
  workers.reserve(count - 1); // workers hold their own address
  for (int index = 1; index < count; ++index) {
    workers.push_back({this, index, {}});
    if (int code = pthread_create(&workers.back().handle, nullptr, work, &workers.back())) {
      workers.pop_back();
      error = "cannot start thread " + std::to_string(index) + " of " + std::to_string(count) + ": " + strerror(code) +
              "; use fewer with --threads";
      return false;
    }
  }
  return true;
}

bool ThreadPool::bind(const int32_t *cores, std::string &error) {
  for (int index = 0; index < threads; ++index) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[index], &set);
    pthread_t handle = index == 0 ? pthread_self() : workers[index - 1].handle;
    if (int code = pthread_setaffinity_np(handle, sizeof(set), &set)) {
      error = "cannot bind thread " + std::to_string(index) + " to core " + std::to_string(cores[index]) + ": " +
              strerror(code) + "; run with --bind=off";
      return false;
    }
  }
  return true;
}

ThreadPool::~ThreadPool() {
  if (workers.empty())
    return;
  stopping = true;
  generation.fetch_add(1);
  futexWake(&generation, /*shared=*/false);
  for (Worker &worker : workers)
    pthread_join(worker.handle, nullptr);
}

void *ThreadPool::work(void *argument) {
  const Worker &self = *static_cast<Worker *>(argument);
  ThreadPool &pool = *self.pool;
  prepareThread();
  for (uint32_t seen = 0;; ++seen) {
    for (int i = 0; i < spinPauses && pool.generation.load(std::memory_order_acquire) == seen; ++i)
      _mm_pause();
    if (pool.generation.load() == seen) {
      pool.sleepers.fetch_add(1);
      while (pool.generation.load() == seen)
        futexWait(&pool.generation, seen, /*shared=*/false);
      pool.sleepers.fetch_sub(1);
    }
    if (pool.stopping)
      return nullptr;
    pool.task(self.index, pool.threads, pool.context);
    if (pool.left.fetch_sub(1) == 1 && pool.callerSleeps.load())
      futexWake(&pool.left, /*shared=*/false);
  }
}

void ThreadPool::run(Task newTask, void *newContext) {
  if (workers.empty()) {
    newTask(0, 1, newContext);
    return;
  }
  task = newTask;
  context = newContext;
  left.store(workers.size());
  generation.fetch_add(1);
  if (sleepers.load())
    futexWake(&generation, /*shared=*/false);
  task(0, threads, context);
  for (int i = 0; i < spinPauses && left.load(std::memory_order_acquire); ++i)
    _mm_pause();
  if (!left.load())
    return;
  callerSleeps.store(1);
  while (uint32_t remaining = left.load())
    futexWait(&left, remaining, /*shared=*/false);
  callerSleeps.store(0);
}
