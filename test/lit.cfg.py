"""lit's configuration: every .mlir and .test file under test/ is a test, Inputs/ holds what they read."""

import os

import lit.formats
from lit.llvm import llvm_config

config.name = "nd"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit"]  # what tests read, and GoogleTest's
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.nd_obj_root, "test")
llvm_config.use_default_substitutions()
# Where the schema lies that protoc encodes the importer's test models with.
config.substitutions.append(("%wire", os.path.join(config.nd_src_root, "lib", "Import", "ONNX")))
tools = ["nd-opt", "nd-import", "nd-compile", "nd-run", "nd-data"]
llvm_config.add_tool_substitutions(
    tools + ["llvm-readelf", "mlir-opt", "split-file", "not"], [config.nd_tools_dir, config.llvm_tools_dir]
)
# Tests that run Python use the project's environment: see scripts/env.sh.
llvm_config.with_environment("PATH", config.nd_tools_dir, append_path=True)
