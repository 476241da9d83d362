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

#include "analysis/merge/join_launches.hpp"
#include "analysis/value_units.hpp"
#include "settings/run_config.hpp"
#include "statistics/quantiles_and_fits.hpp"

/// Compares curves of several machines, or of one machine over time. All functions are pure: they
/// read reports and return results.
namespace isoscale::analysis::compare {

using settings::CompareOptions;

/// The runs (one for each launch) of one machine, or of one machine at one time.
struct Side {
  std::string name;  ///< different from the names of all other sides
  std::span<const RunReport> runs;
  /// The runs' points by curve. They include points with labels (see merge::Counted::all).
  merge::Joined joined;
};

/// A rate divided by a reference figure of the machine, or the reason why the quotient is absent.
struct Normalised {
  std::optional<double> value{};
  std::string against{};  ///< name of the divisor: "datasheet peak of H200, 989 TFLOP/s"
  std::string missing{};  ///< why the rate is absent; "" if it is present
};

/// One side's curve in a comparison.
struct SideCurve {
  /// The curve with its launches; not owned: part of Side::joined.
  const merge::JoinedCurve* joined = nullptr;
  /// The results, relative to the baseline that all sides share.
  Curve curve;
  /// The rates of each point: FLOP/s over the peak, throughput over the bytes/s of a link,
  /// throughput over watts.
  std::vector<Normalised> of_peak{}, per_link{}, per_watt{};
};

/// Describes one of the rates of SideCurve: a point's speed relative to a figure of the machine.
struct Rate {
  std::string_view key;   ///< the rate's name in JSON
  std::string_view name;  ///< the rate's name in sentences
  std::string_view over;  ///< heading: "FLOP/s of peak"; "per W" follows the throughput's unit
  Unit of = Unit::share;  ///< unit of the quotient; Unit::prefixed if a throughput is divided
  double unit = 1;        ///< SI value of the divisor's unit in the heading: 1e9 for GB/s
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
  /// The rank count of the baseline: one that is measured on all sides that have the curve, and
  /// that the options (--baseline) allow. Absent if there is none.
  std::optional<int> baseline;
  std::string no_baseline;  ///< why there is no baseline; "" if there is one
  std::vector<std::optional<SideCurve>> sides;
};

/// The verdict on a point. Without a gate (`--gate`) only the last four values occur. `one_launch`
/// stands for fewer than 3 launches on a side, which are too few for an interval.
enum class Verdict : std::uint8_t {
  regression,
  passed,
  too_noisy,
  one_launch,
  slower,
  faster,
  no_difference
};
/// Returns the verdict as text, such as "regression" or "too noisy to tell".
[[nodiscard]] std::string_view name(Verdict verdict);

/// The name of the part of a difference that traces cannot explain: differences are of untraced
/// steps, but causes are known from traced steps, which may take a little longer or shorter. This
/// part is not a cause.
inline constexpr std::string_view untraced_part = "untraced";
/// The name of the sum of the causes that are too small to be named one by one.
inline constexpr std::string_view other_causes = "other causes";

/// The contribution of one cause to a difference; its unit is that of the list (see Why).
struct CausePart {
  std::string cause;
  double value = 0;
};

/// The causes of the difference between a side's point and the first side's point. In each list the
/// largest causes come first, then `other_causes`, then `untraced_part`; these two may be absent.
struct Why {
  /// For each cause, the share of the step time that the side loses to it minus the share that the
  /// first side loses; above 0 if the side loses more. The values sum to the first side's
  /// efficiency minus this side's. 0.01 is one percentage point.
  std::vector<CausePart> efficiency{};
  std::string no_efficiency{};  ///< why `efficiency` is empty; "" if it is not, or at the baseline
  /// The seconds that each cause adds to the first side's step. If the work per step differs
  /// between the sides, the first side's step is scaled to this side's work.
  std::vector<CausePart> step{};
  /// The length of the first side's step, scaled as above, and of this side's step, in seconds.
  double step_first = 0, step_here = 0;
  std::string no_step{};             ///< why `step` is empty; "" if it is not
  std::vector<std::string> notes{};  ///< one sentence on each part that could not be separated
};

/// The difference between one point of a side and the first side's point with as many ranks.
struct Difference {
  std::size_t curve = 0, side = 0;
  int ranks = 0;
  std::size_t launches_first = 0, launches = 0;
  /// The ratio of the side's throughput to the first side's. The value is the ratio of the medians
  /// over launches; the interval is from Welch's test on the logarithms of the launches' medians.
  statistics::Located throughput{};
  /// The side's efficiency minus the first side's, 0.01 = one percentage point; absent at the
  /// baseline. The value comes from medians over launches and equals the sum of `why.efficiency`
  /// with the opposite sign; the interval comes from the means over launches.
  std::optional<statistics::Located> efficiency{};
  Verdict verdict = Verdict::one_launch;
  /// The p-values of two tests, which are made only with a gate and at least 3 launches on each
  /// side: that the loss of throughput is larger than the gate's limit, and that it is smaller.
  /// Each is adjusted for the number of points.
  std::optional<double> p_regression{}, p_passed{};
  /// Logarithm of the throughput's ratio; absent below 3 launches on a side.
  std::optional<statistics::Mean> log_ratio{};
  Why why{};
};

/// The comparison of one side with the first over all points that both have. The ratio is the
/// geometric mean of the points' ratios. Its 95% interval is from Welch's test over the launches,
/// in which each launch has one value: how far its throughput lies above or below the side's mean,
/// as a difference of logarithms, averaged over its points.
struct Overall {
  std::size_t side = 0;
  std::size_t compared = 0;  ///< points that both sides have
  /// Number of points that the ratio and its interval are from: those with 3 launches on each side
  /// or, if there are none, all that are compared.
  std::size_t points = 0;
  /// The number of these points that have a label such as "oversubscribed" or unlike settings.
  std::size_t marked = 0;
  statistics::Located throughput{};  ///< ratio to the first side's throughput
  std::string cause{};               ///< the largest cause of the change; "" if none is known
  double cause_share = 0;            ///< share of the change that `cause` explains
};

/// A curve, or a point of a curve, that only one of two sides has.
struct OnlyOn {
  std::size_t side = 0;
  std::string title;
  std::vector<int> ranks;  ///< rank count of the point; empty = the whole curve
  std::string reason;      ///< why the other side lacks it; "" if not known
};

/// One side of an unlike setting; `side` is "" if this side has neither a value nor files to show.
struct UnlikeEnd {
  std::string side;                ///< name of the side: "A"
  std::string value;               ///< value of the setting: "f32"
  std::vector<std::string> files;  ///< files with this value
};

/// A setting in which points or curves differ, or a launch with wrong results.
struct Unlike {
  std::string what;  ///< "dtype", "option batch", "mesh", "labels", "verification", ...
  UnlikeEnd here{}, there{};
  std::optional<int> ranks{};  ///< rank count of one point; absent = the whole curve
  std::string title{};         ///< title of the curve
  /// The index of the compared curve (absent if the setting belongs to no compared curve), and the
  /// index of the side that `there` describes.
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
  std::size_t absent = 0;  ///< points or whole curves of the first side that another side lacks
  [[nodiscard]] bool is_decided() const { return too_noisy + one_launch + absent == 0; }
  [[nodiscard]] bool fails() const { return regressions > 0 || (!is_decided() && strict); }
};

/// A comparison of two or more sides. Its curves have pointers into its sides, so it may be moved
/// but not copied.
struct Comparison {
  std::vector<Side> sides;
  std::vector<ComparedCurve> curves;
  std::vector<Unlike> unlike;
  bool refused = false;  ///< nothing was compared, because `unlike` has entries
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

/// Returns how the side's point differs from the first side's point. Null if one of the two sides
/// lacks the point, for the first side itself, and if the comparison is refused.
[[nodiscard]] const Difference* difference_of(const Comparison& comparison, std::size_t curve,
                                              std::size_t side, int ranks);
/// Returns the settings in which a side's point differs from the first side's point, or in which
/// launches of the point differ: "dtype", "labels". For a point of the first side, returns the
/// settings in which any other side differs from it.
[[nodiscard]] std::vector<std::string> marks_of(const Comparison& comparison, std::size_t curve,
                                                std::size_t side, int ranks);

/// Returns names for sides that the user did not name: file names (or the common beginning of a
/// side's file names), folders, GPUs, CPUs or hosts, from the first of these that gives short names
/// that all differ. Returns an empty list if none does; compare() then uses letters.
[[nodiscard]] std::vector<std::string> default_names(
    const std::vector<std::span<const RunReport>>& sides);

/// Returns all differences in few lines. A difference that holds for all curves of a side comes
/// first, in one line: "dtype: f32 in A (a.h5), bf16 in B (b.h5); all 4 curves". The others follow
/// curve by curve; rank counts with the same text share a line. Texts that come from result files
/// are escaped.
[[nodiscard]] std::vector<std::string> unlike_lines(const Comparison& of);

}  // namespace isoscale::analysis::compare
