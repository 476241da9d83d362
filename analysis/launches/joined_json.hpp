// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/merge/join.hpp"

namespace isoscale::analysis {

/// The top-level curves of the JSON report, one for each experiment over all launches.
[[nodiscard]] nlohmann::ordered_json joined_json(const Joined& joined);

/// {"fewest", "most"}; null where it is not known.
[[nodiscard]] nlohmann::ordered_json ranks_per_node_json(const PointReport& point);
/// {"tp": "intra-node", ...} of the axes of more than one rank; empty where it is not known.
[[nodiscard]] nlohmann::ordered_json axes_json(const PointReport& point);

}  // namespace isoscale::analysis
