// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "statistics/quantiles_and_fits.hpp"

/// Calibration data are fits to one run's measurements of single operations.
namespace isoscale::results {

/// A fitted value with the bounds of its interval, which are absent if too few sizes were measured.
using Fitted = statistics::Located;

/// One measured size of a curve. The curve's residual at this size is time / fitted - 1.
struct CurveSample {
  double bytes = 0, time = 0;  ///< time: measured median, seconds
  double fitted = 0;           ///< time that the curve gives, seconds; never decreases with size
  /// The prediction for this size by a curve that is fitted without it, divided by `time`, minus 1;
  /// absent for the smallest and the largest size.
  std::optional<double> held_out{};

  bool operator==(const CurveSample&) const = default;
};

/// The time of one call as a function of its size, for one kind of communication among ranks of one
/// link class: "same node, NVLink" for a pair, "one node" or "several nodes" for a collective.
struct CalibrationCurve {
  std::string op{}, dtype{}, link_class{}, implementation{};
  int members = 0;             ///< number of ranks in a group
  std::optional<int> nodes{};  ///< number of nodes that a group is on; absent: not known
  /// Seconds of the smallest messages, without the part that grows with their size. Absent if the
  /// bytes of even the smallest measured size dominate its time.
  std::optional<Fitted> latency{};
  std::optional<Fitted> bandwidth{};  ///< bytes/s; limit of algbw for large sizes
  /// The relative error of the curve between its sizes: if it predicts the time t, the real time
  /// should lie between t / (1 + error) and t * (1 + error). Absent for fewer than 5 sizes.
  std::optional<double> error{};
  /// The interpolation between sizes: "log" (between the logarithms of size and time) or "linear".
  std::string form = "log";
  /// The unsound_labels (point_facts.hpp) of the measured points, joined to one text; "" = none.
  std::string labels{};
  std::vector<CurveSample> samples{};  ///< by ascending size

  bool operator==(const CalibrationCurve&) const = default;
};

/// The change of latency and bandwidth with the number of ranks in a group, from curves that differ
/// only in the numbers of ranks and nodes.
struct CalibrationGrowth {
  std::string op{}, dtype{}, link_class{}, implementation{};
  std::vector<int> members{};                  ///< ascending
  std::vector<double> latency{}, bandwidth{};  ///< for each entry of `members`; NaN = not known
  /// The function of the number of ranks n that fits the latencies better, "log2 n" or "n"; "" for
  /// too few latencies.
  std::string law{};
  /// Seconds: latency = base + slope * log2 n, or base + slope * n if `law` is "n". Both are 0 if
  /// fewer than two latencies are known.
  double base = 0, slope = 0;
  /// The bandwidth of the largest group / that of the smallest; absent if one is not known.
  std::optional<double> bandwidth_factor{};

  bool operator==(const CalibrationGrowth&) const = default;
};

/// The rate of matrix multiplications of one shape on the slowest rank.
struct GemmRate {
  std::string dtype{}, cache{};  ///< cache: "cold" or "warm"
  double m = 0, n = 0, k = 0, batch = 1;
  double rate = 0;       ///< FLOP/s, median
  std::string labels{};  ///< as in CalibrationCurve
  /// The prediction for this shape from the most similar other shapes of the same type and cache
  /// state, divided by `rate`, minus 1; absent where there are none.
  std::optional<double> held_out{};

  bool operator==(const GemmRate&) const = default;
};

/// The highest GEMM rate of one element type. MFU (model FLOP utilisation) is relative to it.
struct GemmCeiling {
  std::string dtype{}, cache{};  ///< cache: "cold" or "warm", whichever gave the highest rate
  double rate = 0;               ///< FLOP/s of one rank
  double m = 0, n = 0, k = 0, batch = 1;
  /// The relative error of rates that are predicted from other shapes, as in CalibrationCurve;
  /// absent if too few shapes were measured.
  std::optional<double> error{};
  std::string labels{};

  bool operator==(const GemmCeiling&) const = default;
};

struct CalibrationData {
  std::string device{};  ///< name of the executor
  std::vector<CalibrationCurve> curves{};
  std::vector<CalibrationGrowth> growth{};
  std::vector<GemmRate> gemms{};
  std::vector<GemmCeiling> ceilings{};

  [[nodiscard]] bool empty() const { return curves.empty() && gemms.empty(); }
  bool operator==(const CalibrationData&) const = default;
};

}  // namespace isoscale::results
