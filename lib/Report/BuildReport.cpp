//===- BuildReport.cpp - From a rank's program to its report --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "MemoryClasses.h"
#include "ParameterUses.h"
#include "Timeline.h"
#include "Warnings.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Pipelines/HostPipeline.h"
#include "nd/Schedule/Placement.h"
#include "nd/Schedule/UnitWindows.h"
#include "nd/Support/Locations.h"

using namespace mlir;
using namespace nd;

double Report::modelFlops() const {
  return static_cast<double>(compute.modelFlopsPerToken.value_or(0)) * static_cast<double>(compute.tokens);
}

std::optional<double> Report::mfu() const {
  if (!system.published || !compute.modelFlopsPerToken || compute.stepSeconds == 0)
    return std::nullopt;
  return modelFlops() / (compute.stepSeconds * system.flopsOf(compute.type) * static_cast<double>(ranks));
}

namespace {

class ReportBuilder {
public:
  ReportBuilder(ModuleOp module, const System &system) : module(module) { report.system = system; }

  LogicalResult placeRanks(int64_t nodes) {
    auto meshes = module.getOps<MeshOp>();
    if (!meshes.empty())
      mesh = *meshes.begin();
    report.axes = placedAxes(mesh);
    // What a rank sends to other nodes is what its program does: it is built for a number of nodes.
    int64_t built = mesh ? static_cast<int64_t>(mesh.getNodes()) : 1;
    if (nodes != 0 && mesh && nodes != built)
      return mesh.emitError() << "--nodes=" << nodes << ": this step was built for " << built
                              << (built == 1 ? " node" : " nodes")
                              << " and runs as such; build it with --nodes=" << nodes << ", or leave the option out";
    llvm::Expected<NodeLayout> layout = placeMesh(mesh, report.system, mesh ? built : nodes);
    if (!layout) {
      InFlightDiagnostic error = (mesh ? mesh.emitError() : module.emitError()) << llvm::toString(layout.takeError());
      if (nodes == 0)
        error.attachNote() << "the step was built for " << built << (built == 1 ? " node" : " nodes")
                           << "; build it with the --system or --nodes that it shall run on";
      return error;
    }
    for (const PlacedAxis &axis : report.axes)
      report.axisShapes.push_back(layout->shapeOf(ArrayRef<StringRef>(axis.name)));
    report.ranks = layout->getNumRanks();
    report.nodes = layout->getNumNodes();
    nodeLayout = std::move(*layout);
    return success();
  }

  void readFunction() {
    for (auto function : module.getOps<func::FuncOp>())
      uses = findParameterUses(function, mesh);
    report.model = names::moduleString(module, names::kModel, "name").str();
    if (auto notes = dyn_cast_or_null<ArrayAttr>(names::moduleEntry(module, names::kPlan, "notes")))
      for (auto note : notes.getAsRange<StringAttr>())
        report.warnings.push_back(note.str());
    report.compute.modelFlopsPerToken = names::moduleInt(module, names::kModel, "flops_per_token");
  }

  LogicalResult readProgram() {
    auto programs = module.getOps<rt::ProgramOp>();
    if (programs.empty())
      return module.emitError("holds no function to report on");
    rt::ProgramOp program = *programs.begin();
    readTensors(program);
    program.getBody().walk([&](Operation *op) {
      if (auto phase = dyn_cast<rt::PhaseOp>(op))
        currentPhase = rt::stringifyPhase(phase.getPhase()).str();
      else if (auto start = dyn_cast<rt::CollectiveStartOp>(op))
        readCollective(start);
    });
    simulate(program);
    report.memory = reportMemory(program, report.compute.type);
    if (auto chunk = module->getAttrOfType<IntegerAttr>(names::kLossChunk))
      report.memory.lossChunk = chunk.getInt();
    if (auto listed = module->getAttrOfType<ArrayAttr>(names::kFootprint))
      for (auto entry : listed.getAsRange<DictionaryAttr>())
        readListed(entry);
    return success();
  }

  Report finish() {
    collectWarnings(report);
    return std::move(report);
  }

private:
  void readListed(DictionaryAttr entry) {
    auto text = [&](StringRef key) { return entry.getAs<StringAttr>(key).str(); };
    ListedValue &listed = report.memory.listed.emplace_back();
    listed = {text("what"), text("value"), text("type"), text("location"), {}, 0};
    llvm::append_range(listed.shape, entry.getAs<DenseI64ArrayAttr>("shape").asArrayRef());
    listed.bytes = entry.getAs<IntegerAttr>("bytes").getInt();
  }

  void readTensors(rt::ProgramOp program) {
    llvm::StringMap<int64_t> stateBytes;
    for (auto tensor : program.getBody().getOps<rt::TensorOp>()) {
      StringRef kind = tensor.getKind();
      if (kind == names::kind::kExpAvg || kind == names::kind::kExpAvgSq || kind == names::kind::kMomentum)
        stateBytes[tensor.getTensorName()] += rt::getBytes(tensor.getBuffer().getType());
      if (kind == names::kind::kInput && tensor.getTensorName() == names::name::kInputIds)
        report.compute.tokens = ShapedType::getNumElements(globalShape(tensor));
    }
    for (auto tensor : program.getBody().getOps<rt::TensorOp>())
      if (tensor.getKind() == names::kind::kWeight)
        readParameter(tensor, stateBytes);
  }

