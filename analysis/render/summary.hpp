// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/merge/join.hpp"
#include "analysis/render/document.hpp"

namespace isoscale::analysis {

/// The machine, how each curve scales and what it loses most, the most severe findings and the
/// first warnings.
[[nodiscard]] Document answer(const Report& report);
/// The answer on one screen, and where to read on.
[[nodiscard]] Document summary(const Report& report);

/// The meaning of the columns of its tables; nothing where it has none.
[[nodiscard]] Document summary_legend(const RunReport& run);

}  // namespace isoscale::analysis
