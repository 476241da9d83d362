// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/gpu_work.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

using config::GpuWork;
using config::RunConfig;
using workloads::Precision;

/// A program may take this share of the memory that is free before a run; libraries need the rest.
constexpr double usable_share = 0.95;

/// Memory of the GPU that has least; absent where one's is unknown.
std::optional<units::Bytes> least_memory(const Site& site) {
  std::optional<units::Bytes> least;
  for (const auto& bytes : site.memory_free) {
    if (!bytes) return std::nullopt;
    if (!least || *bytes < *least) least = bytes;
  }
  return least;
}

/// One rank's step of dp; base::UsageError where it has no such program.
PlannedPoint step_of(const workloads::Model& model, Precision precision, const GpuWork& work,
                     long long batch, const Site& site) {
  RunConfig config;
  config::Experiment& experiment = config.experiments.emplace_back();
  experiment.workload = "dp";
  experiment.base = {.model = model, .precision = precision, .options = work.options};
  experiment.base.options["batch"] = std::to_string(batch);
  config.ranks = {1};
  Site one = site;
  one.memory_free.clear();
  PlannedPoint point = make_plan(config, one).points.front();
  point.experiment = nullptr;
  return point;
}

bool knows(const config::Experiment& experiment, std::string_view option) {
  const auto table = workloads::find_workload(experiment.workload).options;
  return std::ranges::find(table, option, &workloads::OptionSpec::key) != table.end();
}

}  // namespace

double half_precision_rate(int compute_capability) {
  constexpr int a100 = 80, hopper = 90, blackwell = 100, consumer = 120;
  if (compute_capability >= consumer || compute_capability < a100) return 60e12;
  if (compute_capability >= blackwell) return 900e12;
  if (compute_capability >= hopper) return 480e12;
  return compute_capability == a100 ? 150e12 : 60e12;
}

std::pair<RunConfig, std::string> with_gpu_work(const RunConfig& asked, const Site& site) {
  RunConfig config = asked;
  config.on_gpus.reset();
  if (!asked.on_gpus || site.device != "cuda") return {std::move(config), ""};
  GpuWork work = *asked.on_gpus;
  const bool lacks_bf16 =
      std::ranges::find(site.precisions, work.precision) == site.precisions.end();
  if (work.precision == Precision::bf16 && lacks_bf16) work.precision = Precision::f16;

  const std::optional<units::Bytes> memory = least_memory(site);
  const double most_flop = work.longest_step.value() * site.half_precision_rate;
  long long least_batch = 1;
  while (least_batch < site.ranks) least_batch *= 2;
  const workloads::Model* model = nullptr;
  double flop = 0;
  bool suits = false;
  std::vector<std::string> names;
  for (const workloads::Model& candidate : work.models) {
    names.push_back(candidate.name);
    if (suits) continue;
    const PlannedPoint step = step_of(candidate, work.precision, work, least_batch, site);
    model = &candidate;
    flop = *step.flop_per_step;
    const auto need = static_cast<double>(step.load.memory.value());
    suits =
        memory && need <= usable_share * static_cast<double>(memory->value()) && flop <= most_flop;
  }
  long long batch = least_batch;
  for (; 2 * flop <= most_flop; flop *= 2) batch *= 2;

  for (config::Experiment& experiment : config.experiments) {
    experiment.base.model = *model;
    experiment.base.precision = work.precision;
    for (const auto& [key, value] : work.options) {
      if (knows(experiment, key)) experiment.base.options[key] = value;
    }
    if (knows(experiment, "batch")) experiment.base.options["batch"] = std::to_string(batch);
  }
  const std::string why =
      !memory ? "the memory of the GPUs is unknown"
      : suits ? fmt::format("it fits into {}, and a step takes one GPU {} at most",
                            units::format(*memory), units::format(work.longest_step))
              : fmt::format("no other fits into {} and takes one GPU {} a step at most",
                            units::format(*memory), units::format(work.longest_step));
  return {std::move(config),
          fmt::format("model: {} in {}, batch={}: of {} the {}: {}\n", model->name,
                      workloads::name(work.precision), batch, fmt::join(names, ", "),
                      suits ? "first that suits" : "last", why)};
}

}  // namespace isoscale::runner
