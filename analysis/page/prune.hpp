// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "analysis/page/point_details.hpp"

/// Removes parts of the JSON report that would fill pages without being read there.
namespace isoscale::analysis {

/// The largest number of characters of a text or a key on a page.
inline constexpr std::size_t longest_text = 2000;

/// Removes the following from a report of report_json(), and says in `notes` what is missing:
/// runs[].system.ranks, which becomes `kinds` of ranks that are alike and `places`; the facts of
/// preflight; the parts of points about single ranks and GEMM shapes; and, for each quantity, lines
/// of devices beyond the first `devices`.
void prune_report(nlohmann::ordered_json& report, std::size_t devices, PageNotes& notes);

/// Returns kinds[]: ranks ("0-63"), count, hosts (the first eight), more_hosts, text{}, number{}.
/// Ranks are of one kind if they differ only in rank-specific facts: facts that no two ranks of a
/// host share, where any host has two ranks, and facts that are rank-specific by definition.
/// `ranks` is as in report_json().
[[nodiscard]] nlohmann::ordered_json kinds_of_ranks(const nlohmann::ordered_json& ranks);

/// Cuts texts and keys to longest_text characters; `notes` says how many were cut.
void cut_texts(nlohmann::ordered_json& data, PageNotes& notes);

}  // namespace isoscale::analysis
