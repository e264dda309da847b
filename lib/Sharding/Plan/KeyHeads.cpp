//===- KeyHeads.cpp - Which kv heads a rank stores ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Plan/KeyHeads.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace nd;

bool KeyHeads::areShared() const {
  if (queries % keys != 0 || (queries % ranks == 0 && ranks % keys == 0))
    return false;
  return ownQueries() % group() != 0;
}

int64_t KeyHeads::slots() const {
  int64_t most = 0;
  for (int64_t first = 0; first < queries; first += ownQueries()) {
    int64_t last = std::min(first + ownQueries(), queries) - 1;
    most = std::max(most, last / group() - first / group() + 1);
  }
  return most;
}

SmallVector<SmallVector<int64_t>> KeyHeads::table() const {
  SmallVector<SmallVector<int64_t>> result(ranks, SmallVector<int64_t>(slots(), -1));
  for (int64_t query : llvm::seq(queries)) {
    int64_t head = query / group();
    result[query / ownQueries()][head % slots()] = head;
  }
  return result;
}

SmallVector<int64_t> KeyHeads::queryMap() const {
  SmallVector<int64_t> result(ranks * ownQueries(), -1);
  for (int64_t query : llvm::seq(queries))
    result[query] = keys == 1 ? 0 : query / ownQueries() * slots() + query / group() % slots();
  return result;
}

StoredHeads StoredHeads::read(DictionaryAttr copies) {
  auto integer = [&](StringRef name) { return copies.getAs<IntegerAttr>(name).getInt(); };
  StoredHeads result{integer("dim"), integer("unit"), {}};
  for (auto row : copies.getAs<ArrayAttr>("table").getAsRange<ArrayAttr>())
    result.table.push_back(llvm::map_to_vector(row, [](Attribute head) { return cast<IntegerAttr>(head).getInt(); }));
  return result;
}

DictionaryAttr StoredHeads::toAttr(MLIRContext *context) const {
  Builder builder(context);
  SmallVector<Attribute> rows =
      llvm::map_to_vector(table, [&](const auto &row) -> Attribute { return builder.getI64ArrayAttr(row); });
  return builder.getDictionaryAttr({builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim)),
                                    builder.getNamedAttr("table", builder.getArrayAttr(rows)),
                                    builder.getNamedAttr("unit", builder.getI64IntegerAttr(unit))});
}

int64_t StoredHeads::heads() const {
  int64_t last = -1;
  for (const auto &row : table)
    for (int64_t head : row)
      last = std::max(last, head);
  return last + 1;
}

int64_t StoredHeads::elementAt(int64_t rank, int64_t place) const {
  int64_t slot = place / unit;
  int64_t head = slot < slots() ? table[rank][slot] : -1;
  return head < 0 ? -1 : head * unit + place % unit;
}

DictionaryAttr StoredHeads::cut(MLIRContext *context, int64_t size, int64_t shards) const {
  int64_t local = size / shards, places = size / ranks();
  StoredHeads result{dim, std::gcd(unit, std::gcd(local, places)), {}};
  for (int64_t shard : llvm::seq(shards)) {
    auto &row = result.table.emplace_back();
    for (int64_t first = shard * local; first < (shard + 1) * local; first += result.unit) {
      int64_t element = elementAt(first / places, first % places);
      row.push_back(element < 0 ? -1 : element / result.unit);
    }
  }
  return result.toAttr(context);
}
