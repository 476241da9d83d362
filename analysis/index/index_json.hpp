// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/catalog/index.hpp"

namespace isoscale::analysis {

/// One object for each run, in the order given.
[[nodiscard]] nlohmann::ordered_json index_json(const Index& index);
/// One object for each machine, with its trends.
[[nodiscard]] nlohmann::ordered_json machines_json(const Index& index);
/// file and reason of each.
[[nodiscard]] nlohmann::ordered_json unreadable_json(const Index& index);
/// What of `runs[]` is known where nothing but the index was made: no points, so that nobody takes
/// them for none.
[[nodiscard]] nlohmann::ordered_json bare_runs_json(const Index& index);

}  // namespace isoscale::analysis
