// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/catalog/index.hpp"
#include "analysis/render/document.hpp"

/// Builds the tables of an index of runs.
namespace isoscale::analysis::render {

/// Says whether the rest of the report refers to runs as numbered launches, in the order given.
enum class Numbered : std::uint8_t { no, as_launches };

/// Returns the headline of an index: "6 launches on 3 machines, 2025-03-01 to 2025-04-02".
[[nodiscard]] std::string index_headline(const catalog::Index& index, Numbered numbered);

/// Returns the tables of one machine: its runs, and the trend of the throughput of experiments that
/// at least two runs measured. A table may have no rows.
[[nodiscard]] std::vector<DocumentTable> index_tables(const catalog::Index& index,
                                                      const catalog::IndexMachine& machine,
                                                      Numbered numbered);

/// Returns a warning for each file from which no run could be read.
[[nodiscard]] Facts index_warnings(const catalog::Index& index);

/// Returns sentences that explain the columns of index_tables().
[[nodiscard]] std::vector<std::string> index_key();

}  // namespace isoscale::analysis::render
