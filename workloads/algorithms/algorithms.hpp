// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/api/workload.hpp"

/// This benchmark measures what a library of collectives could have chosen: each of its algorithms
/// and protocols in a session of its own, beside the library's own choice; and small messages from
/// memory that is registered beforehand or not.
namespace isoscale::workloads::algorithms {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

/// The memory that a session communicates from: plain, registered by each rank, or in windows that
/// are the same on all ranks.
enum class Registered : std::uint8_t { none, local, symmetric };
[[nodiscard]] std::string_view name(Registered registered);

/// One session: a choice, and what is measured with it, as options of the collectives benchmark.
struct Choice {
  std::string algorithm{}, protocol{};  ///< "" = the library's own choice
  Registered registered = Registered::none;
  Options measured{};
};
/// Returns the library's own choice first, then pairs of algorithm and protocol that exist, then
/// small messages by registration. Throws base::UsageError if nothing is left.
[[nodiscard]] std::vector<Choice> choices_of(const Request& request);

[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);

}  // namespace isoscale::workloads::algorithms
