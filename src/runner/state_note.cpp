// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/state_note.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "mesh/mesh.hpp"
#include "units/text.hpp"
#include "workloads/options.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::runner {
namespace {

using program::Role;

units::Bytes states_of(const program::Facts& facts) {
  units::Bytes sum{0};
  for (const Role role : {Role::weight, Role::master, Role::gradient, Role::optimizer}) {
    sum += facts.peak_of_role[static_cast<std::size_t>(role)];
  }
  return sum;
}

/// What waits in host memory until it is used.
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

}  // namespace

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
                        workloads::OptionReader{workload.options, request.options}.text("offload"),
                        units::format(offloaded(set.of(rank))), program::name(plan.host));
  }
  return note;
}

}  // namespace isoscale::runner
