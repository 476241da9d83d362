// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// FLOP of one step over all ranks that the model asks for: without what `recompute` made backward
/// compute again (Korthikanti et al., arXiv 2205.05198, section 6.3: MFU counts these, HFU all).
/// Backward has two products for each of forward's; the rest is recomputed. Absent when the file
/// does not say what a step does.
[[nodiscard]] std::optional<double> model_flop_per_step(const results::PointData& point);

}  // namespace isoscale::analysis
