// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isoscale::analysis::render {

/// The sections of the detailed report; the names are those of --detail.
enum class Section : std::uint8_t {
  curves,       ///< each curve: step time, throughput and efficiency of every point
  breakdown,    ///< parts of a traced step: compute, transfer, waiting ...
  efficiency,   ///< speed-up and efficiency with intervals, serial fractions
  waterfall,    ///< time lost by cause, from the ideal step to the measured one
  pop,          ///< the efficiency tree of the POP Centre of Excellence
  strategies,   ///< pipeline bubbles, offloading, uneven shares of the batch
  phases,       ///< traced steps by phase, mesh axis and GEMM shape
  layers,       ///< traced steps by layer
  soak,         ///< steps replayed and compared bit by bit
  nodes,        ///< mesh axes that cross nodes
  devices,      ///< clocks, temperature, power and energy
  findings,     ///< problems found, most severe first, with the next step
  warnings,     ///< all warnings of the run and its files
  preflight,    ///< results of the checks before the run
  rows,         ///< micro-benchmarks, inference and serving
  calibration,  ///< latency, bandwidth and peak rates fitted to the rows
  legend,       ///< meanings of words and columns
};
inline constexpr std::size_t section_count = 17;

class Sections {
 public:
  /// Selects all sections.
  Sections() { wanted_.set(); }
  /// Parses "all", or names separated by commas. Throws base::UsageError that lists the names.
  [[nodiscard]] static Sections parse(std::string_view names);

  [[nodiscard]] bool has(Section section) const {
    return wanted_.test(static_cast<std::size_t>(section));
  }
  [[nodiscard]] bool are_all() const { return wanted_.all(); }

 private:
  std::bitset<section_count> wanted_;
};

}  // namespace isoscale::analysis::render
