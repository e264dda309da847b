//===- Format.h - Numbers for people ----------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_REPORT_FORMAT_H
#define ND_LIB_REPORT_FORMAT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace nd {

/// `12.3 MiB`; whole numbers of bytes below 10 KiB.
std::string formatBytes(double bytes);
/// `1.25 ms`.
std::string formatSeconds(double seconds);
/// `57.9 TFLOP`.
std::string formatFlops(double flops);
/// `128256x4096`; `scalar` without dimensions.
std::string formatShape(llvm::ArrayRef<int64_t> shape);
/// A whole number with commas between thousands.
std::string formatCount(int64_t number);

/// Rows in columns as wide as their widest cell. A cell that starts with a digit is aligned to the right.
class Table {
public:
  explicit Table(std::vector<std::string> header) { rows.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  size_t size() const { return rows.size() - 1; }
  void print(llvm::raw_ostream &out) const;

private:
  std::vector<std::vector<std::string>> rows;
};

} // namespace nd

#endif // ND_LIB_REPORT_FORMAT_H
