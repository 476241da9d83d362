// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runner/estimate.hpp"
#include "runner/plan.hpp"
#include "units/quantity.hpp"

/// Which point is measured next, and for how long, so that a run ends in time.
namespace isoscale::runner {

/// Why a point was left out for which there was no time left; --resume measures it.
inline constexpr std::string_view budget_reason = "budget";
/// The reason of a point that was not measured because a signal asked the run to end soon.
inline constexpr std::string_view signal_reason = "signal";

/// Of a list of points: the one to measure now, and the time of its loop.
struct Portion {
  std::size_t at = 0;
  units::Seconds loop{};

  bool operator==(const Portion&) const = default;
};

/// The first of the points that get a portion of the time `left`. Points are taken in the order
/// given as long as each fits with its least loop; later ones that are short enough still get in.
/// What is left over goes to the loops, the same for all, but no loop gets more than was asked for.
/// Nothing when no point fits.
[[nodiscard]] std::optional<Portion> next_portion(std::span<const PointTime> points,
                                                  units::Seconds left);

/// A point whose turn it is.
struct Turn {
  int index = 0;          ///< of the plan
  units::Seconds loop{};  ///< as long as the loop is asked to last
  units::Seconds most{};  ///< as long as it may last while there is no interval
};

/// Hands out the points of a plan one after the other: without a budget in the order of the plan,
/// each with --max-time; with one, the most telling first, each with its portion of what is left.
/// Points that take longer than their estimate make the estimates of the workload's others longer,
/// and those that take less than their fewest steps were thought to need make them shorter.
/// Used by one rank, which tells the others.
class Turns {
 public:
  /// `wanted`: indices of the points to measure. The plan and the configuration must outlive it.
  Turns(const Plan& plan, const config::RunConfig& config, std::string_view device,
        std::set<int> wanted);

  /// `elapsed` of the run. Nothing when there is no point left, or none that fits.
  [[nodiscard]] std::optional<Turn> next(units::Seconds elapsed) const;
  /// Notes that a point has had its turn and took `time`; absent where it failed, since that says
  /// nothing of how long others take.
  void done(const Turn& turn, std::optional<units::Seconds> time);

  /// Points that have not been measured, ascending.
  [[nodiscard]] const std::set<int>& waiting() const { return waiting_; }
  /// The shortest loop of a point that had less than it was asked to have; absent: none had.
  [[nodiscard]] std::optional<units::Seconds> shortest() const { return shortest_; }
  [[nodiscard]] int shortened() const { return shortened_; }

 private:
  [[nodiscard]] PointTime expected(const PlannedPoint& point) const;

  /// How long a measured point took, as a multiple of its estimate.
  struct Experience {
    std::string_view workload;
    double factor = 1;
  };

  const Plan* plan_;
  const config::RunConfig* config_;
  std::string_view device_;
  std::vector<int> order_;
  std::set<int> waiting_;
  std::vector<Experience> experience_;
  std::optional<units::Seconds> shortest_;
  int shortened_ = 0;
};

/// The loops of the points that would be measured if each took as long as it is estimated to, by
/// index: without a budget all that are not skipped.
[[nodiscard]] std::map<int, units::Seconds> expected_loops(const Plan& plan,
                                                           const config::RunConfig& config,
                                                           std::string_view device);

/// The sentence for a run whose budget left out (`waiting`) all points of its curves; absent when
/// it measured one, and when it has none.
[[nodiscard]] std::optional<std::string> no_curve_warning(const Plan& plan,
                                                          const std::set<int>& waiting,
                                                          units::Seconds budget);

}  // namespace isoscale::runner
