//===- TensorFile.cpp - Slices of tensors in files ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/TensorFile.h"
#include "nd/Runtime/Core/BFloat.h"
#include "nd/Runtime/Core/nd.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>

using namespace nd::rt;

namespace {

/// The logical elements [first, first + extent) of one dimension that a rank holds: its block within each enclosing
/// block, and all within the logical size.
void placeBlock(const nd_rank &rank, const nd_tensor_desc &desc, int32_t dim, int64_t &first, int64_t &extent) {
  int numAxes = 0;
  while (numAxes < ND_MAX_DIM_AXES && desc.dim_axes[dim][numAxes] >= 0)
    ++numAxes;
  int64_t blocks[ND_MAX_DIM_AXES], end = desc.global_shape[dim], minor = desc.shape[dim];
  for (int i = numAxes - 1; i >= 0; --i) {
    blocks[i] = desc.dim_blocks[dim][i] ? desc.dim_blocks[dim][i] : minor;
    minor *= rank.program->axis_sizes[desc.dim_axes[dim][i]];
  }
  first = 0;
  for (int i = 0; i < numAxes; ++i) {
    first += rank.coordinate(desc.dim_axes[dim][i]) * blocks[i];
    end = std::min(end, first + blocks[i]);
  }
  extent = std::clamp<int64_t>(end - first, 0, desc.shape[dim]);
}

/// Coordinate of the rank along all axes of a dimension, the first being major.
int64_t jointCoordinate(const nd_rank &rank, const nd_tensor_desc &desc, int32_t dim) {
  int64_t joint = 0;
  for (int i = 0; i < ND_MAX_DIM_AXES && desc.dim_axes[dim][i] >= 0; ++i)
    joint = joint * rank.program->axis_sizes[desc.dim_axes[dim][i]] + rank.coordinate(desc.dim_axes[dim][i]);
  return joint;
}

} // namespace

LocalBoxes::LocalBoxes(const nd_rank &rank, const nd_tensor_desc &desc, bool firstOnly)
    : desc(desc), firstOnly(firstOnly) {
  bool isPadding = false; // all of it
  for (int32_t dim = 0; dim < desc.rank; ++dim) {
    if (desc.num_units && dim == desc.units_dim) {
      shardFirst = jointCoordinate(rank, desc, dim) * desc.shape[dim];
      place = shardFirst / desc.unit_size;
      placeEnd =
          std::min<int64_t>((shardFirst + desc.shape[dim] + desc.unit_size - 1) / desc.unit_size, desc.num_units);
      continue;
    }
    placeBlock(rank, desc, dim, whole.first[dim], whole.extent[dim]);
    isPadding |= whole.extent[dim] == 0;
  }
  if (isPadding)
    place = placeEnd;
}

bool LocalBoxes::isCounted(int64_t which) const {
  if (desc.units[which] < 0)
    return false;
  return !firstOnly || std::find(desc.units, desc.units + which, desc.units[which]) == desc.units + which;
}

void LocalBoxes::unitExtent(int64_t which, int64_t &local, int64_t &first, int64_t &extent) const {
  // In the stored dimension, then cut to the logical size.
  int64_t begin = std::max(which * desc.unit_size, shardFirst);
  int64_t end = std::min((which + 1) * desc.unit_size, shardFirst + desc.shape[desc.units_dim]);
  local = begin - shardFirst;
  first = desc.units[which] * desc.unit_size + begin - which * desc.unit_size;
  extent = std::clamp<int64_t>(desc.global_shape[desc.units_dim] - first, 0, end - begin);
}

bool LocalBoxes::next(TensorBox &box) {
  if (place >= placeEnd)
    return false;
  box = whole;
  if (!desc.num_units) {
    ++place;
    return true;
  }
  int64_t &local = box.local[desc.units_dim], &first = box.first[desc.units_dim], &extent = box.extent[desc.units_dim];
  extent = 0;
  for (; place < placeEnd && extent == 0; ++place)
    if (isCounted(place))
      unitExtent(place, local, first, extent);
  for (; extent > 0 && place < placeEnd && isCounted(place); ++place) { // units that follow here and there are one box
    int64_t nextLocal, nextFirst, nextExtent;
    unitExtent(place, nextLocal, nextFirst, nextExtent);
    if (nextLocal != local + extent || nextFirst != first + extent)
      break;
    extent += nextExtent;
  }
  return extent > 0;
}

bool LocalBoxes::hasPadding() const {
  LocalBoxes rest = *this;
  int64_t covered = 0;
  for (TensorBox box; rest.next(box);) {
    int64_t count = 1;
    for (int32_t dim = 0; dim < desc.rank; ++dim)
      count *= box.extent[dim];
    covered += count;
  }
  return covered != numElements(desc);
}

