// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mesh/mesh.hpp"
#include "runner/plan/injected_faults.hpp"
#include "units/quantity_text.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/registry_and_mesh_choice.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::runner::plan {
namespace {

using program::Precision;
using settings::GpuWork;
using settings::RunConfig;

/// Returns the rank counts of the points, ascending: those that the user named, else chosen ones.
std::vector<int> counts_of(const settings::RunConfig& config, const Site& site) {
  for (const int ranks : config.ranks) {
    if (ranks > site.ranks) {
      throw base::usage_error(
          "--ranks {}: only {} started; start more (mpirun -np {} ...) or name fewer", ranks,
          base::counted(site.ranks, "rank"), ranks);
    }
  }
  if (!config.ranks.empty()) return config.ranks;
  const bool is_every = config.rank_counts == settings::RankCounts::every;
  std::vector<int> counts;
  for (int ranks = 1; ranks < site.ranks; ranks = is_every ? ranks + 1 : 2 * ranks) {
    counts.push_back(ranks);
  }
  counts.push_back(site.ranks);
  return counts;
}

/// Throws base::UsageError if the executor does not compute in `precision`. `what` is the option
/// that asks for it, for the message: "--dtype bf16".
void require_precision(program::Precision precision, std::string_view what, const Site& site) {
  const auto& known = site.precisions;
  if (std::find(known.begin(), known.end(), precision) != known.end()) return;
  std::vector<std::string_view> names;
  for (const program::Precision one : known) names.push_back(program::name(one));
  throw base::usage_error("{}: the {} device computes in {} only{}", what, site.device,
                          fmt::join(names, ", "),
                          site.device == "host" ? "; GPUs do more (--device cuda, also "
                                                  "to plan with --dry-run without one)"
                                                : "");
}

/// Throws base::UsageError if an experiment asks for another device than the site's, or for types
/// that the site's executor does not support.
void require_device(const settings::Experiment& experiment, const Site& site) {
  const workloads::Workload& workload = workloads::find_workload(experiment.workload);
  const workloads::BenchHooks& bench = workload.bench;
  if (!bench.only_on.empty() && bench.only_on != site.device) {
    throw base::usage_error("workload {} is about the {} device; this run is on {}", workload.name,
                            bench.only_on, site.device);
  }
  require_precision(experiment.base.precision,
                    fmt::format("--dtype {}", program::name(experiment.base.precision)), site);
  if (bench.types == nullptr) return;
  for (const program::DType type : bench.types(experiment.base)) {
    const auto precision = program::precision_of(type);
    if (precision)
      require_precision(*precision, fmt::format("types={}", program::name(type)), site);
  }
}

/// Returns the list of numbers[places[i]] for all i.
std::vector<int> taken(const std::vector<int>& numbers, const std::vector<int>& places) {
  std::vector<int> result;
  for (const int place : places) result.push_back(numbers[static_cast<std::size_t>(place)]);
  return result;
}

/// Returns the number of nodes that the ranks are on; absent if it is unknown which ranks share a
/// node. A single rank is on one node in any case.
std::optional<int> nodes_of(const std::vector<int>& world_ranks, const Site& site) {
  if (site.nodes == Nodes::unknown && world_ranks.size() > 1) return std::nullopt;
  const std::vector<int> nodes = taken(site.node_of_rank, world_ranks);
  return static_cast<int>(std::set<int>{nodes.begin(), nodes.end()}.size());
}

/// Returns the number of ranks on the node that has fewest; 0 if the nodes are unknown.
int fewest_on_a_node(const Site& site) {
  if (site.nodes == Nodes::unknown) return 0;
  std::map<int, int> ranks;
  for (const int node : site.node_of_rank) ++ranks[node];
  return std::ranges::min_element(ranks, {}, [](const auto& node) { return node.second; })->second;
}

/// Returns why no mesh of `count` ranks has the extents in `fixed`; "" if there is one. All meshes
/// of a curve have these extents, and the other axes grow with the rank count.
std::string curve_problem(mesh::Request fixed, int count) {
  std::erase_if(fixed, [](const auto& axis) { return axis.second == 1; });
  int product = 1;
  for (const auto& [axis, extent] : fixed) product *= extent;
  if (count % product == 0) return "";
  return fmt::format("all points of this curve have {}, which {} cannot hold", mesh::to_text(fixed),
                     base::counted(count, "rank"));
}

/// Returns the text of an error about a number that one rank count does not accept. It suggests the
/// nearest numbers that all of the experiment's rank counts accept or, if there are none nearby,
/// those that `error` suggests. For `fixed` see plan_point().
std::string with_numbers_for_all(const workloads::NumberError& error,
                                 const settings::Experiment& experiment, const mesh::Request& fixed,
                                 const settings::RunConfig& config) {
  constexpr long long most_apart = 10'000;
  const std::vector<long long>& near = error.suggested();
  if (near.empty()) return error.what();
  const workloads::Workload& workload = workloads::find_workload(experiment.workload);
  workloads::Request other = experiment.base;
  // Suggested numbers of microbatches assume that the option batch, if given, is left out.
  if (error.key() == "microbatches") other.options.erase("batch");
  const auto accepts = [&](long long number) {
    other.options[error.key()] = std::to_string(number);
    return std::ranges::all_of(config.ranks, [&](int count) {
      if (experiment.max_ranks != 0 && count > experiment.max_ranks) return true;
      if (!curve_problem(fixed, count).empty()) return true;
      try {
        static_cast<void>(workloads::fit(workload, other, fixed.empty() ? experiment.mesh : fixed,
                                         count, experiment.scaling));
        return true;
      } catch (const base::UsageError&) {
        return false;
      }
    });
  };
  // The refused number lies beside a single suggestion or between two of them.
  const long long middle = near.size() == 1 ? near.front() - 1 : (near.front() + near.back()) / 2;
  const std::vector<long long> for_all = workloads::nearest_accepted(middle, accepts, most_apart);
  if (for_all.empty()) return error.what();
  return workloads::NumberError{error.why(), error.key(), for_all}.what();
}

/// Plans a point of an experiment on `ranks` ranks. If `fixed` is not empty, the mesh has these
/// extents; otherwise the user's mesh is used.
PlannedPoint plan_point(const settings::Experiment& experiment, const mesh::Request& fixed,
                        int ranks, const settings::RunConfig& config, const Site& site) {
  PlannedPoint point{.index = 0,
                     .experiment = &experiment,
                     .workload = &workloads::find_workload(experiment.workload),
                     .ranks = ranks,
                     .request = experiment.base,
                     .world_ranks = mesh::place(experiment.placement, site.node_of_rank, ranks),
                     .skip_reason = {}};
  point.nodes = nodes_of(point.world_ranks, site);
  // The program chose the extents in `fixed`, even if the user named the rank count. So a count
  // that they do not fit is not the user's mistake, and the point is only skipped.
  point.skip_reason = curve_problem(fixed, ranks);
  if (!point.skip_reason.empty()) return point;
  try {
    point.request =
        workloads::fit(*point.workload, experiment.base, fixed.empty() ? experiment.mesh : fixed,
                       ranks, experiment.scaling);
    point.world_ranks = taken(point.world_ranks, workloads::hybrid::expert_places(point.request));
    const std::vector<int> nodes = taken(site.node_of_rank, point.world_ranks);
    point.reach = point.nodes ? mesh::reach_text(point.request.mesh, nodes) : "?";
    const workloads::Machine machine{
        .device = site.device, .numa_nodes = site.numa_nodes, .gpu_cache = site.gpu_cache};
    point.request.options = workloads::with_defaults_of(site.device, point.workload->options,
                                                        std::move(point.request.options));
    if (const auto on_machine = point.workload->bench.on_machine; on_machine != nullptr) {
      point.request = on_machine(point.request, machine);
    }
    if (point.workload->is_bench()) {
      point.request.bounds = workloads::play_bounds(machine);
      point.request.node_of_rank = nodes;
    }
    add_program_needs(point, config, site);
    point.load.half_precision_rate = site.half_precision_rate;
  } catch (const base::UsageError& error) {
    // It is no mistake of the user if some workloads of a suite cannot use a rank count.
    if (!config.ranks.empty() && config.suite.empty()) {
      const auto* const number = dynamic_cast<const workloads::NumberError*>(&error);
      throw base::usage_error("{} on {}: {}", experiment.workload, base::counted(ranks, "rank"),
                              number == nullptr
                                  ? error.what()
                                  : with_numbers_for_all(*number, experiment, fixed, config));
    }
    point.skip_reason = error.what();
  }
  return point;
}

/// A program may use this share of the free memory; libraries need the rest.
constexpr double usable_share = 0.95;

/// Returns the free memory of the rank that has least, where ranks that share a GPU have equal
/// parts of it; absent if it is unknown for some GPU.
std::optional<units::Bytes> least_memory(const Site& site) {
  std::map<int, std::uint64_t> ranks_of_pool;
  for (const int pool : site.pool_of_rank) ++ranks_of_pool[pool];
  std::optional<units::Bytes> least;
  for (const auto& [pool, ranks] : ranks_of_pool) {
    const auto p = static_cast<std::size_t>(pool);
    if (p >= site.memory_free.size() || !site.memory_free[p]) return std::nullopt;
    const units::Bytes part{site.memory_free[p]->value() / ranks};
    if (!least || part < *least) least = part;
  }
  return least;
}

/// Plans a point of the workload dp on one rank, to see what a step of this model costs. Throws
/// base::UsageError if dp has no program for this model and this work.
PlannedPoint step_of(const workloads::Model& model, Precision precision, const GpuWork& work,
                     long long batch, const Site& site) {
  RunConfig config;
  settings::Experiment& experiment = config.experiments.emplace_back();
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

bool knows(const settings::Experiment& experiment, std::string_view option) {
  const auto table = workloads::find_workload(experiment.workload).options;
  return std::ranges::find(table, option, &workloads::OptionSpec::key) != table.end();
}

}  // namespace

std::vector<RankRole> rank_roles(const std::vector<int>& point_ranks, settings::FillIdle fill,
                                 const std::vector<int>& node_of_rank) {
  std::vector<RankRole> roles(node_of_rank.size());
  const auto of = [&](int rank) -> RankRole& { return roles[static_cast<std::size_t>(rank)]; };
  for (std::size_t i = 0; i < point_ranks.size(); ++i) {
    of(point_ranks[i]) = {.replica = 0, .position = static_cast<int>(i)};
  }
  if (fill == settings::FillIdle::idle) return roles;
  std::vector<int> rest;
  const auto world = static_cast<int>(node_of_rank.size());
  for (const int rank : mesh::place(mesh::Placement::packed, node_of_rank, world)) {
    if (of(rank).replica < 0) rest.push_back(rank);
  }
  const std::size_t copies = rest.size() / point_ranks.size();
  for (std::size_t i = 0; i < copies * point_ranks.size(); ++i) {
    of(rest[i]) = {.replica = static_cast<int>(i / point_ranks.size()) + 1,
                   .position = static_cast<int>(i % point_ranks.size())};
  }
  return roles;
}

bool uses_model(const PlannedPoint& point) {
  const workloads::BenchHooks& bench = point.workload->bench;
  if (!point.workload->is_bench()) return point.workload->is_training();
  return bench.uses_model != nullptr && bench.uses_model(point.request);
}

Plan make_plan(const settings::RunConfig& config, const Site& site) {
  require_ranks(config.injections, site.ranks);
  const std::vector<int> counts = counts_of(config, site);
  Plan plan;
  for (const settings::Experiment& experiment : config.experiments) {
    require_device(experiment, site);
    const workloads::Workload& workload = workloads::find_workload(experiment.workload);
    std::vector<int> ranks = counts;
    std::erase_if(ranks, [&](int count) {
      return experiment.max_ranks != 0 && count > experiment.max_ranks;
    });
    mesh::Request fixed;
    if (experiment.mesh.empty()) {
      fixed = workloads::curve_mesh(workload, ranks, fewest_on_a_node(site));
    }
    for (const int count : ranks) {
      PlannedPoint point = plan_point(experiment, fixed, count, config, site);
      point.index = static_cast<int>(plan.points.size());
      plan.points.push_back(std::move(point));
    }
  }
  const bool any = std::any_of(plan.points.begin(), plan.points.end(),
                               [](const auto& point) { return point.skip_reason.empty(); });
  if (!any) {
    throw base::UsageError(plan.points.empty()
                               ? "there is nothing to run"
                               : "nothing is left to run: " + plan.points.back().skip_reason);
  }
  return plan;
}

std::vector<std::string> idle_options(const Plan& plan) {
  std::vector<const workloads::Request*> requests;
  for (const PlannedPoint& point : plan.points) {
    const bool is_planned = point.skip_reason.empty();
    if (is_planned && point.workload->is_training()) requests.push_back(&point.request);
  }
  std::vector<std::string> sentences;
  for (const auto& [key, sentence] : workloads::stack::idle_options(requests)) {
    sentences.push_back(sentence);
  }
  return sentences;
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
    const auto need = static_cast<double>(step.memory_per_rank->value());
    suits =
        memory && need <= usable_share * static_cast<double>(memory->value()) && flop <= most_flop;
  }
  long long batch = least_batch;
  for (; 2 * flop <= most_flop; flop *= 2) batch *= 2;

  for (settings::Experiment& experiment : config.experiments) {
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
                      program::name(work.precision), batch, fmt::join(names, ", "),
                      suits ? "first that suits" : "last", why)};
}

}  // namespace isoscale::runner::plan
