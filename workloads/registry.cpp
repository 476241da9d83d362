// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/registry.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/algorithms/algorithms.hpp"
#include "workloads/calibrate/calibrate.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/gemm/gemm.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/infer/infer.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/overlap/overlap.hpp"
#include "workloads/p2p/p2p.hpp"
#include "workloads/serve/serve.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/tiles/tiles.hpp"

namespace isoscale::workloads {

namespace {

/// Returns the mesh with all ranks along one axis.
template <mesh::Axis axis>
mesh::Request along(int ranks) {
  return {{axis, ranks}};
}

/// Returns a workload that trains a transformer on `axes`. These workloads all have the functions
/// of hybrid, and differ in the axes that they use and in the default mesh. The workload `ep` also
/// has another default number of experts (mixture_of_experts()).
Workload training(std::string_view name, std::string_view description, mesh::AxisSet axes,
                  mesh::Request (*natural_mesh)(int ranks)) {
  return {.name = name,
          .description = description,
          .options = stack::option_table(),
          .axes = axes,
          .natural_mesh = natural_mesh,
          .limits = hybrid::limits,
          .scale = hybrid::scale,
          .build = hybrid::build,
          .twin = hybrid::twin,
          .reference = hybrid::reference,
          .work_per_step = hybrid::work_per_step,
          .throughput_unit = "tokens/s"};
}

/// Returns the workload of convolutions, which does not depend on a model.
Workload convolutions() {
  return {.name = "tiles",
          .description = "convolutions of images cut into tiles: halo exchange on a 2-D grid",
          .options = tiles::option_table(),
          .axes = {mesh::Axis::tp, mesh::Axis::cp, mesh::Axis::dp},
          .natural_mesh = tiles::square_grid,
          .limits = tiles::limits,
          .scale = tiles::scale,
          .build = tiles::build,
          .twin = tiles::twin,
          .reference = tiles::reference,
          .work_per_step = tiles::work_per_step,
          .throughput_unit = "pixels/s",
          .model_use = ModelUse::none};
}

constexpr std::string_view default_experts = "8";

/// Returns the option table of the training workloads, changed so that there are experts by
/// default.
std::span<const OptionSpec> options_with_experts() {
  static const std::vector<OptionSpec> table = [] {
    const std::span<const OptionSpec> all = stack::option_table();
    std::vector<OptionSpec> changed{all.begin(), all.end()};
    std::ranges::find(changed, "experts", &OptionSpec::key)->default_value = default_experts;
    return changed;
  }();
  return table;
}

Request with_experts(Request base) {
  base.options.try_emplace("experts", default_experts);
  return base;
}

Workload mixture_of_experts() {
  Workload result =
      training("ep", "mixture of experts: tokens go to the ranks of their experts and come back",
               {mesh::Axis::ep, mesh::Axis::dp}, along<mesh::Axis::ep>);
  result.options = options_with_experts();
  result.limits = [](const Request& base, Scaling scaling) {
    return hybrid::limits(with_experts(base), scaling);
  };
  result.scale = [](const Request& base, const mesh::Shape& mesh, Scaling scaling) {
    return hybrid::scale(with_experts(base), mesh, scaling);
  };
  return result;
}

/// Returns a micro-benchmark. It may use any axes, but its own functions may refuse a mesh. By
/// default all ranks are along dp.
Workload micro(std::string_view name, std::string_view description,
               std::span<const OptionSpec> options, const BenchHooks& hooks) {
  return {.name = name,
          .description = description,
          .options = options,
          .axes = mesh::every_axis,
          .natural_mesh = along<mesh::Axis::dp>,
          .limits = [](const Request&, Scaling) { return std::vector<mesh::Constraint>{}; },
          .scale =
              [](const Request& base, const mesh::Shape& mesh, Scaling) {
                Request request = base;
                request.mesh = mesh;
                return request;
              },
          .kind = Kind::rows,
          .bench = hooks};
}

/// Returns the workload of inference. It reports rows of results like a micro-benchmark. It also
/// has a model, a mesh and a twin (a small version for verification) like a training workload.
Workload inference() {
  Workload workload = micro(
      "infer", "inference: time to first token, time per output token, tokens/s by batch size",
      infer::option_table(), infer::hooks());
  workload.axes = {mesh::Axis::tp, mesh::Axis::dp, mesh::Axis::pp};
  workload.natural_mesh = along<mesh::Axis::tp>;
  workload.limits = infer::limits;
  workload.scale = infer::scale;
  workload.build = infer::build;
  workload.twin = infer::twin;
  workload.reference = infer::reference;
  return workload;
}

/// Returns the workload of serving. It runs the programs of inference for requests as they arrive.
/// These programs are verified by the twin of inference, the small version described above.
Workload serving() {
  Workload workload = inference();
  workload.name = "serve";
  workload.description =
      "replicas under a stream of requests: latency, utilisation, the highest rate sustained";
  workload.options = serve::option_table();
  workload.natural_mesh = along<mesh::Axis::dp>;
  workload.limits = serve::limits;
  workload.scale = serve::scale;
  workload.twin = serve::twin;
  workload.kind = Kind::requests;
  workload.bench = serve::hooks();
  return workload;
}

}  // namespace

std::span<const Workload> registry() {
  using mesh::Axis;
  static const std::array table{
      training("dp", "data parallel: gradients all-reduced in buckets under the backward pass",
               Axis::dp, along<Axis::dp>),
      training("tp", "tensor parallel: column- and row-parallel pairs of GEMMs", Axis::tp,
               along<Axis::tp>),
      training("pp", "pipeline parallel: stages of layers, by one of four schedules", Axis::pp,
               along<Axis::pp>),
      training("cp", "context parallel: keys and values go round a ring of parts of the sequence",
               Axis::cp, along<Axis::cp>),
      mixture_of_experts(),
      training("hybrid", "any mesh of dp x ep x cp x tp x pp", mesh::every_axis,
               hybrid::balanced_mesh),
      convolutions(),
      micro("collectives", "collective operations: time, algbw, busbw by size, checked bit for bit",
            collectives::option_table(), collectives::hooks()),
      micro("gemm",
            "matrix multiplications: rate by shape, and the ceiling that MFU is read against",
            gemm::option_table(), gemm::hooks()),
      micro("overlap", "a multiplication and a collective, each alone and both at once",
            overlap::option_table(), overlap::hooks()),
      micro("calibrate", "short collectives and GEMMs, from which predict calibrates",
            calibrate::option_table(), calibrate::hooks()),
      micro("algorithms",
            "NCCL's algorithms, protocols and registered memory, beside its own choice",
            algorithms::option_table(), algorithms::hooks()),
      micro("memory", "memory bandwidth: host to device, within each, managed, by NUMA node",
            memory::option_table(), memory::hooks()),
      micro("p2p", "messages between pairs of ranks: latency and bandwidth of every link",
            p2p::option_table(), p2p::hooks()),
      inference(),
      serving(),
  };
  return table;
}

const Workload& find_workload(std::string_view name) {
  const std::span<const Workload> table = registry();
  const auto found = std::ranges::find(table, name, &Workload::name);
  if (found != table.end()) return *found;
  std::vector<std::string_view> names;
  for (const Workload& workload : table) names.push_back(workload.name);
  throw usage_error("no workload {}{}; there are: {}", base::quoted(name),
                    base::did_you_mean(name, names), fmt::join(names, ", "));
}

}  // namespace isoscale::workloads
