// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "executor/host/host_executor.hpp"
#include "executor/point_requirements.hpp"
#include "mesh/mesh.hpp"
#include "program/checksum_replay_and_solo_sections.hpp"
#include "runner/plan/injected_faults.hpp"
#include "runner/plan/plan.hpp"
#include "units/quantity_text.hpp"
#include "workloads/api/options.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::runner::plan {
namespace {

using program::Role;

/// The memory that a session needs on one rank, for each kind of memory (program::Space).
using MemoryNeed = std::array<units::Bytes, program::space_count>;

/// Returns the memory that the executor allocates for a program and for the sections that checks
/// add to it (`added`; absent if there are none). On the host it is exact and includes staging
/// memory for copies that MPI needs. On another device it lacks the work space of libraries.
MemoryNeed memory_need(const program::RankProgram& program, const mesh::Shape& mesh,
                       std::optional<program::AddedSections> added, std::string_view device_name) {
  const auto arenas = added ? program::arenas_with(*added, program, mesh) : program.arena_bytes;
  MemoryNeed need{};
  std::ranges::transform(arenas, need.begin(),
                         [](std::uint64_t arena) { return units::Bytes{arena}; });
  if (device_name != "host") return need;
  const auto staging =
      executor::host::staging_bytes(program, mesh, executor::max_elements_per_call);
  units::Bytes& device = need[static_cast<std::size_t>(program::Space::device)];
  device = std::accumulate(staging.begin(), staging.end(), device);
  return need;
}

units::Bytes memory_total(const MemoryNeed& need) {
  return std::accumulate(need.begin(), need.end(), units::Bytes{0});
}

units::Bytes states_of(const program::Facts& facts) {
  units::Bytes sum{0};
  for (const Role role : {Role::weight, Role::master, Role::gradient, Role::optimizer}) {
    sum += facts.peak_of_role[static_cast<std::size_t>(role)];
  }
  return sum;
}

/// Returns the bytes of weights and optimizer states that the program keeps outside device memory
/// while it does not use them.
units::Bytes offloaded(const program::RankProgram& program) {
  std::uint64_t bytes = 0;
  for (const program::Buffer& buffer : program.buffers) {
    const bool is_state = buffer.role == Role::weight || buffer.role == Role::master ||
                          buffer.role == Role::optimizer;
    if (!is_state || buffer.space == program::Space::device) continue;
    bytes += buffer.count * program::element_size(buffer.dtype);
  }
  return units::Bytes{bytes};
}

/// Returns a remark for the plan if the point shards its states (weights, gradients and optimizer
/// states) or keeps some in host memory: "zero=2 keeps 1.2 GiB of 4.8 GiB of states a rank"; "" if
/// it does neither. The numbers are those of the rank that would have the most states without
/// sharding: the first is taken from the facts of its program, the second from the formula for
/// zero=0. `facts` has one entry for each program of the set.
std::string state_note(const workloads::Workload& workload, const workloads::Request& request,
                       const program::ProgramSet& set, std::span<const program::Facts> facts) {
  const auto key = [](const workloads::OptionSpec& spec) { return spec.key == "zero"; };
  if (workload.is_bench() || std::ranges::none_of(workload.options, key)) return "";
  const workloads::stack::StatePlan plan = workloads::stack::state_plan_of(request);
  const bool offloads = plan.offload != workloads::stack::Offload::none;
  if (plan.zero == 0 && !offloads) return "";
  int rank = 0;
  units::Bytes whole{0};
  for (int stage = 0; stage < set.mesh.pp; ++stage) {
    const units::Bytes states = workloads::stack::whole_states(request, stage);
    if (states <= whole) continue;
    whole = states;
    rank = mesh::rank_at(set.mesh, {.pp = stage});
  }
  std::string note;
  if (plan.zero > 0) {
    const program::Facts& of_rank = facts[set.program_of_rank[static_cast<std::size_t>(rank)]];
    note = fmt::format("zero={} keeps {} of {} of states a rank", plan.zero,
                       units::format(states_of(of_rank)), units::format(whole));
  }
  if (offloads) {
    note += fmt::format("{}offload={} keeps {} a rank in {} memory", note.empty() ? "" : "; ",
                        workloads::stack::text_of(request, "offload"),
                        units::format(offloaded(set.of(rank))), program::name(plan.host));
  }
  return note;
}

/// Throws base::UsageError if the ranks that use one memory pool and play the point or its copies
/// together need more than is free there. If the free memory was read on this machine but the plan
/// is for other nodes, sets PlannedPoint::misfit instead of throwing.
void require_memory(PlannedPoint& point, const std::vector<units::Bytes>& need_of_position,
                    settings::FillIdle fill, const Site& site) {
  struct Need {
    units::Bytes bytes{0};
    int ranks = 0;  ///< ranks that use the pool and play
    int node = 0;
  };
  std::map<int, Need> of_pool;
  const std::vector<RankRole> roles = rank_roles(point.world_ranks, fill, site.node_of_rank);
  for (std::size_t rank = 0; rank < roles.size(); ++rank) {
    if (roles[rank].replica < 0) continue;
    Need& need = of_pool[site.pool_of_rank[rank]];
    need.bytes += need_of_position[static_cast<std::size_t>(roles[rank].position)];
    ++need.ranks;
    need.node = site.node_of_rank[rank];
  }
  for (const auto& [pool, need] : of_pool) {
    const auto p = static_cast<std::size_t>(pool);
    if (p >= site.memory_free.size() || !site.memory_free[p]) continue;
    const units::Bytes free = *site.memory_free[p];
    if (need.bytes <= free) continue;
    point.misfit = fmt::format("{} of {}", units::format(need.bytes), units::format(free));
    if (site.memory_of == MemoryOf::this_machine) return;
    const bool has_model = !point.workload->is_bench() && uses_model(point);
    throw base::usage_error(
        "{} on mesh {} needs {} {}node {} for {}, and {} is free there; use {}, or {} ranks{}",
        has_model ? "model " + point.request.model.name
                  : "workload " + std::string{point.workload->name},
        mesh::to_string(point.request.mesh), units::format(need.bytes),
        site.device == "host" ? "on " : "on a GPU of ", need.node,
        base::counted(need.ranks, "rank"), units::format(free),
        has_model ? "a smaller model or microbatch" : "smaller sizes",
        need.ranks > 1 ? "fewer" : "more", need.ranks > 1 ? " there" : "");
  }
}

void add_injections(std::span<const settings::Injection> injections, const program::ProgramSet& set,
                    PlannedPoint& point) {
  std::vector<std::string> texts;
  for (const settings::Injection& injection : injections) {
    const bool is_known =
        std::ranges::find(point.injections, injection.text) != point.injections.end();
    if (is_known || touches(injection, point, set)) texts.push_back(injection.text);
  }
  point.injections = std::move(texts);
}

/// Adds the work and the memory of the programs to the point. If the programs do not fit into
/// memory, throws or marks the point as require_memory() does.
void add_needs(const program::ProgramSet& set, PlannedPoint& point,
               const settings::RunConfig& config, const Site& site) {
  const std::vector<program::Facts> facts = facts_of_programs(set);
  double flop = 0, busiest = 0;
  units::Bytes memory{0}, on_host{0}, most_sent{0};
  std::optional<program::AddedSections> added;  // the sections that check results
  if (!point.workload->is_bench()) {
    using enum program::AddedSections;
    added = config.soak ? checks_and_replay : checks;
  }
  std::vector<MemoryNeed> needs;
  for (const program::RankProgram& program : set.programs) {
    needs.push_back(memory_need(program, set.mesh, added, site.device));
  }
  std::vector<units::Bytes> need_of_position;
  for (const std::uint32_t program : set.program_of_rank) {
    flop += facts[program].flop.value();
    busiest = std::max(busiest, facts[program].flop.value());
    const units::Bytes total = memory_total(needs[program]);
    const auto in = [&](program::Space space) {
      return needs[program][static_cast<std::size_t>(space)];
    };
    const units::Bytes in_host_buffers = in(program::Space::pinned) + in(program::Space::pageable);
    memory = std::max(memory, total);
    on_host = std::max(on_host, in_host_buffers);
    units::Bytes sent{0};  // by one rank in one step, see program::Traffic::sent
    for (const program::Traffic& entry : facts[program].traffic) {
      sent += entry.sent;
      // Axes along which the point has only one rank are removed from the set.
      point.sent_by_axes[mesh::varying(point.request.mesh, entry.axes)] += entry.sent;
    }
    most_sent = std::max(most_sent, sent);
    need_of_position.push_back(site.device == "host" ? total : total - in_host_buffers);
  }
  point.load.flop += busiest;
  point.load.sent += most_sent;
  point.flop_per_step = point.flop_per_step.value_or(0) + flop;
  point.memory_per_rank = std::max(point.memory_per_rank.value_or(units::Bytes{0}), memory);
  point.host_memory_per_rank = std::max(point.host_memory_per_rank, on_host);
  require_memory(point, need_of_position, config.fill, site);
  // If symmetric memory cannot be used, the point is skipped and nothing is thrown, so that an
  // experiment that compares with and without it still measures the other variant.
  if (executor::uses_symmetric(set)) point.skip_reason = site.symmetric_problem;
  add_injections(config.injections, set, point);
  if (std::string note = state_note(*point.workload, point.request, set, facts); !note.empty()) {
    point.notes.push_back(std::move(note));
  }
}

}  // namespace

std::vector<program::Facts> facts_of_programs(const program::ProgramSet& set) {
  std::vector<program::Facts> facts;
  std::transform(
      set.programs.begin(), set.programs.end(), std::back_inserter(facts),
      [&](const program::RankProgram& program) { return program::facts(program, set.mesh); });
  return facts;
}

void add_program_needs(PlannedPoint& point, const settings::RunConfig& config, const Site& site) {
  const workloads::Workload& workload = *point.workload;
  if (!workload.is_bench()) {
    return add_needs(workload.build(point.request), point, config, site);
  }
  // The sessions of a micro-benchmark are played one after another. So each of them must fit into
  // memory, not all together.
  point.load.sessions = workload.bench.batches(point.request);
  for (int batch = 0; batch < point.load.sessions; ++batch) {
    const workloads::Bench bench = workload.bench.build(point.request, batch);
    point.load.cases += static_cast<int>(bench.cases.size());
    add_needs(bench.set, point, config, site);
  }
}

}  // namespace isoscale::runner::plan
