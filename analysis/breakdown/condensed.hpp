// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/match_table.hpp"
#include "program/outline.hpp"
#include "simulate/simulate.hpp"

namespace isoscale::analysis {

/// The programs of a step with each run of compute and copy ops put into one op, where nothing
/// waits for one before the last of them. Such a program begins and ends every communication op at
/// the same time as the whole one, with a fraction of the ops.
class Condensed {
 public:
  Condensed(const program::OutlineSet& whole, program::Folding folding);

  [[nodiscard]] const program::OutlineSet& set() const { return set_; }
  /// The times of its ops from those of the whole programs; table_of_rank stays what it is.
  [[nodiscard]] simulate::Costs costs(const simulate::Costs& whole) const;

 private:
  void add(const program::Outline& whole, program::Folding folding);

  program::OutlineSet set_;
  std::vector<std::vector<std::uint32_t>> place_;  ///< [outline][op]: its op of the condensed one
};

}  // namespace isoscale::analysis
