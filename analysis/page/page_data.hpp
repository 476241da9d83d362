// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/launches/join.hpp"

namespace isoscale::analysis {

/// What the page shows, for its script (analysis/page/web/src/data.js says what it reads): the
/// report as render_json has it, without what fills pages (facts of every rank), and with what only
/// pictures can show (series of steps, ranks, ops and devices), thinned out where there is much of
/// it; `notes` says what was thinned out.
[[nodiscard]] nlohmann::ordered_json page_data(const Report& report);

}  // namespace isoscale::analysis
