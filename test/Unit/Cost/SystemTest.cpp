//===- SystemTest.cpp - Descriptions of systems: what is read and refused --===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Cost/System.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace nd;

namespace {

constexpr llvm::StringLiteral kYaml = R"(# A cluster.
name: mine
flops: {f32: 1e12, bf16: 4.0e12}
memory_bytes: 64e9
memory_bandwidth: 2e12
inside_node:
  bandwidth: 100e9
  latency: 1e-6
between_nodes: {bandwidth: 10e9, latency: 5e-6}
ranks_per_node: 4
)";

std::string errorOf(llvm::StringRef text) {
  llvm::Expected<System> system = System::parse(text, "s.yaml");
  if (system)
    return "accepted";
  return llvm::toString(system.takeError());
}

std::string replaced(llvm::StringRef from, llvm::StringRef to) {
  std::string text = kYaml.str();
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from.str();
  return text.replace(at, from.size(), to);
}

} // namespace

TEST(System, BuiltIn) {
  for (llvm::StringRef name : {"host", "a100x8", "h100x8", "h200x8", "b200x8"}) {
    llvm::Expected<System> system = System::find(name);
    ASSERT_TRUE(static_cast<bool>(system)) << llvm::toString(system.takeError());
    EXPECT_EQ(system->name, name);
    EXPECT_GT(system->insideNode.bandwidth, system->betweenNodes.bandwidth);
    EXPECT_LE(system->insideNode.latency, system->betweenNodes.latency);
    EXPECT_GE(system->flopsOf("bf16"), system->flopsOf("f32"));
    EXPECT_EQ(system->published, name != "host");
  }
}

TEST(System, UnknownNameListsWhatThereIs) {
  llvm::Expected<System> system = System::find("h100");
  ASSERT_FALSE(static_cast<bool>(system));
  EXPECT_EQ(llvm::toString(system.takeError()),
            "--system=h100: is neither a built-in system (host, a100x8, h100x8, h200x8, b200x8) nor a file that can be "
            "read: No such file or directory");
}

TEST(System, YamlAndJsonSayTheSame) {
  llvm::Expected<System> yaml = System::parse(kYaml, "s.yaml");
  ASSERT_TRUE(static_cast<bool>(yaml)) << llvm::toString(yaml.takeError());
  llvm::Expected<System> json = System::parse(
      R"({"name": "mine", "flops": {"f32": 1e12, "bf16": 4e12}, "memory_bytes": 64e9, "memory_bandwidth": 2e12,
          "inside_node": {"bandwidth": 100e9, "latency": 1e-6},
          "between_nodes": {"bandwidth": 10e9, "latency": 5e-6}, "ranks_per_node": 4})",
      "s.json");
  ASSERT_TRUE(static_cast<bool>(json)) << llvm::toString(json.takeError());
  for (const System &system : {*yaml, *json}) {
    EXPECT_EQ(system.name, "mine");
    EXPECT_EQ(system.flopsOf("bf16"), 4e12);
    EXPECT_EQ(system.flopsOf("f16"), 1e12); // not given: as f32
    EXPECT_EQ(system.memoryBytes, 64e9);
    EXPECT_EQ(system.insideNode.bandwidth, 100e9);
    EXPECT_EQ(system.betweenNodes.latency, 5e-6);
    EXPECT_EQ(system.ranksPerNode, 4);
    EXPECT_TRUE(system.overlap);
  }
}

TEST(System, ErrorsNameLineAndKey) {
  EXPECT_EQ(errorOf(""), "s.yaml:1: there is no description of a system");
  EXPECT_EQ(errorOf("- 1\n"), "s.yaml:1: the system must be a mapping of keys to values");
  EXPECT_EQ(errorOf(replaced("memory_bytes", "memory_size")), "s.yaml:4: the system has no key 'memory_size'");
  EXPECT_EQ(errorOf(replaced("memory_bytes: 64e9\n", "")), "s.yaml:2: the system lacks the key 'memory_bytes'");
  EXPECT_EQ(errorOf(replaced("latency: 1e-6", "delay: 1e-6")), "s.yaml:8: 'inside_node' has no key 'delay'");
  EXPECT_EQ(errorOf(replaced(", latency: 5e-6", "")), "s.yaml:9: 'between_nodes' lacks the key 'latency'");
  EXPECT_EQ(errorOf(replaced("bf16", "fp8")), "s.yaml:3: 'flops' has no key 'fp8'");
  EXPECT_EQ(errorOf(replaced("f32: 1e12, ", "")), "s.yaml:3: 'flops' lacks the key 'f32'");
  EXPECT_EQ(errorOf(replaced("2e12", "fast")),
            "s.yaml:5: the value of 'memory_bandwidth' is 'fast', but must be a number above 0");
  EXPECT_EQ(errorOf(replaced("2e12", "nan")),
            "s.yaml:5: the value of 'memory_bandwidth' is 'nan', but must be a number above 0");
  EXPECT_EQ(errorOf(replaced("latency: 1e-6", "latency: -1")),
            "s.yaml:8: the value of 'latency' is '-1', but must be a number that is not negative");
  EXPECT_EQ(errorOf(replaced("ranks_per_node: 4", "ranks_per_node: 4.5")),
            "s.yaml:10: the value of 'ranks_per_node' is '4.5', but must be a whole number from 1 on");
  EXPECT_EQ(errorOf(kYaml.str() + "overlap: maybe\n"),
            "s.yaml:11: the value of 'overlap' is 'maybe', but must be true or false");
  EXPECT_EQ(errorOf(kYaml.str() + "name: twice\n"), "s.yaml:11: key 'name' of the system is given twice");
  EXPECT_EQ(errorOf(kYaml.str() + "---\nname: b\n"),
            "s.yaml:12: a file describes one system; this is a second document");
  EXPECT_NE(errorOf("name: [1,\n"), "accepted");
  EXPECT_NE(errorOf("name: \"x\n"), "accepted");
}
