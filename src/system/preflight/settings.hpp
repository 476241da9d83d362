// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/preflight/job_view.hpp"

/// Environment variables of ranks, as rules ask for them.
namespace isoscale::system {

/// nullopt = unset.
[[nodiscard]] std::optional<std::string> setting(const CheckedRank& rank, const std::string& name);
/// Whether it is set to a number other than 0.
[[nodiscard]] bool is_switched_on(const CheckedRank& rank, const std::string& name);
/// The parts of a list with commas, blanks aside, without empty ones.
[[nodiscard]] std::vector<std::string> parts_of_list(std::string_view list);

/// Several ranks on more than one node.
[[nodiscard]] bool has_several_nodes(const JobFacts& job);

/// A setting that commonly hurts.
struct BadSetting {
  std::string variable;
  /// Whether the rank's value hurts; the node is nullptr where nothing is known of it.
  std::function<bool(const CheckedRank& rank, const CheckedNode* node)> hurts;
  std::string cost, fix;
};
/// One result for each node and value. What a rank's environment is, is always known.
void find_bad_settings(Findings& findings, const JobFacts& job,
                       const std::vector<BadSetting>& settings);

/// "NCCL_ALGO=Ring, NCCL_PROTO=LL" of the first rank, of those of these variables that are set.
[[nodiscard]] std::string settings_of_first(const JobFacts& job,
                                            const std::vector<std::string>& variables);

}  // namespace isoscale::system
