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

// Serving: dp replicas answer requests as they come. A replica computes programs; which one it
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

  /// The mean length of an answer.
  [[nodiscard]] double mean_tokens() const;
};
/// Throws base::UsageError for a rate or an slo without meaning, and for options that exclude each
/// other.
[[nodiscard]] Setting setting_of(const Request& request);

/// Batch sizes that there are programs for: powers of two below `max_batch`, and it. A batch is
/// played as the smallest that holds it.
[[nodiscard]] std::vector<std::uint64_t> sizes_of(std::uint64_t max_batch);

// These belong to the registry's row; see workloads/api/workload.hpp.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Throws base::UsageError for what `infer` cannot compute in, and for programs too many to keep.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
[[nodiscard]] Request twin(const Request& request);

/// One session with the programs of all replicas, and neither cases nor rows: these are the
/// runner's, as they depend on when requests are answered.
[[nodiscard]] BenchHooks hooks();

/// The programs of one replica, on a mesh without dp: for each batch size of sizes_of() a prefill
/// and a decode of each token after the first, which prefill answers.
[[nodiscard]] program::ProgramSet replica_programs(const Request& request);
/// Batch size number `size`; token 0 is prefill.
[[nodiscard]] program::Section section_of(std::size_t size, std::uint64_t token,
                                          std::uint64_t output);

}  // namespace isoscale::workloads::serve
