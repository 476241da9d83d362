// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/api/workload.hpp"

/// Measures what a library of collectives could choose: each of its algorithms and protocols, in a
/// session of its own, beside the library's own choice. Small messages are also measured from
/// memory that is registered before use, and from memory that is not.
namespace isoscale::workloads::algorithms {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

/// The memory that a session communicates from. none: plain memory. local: each rank registers its
/// own. symmetric: windows with the same layout on all ranks.
enum class Registered : std::uint8_t { none, local, symmetric };
[[nodiscard]] std::string_view name(Registered registered);

/// The choice of one session, and what it measures: `measured` are options of the collectives
/// benchmark.
struct Choice {
  std::string algorithm{}, protocol{};  ///< "" = the library's own choice
  Registered registered = Registered::none;
  Options measured{};
};
/// Returns the choices to measure: first the library's own, then each pair of algorithm and
/// protocol that exists, then small messages from each kind of registered memory. Throws
/// base::UsageError if nothing is left to measure.
[[nodiscard]] std::vector<Choice> choices_of(const Request& request);

[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);

}  // namespace isoscale::workloads::algorithms
