// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/algorithms/algorithms.hpp"
#include "workloads/calibrate/calibrate.hpp"
#include "workloads/collectives/cases.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/gemm/gemm.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/hybrid/scale.hpp"
#include "workloads/memory/memory.hpp"
#include "workloads/overlap/overlap.hpp"
#include "workloads/p2p/p2p.hpp"
#include "workloads/p2p/setting.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads {
namespace {

/// A training workload on some of the axes; they are all hybrid, with one axis or with three.
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
          .work_per_step = hybrid::work_per_step,
          .throughput_unit = "tokens/s"};
}

/// A micro-benchmark: any mesh, all ranks in one row unless the user says otherwise.
Workload micro(std::string_view name, std::string_view description,
               std::span<const OptionSpec> options, const BenchHooks& hooks) {
  return {.name = name,
          .description = description,
          .options = options,
          .axes = mesh::every_axis,
          .natural_mesh =
              [](int ranks) {
                return mesh::Request{{mesh::Axis::dp, ranks}};
              },
          .limits = [](const Request&, Scaling) { return std::vector<mesh::Constraint>{}; },
          .scale =
              [](const Request& base, const mesh::Shape& mesh, Scaling) {
                Request request = base;
                request.mesh = mesh;
                return request;
              },
          .build = nullptr,
          .twin = nullptr,
          .work_per_step = nullptr,
          .throughput_unit = "",
          .bench = hooks};
}

template <mesh::Axis axis>
mesh::Request along(int ranks) {
  return {{axis, ranks}};
}

}  // namespace

std::span<const Workload> registry() {
  using mesh::Axis;
  static const std::array table{
      training("dp", "data parallel: gradients all-reduced in buckets under the backward pass",
               Axis::dp, along<Axis::dp>),
      training("tp", "tensor parallel: column- and row-parallel pairs of GEMMs", Axis::tp,
               along<Axis::tp>),
      training("pp", "pipeline parallel: stages of layers, gpipe or 1f1b", Axis::pp,
               along<Axis::pp>),
      training("hybrid", "any mesh of dp x tp x pp", {Axis::dp, Axis::tp, Axis::pp},
               hybrid::balanced_mesh),
      micro("collectives", "collective operations: time, algbw, busbw by size, checked bit for bit",
            collectives::option_table(), collectives::hooks()),
      micro("gemm",
            "matrix multiplications: rate by shape, and the ceiling that MFU is read against",
            gemm::option_table(), gemm::hooks()),
      micro("overlap", "a multiplication and a collective, each alone and both at once",
            overlap::option_table(), overlap::hooks()),
      micro("calibrate", "what a calibration needs of collectives and gemm, in seconds",
            calibrate::option_table(), calibrate::hooks()),
      micro("algorithms",
            "NCCL's algorithms, protocols and registered memory, beside its own choice",
            algorithms::option_table(), algorithms::hooks()),
      micro("memory", "memory bandwidth: host to device, within each, managed, by NUMA node",
            memory::option_table(), memory::hooks()),
      micro("p2p", "messages between pairs of ranks: latency and bandwidth of every link",
            p2p::option_table(), p2p::hooks()),
  };
  return table;
}

const Workload& find_workload(std::string_view name) {
  const std::span<const Workload> table = registry();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Workload& workload) { return workload.name == name; });
  if (found != table.end()) return *found;
  std::vector<std::string_view> names;
  for (const Workload& workload : table) names.push_back(workload.name);
  throw base::UsageError(fmt::format("no workload {}{}; there are: {}", base::quoted(name),
                                     base::did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace isoscale::workloads
