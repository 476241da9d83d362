// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/api/workload.hpp"
#include "workloads/collectives/collectives.hpp"

/// Measures each algorithm and protocol that NCCL can use for a collective, each in a session (with
/// communicators) of its own, and NCCL's own choice for comparison. Small messages are also
/// measured from memory that is registered before use, and from memory that is not.
namespace isoscale::workloads::algorithms {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

/// The memory from which a session communicates. none: unregistered memory. local: memory that each
/// rank registers by itself. symmetric: registered windows with the same layout on all ranks.
enum class Registered : std::uint8_t { none, local, symmetric };
[[nodiscard]] std::string_view name(Registered registered);

/// The algorithm, protocol and memory of one session, and the options with which it runs the
/// collectives benchmark (`measured`).
struct Choice {
  std::string algorithm{}, protocol{};  ///< "" = NCCL's own choice
  Registered registered = Registered::none;
  collectives::Values measured{};
};
/// Returns the choices to measure, each of which gets a session. The first one leaves algorithm and
/// protocol to NCCL. Then comes each requested algorithm with each requested protocol that NCCL has
/// for it, and then small messages from each requested kind of memory.
[[nodiscard]] std::vector<Choice> choices_of(const Request& request);

}  // namespace isoscale::workloads::algorithms
