// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/merge/join.hpp"
#include "analysis/render/render.hpp"

namespace isoscale::analysis {

/// The JSON report as an object; render_json() is its text.
[[nodiscard]] nlohmann::ordered_json report_json(const Report& report);
/// That of an index alone; render_index_json() is its text.
[[nodiscard]] nlohmann::ordered_json index_report_json(const IndexReport& report);

}  // namespace isoscale::analysis
