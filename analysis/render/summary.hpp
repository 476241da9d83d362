// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/launches/join.hpp"
#include "analysis/render/document.hpp"

namespace isoscale::analysis {

/// The answer on one screen: the machine, how each curve scales and what it loses most, the most
/// severe findings, the first warnings, and where to read on.
[[nodiscard]] Document summary(const Report& report);

/// The meaning of the columns of its tables; nothing where it has none.
[[nodiscard]] Document summary_legend(const RunReport& run);

}  // namespace isoscale::analysis
