//===- Manifest.cpp - The program folder's manifest ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace nd;

namespace {

class ManifestWriter {
public:
  ManifestWriter(HostProgram &host, llvm::raw_ostream &out) : host(host), json(out, /*IndentSize=*/1) {}

  void write(StringRef target, StringRef executable, uint64_t executableBytes) {
    json.object([&] {
      json.attribute("format", "nd.program");
      json.attribute("version", 1);
      json.attribute("abi", ND_ABI_VERSION);
      json.attribute("target", target);
      StringRef name = names::moduleString(host.module, names::kModel, "name");
      json.attribute("name", name.empty() ? host.program.getSymName() : name);
      json.attributeObject("mesh", [&] { writeMesh(); });
      json.attribute("ranks", host.numRanks());
      json.attributeArray("programs", [&] {
        json.object([&] {
          json.attribute("file", executable);
          json.attribute("bytes", executableBytes);
        });
      });
      json.attributeArray("rank_program", [&] {
        for (int64_t rank = 0; rank < host.numRanks(); ++rank)
          json.value(0);
      });
      json.attributeArray("tensors", [&] {
        for (rt::TensorOp tensor : host.tensors)
          json.object([&] { writeTensor(tensor); });
      });
      json.attributeArray("collectives", [&] {
        int64_t id = 0;
        for (rt::CollectiveStartOp collective : host.collectives)
          json.object([&] { writeCollective(id++, collective); });
      });
      for (StringRef key : {names::kModel, names::kStep})
        if (Attribute dictionary = host.module->getAttr(key)) {
          json.attributeBegin(key.substr(StringRef("nd.").size()));
          writeValue(dictionary);
          json.attributeEnd();
        }
      json.attributeObject("memory", [&] { writeMemory(); });
    });
  }

private:
  void writeMesh() {
    SmallVector<MeshAxisAttr> axes;
    if (host.mesh)
      llvm::append_range(axes, host.mesh.getAxes().getAsRange<MeshAxisAttr>());
    json.attributeArray("axes", [&] {
      for (MeshAxisAttr axis : axes)
        json.value(axis.getName().getValue());
    });
    json.attributeArray("sizes", [&] {
      for (MeshAxisAttr axis : axes)
        json.value(axis.getSize());
    });
    json.attribute("nodes", static_cast<int64_t>(host.mesh ? host.mesh.getNodes() : 1));
  }

  void writeSizes(StringRef key, ArrayRef<int64_t> sizes) {
    json.attributeArray(key, [&] {
      for (int64_t size : sizes)
        json.value(size);
    });
  }

  void writeTensor(rt::TensorOp tensor) {
    MemRefType type = tensor.getBuffer().getType();
    json.attribute("kind", tensor.getKind());
    json.attribute("name", tensor.getTensorName());
    json.attribute("dtype", dtypeName(type.getElementType()));
    writeSizes("shape", type.getShape());
    writeSizes("global_shape", tensor.getGlobalShape() ? *tensor.getGlobalShape() : type.getShape());
    json.attributeArray("dim_axes", [&] {
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        json.array([&] {
          if (std::optional<ArrayAttr> axes = tensor.getDimAxes())
            for (auto name : cast<ArrayAttr>((*axes)[dim]).getAsRange<StringAttr>())
              json.value(name.getValue());
        });
    });
    if (std::optional<ArrayAttr> blocks = tensor.getDimBlocks()) {
      json.attributeBegin("dim_blocks");
      writeValue(*blocks);
      json.attributeEnd();
    }
    if (std::optional<ArrayRef<int64_t>> units = tensor.getUnits())
      json.attributeObject("units", [&] {
        json.attribute("dim", static_cast<int64_t>(*tensor.getUnitsDim()));
        json.attribute("size", static_cast<int64_t>(*tensor.getUnitSize()));
        writeSizes("order", *units);
      });
    if (std::optional<uint64_t> value = tensor.getPadValue())
      json.attribute("pad_value", static_cast<int64_t>(*value));
    json.attribute("offset", static_cast<int64_t>(*tensor.getOffset()));
    if (std::optional<uint64_t> bound = tensor.getBound())
      json.attribute("bound", static_cast<int64_t>(*bound));
    if (std::optional<uint64_t> ignore = tensor.getIgnore())
      json.attribute("ignore", static_cast<int64_t>(*ignore));
    if (std::optional<DictionaryAttr> info = tensor.getInfo())
      for (NamedAttribute entry : *info) {
        json.attributeBegin(entry.getName().getValue());
        writeValue(entry.getValue());
        json.attributeEnd();
      }
  }

