// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/launches/join.hpp"

namespace isoscale::analysis {

/// The JSON report as an object; render_json() is its text.
[[nodiscard]] nlohmann::ordered_json report_json(const Report& report);

}  // namespace isoscale::analysis
