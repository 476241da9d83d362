// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/api/workload.hpp"

namespace isoscale::workloads::infer {

// Inference: prompts fill a cache of keys and values; then tokens are generated one by one, which
// read it. tp splits each token's work, dp adds replicas, pp splits the layers.

[[nodiscard]] std::span<const OptionSpec> option_table();

struct Setting {
  std::uint64_t prompt = 0;              ///< tokens of each sample's prompt
  std::uint64_t output = 0;              ///< tokens that are generated for each sample
  std::vector<std::uint64_t> batches{};  ///< samples that a replica answers at once, ascending

  [[nodiscard]] std::uint64_t positions() const { return prompt + output; }  ///< of the cache
};
/// Reads the options. Throws base::UsageError for an invalid list of batch sizes.
[[nodiscard]] Setting setting_of(const Request& request);

/// Consecutive tokens that one play of decode generates. A step's work grows linearly with the
/// length of the cache, so the mean over the middle of the output equals the mean over all of it.
struct Window {
  std::uint64_t position = 0;  ///< of the first token: the number of tokens before it in the cache
  std::uint64_t tokens = 0;
};
inline constexpr std::uint64_t most_decoded = 16;
[[nodiscard]] Window window_of(const Setting& setting);

/// Returns the number of equal groups into which a batch is cut to keep `stages` stages busy: the
/// largest divisor of `batch` that is no more than `stages`.
[[nodiscard]] std::uint64_t groups_of(std::uint64_t batch, std::uint64_t stages);

// These functions are in the registry's row; see workloads/api/workload.hpp.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Fits a request to a mesh. `batch` is that of each dp replica, which has samples of its own.
/// Throws base::UsageError for a precision it cannot compute in, and for sizes beyond 2^31 rows.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
/// Returns a twin with narrow layers, a short prompt, and the batch of the list that has most
/// groups.
[[nodiscard]] Request twin(const Request& request);
[[nodiscard]] Request reference(const Request& twin);

/// Returns the hooks of rows: one for each batch size and part. "prefill" has the time to the first
/// token, and "decode" the time of one output token. Each batch size has a session of its own.
[[nodiscard]] BenchHooks hooks();

/// Builds programs for verification: a prefill of the last batch size and the decode that follows
/// it, in one step.
[[nodiscard]] program::ProgramSet build(const Request& request);

}  // namespace isoscale::workloads::infer
