// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/rank_step.hpp"
#include "program/outline.hpp"

namespace isoscale::analysis {

/// Which layer each op of the outlines is of, as small numbers.
class Layers {
 public:
  explicit Layers(const program::OutlineSet& set);
  [[nodiscard]] std::span<const std::uint32_t> of_outline(std::uint32_t outline) const {
    return slots_[outline];
  }
  [[nodiscard]] const std::vector<int>& names() const { return names_; }  ///< by slot

 private:
  std::vector<std::vector<std::uint32_t>> slots_;  ///< [outline][op]
  std::vector<int> names_;
};

/// The shares of ops, added up by phase, layer and axes over ranks and steps.
class PlaceSums {
 public:
  explicit PlaceSums(const Layers& layers);

  /// One rank's step. `bubble`: how much of its `late` is bubble.
  void add(const program::Outline& outline, std::span<const std::uint32_t> layer_slots,
           std::span<const OpShare> shares, double bubble_share);
  void add(const PlaceSums& more);

  /// Divided by `count`, into the maps of `result`; places without time are left out, and so are
  /// axes of extent 1 in `mesh`.
  void write(double count, const mesh::Shape& mesh, BreakdownResult& result) const;

 private:
  static constexpr std::size_t axes_count = 32;

  const std::vector<int>* layer_names_;
  std::array<Breakdown, program::phase_count> phases_{};
  std::array<Breakdown, axes_count> axes_{};
  std::vector<Breakdown> layers_;
};

}  // namespace isoscale::analysis
