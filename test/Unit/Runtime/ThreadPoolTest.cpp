//===- ThreadPoolTest.cpp - Fork, join and static ranges ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/ThreadPool.h"
#include <gtest/gtest.h>
#include <unistd.h>

using namespace nd::rt;

TEST(ThreadPool, EveryThreadRunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool;
    std::string error;
    ASSERT_TRUE(pool.start(threads, error)) << error;
    std::vector<int> runs(threads, 0);
    for (int i = 0; i < 2000; ++i) {
      pool.parallel([&](int thread, int count) {
        EXPECT_EQ(count, threads);
        ++runs[thread];
      });
      if (i % 500 == 0)
        usleep(2000); // the workers fall asleep
    }
    EXPECT_EQ(runs, std::vector<int>(threads, 2000));
  }
}

TEST(ThreadPool, RangesCoverTheExtentInGrains) {
  for (int64_t extent : {0, 1, 3, 16, 17, 100})
    for (int64_t grain : {1, 4, 64})
      for (int threads : {1, 2, 3, 8}) {
        int64_t next = 0;
        for (int thread = 0; thread < threads; ++thread) {
          Range range = splitRange(extent, grain, thread, threads);
          EXPECT_EQ(range.lo, next);
          EXPECT_TRUE(range.lo % grain == 0 || range.lo == extent);
          next = range.hi;
        }
        EXPECT_EQ(next, extent);
      }
}

TEST(ThreadPool, DenormalsAreFlushedInEveryThread) {
  ThreadPool pool;
  std::string error;
  ASSERT_TRUE(pool.start(2, error)) << error;
  volatile float small = 1e-38f;
  pool.parallel([&](int, int) { EXPECT_EQ(small * 0.01f, 0.0f); });
}
