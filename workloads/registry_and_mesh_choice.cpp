// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/registry_and_mesh_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "workloads/algorithms/nccl_algorithms_workload.hpp"
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
#include "workloads/tiles/image_tiles.hpp"

namespace isoscale::workloads {

namespace {

/// Returns the mesh with all ranks along one axis.
template <mesh::Axis axis>
mesh::Request along(int ranks) {
  return {{axis, ranks}};
}

/// Returns a workload that trains a transformer on `axes`. These workloads all have the functions
/// of the workload hybrid, and differ in the axes that they use and in the default mesh. The
/// workload `ep` also has another default number of experts (mixture_of_experts()).
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

constexpr std::string_view default_experts = "8";

/// Returns the option table of the training workloads, with experts by default.
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
/// The twin of inference, a small version, verifies these programs.
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

// The functions below fit a workload to a number of ranks.

constexpr std::string_view any_mesh = "hybrid";  // the workload that has every axis

/// True if the workload can be planned on this mesh with the options of `base`.
bool takes(const Workload& workload, const Request& base, const mesh::Shape& shape,
           Scaling scaling) {
  try {
    const Request request = workload.scale(base, shape, scaling);
    if (workload.is_bench()) static_cast<void>(workload.bench.batches(request));
    return true;
  } catch (const base::UsageError&) {
    return false;
  }
}

mesh::Shape resolved(const Workload& workload, const Request& base, const mesh::Request& wanted,
                     int ranks, Scaling scaling) {
  const auto limits = workload.limits(base, scaling);
  return mesh::resolve(wanted, ranks, limits,
                       {.axes = workload.axes, .accepts = [&](const mesh::Shape& shape) {
                          return takes(workload, base, shape, scaling);
                        }});
}

/// Returns the workload hybrid and a mesh with which it would work, as options ("--workload hybrid
/// --mesh dp=2"). Returns "" if there is no such mesh, if `workload` is hybrid itself, or if it is
/// no workload that trains a transformer.
std::string other_workload(const Workload& workload, const Request& base,
                           const mesh::Request& wanted, int ranks, Scaling scaling) {
  const Workload& other = find_workload(any_mesh);
  if (!workload.is_training() || workload.name == other.name) return "";
  std::optional<mesh::Shape> shape;
  try {
    shape = resolved(other, base, wanted, ranks, scaling);
  } catch (const mesh::MeshError& error) {
    shape = error.nearest();
  }
  if (!shape || !takes(other, base, *shape, scaling)) return "";
  return fmt::format("--workload {} --mesh {}", any_mesh, mesh::to_text(*shape));
}

mesh::Request asked(const Workload& workload, const mesh::Request& wanted, int ranks) {
  return wanted.empty() ? workload.natural_mesh(ranks) : wanted;
}

bool fits(const Workload& workload, const Request& base, const mesh::Request& wanted, int ranks,
          Scaling scaling) {
  try {
    const auto limits = workload.limits(base, scaling);
    const mesh::Shape shape =
        mesh::resolve(asked(workload, wanted, ranks), ranks, limits, {.axes = workload.axes});
    return takes(workload, base, shape, scaling);
  } catch (const base::UsageError&) {
    return false;
  }
}

/// Returns advice on what would work: the nearest rank counts, and the workload hybrid, as in "use
/// 1 or 3 ranks, or --workload hybrid --mesh dp=2". If neither would work, the advice is to use
/// another mesh, model or options.
std::string instead(const Workload& workload, const Request& base, const mesh::Request& wanted,
                    int ranks, Scaling scaling) {
  const std::vector<int> near = nearest_ranks(workload, base, wanted, ranks, scaling);
  const std::string other =
      other_workload(workload, base, asked(workload, wanted, ranks), ranks, scaling);
  if (near.empty() && other.empty()) return "use another mesh, model or options";
  const std::string counts = near.empty()
                                 ? ""
                                 : fmt::format("{} rank{}", fmt::join(near, " or "),
                                               near.size() == 1 && near.front() == 1 ? "" : "s");
  return fmt::format("use {}{}{}", counts, counts.empty() || other.empty() ? "" : ", or ", other);
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
      tiles::workload(),
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

mesh::Request curve_mesh(const Workload& workload, std::span<const int> counts, int node_ranks) {
  mesh::Request result;
  std::ptrdiff_t most = -1;
  for (const int count : counts) {
    const mesh::Request mesh = workload.natural_mesh(count);
    if (!mesh.contains(mesh::Axis::dp) || !mesh.contains(mesh::Axis::pp)) return {};
    const auto at_work =
        std::ranges::count_if(mesh, [](const auto& axis) { return axis.second > 1; });
    if (at_work <= most) continue;
    result = mesh;
    most = at_work;
  }
  result.erase(mesh::Axis::dp);
  while (node_ranks > 0 && result[mesh::Axis::tp] > node_ranks) result[mesh::Axis::tp] /= 2;
  return result;
}

std::vector<int> nearest_ranks(const Workload& workload, const Request& base,
                               const mesh::Request& wanted, int ranks, Scaling scaling) {
  constexpr int most_tried = 4096;  // most counts tried on either side of `ranks`
  const auto accepts = [&](long long count) {
    return fits(workload, base, wanted, static_cast<int>(count), scaling);
  };
  std::vector<int> near;
  for (const long long count : nearest_accepted(ranks, accepts, std::min(ranks, most_tried))) {
    near.push_back(static_cast<int>(count));
  }
  return near;
}

Request fit(const Workload& workload, const Request& base, const mesh::Request& wanted, int ranks,
            Scaling scaling) {
  std::optional<mesh::Shape> shape;
  try {
    shape = resolved(workload, base, asked(workload, wanted, ranks), ranks, scaling);
  } catch (const mesh::MeshError& error) {
    if (error.nearest()) throw;
    throw mesh::MeshError(
        error.why(),
        fmt::format("{} has no mesh of {} with these numbers: {}", workload.name,
                    base::counted(ranks, "rank"), instead(workload, base, wanted, ranks, scaling)),
        std::nullopt);
  }
  return workload.scale(base, *shape, scaling);
}

}  // namespace isoscale::workloads
