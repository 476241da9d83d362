// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/traced_steps.hpp"
#include "program/outline.hpp"

/// Tells whether ranks that others wait for are late in every step (imbalance) or now and then
/// (noise).
namespace isoscale::analysis {

/// The causes of each wait, from the waits of all traced steps.
class WaitCauses {
 public:
  /// `steps` outlive this.
  explicit WaitCauses(const TracedSteps& steps);

  /// True if there are the two steps that it takes to tell what stays from what wanders.
  [[nodiscard]] bool known() const { return steps_.steps.size() >= 2; }

  /// By instance: the part of the waiting for its last member in step number `at` that is noise.
  /// The rank that comes last in the other steps, by their mean, is the one to be expected last;
  /// what it waits itself in this step, over what the members wait on average, is noise. It exceeds
  /// 1 where the rank to be expected last came early; over many instances it averages to 1 for pure
  /// noise and to 0 for pure imbalance, since the step itself has no say in who is expected. NaN
  /// where nobody waited.
  [[nodiscard]] std::vector<double> noise_shares(std::size_t at) const;

  /// How many instances had members that waited, over all steps.
  [[nodiscard]] std::size_t instances() const;

  /// Exchanges are left out: who is late there may be so by schedule.
  [[nodiscard]] CausedWait caused(const program::OutlineSet& set) const;

 private:
  const TracedSteps& steps_;
  std::vector<std::vector<units::Nanoseconds>> total_;  ///< [rank][op], over steps
};

/// The share of waiting that is noise, from what ranks computed in steps whose spans were not kept:
/// as if each step had one collective, at its end. Absent below six steps, and where nobody waits.
[[nodiscard]] std::optional<double> noise_share(std::span<const results::OpSums> sums);

}  // namespace isoscale::analysis
