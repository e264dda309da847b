//===- MachineMemoryTest.cpp - Whether a job fits into memory -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Launch/MachineMemory.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace nd::launch;

namespace {

/// A system whose files say what a test writes.
class Machine : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(sys::fs::createUniqueDirectory("nd-memory", folder));
    files.processes = (folder + "/proc").str();
    files.groups = (folder + "/cgroup").str();
    write("proc/meminfo", "MemTotal:       4096 kB\nMemAvailable:   3000 kB\nSwapFree:        100 kB\n");
  }
  void TearDown() override { sys::fs::remove_directories(folder); }

  void write(const Twine &name, StringRef text) {
    std::string path = (folder + "/" + name).str();
    ASSERT_FALSE(sys::fs::create_directories(sys::path::parent_path(path)));
    std::error_code error;
    raw_fd_ostream(path, error) << text;
    ASSERT_FALSE(error);
  }

  SmallString<128> folder;
  SystemFiles files;
};

TEST_F(Machine, HasWhatTheKernelSaysAndFreeSwap) {
  std::optional<AvailableMemory> memory = findAvailableMemory(files);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bytes, 3100 * 1024);
  EXPECT_EQ(memory->source, "available here");
}

TEST_F(Machine, LimitsOfControlGroupsCount) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("cgroup/outer/inner/memory.max", "max\n");
  write("cgroup/outer/inner/memory.current", "500\n");
  write("cgroup/outer/memory.max", "2000\n");
  write("cgroup/outer/memory.current", "900\n");
  write("cgroup/outer/memory.stat", "anon 300\ninactive_file 400\n");
  std::optional<AvailableMemory> memory = findAvailableMemory(files);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bytes, 1500); // files that are kept give way
  EXPECT_EQ(memory->source, "left by the limit of " + files.groups + "/outer");
}

TEST_F(Machine, LimitsOfVersionOneCount) {
  write("proc/self/cgroup", "5:cpu:/a\n4:memory:/job\n0::/\n");
  write("cgroup/memory/job/memory.limit_in_bytes", "1000\n");
  write("cgroup/memory/job/memory.usage_in_bytes", "1200\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("cgroup/memory/memory.usage_in_bytes", "5000\n");
  std::optional<AvailableMemory> memory = findAvailableMemory(files);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bytes, 0);
}

TEST_F(Machine, SaysNothing) {
  files.processes += "/none";
  EXPECT_FALSE(findAvailableMemory(files));
}

TEST(MemoryOfRanks, IsRefusedOnlyWhereItCannotFit) {
  Manifest manifest;
  manifest.ranks = 10;
  manifest.arenaBytes = (2 << 20) + 1; // in large pages
  manifest.threadScratchBytes = 1 << 20;
  int64_t ofRank = bytesOfRank(manifest, /*threads=*/2);
  EXPECT_EQ(ofRank, (4 + 2 + 5) << 20);
  auto check = [&](int64_t available, bool startAnyway) {
    return checkMemory(manifest, 2, {available, "available here"}, startAnyway);
  };
  EXPECT_EQ(cantFail(check(10 * ofRank * 5 / 4 + 4, false)), "");
  EXPECT_NE(cantFail(check(10 * ofRank * 5 / 4 - 4, false)), "");
  std::string text =
      "10 ranks of 11534336 bytes, 2097153 of them the arena, need 115343360 bytes (0.11 GiB) of memory, ";
  EXPECT_EQ(cantFail(check(10 * ofRank, false)), text + "and 115343360 bytes (0.11 GiB) are available here");
  EXPECT_EQ(toString(check(10 * ofRank - 1, false).takeError()),
            text + "and 115343359 bytes (0.11 GiB) are available here; use fewer ranks or a smaller batch, or "
                   "--ignore-memory to start them all the same");
  EXPECT_EQ(cantFail(check(10 * ofRank - 1, true)), text + "and 115343359 bytes (0.11 GiB) are available here");
  manifest.arenaBytes = INT64_MAX - 100; // of a damaged file
  EXPECT_NE(toString(check(10 * ofRank, false).takeError()), "success");
}

} // namespace