bool nd::rt::isFirstReplica(const nd_rank &rank, const nd_tensor_desc &desc) {
  for (int axis = 0; axis < rank.program->num_axes; ++axis) {
    bool shards = false;
    for (int32_t dim = 0; dim < desc.rank; ++dim)
      for (int i = 0; i < ND_MAX_DIM_AXES && desc.dim_axes[dim][i] >= 0; ++i)
        shards |= desc.dim_axes[dim][i] == axis;
    if (!shards && rank.coordinate(axis) != 0)
      return false;
  }
  return true;
}

namespace {

float halfToFloat(uint16_t half) {
  uint32_t sign = (half & 0x8000u) << 16, exponent = (half >> 10) & 31, mantissa = half & 0x3ff, bits;
  if (exponent == 31)
    bits = sign | 0x7f800000u | mantissa << 13;
  else if (exponent)
    bits = sign | (exponent + 112) << 23 | mantissa << 13;
  else { // subnormal: mantissa * 2^-24, computed on integers because denormals are flushed
    if (!mantissa) {
      bits = sign;
    } else {
      int shift = __builtin_clz(mantissa) - 21;
      bits = sign | static_cast<uint32_t>(113 - shift) << 23 | ((mantissa << shift) & 0x3ff) << 13;
    }
  }
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

uint16_t floatToHalf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x477ff000)
    return sign | 0x7c00; // rounds to infinity
  if (magnitude < 0x33000001)
    return sign; // rounds to zero
  if (magnitude < 0x38800000) {
    uint32_t shift = 126 - (magnitude >> 23), mantissa = (magnitude & 0x7fffff) | 0x800000;
    uint32_t half = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), middle = 1u << (shift - 1);
    return sign | static_cast<uint16_t>(half + (rest > middle || (rest == middle && (half & 1))));
  }
  return sign | static_cast<uint16_t>((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

bool isFloat(int32_t dtype) { return dtype >= ND_F32 && dtype <= ND_F64; }

double loadElement(const char *at, int32_t dtype) {
  uint16_t half;
  float single;
  double wide;
  switch (dtype) {
  case ND_F32:
    memcpy(&single, at, 4);
    return static_cast<double>(single);
  case ND_F64:
    memcpy(&wide, at, 8);
    return wide;
  case ND_BF16:
    memcpy(&half, at, 2);
    return static_cast<double>(bfloatToFloat(half));
  default:
    memcpy(&half, at, 2);
    return static_cast<double>(halfToFloat(half));
  }
}

void storeElement(char *at, int32_t dtype, double value) {
  auto single = static_cast<float>(value);
  uint16_t half;
  switch (dtype) {
  case ND_F32:
    memcpy(at, &single, 4);
    return;
  case ND_F64:
    memcpy(at, &value, 8);
    return;
  default:
    half = dtype == ND_BF16 ? floatToBFloat(single) : floatToHalf(single);
    memcpy(at, &half, 2);
  }
}

/// Keeps a file open over the slices of one thread.
class OpenFile {
public:
  ~OpenFile() {
    if (fd >= 0)
      close(fd);
  }
  /// A descriptor of `path`, or -1 with errno.
  int get(const char *path, int flags) {
    if (fd >= 0 && current == path)
      return fd;
    if (fd >= 0)
      close(fd);
    current = path;
    return fd = open(path, flags | O_CLOEXEC);
  }

private:
  std::string current;
  int fd = -1;
};

enum class Direction { Load, Save, Verify };

/// Moves whole buffers, however often the system interrupts. Returns 0, an errno, or -1 at the end of the file.
int transferAll(Direction direction, int fd, char *data, int64_t bytes, int64_t offset) {
  while (bytes > 0) {
    ssize_t moved = direction == Direction::Save ? pwrite(fd, data, bytes, offset) : pread(fd, data, bytes, offset);
    if (moved < 0 && errno == EINTR)
      continue;
    if (moved <= 0)
      return moved < 0 ? errno : -1;
    data += moved;
    bytes -= moved;
    offset += moved;
  }
  return 0;
}

/// One slice, through a buffer where types differ or contents are compared. Returns an empty string or what went wrong.
std::string moveSlice(nd_rank &rank, const nd_file_slice &slice, Direction direction, OpenFile &file,
                      std::vector<char> &buffer) {
  if (slice.tensor < 0 || slice.tensor >= rank.program->num_tensors)
    return "tensor " + std::to_string(slice.tensor) + " does not exist";
  const nd_tensor_desc &desc = rank.program->tensors[slice.tensor];
  std::string what = std::string(desc.kind) + " '" + desc.name + "'";
  bool same = slice.dtype == desc.dtype;
  if (!same && !(isFloat(slice.dtype) && isFloat(desc.dtype)))
    return what + " is " + dtypeName(desc.dtype) + " but " + slice.path + " holds " + dtypeName(slice.dtype);
  if (direction == Direction::Save && !isFirstReplica(rank, desc))
    return {};
  int fd = file.get(slice.path, direction == Direction::Save ? O_WRONLY : O_RDONLY);
  if (fd < 0)
    return std::string("cannot open ") + slice.path + ": " + strerror(errno);
  LocalBoxes boxes(rank, desc, /*firstOnly=*/direction == Direction::Save);
  char *base = rank.arena + desc.offset;
  int64_t localBytes = dtypeBytes(desc.dtype), fileBytes = dtypeBytes(slice.dtype);
  if (direction == Direction::Load)
    fillPadding(rank, desc);
  std::string problem;
  forEachRun(boxes, desc, {slice.part_dim, slice.part_offset, slice.part_size}, [&](Run run) {
    constexpr int64_t piece = 1 << 16; // elements, so that a buffer stays in cache
    bool buffered = !same || direction == Direction::Verify;
    for (int64_t done = 0; done < run.count;) {
      int64_t count = buffered ? std::min(piece, run.count - done) : run.count;
      char *local = base + (run.local + done) * localBytes;
      int64_t offset = slice.offset + (run.global + done) * fileBytes;
      if (buffered)
        buffer.resize(std::max<size_t>(buffer.size(), count * 8));
      char *data = buffered ? buffer.data() : local;
      if (buffered && direction == Direction::Save)
        convertElements(data, slice.dtype, local, desc.dtype, count);
      int code = transferAll(direction, fd, data, count * fileBytes, offset);
      if (code != 0) {
        problem = std::string(direction == Direction::Save ? "cannot write " : "cannot read ") + what +
                  (direction == Direction::Save ? " to " : " from ") + slice.path + ": " +
                  (code < 0 ? "the file ends too early" : strerror(code));
        return false;
      }
      if (buffered && direction == Direction::Load)
        convertElements(local, desc.dtype, data, slice.dtype, count);
      if (direction == Direction::Verify && memcmp(local, data, count * localBytes) != 0) {
        int64_t at = 0;
        while (memcmp(local + at * localBytes, data + at * localBytes, localBytes) == 0)
          ++at;
        problem = what + " differs between replicas at element " + std::to_string(run.global + done + at) + " (rank " +
                  std::to_string(rank.rank) + ")";
        if (isFloat(desc.dtype))
          problem += ": " + std::to_string(loadElement(local + at * localBytes, desc.dtype)) + " here, " +
                     std::to_string(loadElement(data + at * localBytes, desc.dtype)) + " on the first replica";
        return false;
      }
      done += count;
    }
    return true;
  });
  return problem;
}

int moveSlices(nd_rank *rank, const nd_file_slice *slices, int64_t count, Direction direction) {
  std::mutex mutex;
  std::string problem;
  std::atomic<int64_t> next{0};
  rank->pool.parallel([&](int, int) {
    OpenFile file;
    std::vector<char> buffer;
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      std::string message = moveSlice(*rank, slices[i], direction, file, buffer);
      rank->status->progress.fetch_add(1, std::memory_order_relaxed);
      if (message.empty())
        continue;
      std::lock_guard<std::mutex> lock(mutex);
      if (problem.empty())
        problem = message;
      next.store(count);
    }
  });
  if (problem.empty())
    return 0;
  snprintf(rank->error, sizeof(rank->error), "%s", problem.c_str());
  return 1;
}

} // namespace

