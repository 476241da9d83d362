// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/catalog/index.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"

/// Tables of an index as text and markdown show them; all text is escaped.
namespace isoscale::analysis {

/// Says whether what follows the index calls runs launches, by their place among those given.
enum class Numbered : std::uint8_t { no, as_launches };

/// "6 launches on 3 machines, 2025-03-01 to 2025-04-02"
[[nodiscard]] std::string index_headline(const Index& index, Numbered numbered);

/// Tables of one machine: its runs, and how throughput moved where there are two runs of an
/// experiment.
[[nodiscard]] std::vector<TitledTable> index_tables(const Index& index, const IndexMachine& machine,
                                                    Numbered numbered);

/// A warning for each file that gave no run.
[[nodiscard]] Facts index_warnings(const Index& index);

/// Says what the columns mean.
[[nodiscard]] std::vector<std::string> index_key();

}  // namespace isoscale::analysis
