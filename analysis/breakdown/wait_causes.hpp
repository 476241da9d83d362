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
namespace isoscale::analysis::breakdown {

/// Finds the causes of each wait from the waits of all traced steps.
class WaitCauses {
 public:
  /// Takes the traced steps, which outlive this object.
  explicit WaitCauses(const TracedSteps& steps);

  /// True if there are at least two steps, the fewest that can tell imbalance from noise.
  [[nodiscard]] bool known() const { return steps_.steps.size() >= 2; }

  /// Returns for each instance in step number `at` the share of its waiting that is noise. The rank
  /// that comes last in the other steps, by their mean, is the expected last one; its own wait in
  /// this step, over the mean wait of all members, is the noise. The share exceeds 1 where the
  /// expected last rank came early. Over many instances it averages to 1 for pure noise and to 0
  /// for pure imbalance, since the step itself does not influence which rank is expected. NaN where
  /// no member waited.
  [[nodiscard]] std::vector<double> noise_shares(std::size_t at) const;

  /// Returns the number of instances over all steps in which some member waited.
  [[nodiscard]] std::size_t instances() const;

  /// Returns the waiting in collectives that each rank caused. Exchanges are left out, since the
  /// schedule may make a partner late there.
  [[nodiscard]] CausedWait caused(const program::OutlineSet& set) const;

 private:
  const TracedSteps& steps_;
  std::vector<std::vector<units::Nanoseconds>> total_;  ///< [rank][op], over steps
};

/// Returns the share of waiting that is noise, from the compute and copy times of steps whose spans
/// were not kept, as if each step had a single collective at its end. Absent for fewer than six
/// steps, and where no rank waits.
[[nodiscard]] std::optional<double> noise_share(std::span<const results::OpSums> sums);

}  // namespace isoscale::analysis::breakdown
