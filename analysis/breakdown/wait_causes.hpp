// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/matched_traces.hpp"
#include "program/outline.hpp"

/// Divides waiting by its cause: the same ranks are late in every step (imbalance), or different
/// ranks are late in different steps (noise).
namespace isoscale::analysis::breakdown {

/// Finds the cause of each wait by comparing the waits of all traced steps.
class WaitCauses {
 public:
  /// Takes the traced steps, which must outlive this object.
  explicit WaitCauses(const TracedSteps& steps);

  /// True if there are at least two steps, the fewest that can tell imbalance from noise.
  [[nodiscard]] bool known() const { return steps_.steps.size() >= 2; }

  /// Returns for each instance (collective, or pair of exchanges) in step number `at` the share of
  /// its waiting that is noise: the wait in this step of the rank with the least mean wait in the
  /// other steps, which is expected to arrive last, divided by the mean wait of all members. Over
  /// many instances the share averages to 1 for pure noise, and to 0 for pure imbalance; a single
  /// one may exceed 1. NaN if no member waited.
  [[nodiscard]] std::vector<double> noise_shares(std::size_t at) const;

  /// Returns the number of instances (see noise_shares), over all steps, in which a member waited.
  [[nodiscard]] std::size_t instances() const;

  /// Returns the waiting in collectives that each rank caused by arriving last. Exchanges are left
  /// out, since in these the pipeline schedule may be the reason why a partner is late.
  [[nodiscard]] CausedWait caused(const program::OutlineSet& set) const;

 private:
  const TracedSteps& steps_;
  std::vector<std::vector<units::Nanoseconds>> total_;  ///< [rank][op], sums over steps
};

/// Estimates the share of waiting that is noise without the spans of ops, from each rank's compute
/// and copy times in traced steps. It assumes a single collective, at the end of each step. Absent
/// for fewer than six steps, if a time is not known, or if no rank would wait.
[[nodiscard]] std::optional<double> noise_share(std::span<const results::OpSums> sums);

}  // namespace isoscale::analysis::breakdown
