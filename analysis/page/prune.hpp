// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "analysis/page/point_details.hpp"

/// Removes parts of the JSON report that fill pages and that nobody reads there.
namespace isoscale::analysis {

/// Characters of a text or a key that a page shows.
inline constexpr std::size_t longest_text = 2000;

/// Takes out of a report as report_json() makes it: runs[].system.ranks, which becomes `kinds` of
/// ranks that are alike and `places`; the facts of preflight; what points have of single ranks and
/// of GEMM shapes; and lines of devices above `devices` of a quantity. Says in `notes` what is then
/// missing.
void prune_report(nlohmann::ordered_json& report, std::size_t devices, PageNotes& notes);

/// kinds[]: ranks ("0-63"), count, hosts (the first eight), more_hosts, text{}, number{}. Ranks are
/// of one kind where they differ only in what is each rank's own: what no two ranks of a host
/// share, where any host has two, and what is known to be such. `ranks` is as of report_json().
[[nodiscard]] nlohmann::ordered_json kinds_of_ranks(const nlohmann::ordered_json& ranks);

/// Cuts texts and keys to longest_text characters, and says how many it cut.
void cut_texts(nlohmann::ordered_json& data, PageNotes& notes);

}  // namespace isoscale::analysis
