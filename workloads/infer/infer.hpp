// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/api/workload.hpp"

namespace isoscale::workloads::infer {

// Inference: prompts first fill a cache of keys and values (prefill); then tokens are generated one
// by one, and each reads the cache (decode). tp splits the work of each token, dp adds replicas,
// and pp splits the layers.

[[nodiscard]] std::span<const OptionSpec> option_table();

/// Holds the parsed options, which option_table() describes.
struct Setting {
  std::uint64_t prompt = 0;  ///< tokens of each sample's prompt
  std::uint64_t output = 0;  ///< tokens that are generated for each sample
  bool vocabulary = true;
  std::vector<std::uint64_t> batches{};  ///< samples that a replica answers at once, ascending

  [[nodiscard]] std::uint64_t positions() const { return prompt + output; }  ///< in the cache
};
/// Reads the options. The default of `prompt` is the model's sequence.
[[nodiscard]] Setting setting_of(const Request& request);

/// The consecutive tokens that one run of decode generates. A token's work grows linearly with the
/// number of tokens before it, so the mean over tokens in the middle of the output is about the
/// mean over all tokens.
struct Window {
  std::uint64_t position = 0;  ///< tokens in the cache before the first token
  std::uint64_t tokens = 0;
};
inline constexpr std::uint64_t most_decoded = 16;
[[nodiscard]] Window window_of(const Setting& setting);

// The functions below are called through the registry; see workloads/api/workload.hpp.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Fits a request to a mesh. `batch` is the number of samples of each dp replica. Throws
/// base::UsageError for a precision in which inference cannot compute, and for GEMMs with 2^31 rows
/// or more.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
/// Returns the small request that verifies the workload: narrow layers, a short prompt, and one
/// batch size. A batch goes through the pipeline in groups of samples (see groups_of() in
/// replica.hpp). The batch of the small request has at least as many groups as the batch of
/// `request` with the most groups, and one or two samples for each of these.
[[nodiscard]] Request twin(const Request& request);
[[nodiscard]] Request reference(const Request& twin);

/// Returns the hooks that measure the result rows. For each batch size there is a row "prefill"
/// with the time to the first token, and a row "decode" with the time per output token. Each batch
/// size is measured in a session of its own.
[[nodiscard]] BenchHooks hooks();

/// Builds programs for verification: a step with a prefill of the largest batch size, and the
/// decode that follows it.
[[nodiscard]] program::ProgramSet build(const Request& request);

}  // namespace isoscale::workloads::infer
