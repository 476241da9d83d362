// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/catalog/index.hpp"
#include "analysis/merge/join.hpp"
#include "analysis/render/document.hpp"

/// Reports as text; no renderer computes anything that another could disagree with. Of several
/// launches those for people show the joined curves, and of each launch only what it is; those for
/// programs have all of both.
namespace isoscale::analysis {

/// The answer on one screen of at most `columns` columns.
[[nodiscard]] std::string render_summary(const Report& report, std::size_t columns);
/// All that there is to say for people in those parts of a report.
[[nodiscard]] std::string render_sections(const Report& report, const Sections& sections);
/// The same in all parts.
[[nodiscard]] std::string render_text(const Report& report);
[[nodiscard]] std::string render_json(const Report& report);
[[nodiscard]] std::string render_csv(const Report& report);
[[nodiscard]] std::string render_markdown(const Report& report);
/// The rows of collectives in the columns of nccl-tests, which tools read that know these; other
/// lines begin with #.
[[nodiscard]] std::string render_nccl_tests(const Report& report);

/// An index and nothing else. `why` is a sentence for people on what is not shown.
struct IndexReport {
  Index index;
  std::vector<std::string> warnings{};
  std::string why{};
};
[[nodiscard]] std::string render_index_text(const IndexReport& report);
[[nodiscard]] std::string render_index_json(const IndexReport& report);
/// One line for each run and experiment.
[[nodiscard]] std::string render_index_csv(const IndexReport& report);
[[nodiscard]] std::string render_index_markdown(const IndexReport& report);

}  // namespace isoscale::analysis
