// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/merge/join.hpp"
#include "statistics/t_test.hpp"

/// Curves of several machines, or of one over time, set side by side; pure functions over reports.
namespace isoscale::analysis {

/// The options of a comparison.
struct CompareOptions {
  std::optional<int> baseline{};  ///< rank count; absent = the first that is ok on all sides
  bool whole_node = false;        ///< or the first that fills a node on all sides
  std::optional<double> gate{};   ///< loss of throughput, 0.05 = 5%
  enum class Untold : std::uint8_t { warn, fail };  ///< what the gate does where it cannot tell
  Untold untold = Untold::warn;
  enum class Unlikes : std::uint8_t { refuse, compare };
  Unlikes unlikes = Unlikes::refuse;
  std::vector<std::string> names{};  ///< of the sides; empty = "A", "B", ...
};

/// The launches of one machine, or of one time.
struct Side {
  std::string name;  ///< unlike that of every other side
  std::span<const RunReport> runs;
  Joined joined;  ///< every point that has times, see Counted::all
};

/// A rate per what the machine has; absent with the reason.
struct Normalised {
  std::optional<double> value{};
  std::string against{};  ///< what it is divided by, "datasheet peak of H200, 989 TFLOP/s"
  std::string missing{};  ///< why there is none; "" when there is one
};

/// One side's curve of those that are compared.
struct SideCurve {
  const JoinedCurve* joined = nullptr;  ///< not owned: of the side
  Curve curve;                          ///< its points against the common baseline
  /// For each point: FLOP/s over the peak, throughput per byte/s of a link, throughput per watt.
  std::vector<Normalised> of_peak{}, per_link{}, per_watt{};
};

/// Curves of one experiment, one of each side that has it. The first side has.
struct ComparedCurve {
  std::string title;
  std::optional<int> baseline;  ///< ranks; absent without a rank count that all sides have
  std::string no_baseline;      ///< why there is none; "" when there is one
  std::vector<std::optional<SideCurve>> sides;
};

/// The verdict on a point. Without a gate the last three and one_launch.
enum class Verdict : std::uint8_t {
  regression,
  passed,
  too_noisy,
  one_launch,
  slower,
  faster,
  no_difference
};
/// "regression", "passed", "too noisy to tell", "one launch", "slower", "faster", "no difference
/// shown"
[[nodiscard]] std::string_view name(Verdict verdict);

/// The part that no trace can explain: traced steps were not as long as the untraced ones that the
/// difference is of. It is not a cause.
inline constexpr std::string_view untraced_part = "untraced";
/// Causes below a limit, in one sum.
inline constexpr std::string_view other_causes = "other causes";
/// The name of `untraced_part` in texts.
inline constexpr std::string_view traced_steps_differ = "traced steps differ";

/// The part of a difference that one cause adds.
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

/// One point of a side against that of the first side.
struct Difference {
  std::size_t curve = 0, side = 0;
  int ranks = 0;
  std::size_t launches_first = 0, launches = 0;
  /// Throughput over the first side's; the interval is Welch's of the logarithms of the launches'
  /// medians, the value that of the medians over launches.
  statistics::Located throughput{};
  /// Difference, 0.01 = one point; absent at the baseline. The value is that of the curves of
  /// medians over launches, to which `why` sums; the interval that of efficiency_of().
  std::optional<statistics::Located> efficiency{};
  Verdict verdict = Verdict::one_launch;
  /// Probabilities with a gate: that there is a larger loss, that there is none, each adjusted for
  /// all points.
  std::optional<double> p_regression{}, p_passed{};
  std::optional<statistics::Mean> log_ratio{};  ///< absent below 3 launches on a side
  Why why{};
};

/// One side against the first over all points that were compared. Points count alike: the ratio is
/// the geometric mean of theirs. The 95% interval is Welch's over launches, each of which counts
/// once: its value is its mean distance, over points, from the mean of its side.
struct Overall {
  std::size_t side = 0;
  std::size_t compared = 0;  ///< points
  std::size_t points = 0;    ///< those that count: with 3 launches a side, or all where none has
  std::size_t marked = 0;    ///< of them labelled or unlike
  statistics::Located throughput{};  ///< over the first side's
  std::string cause{};               ///< of the changed step, the largest; "" where none is known
  double cause_share = 0;            ///< of the change
};

/// A curve, or points of a compared one, that is not on both sides.
struct OnlyOn {
  std::size_t side = 0;
  std::string title;
  std::vector<int> ranks;  ///< empty = the whole curve
  std::string reason;      ///< "" or what the other side says of it
};

/// One end of a difference; without a side where there is nothing to say of it.
struct UnlikeEnd {
  std::string side;                ///< "A"
  std::string value;               ///< "f32"
  std::vector<std::string> files;  ///< that say so
};

/// One thing that is not the same; a line of its own in every report.
struct Unlike {
  std::string what;  ///< "dtype", "option batch", "setting graph", "mesh", "labels", ...
  UnlikeEnd here{}, there{};
  std::optional<int> ranks{};  ///< of one point; absent = of the whole curve
  std::string title{};         ///< of the curve
  /// The curve it is of among those compared, and the side of `there`; absent where it is of none.
  std::optional<std::size_t> curve{};
  std::size_t side = 0;
};

/// Something of the machines that is not the same on all sides.
struct MachineDifference {
  std::string name;
  std::vector<std::string> values;  ///< of each side
};

struct Gate {
  double loss = 0;
  CompareOptions::Untold untold = CompareOptions::Untold::warn;
  std::size_t tested = 0, regressions = 0, passed = 0, too_noisy = 0, one_launch = 0;
  std::size_t absent = 0;  ///< points, or whole curves, of the first side that another has not
  [[nodiscard]] bool fails() const {
    const bool told = too_noisy + one_launch + absent == 0;
    return regressions > 0 || (!told && untold == CompareOptions::Untold::fail);
  }
};

/// Curves point into sides: move it, do not copy it.
struct Comparison {
  std::vector<Side> sides;
  std::vector<ComparedCurve> curves;
  std::vector<Unlike> unlike;
  bool refused = false;  ///< for what is unlike: there are no differences
  std::vector<MachineDifference> machines;
  std::vector<OnlyOn> only;
  std::vector<Difference> differences;
  std::vector<Overall> overall;  ///< of each side but the first; empty where refused
  std::optional<Gate> gate;
  std::vector<std::string> warnings{};
};

/// Compares each side with the first. `sides` are the reports of each, two or more; they outlive
/// the result and stay where they are. Throws base::UsageError where a run is on two sides, where a
/// side has nothing in common with the first, and where no curve has the baseline asked for.
[[nodiscard]] Comparison compare(const std::vector<std::span<const RunReport>>& sides,
                                 const CompareOptions& options);

/// The difference of a point; null where it is on one side only.
[[nodiscard]] const Difference* difference_of(const Comparison& comparison, std::size_t curve,
                                              std::size_t side, int ranks);
/// The settings in which a point of a side is unlike the first side's, or unlike that of another
/// launch: "dtype", "labels". A point of the first side: unlike any.
[[nodiscard]] std::vector<std::string> marks_of(const Comparison& comparison, std::size_t curve,
                                                std::size_t side, int ranks);

/// The point of a curve by its rank count; null without one. Not owned.
[[nodiscard]] const PointReport* point_of(const Curve& curve, int ranks);

}  // namespace isoscale::analysis
