// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/statistics/welch.hpp"

/// Which causes a difference goes to.
namespace isoscale::analysis {

/// The part that no trace can explain: traced steps were not as long as the untraced ones that the
/// difference is of. It is not a cause.
inline constexpr std::string_view untraced_part = "untraced";
/// Causes below a limit, in one sum.
inline constexpr std::string_view other_causes = "other causes";
/// How `untraced_part` is shown to people.
inline constexpr std::string_view traced_steps_differ = "traced steps differ";

/// What one cause adds to a difference.
struct CausePart {
  std::string cause;
  double value = 0;
};

/// Why a side's point is not as the first side's. Largest first; what is below a limit is
/// summed as "other causes" behind them; what is untraced is last.
struct Why {
  /// Efficiency lost to each cause, lost / measured step, beyond what the first side loses: above 0
  /// = the side loses more. They sum to the first side's efficiency less the side's. 0.01 = a
  /// point.
  std::vector<CausePart> efficiency{};
  std::string no_efficiency{};  ///< why there is none; "" when there is, and at the baseline
  /// Seconds that each cause adds to the first side's step (scaled by work, where that differs).
  std::vector<CausePart> step{};
  double step_first = 0, step_here = 0;  ///< seconds; the scaled step, and the side's
  std::string no_step{};                 ///< why no step is divided; "" when it is
  std::vector<std::string> notes{};      ///< what could not be separated, one sentence each
};

/// Losses of efficiency by cause of two points against their baselines, `there` less `here`. Where
/// one waterfall separates less than the other, both are as coarse.
[[nodiscard]] std::vector<CausePart> efficiency_causes(const Waterfall& here,
                                                       const Waterfall& there);

/// Parts of an absolute size of `limit` and more, largest first, and "other causes", what is left;
/// behind it untraced_part.
[[nodiscard]] std::vector<CausePart> above(std::vector<CausePart> parts, double limit);

/// `first` and `here` are joined points of as many ranks. `baseline` = that they are the baselines.
enum class AtBaseline : std::uint8_t { no, yes };
[[nodiscard]] Why why(const PointReport& first, const PointReport& here, AtBaseline baseline);

}  // namespace isoscale::analysis
