// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "analysis/page/point_details.hpp"

/// Removes the parts of the JSON report that would enlarge a page but are not read there.
namespace isoscale::analysis::page {

/// The largest number of characters of a text or a key on a page.
inline constexpr std::size_t longest_text = 2000;

/// Removes from a report of report_json() the parts that the page does not read.
/// runs[].system.ranks is replaced by `kinds` (groups of ranks that are alike) and `places`. The
/// facts of preflight are removed, and the parts of points about single ranks, devices, GEMM
/// shapes, communicators, links and kinds of ops. `notes` says how many of the kinds, places and
/// warnings are left.
void prune_report(nlohmann::ordered_json& report, PageNotes& notes);

/// Returns kinds[]: ranks ("0-63"), count, hosts (the first eight), more_hosts, text{}, number{}.
/// Ranks are of one kind if they differ only in rank-specific facts. These are the facts that are
/// rank-specific by definition, such as the UUID of a GPU, and the facts in which all ranks of each
/// host differ, if a host has several ranks. `ranks` is as in report_json().
[[nodiscard]] nlohmann::ordered_json kinds_of_ranks(const nlohmann::ordered_json& ranks);

/// Cuts texts and keys to longest_text characters; `notes` says how many were cut.
void cut_texts(nlohmann::ordered_json& data, PageNotes& notes);

}  // namespace isoscale::analysis::page