void nd::rt::fillPadding(nd_rank &rank, const nd_tensor_desc &desc) {
  if (!LocalBoxes(rank, desc).hasPadding())
    return;
  char *base = rank.arena + desc.offset;
  int64_t bytes = dtypeBytes(desc.dtype), count = numElements(desc);
  if (desc.pad_value == 0) {
    memset(base, 0, count * bytes);
    return;
  }
  auto number = static_cast<double>(desc.pad_value);
  for (int64_t i = 0; i < count; ++i) { // integers are little-endian: their low bytes are the narrower number
    if (isFloat(desc.dtype))
      storeElement(base + i * bytes, desc.dtype, number);
    else
      memcpy(base + i * bytes, &desc.pad_value, bytes);
  }
}

bool nd::rt::convertElements(void *dst, int32_t dstType, const void *src, int32_t srcType, int64_t count) {
  if (dstType == srcType) {
    memcpy(dst, src, count * dtypeBytes(srcType));
    return true;
  }
  if (!isFloat(dstType) || !isFloat(srcType))
    return false;
  int64_t dstBytes = dtypeBytes(dstType), srcBytes = dtypeBytes(srcType);
  for (int64_t i = 0; i < count; ++i)
    storeElement(static_cast<char *>(dst) + i * dstBytes, dstType,
                 loadElement(static_cast<const char *>(src) + i * srcBytes, srcType));
  return true;
}

int nd_load(nd_rank *rank, const nd_file_slice *slices, int64_t count) {
  return moveSlices(rank, slices, count, Direction::Load);
}

int nd_save(nd_rank *rank, const nd_file_slice *slices, int64_t count) {
  return moveSlices(rank, slices, count, Direction::Save);
}

int nd_verify(nd_rank *rank, const nd_file_slice *slices, int64_t count) {
  return moveSlices(rank, slices, count, Direction::Verify);
}
