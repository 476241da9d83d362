// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "analysis/merge/join.hpp"
#include "analysis/page/budget.hpp"

namespace isoscale::analysis {

/// What the page shows, for its script (analysis/page/web/src/data.js says what it reads): the
/// report as render_json has it, without what fills pages (facts of every rank), and with what only
/// pictures can show (series of steps, ranks, ops and devices), thinned out where there is much of
/// it; `notes` says what was thinned out. As JSON it takes `most_bytes` at most, unless what cannot
/// be left out of the report is more.
[[nodiscard]] nlohmann::ordered_json page_data(const Report& report,
                                               std::size_t most_bytes = most_page_bytes);

}  // namespace isoscale::analysis