  void writeCollective(int64_t id, rt::CollectiveStartOp collective) {
    auto type = cast<MemRefType>(collective.getSources().front().getType());
    int64_t elements = collective.getPayloadElements();
    json.attribute("id", id);
    json.attribute("kind", rt::stringifyCollectiveKind(collective.getKind()));
    json.attribute("dtype", dtypeName(type.getElementType()));
    json.attribute("reduction", rt::stringifyReduction(collective.getReduction()));
    json.attributeArray("axes", [&] {
      for (auto axis : collective.getAxes().getAsRange<StringAttr>())
        json.value(axis.getValue());
    });
    json.attribute("group", host.mesh.getGroupLabel(collective.getAxes()));
    json.attribute("scalar", collective.getScalar());
    json.attribute("count", elements);
    json.attribute("bytes", elements * rt::getElementBytes(type.getElementType()));
    json.attribute("name", collective.getName());
    if (std::optional<StringRef> reason = collective.getReason())
      json.attribute("reason", *reason);
    json.attribute("location", describeLocation(collective.getLoc()));
  }

  void writeMemory() {
    json.attribute("arena_bytes", static_cast<int64_t>(*host.program.getArenaBytes()));
    json.attribute("peak_live_bytes", static_cast<int64_t>(host.program.getPeakLiveBytes().value_or(0)));
    json.attribute("fixed_bytes", static_cast<int64_t>(host.program.getFixedBytes().value_or(0)));
    json.attribute("staging_bytes", static_cast<int64_t>(host.program.getStagingBytes().value_or(0)));
    json.attribute("thread_scratch_bytes", host.threadScratchBytes);
    llvm::MapVector<StringRef, int64_t> byKind;
    for (rt::TensorOp tensor : host.tensors)
      byKind[tensor.getKind()] += rt::getBytes(tensor.getBuffer().getType());
    json.attributeObject("bytes_by_kind", [&] {
      for (auto [kind, bytes] : byKind)
        json.attribute(kind, bytes);
    });
    json.attributeBegin("listed");
    auto listed = host.module->getAttrOfType<ArrayAttr>(names::kFootprint);
    writeValue(listed ? listed : ArrayAttr::get(host.module->getContext(), {}));
    json.attributeEnd();
  }

  /// Attributes that JSON can say; others as their text.
  void writeValue(Attribute attribute) {
    llvm::TypeSwitch<Attribute>(attribute)
        .Case([&](StringAttr text) { json.value(text.getValue()); })
        .Case([&](BoolAttr flag) { json.value(flag.getValue()); })
        .Case([&](UnitAttr) { json.value(true); })
        .Case([&](IntegerAttr number) { json.value(number.getInt()); })
        .Case([&](FloatAttr number) { json.value(number.getValueAsDouble()); })
        .Case([&](DenseI64ArrayAttr numbers) {
          json.array([&] {
            for (int64_t number : numbers.asArrayRef())
              json.value(number);
          });
        })
        .Case([&](ArrayAttr list) {
          json.array([&] {
            for (Attribute entry : list)
              writeValue(entry);
          });
        })
        .Case([&](DictionaryAttr dictionary) {
          json.object([&] {
            for (NamedAttribute entry : dictionary) {
              json.attributeBegin(entry.getName().getValue());
              writeValue(entry.getValue());
              json.attributeEnd();
            }
          });
        })
        .Default([&](Attribute other) {
          std::string text;
          llvm::raw_string_ostream(text) << other;
          json.value(text);
        });
  }

  HostProgram &host;
  llvm::json::OStream json;
};

} // namespace

void nd::writeManifest(HostProgram &host, StringRef target, StringRef executable, uint64_t executableBytes,
                       llvm::raw_ostream &out) {
  ManifestWriter(host, out).write(target, executable, executableBytes);
  out << '\n';
}
