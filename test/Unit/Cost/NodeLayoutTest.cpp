//===- NodeLayoutTest.cpp - Which axes leave a node -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Cost/NodeLayout.h"
#include "gtest/gtest.h"

using namespace nd;

namespace {

System system(llvm::StringRef name) { return llvm::cantFail(System::find(name)); }

NodeLayout layout(llvm::ArrayRef<PlacedAxis> axes, llvm::StringRef name, int64_t nodes = 0) {
  return llvm::cantFail(NodeLayout::create(axes, system(name), nodes));
}

std::string errorOf(llvm::ArrayRef<PlacedAxis> axes, llvm::StringRef name, int64_t nodes) {
  llvm::Expected<NodeLayout> result = NodeLayout::create(axes, system(name), nodes);
  return result ? "accepted" : llvm::toString(result.takeError());
}

void expectShape(const NodeLayout &layout, llvm::ArrayRef<llvm::StringRef> group, int64_t inside, int64_t nodes) {
  GroupShape shape = layout.shapeOf(group);
  EXPECT_EQ(shape.inside, inside);
  EXPECT_EQ(shape.nodes, nodes);
}

} // namespace

TEST(NodeLayout, OuterAxesLeaveTheNode) {
  NodeLayout mesh = layout({{"dp", 8}, {"fsdp", 64}, {"tp", 8}}, "h100x8");
  EXPECT_EQ(mesh.getNumNodes(), 512);
  expectShape(mesh, {"tp"}, 8, 1);
  expectShape(mesh, {"fsdp"}, 1, 64);
  expectShape(mesh, {"dp", "tp"}, 8, 8);
  expectShape(mesh, {"dp", "fsdp", "tp"}, 8, 512);
}

TEST(NodeLayout, TheBoundarySplitsAnAxis) {
  NodeLayout mesh = layout({{"fsdp", 16}, {"tp", 2}}, "h100x8");
  EXPECT_EQ(mesh.getNumNodes(), 4);
  expectShape(mesh, {"fsdp"}, 4, 4);
  expectShape(mesh, {"tp"}, 2, 1);
  expectShape(layout({{"tp", 16}}, "h100x8"), {"tp"}, 8, 2);
}

TEST(NodeLayout, OneNodeHoldsAnyMesh) {
  expectShape(layout({{"dp", 3}, {"tp", 5}}, "host"), {"dp", "tp"}, 15, 1);
  expectShape(layout({}, "h100x8"), {}, 1, 1);
}

TEST(NodeLayout, NodesByHand) {
  NodeLayout mesh = layout({{"dp", 2}, {"tp", 4}}, "h100x8", 4);
  expectShape(mesh, {"tp"}, 2, 2);
  expectShape(mesh, {"dp"}, 1, 2);
}

TEST(NodeLayout, NodesOfPositions) {
  NodeLayout mesh = layout({{"dp", 2}, {"tp", 4}}, "host", 4); // nodes of 2: tp goes over two of them
  EXPECT_EQ(mesh.nodesOf({"tp"}), (llvm::SmallVector<int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(mesh.nodesOf({"dp"}), (llvm::SmallVector<int64_t>{0, 1}));
  EXPECT_EQ(mesh.nodesOf({"dp", "tp"}), (llvm::SmallVector<int64_t>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(mesh.nodesOf({"tp", "dp"}), (llvm::SmallVector<int64_t>{0, 1, 0, 1, 2, 3, 2, 3}));
}

TEST(NodeLayout, Errors) {
  EXPECT_EQ(
      errorOf({{"dp", 12}}, "h100x8", 0),
      "--system=h100x8: 12 ranks do not fill nodes of 8; give --nodes=N, a divisor of 12 of at least 2, or another "
      "mesh");
  EXPECT_EQ(errorOf({{"dp", 12}}, "h100x8", 5), "--nodes=5: 12 ranks do not divide over 5 nodes; give a divisor of 12");
  EXPECT_EQ(errorOf({{"dp", 16}}, "h100x8", 1),
            "--nodes=1: 16 ranks on a node, but one of h100x8 has 8; give --nodes=2 or more");
  EXPECT_EQ(
      errorOf({{"dp", 4}, {"tp", 6}}, "host", 6),
      "--nodes: nodes of 4 ranks cut axis tp of size 6 unevenly (4 of its ranks would have to share a node); choose "
      "a size of tp that divides 4 or is a multiple of it");
}
