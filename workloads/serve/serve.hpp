// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "workloads/api/workload.hpp"
#include "workloads/serve/requests.hpp"

namespace isoscale::workloads::serve {

// Serving: dp replicas answer requests as they come. A replica has several programs; which one it
// plays next depends on the requests that have arrived, and the runner chooses it.

[[nodiscard]] std::span<const OptionSpec> option_table();

/// The options of the workload, parsed.
struct Setting {
  std::uint64_t prompt = 0;  ///< tokens of each prompt
  std::uint64_t output = 0;  ///< tokens of an answer, at most
  Lengths lengths = Lengths::fixed;
  std::uint64_t max_batch = 1;  ///< requests that a replica answers at once, at most
  Process process = Process::poisson;
  std::uint64_t burst = 1;       ///< requests that arrive at once
  std::uint64_t requests = 1;    ///< of a trial
  std::optional<double> rate{};  ///< requests a second; absent: the highest is searched for
  std::optional<double> slo{};   ///< seconds that the 99th percentile of latency may take
  Policy policy = Policy::round_robin;

  /// Returns the mean length of an answer.
  [[nodiscard]] double mean_tokens() const;
};
/// Reads the options. Throws base::UsageError for an invalid rate or slo, and for options that
/// exclude each other.
[[nodiscard]] Setting setting_of(const Request& request);

/// Returns the batch sizes that have programs: powers of two below `max_batch`, and `max_batch`. A
/// batch is played with the smallest size that holds it.
[[nodiscard]] std::vector<std::uint64_t> sizes_of(std::uint64_t max_batch);

// These functions are in the registry's row; see workloads/api/workload.hpp.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Fits a request to a mesh. Throws base::UsageError for a precision `infer` cannot compute in, and
/// for too many programs.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
[[nodiscard]] Request twin(const Request& request);

/// Returns the hooks of one session with the programs of all replicas. It has neither cases nor
/// rows: the runner makes the rows, since they depend on when requests are answered.
[[nodiscard]] BenchHooks hooks();

/// Builds the programs of one replica, on a mesh without dp: for each batch size of sizes_of(), a
/// prefill, which gives the first token, and a decode of each later token.
[[nodiscard]] program::ProgramSet replica_programs(const Request& request);
/// Returns the section of batch size number `size`; token 0 is prefill.
[[nodiscard]] program::Section section_of(std::size_t size, std::uint64_t token,
                                          std::uint64_t output);

}  // namespace isoscale::workloads::serve
