// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "analysis/page/detail_limits.hpp"

/// What a large report does without on a page, so that it leaves room for pictures. Reports are as
/// prune_report() leaves them; `notes` says what went.
namespace isoscale::analysis {

/// Takes what is looked at least out of a report of more than `most` bytes: the breakdown by layer,
/// but for the largest point of each curve, then summaries of devices, whose lines are drawn.
void ease_report(nlohmann::ordered_json& report, std::size_t most, PageNotes& notes);

/// Shrinks a report until it takes at most `most` bytes. First go rows
/// of micro-benchmarks (evenly, but for those that failed and those of slow pairs; the point has
/// rows_left_out then), then what points have by place, of devices and links, then all that the
/// last of several runs have of their points. Says so in `notes`.
void shrink_report(nlohmann::ordered_json& report, std::size_t most, PageNotes& notes);

}  // namespace isoscale::analysis
