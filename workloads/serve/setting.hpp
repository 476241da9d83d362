// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "workloads/serve/arrivals.hpp"
#include "workloads/serve/dispatch.hpp"
#include "workloads/workload.hpp"

/// What workload `serve` was asked for.
namespace isoscale::workloads::serve {

[[nodiscard]] std::span<const OptionSpec> option_table();

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

  /// Of an answer.
  [[nodiscard]] double mean_tokens() const;
};
/// Throws base::UsageError for a rate or an slo without meaning, and for options that exclude each
/// other.
[[nodiscard]] Setting setting_of(const Request& request);

/// Batch sizes that there are programs for: powers of two below `max_batch`, and it. A batch is
/// played as the smallest that holds it.
[[nodiscard]] std::vector<std::uint64_t> sizes_of(std::uint64_t max_batch);

/// Workload `infer` at the largest batch, which is what a replica computes.
[[nodiscard]] Request as_infer(const Request& request);

// Of the registry's row; see workloads/workload.hpp.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Throws base::UsageError for what `infer` cannot compute in, and for programs too many to keep.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
[[nodiscard]] Request twin(const Request& request);

}  // namespace isoscale::workloads::serve
