// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "analysis/report.hpp"

/// Reports as text; no renderer computes anything that another could disagree with.
namespace isoscale::analysis {

[[nodiscard]] std::string render_text(std::span<const RunReport> reports);
[[nodiscard]] std::string render_json(std::span<const RunReport> reports);
[[nodiscard]] std::string render_csv(std::span<const RunReport> reports);
[[nodiscard]] std::string render_markdown(std::span<const RunReport> reports);

}  // namespace isoscale::analysis