  static ArrayRef<int64_t> globalShape(rt::TensorOp tensor) {
    return tensor.getGlobalShape() ? *tensor.getGlobalShape() : tensor.getBuffer().getType().getShape();
  }

  void readParameter(rt::TensorOp tensor, const llvm::StringMap<int64_t> &stateBytes) {
    MemRefType type = tensor.getBuffer().getType();
    ParameterReport parameter;
    parameter.name = tensor.getTensorName().str();
    parameter.type = typeName(type.getElementType());
    llvm::append_range(parameter.globalShape, globalShape(tensor));
    llvm::append_range(parameter.localShape, type.getShape());
    double stored = 1, logical = 1;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      SmallVector<StringRef> axes;
      if (std::optional<ArrayAttr> all = tensor.getDimAxes())
        for (auto axis : cast<ArrayAttr>((*all)[dim]).getAsRange<StringAttr>())
          axes.push_back(axis.getValue());
      parameter.sharding.push_back(axes.empty() ? "_" : llvm::join(axes, "+"));
      stored *= static_cast<double>(type.getDimSize(dim) * nodeLayout->shapeOf(axes).ranks());
      logical *= static_cast<double>(parameter.globalShape[dim]);
    }
    parameter.padding = logical > 0 ? stored / logical - 1 : 0;
    if (std::optional<DictionaryAttr> info = tensor.getInfo())
      if (auto trainable = info->getAs<BoolAttr>("trainable"))
        parameter.trainable = trainable.getValue();
    parameter.bytes = rt::getBytes(type);
    parameter.stateBytes = stateBytes.lookup(parameter.name);
    if (auto use = uses.find(parameter.name); use != uses.end()) {
      parameter.uses = use->second.gathers;
      parameter.reductions = use->second.reductions;
    }
    report.parameters.push_back(std::move(parameter));
  }

  /// A collective of one rank sends nothing, and is left out.
  void readCollective(rt::CollectiveStartOp start) {
    SmallVector<StringRef> axes;
    for (auto axis : start.getAxes().getAsRange<StringAttr>())
      axes.push_back(axis.getValue());
    CollectiveReport collective;
    collective.shape = nodeLayout->shapeOf(axes);
    if (collective.shape.ranks() == 1)
      return;
    CommKind kind = commKind(start.getKind());
    Type type = cast<MemRefType>(sourcesOf(start).front().getType()).getElementType();
    collective.kind = rt::stringifyCollectiveKind(start.getKind()).str();
    collective.scalar = start.getScalar();
    collective.group = collective.scalar ? "scalar" : mesh.getGroupLabel(start.getAxes());
    collective.type = typeName(type);
    collective.name = start.getName().str();
    collective.reason = start.getReason().value_or("").str();
    collective.location = describeLocation(start.getLoc());
    collective.phase = currentPhase;
    collective.times = rt::getTimes(start);
    collective.payload = payloadBytes(start);
    collective.sent = kind == CommKind::Permute
                          ? permutedBytes(start.getPermutation(), nodeLayout->nodesOf(axes), collective.payload)
                          : sentBytes(kind, collective.shape, collective.payload);
    int64_t groups = report.ranks / collective.shape.ranks();
    collective.sent.total *= groups;
    collective.sent.betweenNodes *= groups;
    collective.seconds =
        CostModel(report.system).collective(kind, collective.shape, static_cast<double>(collective.payload));
    times[start] = {collective.seconds, collective.shape};
    starts.push_back(start);
    report.collectives.push_back(std::move(collective));
  }

  void simulate(rt::ProgramOp program) {
    WorkCounter work(module);
    CostModel model(report.system);
    Timeline timeline(program, work, model, times);
    UnitWindows windows(program);
    for (auto [start, collective] : llvm::zip_equal(starts, report.collectives)) {
      collective.exposed = timeline.getExposed(start);
      if (const UnitWindows::Unit *unit = windows.find(start)) {
        collective.unit = unit->name.str();
        collective.unitsAhead = unit->ahead;
      }
    }
    report.compute.productFlops = timeline.getProducts();
    report.compute.elementwiseFlops = timeline.getElementwise();
    report.compute.type = timeline.getType();
    report.compute.seconds = timeline.getComputing();
    report.compute.stepSeconds = timeline.getEnd();
  }

  ModuleOp module;
  MeshOp mesh;
  Report report;
  std::optional<NodeLayout> nodeLayout;
  llvm::StringMap<ParameterUse> uses;
  Timeline::CollectiveTimes times;
  std::vector<Operation *> starts;
  std::string currentPhase = "forward";
};

} // namespace

FailureOr<Report> nd::buildReport(ModuleOp module, const System &system, int64_t nodes) {
  ReportBuilder builder(module, system);
  if (failed(builder.placeRanks(nodes)))
    return failure();
  builder.readFunction();
  PassManager pm(module.getContext());
  buildHostPipeline(pm);
  if (failed(pm.run(module)) || failed(builder.readProgram()))
    return failure();
  return builder.finish();
}
