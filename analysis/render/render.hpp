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
/// The rows of collectives in the columns of nccl-tests, which tools read that know these; other
/// lines begin with #.
[[nodiscard]] std::string render_nccl_tests(std::span<const RunReport> reports);

}  // namespace isoscale::analysis
