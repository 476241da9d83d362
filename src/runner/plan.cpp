// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "base/error.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "executor/point_requirements.hpp"
#include "executor/transports.hpp"
#include "mesh/mesh.hpp"
#include "mesh/reach.hpp"
#include "runner/faults.hpp"
#include "runner/needs.hpp"
#include "runner/players.hpp"
#include "runner/state_note.hpp"
#include "units/text.hpp"
#include "workloads/bench/bench.hpp"
#include "workloads/fit.hpp"
#include "workloads/hybrid/hybrid.hpp"

namespace isoscale::runner {
namespace {

/// Whether a rank count was named by the user or chosen by the program.
enum class Origin : std::uint8_t { named, chosen };

struct Count {
  int ranks = 1;
  Origin origin = Origin::chosen;
};

std::vector<Count> counts_of(const config::RunConfig& config, const Site& site) {
  std::vector<Count> counts;
  for (const int ranks : config.ranks) {
    if (ranks > site.ranks) {
      throw base::UsageError(
          fmt::format("--ranks {}: only {} started; start more (mpirun -np {} ...) or name fewer",
                      ranks, base::counted(site.ranks, "rank"), ranks));
    }
    // A suite brings its own workloads; that not all of them fit every count is no mistake.
    counts.push_back({ranks, config.suite.empty() ? Origin::named : Origin::chosen});
  }
  if (!counts.empty()) return counts;
  if (config.rank_counts == config::RankCounts::every) {
    for (int ranks = 1; ranks <= site.ranks; ++ranks) counts.push_back({ranks, Origin::chosen});
    return counts;
  }
  for (int ranks = 1; ranks < site.ranks; ranks *= 2) counts.push_back({ranks, Origin::chosen});
  counts.push_back({site.ranks, Origin::chosen});
  return counts;
}

void require_axes(const workloads::Workload& workload, const mesh::Request& mesh) {
  for (const auto& [axis, extent] : mesh) {
    if (extent == 1 || workload.axes.contains(axis)) continue;
    throw base::UsageError(fmt::format(
        "--mesh {}={}: workload {} has no axis {}; use --workload hybrid, or leave the axis out",
        mesh::name(axis), extent, workload.name, mesh::name(axis)));
  }
}

/// `what` asks for `precision`: "--dtype bf16".
void require_precision(workloads::Precision precision, std::string_view what, const Site& site) {
  const auto& known = site.precisions;
  if (std::find(known.begin(), known.end(), precision) != known.end()) return;
  std::vector<std::string_view> names;
  for (const workloads::Precision one : known) names.push_back(workloads::name(one));
  throw base::UsageError(fmt::format("{}: the {} device computes in {} only{}", what, site.device,
                                     fmt::join(names, ", "),
                                     site.device == "host" ? "; GPUs do more (--device cuda, also "
                                                             "to plan with --dry-run without one)"
                                                           : ""));
}

/// What does not depend on ranks: the device, and the types it must know.
void require_device(const config::Experiment& experiment, const Site& site) {
  const workloads::Workload& workload = workloads::find_workload(experiment.workload);
  const workloads::BenchHooks& bench = workload.bench;
  if (!bench.only_on.empty() && bench.only_on != site.device) {
    throw base::UsageError(fmt::format("workload {} is about the {} device; this run is on {}",
                                       workload.name, bench.only_on, site.device));
  }
  require_precision(experiment.base.precision,
                    fmt::format("--dtype {}", workloads::name(experiment.base.precision)), site);
  if (bench.types == nullptr) return;
  for (const program::DType type : bench.types(experiment.base)) {
    const auto precision = workloads::precision_of(type);
    if (precision)
      require_precision(*precision, fmt::format("types={}", program::name(type)), site);
  }
}

/// The node of each rank of a point.
std::vector<int> nodes_of_positions(const std::vector<int>& world_ranks, const Site& site) {
  std::vector<int> nodes;
  for (const int rank : world_ranks) {
    nodes.push_back(site.node_of_rank[static_cast<std::size_t>(rank)]);
  }
  return nodes;
}

/// One rank is on one node, whichever it is.
std::optional<int> nodes_of(const std::vector<int>& world_ranks, const Site& site) {
  if (site.nodes == Nodes::unknown && world_ranks.size() > 1) return std::nullopt;
  const std::vector<int> nodes = nodes_of_positions(world_ranks, site);
  return static_cast<int>(std::set<int>{nodes.begin(), nodes.end()}.size());
}

/// Throws base::UsageError unless what plays the point fits into each node's (or rank's) memory.
/// Marks a point that does not, and of nodes that nobody has looked at does no more.
void require_memory(PlannedPoint& point, const std::vector<units::Bytes>& need_of_position,
                    config::FillIdle fill, const Site& site) {
  struct Need {
    units::Bytes bytes{0};  ///< from one pool
    int ranks = 0;          ///< that play there
  };
  std::map<int, Need> of_node;
  const std::vector<Player> players = players_of(point.world_ranks, fill, site.node_of_rank);
  for (std::size_t rank = 0; rank < players.size(); ++rank) {
    if (players[rank].replica < 0) continue;
    const units::Bytes bytes = need_of_position[static_cast<std::size_t>(players[rank].position)];
    Need& need = of_node[site.node_of_rank[rank]];
    // Where nobody knows which ranks share a node, a rank must fit into one by itself.
    const bool shared =
        site.memory_pool == executor::MemoryPool::node && site.nodes == Nodes::known;
    need.bytes = shared ? need.bytes + bytes : std::max(need.bytes, bytes);
    ++need.ranks;
  }
  for (const auto& [node, need] : of_node) {
    const auto n = static_cast<std::size_t>(node);
    if (n >= site.memory_free.size() || !site.memory_free[n]) continue;
    if (need.bytes <= *site.memory_free[n]) continue;
    point.misfit =
        fmt::format("{} of {}", units::format(need.bytes), units::format(*site.memory_free[n]));
    if (site.memory_of == MemoryOf::this_machine) return;
    const bool shared = site.memory_pool == executor::MemoryPool::node;
    const bool has_model = !point.workload->is_bench() && uses_model(point);
    throw base::UsageError(fmt::format(
        "{} on mesh {} needs {} {}, and {} is free there; use {}, {}",
        has_model ? "model " + point.request.model.name
                  : "workload " + std::string{point.workload->name},
        mesh::to_string(point.request.mesh), units::format(need.bytes),
        shared ? fmt::format("on node {} for {}", node, base::counted(need.ranks, "rank"))
               : fmt::format("on the device of a rank on node {}", node),
        units::format(*site.memory_free[n]),
        has_model ? "a smaller model or microbatch" : "smaller sizes",
        shared ? "or fewer ranks on that node" : "or more ranks"));
  }
}

void add_injections(std::span<const config::Injection> injections, const program::ProgramSet& set,
                    PlannedPoint& point) {
  std::vector<std::string> texts;
  for (const config::Injection& injection : injections) {
    const bool is_known =
        std::ranges::find(point.injections, injection.text) != point.injections.end();
    if (is_known || touches(injection, point, set)) texts.push_back(injection.text);
  }
  point.injections = std::move(texts);
}

/// Adds the traffic of one rank, by the axes that tell ranks of the point apart.
void add_traffic(const program::Facts& facts, PlannedPoint& point) {
  for (const program::Traffic& entry : facts.traffic) {
    const mesh::AxisSet axes = mesh::varying(point.request.mesh, entry.axes);
    auto at = std::ranges::lower_bound(point.sent_by_axes, axes, {}, &AxesTraffic::axes);
    if (at == point.sent_by_axes.end() || at->axes != axes) {
      at = point.sent_by_axes.insert(at, {.axes = axes, .sent = {}});
    }
    at->sent += entry.sent;
  }
}

/// Sections that a run adds to the programs of the point before it plays them.
std::optional<program::AddedSections> added_sections(const PlannedPoint& point,
                                                     const config::RunConfig& config) {
  if (point.workload->is_bench()) return std::nullopt;
  return config.soak ? program::AddedSections::checks_and_replay : program::AddedSections::checks;
}

/// Adds what the programs say about work and memory to the point; throws base::UsageError when they
/// do not fit.
void measure_programs(const program::ProgramSet& set, PlannedPoint& point,
                      const config::RunConfig& config, const Site& site) {
  const std::vector<program::Facts> facts = facts_of_programs(set);
  double flop = 0, busiest = 0;
  units::Bytes memory{0}, on_host{0}, sent{0}, most_sent{0};
  const PlayedAs how{.added = added_sections(point, config), .device = site.device};
  std::vector<MemoryNeed> needs;
  for (const program::RankProgram& program : set.programs) {
    needs.push_back(memory_need(program, set.mesh, how));
  }
  std::vector<units::Bytes> need_of_position;
  for (const std::uint32_t program : set.program_of_rank) {
    flop += facts[program].flop.value();
    busiest = std::max(busiest, facts[program].flop.value());
    memory = std::max(memory, memory_total(needs[program]));
    on_host = std::max(on_host, memory_total(needs[program]) -
                                    memory_from(executor::MemoryPool::rank, needs[program]));
    sent += sent_total(facts[program]);
    most_sent = std::max(most_sent, sent_total(facts[program]));
    add_traffic(facts[program], point);
    need_of_position.push_back(memory_from(site.memory_pool, needs[program]));
  }
  point.load.flop += busiest;
  point.load.sent += most_sent;
  point.load.memory = std::max(point.load.memory, memory);
  point.flop_per_step = point.flop_per_step.value_or(0) + flop;
  point.memory_per_rank = std::max(point.memory_per_rank.value_or(units::Bytes{0}), memory);
  point.host_memory_per_rank = std::max(point.host_memory_per_rank, on_host);
  point.sent_per_step = point.sent_per_step.value_or(units::Bytes{0}) + sent;
  require_memory(point, need_of_position, config.fill, site);
  // Never refused: of an A/B pair the other is still measured.
  if (executor::uses_symmetric(set)) point.skip_reason = site.symmetric_problem;
  add_injections(config.injections, set, point);
  if (std::string note = state_note(*point.workload, point.request, set, facts); !note.empty()) {
    point.notes.push_back(std::move(note));
  }
}

/// The sessions of a micro-benchmark follow each other: each needs its memory alone.
void measure_programs(PlannedPoint& point, const config::RunConfig& config, const Site& site) {
  const workloads::Workload& workload = *point.workload;
  if (!workload.is_bench()) {
    return measure_programs(workload.build(point.request), point, config, site);
  }
  point.load.sessions = workload.bench.batches(point.request);
  for (int batch = 0; batch < point.load.sessions; ++batch) {
    const workloads::Bench bench = workload.bench.build(point.request, batch);
    point.load.cases += static_cast<int>(bench.cases.size());
    measure_programs(bench.set, point, config, site);
  }
}

/// Element places[i] in place i.
std::vector<int> reordered(const std::vector<int>& ranks, const std::vector<int>& places) {
  std::vector<int> result;
  for (const int place : places) result.push_back(ranks[static_cast<std::size_t>(place)]);
  return result;
}

/// The fewest ranks on a node; 0 where nobody knows.
int fewest_on_a_node(const Site& site) {
  if (site.nodes == Nodes::unknown) return 0;
  std::map<int, int> ranks;
  for (const int node : site.node_of_rank) ++ranks[node];
  return std::ranges::min_element(ranks, {}, [](const auto& node) { return node.second; })->second;
}

/// Why `count` ranks have no point on a curve whose meshes all have `fixed`; "" where they have
/// one.
std::string curve_problem(mesh::Request fixed, int count) {
  std::erase_if(fixed, [](const auto& axis) { return axis.second == 1; });
  int product = 1;
  for (const auto& [axis, extent] : fixed) product *= extent;
  if (count % product == 0) return "";
  return fmt::format("all points of this curve have {}, which {} cannot hold", mesh::to_text(fixed),
                     base::counted(count, "rank"));
}

/// On the mesh named, or on one with `fixed`.
PlannedPoint plan_point(const config::Experiment& experiment, const mesh::Request& fixed,
                        Count count, const config::RunConfig& config, const Site& site) {
  PlannedPoint point{
      .index = 0,
      .experiment = &experiment,
      .workload = &workloads::find_workload(experiment.workload),
      .ranks = count.ranks,
      .request = experiment.base,
      .world_ranks = mesh::place(experiment.placement, site.node_of_rank, count.ranks),
      .skip_reason = {}};
  point.nodes = nodes_of(point.world_ranks, site);
  // The program chose that mesh, whoever chose the count.
  point.skip_reason = curve_problem(fixed, count.ranks);
  if (!point.skip_reason.empty()) return point;
  try {
    point.request =
        workloads::fit(*point.workload, experiment.base, fixed.empty() ? experiment.mesh : fixed,
                       count.ranks, experiment.scaling);
    const mesh::Shape mesh = point.request.mesh;
    point.world_ranks =
        reordered(point.world_ranks, workloads::hybrid::expert_places(point.request));
    point.reach =
        point.nodes ? mesh::reach_text(mesh, nodes_of_positions(point.world_ranks, site)) : "?";
    const workloads::Machine machine{
        .device = site.device, .numa_nodes = site.numa_nodes, .gpu_cache = site.gpu_cache};
    point.request.options = workloads::with_defaults_of(site.device, point.workload->options,
                                                        std::move(point.request.options));
    if (const auto on_machine = point.workload->bench.on_machine; on_machine != nullptr) {
      point.request = on_machine(point.request, machine);
    }
    if (point.workload->is_bench()) {
      point.request.bounds = workloads::play_bounds(machine);
      point.request.node_of_rank = nodes_of_positions(point.world_ranks, site);
    }
    measure_programs(point, config, site);
  } catch (const base::UsageError& error) {
    if (count.origin == Origin::named) {
      throw base::UsageError(fmt::format("{} on {}: {}", experiment.workload,
                                         base::counted(count.ranks, "rank"), error.what()));
    }
    point.skip_reason = error.what();
  }
  return point;
}

}  // namespace

bool uses_model(const PlannedPoint& point) {
  const workloads::BenchHooks& bench = point.workload->bench;
  if (!point.workload->is_bench()) return point.workload->model_use != workloads::ModelUse::none;
  return bench.uses_model != nullptr && bench.uses_model(point.request);
}

Plan make_plan(const config::RunConfig& config, const Site& site) {
  require_ranks(config.injections, site.ranks);
  const std::vector<Count> counts = counts_of(config, site);
  Plan plan;
  for (const config::Experiment& experiment : config.experiments) {
    require_device(experiment, site);
    const workloads::Workload& workload = workloads::find_workload(experiment.workload);
    require_axes(workload, experiment.mesh);
    std::vector<int> ranks;
    for (const Count count : counts) {
      if (experiment.max_ranks == 0 || count.ranks <= experiment.max_ranks) {
        ranks.push_back(count.ranks);
      }
    }
    mesh::Request fixed;
    if (experiment.mesh.empty()) {
      fixed = workloads::curve_mesh(workload, ranks, fewest_on_a_node(site));
    }
    for (const Count count : counts) {
      if (std::ranges::find(ranks, count.ranks) == ranks.end()) continue;
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

}  // namespace isoscale::runner
