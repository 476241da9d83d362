// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/api/workload.hpp"

namespace isoscale::workloads::infer {

// Inference: prompts fill a cache of keys and values, then tokens are generated one by one that
// read it. tp splits each token's work, dp adds replicas, pp splits the layers.

[[nodiscard]] std::span<const OptionSpec> option_table();

struct Setting {
  std::uint64_t prompt = 0;              ///< tokens of each sample's prompt
  std::uint64_t output = 0;              ///< tokens that are generated for each sample
  std::vector<std::uint64_t> batches{};  ///< samples that a replica answers at once, ascending

  [[nodiscard]] std::uint64_t positions() const { return prompt + output; }  ///< of the cache
};
/// Throws base::UsageError for a list of batch sizes without meaning.
[[nodiscard]] Setting setting_of(const Request& request);

/// Consecutive tokens that one play of decode generates. A step's work grows linearly with the
/// length of the cache, so the mean over the middle of the output is that over all of it.
struct Window {
  std::uint64_t position = 0;  ///< of the first: as many tokens are in the cache before it
  std::uint64_t tokens = 0;
};
inline constexpr std::uint64_t most_decoded = 16;
[[nodiscard]] Window window_of(const Setting& setting);

/// The number of equal groups into which a batch is cut so that `stages` stages are busy: the
/// largest divisor of `batch` that is no more than `stages`.
[[nodiscard]] std::uint64_t groups_of(std::uint64_t batch, std::uint64_t stages);

// These belong to the registry's row; see workloads/api/workload.hpp.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// `batch` is of each dp replica, which has samples of its own. Throws base::UsageError for what
/// it cannot compute in, and for sizes beyond 2^31 rows.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
/// Narrow layers, a short prompt, and the batch of the list that has most groups.
[[nodiscard]] Request twin(const Request& request);
[[nodiscard]] Request reference(const Request& twin);

/// One row a batch size and part: "prefill", whose time is that to the first token, and "decode",
/// whose time is one output token's. Each batch size has a session of its own.
[[nodiscard]] BenchHooks hooks();

/// Programs for verification: a prefill of the last batch size and the decode that follows it, in
/// one step.
[[nodiscard]] program::ProgramSet build(const Request& request);

}  // namespace isoscale::workloads::infer
