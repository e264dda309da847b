//===- Format.cpp - Numbers for people ------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace nd;

namespace {

/// Three significant digits, from the unit that leaves 1 to 999 before the point.
std::string scaled(double value, double step, llvm::ArrayRef<llvm::StringRef> units) {
  size_t unit = 0;
  for (; unit + 1 < units.size() && value >= step; ++unit)
    value /= step;
  const char *format = value >= 99.95 ? "{0:f0} {1}" : value >= 9.995 ? "{0:f1} {1}" : "{0:f2} {1}";
  return llvm::formatv(false, format, value, units[unit]).str();
}

} // namespace

std::string nd::formatBytes(double bytes) {
  constexpr double plain = 10240;
  if (bytes < plain)
    return llvm::formatv("{0:f0} B", bytes).str();
  return scaled(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string nd::formatSeconds(double seconds) {
  return seconds == 0 ? "0" : scaled(seconds * 1e9, 1000, {"ns", "us", "ms", "s", "ks"});
}

std::string nd::formatFlops(double flops) {
  return scaled(flops, 1000, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"});
}

std::string nd::formatShape(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }), "x");
}

std::string nd::formatCount(int64_t number) { return llvm::formatv("{0:N}", number).str(); }

void Table::print(llvm::raw_ostream &out) const {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows)
    for (auto [column, cell] : llvm::enumerate(row)) {
      if (column == widths.size())
        widths.push_back(0);
      widths[column] = std::max(widths[column], cell.size());
    }
  for (const std::vector<std::string> &row : rows) {
    std::string line = " ";
    for (auto [column, cell] : llvm::enumerate(row)) {
      bool isNumber = !cell.empty() && llvm::isDigit(cell.front());
      std::string space(widths[column] - cell.size(), ' ');
      line += " " + (isNumber ? space + cell : cell + space) + " ";
    }
    out << llvm::StringRef(line).rtrim() << "\n";
  }
}
