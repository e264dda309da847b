//===- MachineMemory.cpp - Whether a job fits into memory -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "MachineMemory.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace nd::launch;

namespace {

constexpr int64_t kibibyte = 1024, mebibyte = 1 << 20;

/// Private pages of a rank's process without its arena: the allocator's, the library's of products, its tables.
constexpr uint64_t processBytes = 5 * mebibyte;

/// The number behind a key of a file of lines; nothing where there is none.
std::optional<int64_t> findNumber(StringRef path, StringRef key) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFileAsStream(path);
  SmallVector<StringRef> lines;
  if (buffer)
    (*buffer)->getBuffer().split(lines, '\n');
  for (StringRef line : lines) {
    int64_t number;
    if (line.consume_front(key) && !line.ltrim(": ").split(' ').first.getAsInteger(10, number))
      return number;
  }
  return std::nullopt;
}

std::optional<int64_t> readNumber(const Twine &path) {
  int64_t number;
  if (StringRef(readLine(path)).trim().getAsInteger(10, number))
    return std::nullopt; // no such file, or `max`
  return number;
}

std::string inGibibytes(uint64_t bytes) {
  return formatv("{0:f2} GiB", static_cast<double>(bytes) / (1024.0 * mebibyte)).str();
}

} // namespace

std::optional<AvailableMemory> nd::launch::findAvailableMemory(const SystemFiles &files) {
  std::string meminfo = files.processes + "/meminfo";
  std::optional<int64_t> available = findNumber(meminfo, "MemAvailable:");
  if (!available)
    return std::nullopt;
  AvailableMemory found{(*available + findNumber(meminfo, "SwapFree:").value_or(0)) * kibibyte, "available here"};
  forEachControlGroup("memory", files, [&](StringRef folder, bool unified) {
    std::optional<int64_t> limit = readNumber(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"));
    std::optional<int64_t> used = readNumber(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
    if (!limit || !used)
      return;
    // Files that are kept in memory give way.
    int64_t kept = findNumber((folder + "/memory.stat").str(), "inactive_file ").value_or(0);
    int64_t left = std::max<int64_t>(0, *limit - std::max<int64_t>(0, *used - kept));
    if (left < found.bytes)
      found = {left, ("left by the limit of " + folder).str()};
  });
  return found;
}

/// Numbers of a file that may be damaged: what is too large stays so.
uint64_t nd::launch::bytesOfRank(const Manifest &manifest, int threads) {
  auto arena = static_cast<uint64_t>(std::max<int64_t>(manifest.arenaBytes, 0));
  auto scratch = static_cast<uint64_t>(std::max<int64_t>(manifest.threadScratchBytes, 0));
  return SaturatingAdd(alignTo(arena, 2 * mebibyte), SaturatingMultiply(scratch, static_cast<uint64_t>(threads)),
                       processBytes);
}

Expected<std::string> nd::launch::checkMemory(const Manifest &manifest, int threads, const AvailableMemory &memory,
                                              bool startAnyway) {
  uint64_t ofRank = bytesOfRank(manifest, threads);
  uint64_t needed = SaturatingMultiply(ofRank, static_cast<uint64_t>(manifest.ranks));
  if (static_cast<double>(needed) <= 0.8 * static_cast<double>(memory.bytes))
    return "";
  std::string text = formatv(
      "{0} {1} of {2} bytes, {3} of them the arena, {8} {4} bytes ({5}) of memory, and {6} bytes "
      "({7}) are {9}",
      manifest.ranks, manifest.ranks == 1 ? "rank" : "ranks", ofRank, manifest.arenaBytes, needed, inGibibytes(needed),
      memory.bytes, inGibibytes(memory.bytes), manifest.ranks == 1 ? "needs" : "need", memory.source);
  if (needed <= static_cast<uint64_t>(memory.bytes) || startAnyway)
    return text;
  return makeError(text + "; use fewer ranks or a smaller batch, or --ignore-memory to start them all the same");
}
