// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "analysis/page/point_details.hpp"

/// Removes parts of the JSON report that would fill pages without being read there.
namespace isoscale::analysis::page {

/// The largest number of characters of a text or a key on a page.
inline constexpr std::size_t longest_text = 2000;

/// Removes from a report of report_json() what no part of the page reads: runs[].system.ranks,
/// which becomes `kinds` of ranks that are alike and `places`; the facts of preflight; the parts of
/// points about single ranks, devices, GEMM shapes, communicators, links and kinds of ops. `notes`
/// says how many kinds, places and warnings of how many are left.
void prune_report(nlohmann::ordered_json& report, PageNotes& notes);

/// Returns kinds[]: ranks ("0-63"), count, hosts (the first eight), more_hosts, text{}, number{}.
/// Ranks are of one kind if they differ only in rank-specific facts: facts that no two ranks of a
/// host share, where any host has two ranks, and facts that are rank-specific by definition.
/// `ranks` is as in report_json().
[[nodiscard]] nlohmann::ordered_json kinds_of_ranks(const nlohmann::ordered_json& ranks);

/// Cuts texts and keys to longest_text characters; `notes` says how many were cut.
void cut_texts(nlohmann::ordered_json& data, PageNotes& notes);

}  // namespace isoscale::analysis::page
