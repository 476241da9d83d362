// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/api/workload.hpp"
#include "workloads/serve/arrivals_and_rate_search.hpp"

namespace isoscale::workloads::serve {

// Serving: dp replicas answer requests as they arrive. A replica's programs have one section for
// each pair of a batch size and a token position in the answer (0 is the prefill, which gives the
// first token). The runner chooses which section a replica runs next, depending on the requests
// that have arrived.

[[nodiscard]] std::span<const OptionSpec> option_table();

/// Holds the parsed options, which option_table() describes.
struct Setting {
  std::uint64_t prompt = 0;  ///< tokens of each prompt
  std::uint64_t output = 0;  ///< tokens of the longest answer
  Lengths lengths = Lengths::fixed;
  std::uint64_t max_batch = 1;  ///< requests that a replica answers at the same time, at most
  Process process = Process::poisson;
  std::uint64_t burst = 0;       ///< requests that arrive at the same moment
  std::uint64_t requests = 1;    ///< number of requests in a trial
  std::optional<double> rate{};  ///< requests per second; absent: the highest is searched for
  std::optional<double> slo{};   ///< limit for 99th percentile of latency, seconds; absent: none
  Policy policy = Policy::round_robin;
  std::string vocabulary{};  ///< value of the option, passed on to workload `infer`

  /// Returns the mean number of tokens of an answer.
  [[nodiscard]] double mean_tokens() const {
    const auto most = static_cast<double>(output);
    return lengths == Lengths::fixed ? most : (1 + most) / 2;
  }
};
/// Reads the options. Throws base::UsageError for options that exclude each other.
[[nodiscard]] Setting setting_of(const Request& request);

/// Returns the batch sizes for which programs have sections: powers of two below `max_batch`, and
/// `max_batch`. A batch of requests is answered with the sections of the smallest size that holds
/// it.
[[nodiscard]] std::vector<std::uint64_t> sizes_of(std::uint64_t max_batch);

// The functions below are called through the registry; see workloads/api/workload.hpp.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Fits a request to a mesh. Throws base::UsageError for a precision in which `infer` cannot
/// compute, for GEMMs with 2^31 rows or more, and if programs would have too many sections.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
[[nodiscard]] Request twin(const Request& request);

/// Returns the hooks of one session with the programs of all replicas. The session has neither
/// cases nor result rows: the runner makes the rows, which depend on when requests are answered.
[[nodiscard]] BenchHooks hooks();

/// Builds the programs of one replica, on a mesh without dp. For each batch size of sizes_of() they
/// have a section for prefill, which gives the first token, and one to decode each later token.
[[nodiscard]] program::ProgramSet replica_programs(const Request& request);
/// Returns the section for batch size number `size` and a token; token 0 is the prefill. The
/// longest answer has `output` tokens.
[[nodiscard]] program::Section section_of(std::size_t size, std::uint64_t token,
                                          std::uint64_t output);

}  // namespace isoscale::workloads::serve
