// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/unit.hpp"
#include "settings/run_config.hpp"
#include "statistics/t_test.hpp"

/// Compares curves of several machines, or of one machine over time. All functions are pure: they
/// read reports and return results.
namespace isoscale::analysis::compare {

using settings::CompareOptions;

/// The launches of one machine, or of one machine at one time.
struct Side {
  std::string name;  ///< different from that of every other side
  std::span<const RunReport> runs;
  merge::Joined joined;  ///< every point that has times, see Counted::all
};

/// A rate divided by a figure of the machine, or the reason why it is absent.
struct Normalised {
  std::optional<double> value{};
  std::string against{};  ///< the divisor, "datasheet peak of H200, 989 TFLOP/s"
  std::string missing{};  ///< why the rate is absent; "" when it is not
};

/// One side's curve in a comparison.
struct SideCurve {
  const merge::JoinedCurve* joined = nullptr;  ///< not owned: it belongs to the side
  Curve curve;                                 ///< its points relative to the common baseline
  /// The rates of each point: FLOP/s over the peak, throughput over the bytes/s of a link,
  /// throughput over watts.
  std::vector<Normalised> of_peak{}, per_link{}, per_watt{};
};

/// A rate of each point relative to a figure of the machine.
struct Rate {
  std::string_view key;   ///< for programs
  std::string_view name;  ///< in sentences
  std::string_view over;  ///< heading: "FLOP/s of peak"; "per W" follows a throughput's unit
  Unit of = Unit::share;  ///< unit of the quotient; Unit::prefixed if a throughput is divided
  double unit = 1;        ///< the divisor's unit in the heading, in SI units: 1e9 for GB/s
  std::vector<Normalised> SideCurve::*all;
};
inline constexpr std::array rates{
    Rate{"peak", "FLOP/s of peak", "FLOP/s of peak", Unit::share, 1, &SideCurve::of_peak},
    Rate{"link", "throughput per link", "per GB/s of link", Unit::prefixed, 1e9,
         &SideCurve::per_link},
    Rate{"watt", "throughput per watt", "per W", Unit::prefixed, 1, &SideCurve::per_watt}};

/// The curves of one experiment, one for each side that has it. The first side always has it.
struct ComparedCurve {
  std::string title;
  std::optional<int> baseline;  ///< rank count; absent if no rank count is on all sides
  std::string no_baseline;      ///< why there is none; "" when there is one
  std::vector<std::optional<SideCurve>> sides;
};

/// The verdict on a point. Without a gate it is one_launch, slower, faster or no_difference.
enum class Verdict : std::uint8_t {
  regression,
  passed,
  too_noisy,
  one_launch,
  slower,
  faster,
  no_difference
};
/// Returns "regression", "passed", "too noisy to tell", "one launch", "slower", "faster" or "no
/// difference shown".
[[nodiscard]] std::string_view name(Verdict verdict);

/// The name of the part of a difference that traces cannot explain: the difference is about
/// untraced steps, and traced steps took longer or shorter. It is not a cause.
inline constexpr std::string_view untraced_part = "untraced";
/// The name of the sum of the causes that are too small to be shown one by one.
inline constexpr std::string_view other_causes = "other causes";

/// The part of a difference that one cause adds.
struct CausePart {
  std::string cause;
  double value = 0;
};

/// The causes of the difference between a side's point and the first side's. The largest come
/// first, then the sum of causes below a limit as "other causes", then the untraced part.
struct Why {
  /// For each cause, the efficiency that the side loses to it (lost / measured step) minus the
  /// first side's loss; above 0 if the side loses more. The parts sum to the first side's
  /// efficiency minus this side's. 0.01 is one point.
  std::vector<CausePart> efficiency{};
  std::string no_efficiency{};  ///< why `efficiency` is empty; "" if it is not, or at the baseline
  /// The seconds that each cause adds to the first side's step, which is scaled if the sides' work
  /// per step differs.
  std::vector<CausePart> step{};
  double step_first = 0, step_here = 0;  ///< seconds: the scaled step, the side's step
  std::string no_step{};                 ///< why `step` is empty; "" when it is not
  std::vector<std::string> notes{};      ///< one sentence on each part that could not be separated
};

/// The difference of one point between a side and the first side.
struct Difference {
  std::size_t curve = 0, side = 0;
  int ranks = 0;
  std::size_t launches_first = 0, launches = 0;
  /// The ratio of the side's throughput to the first side's. Its value comes from each side's
  /// median over its launches, its interval from Welch's test on the logarithms of each launch's
  /// median.
  statistics::Located throughput{};
  /// The difference of efficiency, 0.01 = one point; absent at the baseline. The value comes from
  /// curves of medians over launches and is the sum of `why`; the interval comes from
  /// efficiency_of().
  std::optional<statistics::Located> efficiency{};
  Verdict verdict = Verdict::one_launch;
  /// Set with a gate: the p-values of the tests that the loss is larger and that it is smaller than
  /// the gate's limit, each adjusted for the number of points.
  std::optional<double> p_regression{}, p_passed{};
  std::optional<statistics::Mean> log_ratio{};  ///< absent below 3 launches on a side
  Why why{};
};

/// The comparison of one side with the first over all points that both have. All points have equal
/// weight: the ratio is the geometric mean of the points' ratios. The 95% interval is Welch's over
/// launches with equal weight; a launch's value is the mean, over points, of its difference from
/// the mean of its side.
struct Overall {
  std::size_t side = 0;
  std::size_t compared = 0;  ///< points that both sides have
  std::size_t points = 0;    ///< those with 3 launches on each side; all compared if there are none
  std::size_t marked = 0;    ///< points with labels or unlike settings
  statistics::Located throughput{};  ///< ratio to the first side's throughput
  std::string cause{};               ///< the largest cause of the change; "" where none is known
  double cause_share = 0;            ///< share of the change that `cause` explains
};

/// A curve, or some of its points, that only one of two sides has.
struct OnlyOn {
  std::size_t side = 0;
  std::string title;
  std::vector<int> ranks;  ///< empty = the whole curve
  std::string reason;      ///< why the other side lacks it; "" if not known
};

/// The value of an unlike setting on one side; `side` is empty if this side has no value to show.
struct UnlikeEnd {
  std::string side;                ///< "A"
  std::string value;               ///< "f32"
  std::vector<std::string> files;  ///< files with this value
};

/// A setting in which points or curves differ; every report has a line for it.
struct Unlike {
  std::string what;  ///< "dtype", "option batch", "setting graph", "mesh", "labels", ...
  UnlikeEnd here{}, there{};
  std::optional<int> ranks{};  ///< rank count of one point; absent = the whole curve
  std::string title{};         ///< title of the curve
  /// The index of the compared curve (absent if the difference belongs to none), and the number of
  /// the side that `there` describes.
  std::optional<std::size_t> curve{};
  std::size_t side = 0;
};

/// A fact about the machines that differs between sides.
struct MachineDifference {
  std::string name;
  std::vector<std::string> values;  ///< one for each side
};

struct Gate {
  double loss = 0;
  bool strict = false;  ///< the gate also fails if some point is undecided or absent
  std::size_t tested = 0, regressions = 0, passed = 0, too_noisy = 0, one_launch = 0;
  std::size_t absent = 0;  ///< points, or whole curves, of the first side that another lacks
  [[nodiscard]] bool fails() const {
    const bool decided = too_noisy + one_launch + absent == 0;
    return regressions > 0 || (!decided && strict);
  }
};

/// A comparison of two or more sides. Its curves contain pointers to its sides, so it may be moved
/// but not copied.
struct Comparison {
  std::vector<Side> sides;
  std::vector<ComparedCurve> curves;
  std::vector<Unlike> unlike;
  bool refused = false;  ///< settings are unlike, so there are no differences
  std::vector<MachineDifference> machines;
  std::vector<OnlyOn> only;
  std::vector<Difference> differences;
  std::vector<Overall> overall;  ///< one for each side except the first; empty if refused
  std::optional<Gate> gate;
  std::vector<std::string> warnings{};
};

/// Compares each side with the first. `sides` holds the reports of each of two or more sides; the
/// reports must outlive the result and not move. Throws base::UsageError if a run is on two sides,
/// if a side has no curve in common with the first, or if no curve has the requested baseline.
[[nodiscard]] Comparison compare(const std::vector<std::span<const RunReport>>& sides,
                                 const CompareOptions& options);

/// Returns the difference of a point; null if only one side has the point.
[[nodiscard]] const Difference* difference_of(const Comparison& comparison, std::size_t curve,
                                              std::size_t side, int ranks);
/// Returns the settings in which a side's point differs from the first side's, or between launches
/// of the point: "dtype", "labels". For a point of the first side, returns the settings in which
/// any other side differs.
[[nodiscard]] std::vector<std::string> marks_of(const Comparison& comparison, std::size_t curve,
                                                std::size_t side, int ranks);

}  // namespace isoscale::analysis::compare
