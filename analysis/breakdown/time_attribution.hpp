// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "program/outline.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Splits one rank's step into exclusive parts, and adds up the time that is attributed to its ops
/// by phase, layer and axes of the mesh.
namespace isoscale::analysis::breakdown {

/// The time that is attributed to one op in a step of its rank.
struct OpShare {
  units::Nanoseconds own;              ///< compute, copies or transfer, by the op's kind
  units::Nanoseconds waiting;          ///< communication ops: time until the last partner arrived
  units::Nanoseconds hidden;           ///< communication ops: time while compute or copies ran
  units::Nanoseconds hidden_transfer;  ///< the part of `hidden` after the last partner arrived
  units::Nanoseconds gap;              ///< time while nothing ran and this op was the next to begin
};

/// A stretch of a step that no category explains.
struct Unexplained {
  units::Nanoseconds begin, length;
  std::uint32_t after = 0;  ///< number of the last op counted before it; unused if there is none
};

/// The exclusive parts of one step on one rank. The breakdown divides `late` into bubble and wait.
struct RankStep {
  units::Nanoseconds compute, copies, transfer;
  units::Nanoseconds wait;  ///< time until the last member or partner of an op arrived
  units::Nanoseconds late;  ///< as `wait`, but for exchanges between pipeline stages
  units::Nanoseconds gap, step;
  units::Nanoseconds hidden;           ///< communication while compute or copies ran
  units::Nanoseconds hidden_transfer;  ///< the part of `hidden` in which data moved
  units::Nanoseconds hidden_copies;    ///< copies while compute ran
  units::Nanoseconds unaccounted;      ///< time in no category, or counted outside of the step
  Unexplained largest;                 ///< the longest stretch in no category
};

/// Splits a step into categories so that each moment counts once: if several ops run at once, for
/// the first of the categories compute, copies, transfer, wait and late, and within a category for
/// the op on the lowest stream. Two times are in no category: time in which a span cannot have run
/// (before the previous op of its stream, or an op that it waits for, had ended), and time after
/// the last op. `waits[op]` is how long an op waited for its last partner. `trace` is usable (see
/// usable_step); `is_folded` is true if all streams ran as one. `shares` gets one entry per op.
[[nodiscard]] RankStep split(const program::Outline& outline, const timeline::StepTrace& trace,
                             std::span<const units::Nanoseconds> waits, bool is_folded,
                             std::vector<OpShare>& shares);

/// Numbers the model's layers that have ops. A layer's number (slot) is its index in PlaceSums.
class Layers {
 public:
  explicit Layers(const program::OutlineSet& set);
  [[nodiscard]] std::span<const std::uint32_t> of_outline(std::uint32_t outline) const {
    return slots_[outline];
  }
  [[nodiscard]] const std::vector<int>& names() const { return names_; }  ///< layers, by slot

 private:
  std::vector<std::vector<std::uint32_t>> slots_;  ///< [outline][op]
  std::vector<int> names_;
};

/// Adds up the times of ops by phase, layer and axes, over ranks and steps.
class PlaceSums {
 public:
  explicit PlaceSums(const Layers& layers);

  /// Adds one rank's step. `bubble_share` is the share of RankStep::late that is bubble.
  void add(const program::Outline& outline, std::span<const std::uint32_t> layer_slots,
           std::span<const OpShare> shares, double bubble_share);
  void add(const PlaceSums& more);

  /// Writes the sums, divided by `count`, to the maps of `result`. It leaves out phases, layers and
  /// sets of axes without time. Axes that have extent 1 in `mesh` are removed from the sets.
  void write(double count, const mesh::Shape& mesh, BreakdownResult& result) const;

 private:
  static constexpr std::size_t axes_count = 32;

  const std::vector<int>* layer_names_;
  std::array<Breakdown, program::phase_count> phases_{};
  std::array<Breakdown, axes_count> axes_{};
  std::vector<Breakdown> layers_;
};

}  // namespace isoscale::analysis::breakdown
