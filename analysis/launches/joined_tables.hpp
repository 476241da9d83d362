// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"

/// What reports for people say of several launches; text and markdown only arrange it.
namespace isoscale::analysis {

/// The curve over launches, then each launch's step times where points have several.
[[nodiscard]] std::vector<TitledTable> joined_tables(const JoinedCurve& joined,
                                                     std::span<const RunReport> reports);

/// Lines below: what is compared, what was left out, what one launch does not tell, causes.
[[nodiscard]] Facts joined_remarks(const JoinedCurve& joined, std::span<const RunReport> reports);

/// What the words of these tables mean, a sentence each.
[[nodiscard]] std::vector<std::string> joined_key();

}  // namespace isoscale::analysis
