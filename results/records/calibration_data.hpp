// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "statistics/robust.hpp"

/// Calibration data are fits to one run's measurements of single operations. They are plain data:
/// the calibration makes them, the writer stores them, and the reader returns them.
namespace isoscale::results {

/// A fitted value; its bounds are absent where there are too few sizes for them.
using Fitted = statistics::Located;

/// One size of a curve. Its residual is time / fitted - 1.
struct CurveSample {
  double bytes = 0, time = 0;  ///< seconds, median
  double fitted = 0;           ///< seconds, of the curve at this size; never falls with size
  /// The prediction for this size by a curve that is fitted without it, divided by `time`, minus 1;
  /// absent for the smallest and the largest size.
  std::optional<double> held_out{};

  bool operator==(const CurveSample&) const = default;
};

/// Time of one call against size, for one kind of communication among like ranks.
struct CalibrationCurve {
  std::string op{}, dtype{}, link_class{}, implementation{};
  int members = 0;                    ///< ranks of a group
  std::optional<int> nodes{};         ///< number of nodes that a group is on; absent: not known
  std::optional<Fitted> latency{};    ///< seconds; absent where no size is small enough
  std::optional<Fitted> bandwidth{};  ///< bytes/s of algbw towards infinite size, if sizes suffice
  /// The relative error of the curve between its sizes: a predicted time t means that the real time
  /// lies within t / (1 + error) and t * (1 + error). Absent below 5 sizes.
  std::optional<double> error{};
  /// The scale on which the curve is a straight line between its sizes: "log" is time over log
  /// size, "linear" is time over size.
  std::string form = "log";
  std::string labels{};                ///< "oversubscribed" where ranks shared cores; else ""
  std::vector<CurveSample> samples{};  ///< ascending

  bool operator==(const CalibrationCurve&) const = default;
};

/// The change of latency and bandwidth of like curves with the number of ranks in a group.
struct CalibrationGrowth {
  std::string op{}, dtype{}, link_class{}, implementation{};
  std::vector<int> members{};                  ///< ascending
  std::vector<double> latency{}, bandwidth{};  ///< for each entry of `members`; NaN = not known
  /// The law that fits the latencies better, "log2 n" or "n"; "" when there are too few latencies
  /// to decide.
  std::string law{};
  double base = 0, slope = 0;  ///< seconds: latency = base + slope * law
  /// The bandwidth at the most ranks divided by that at the fewest.
  std::optional<double> bandwidth_factor{};

  bool operator==(const CalibrationGrowth&) const = default;
};

/// The rate of one shape of matrix multiplication on the slowest rank.
struct GemmRate {
  std::string dtype{}, cache{};  ///< cache: "cold" or "warm"
  double m = 0, n = 0, k = 0, batch = 1;
  double rate = 0;       ///< FLOP/s, median
  std::string labels{};  ///< as in CalibrationCurve
  /// The prediction for this shape from the other shapes, divided by `rate`, minus 1; absent where
  /// there is no other shape.
  std::optional<double> held_out{};

  bool operator==(const GemmRate&) const = default;
};

/// The best rate of one element type, which MFU is relative to.
struct GemmCeiling {
  std::string dtype{}, cache{};  ///< cache: of the row with the best rate
  double rate = 0;               ///< FLOP/s of one rank
  double m = 0, n = 0, k = 0, batch = 1;
  std::optional<double> error{};  ///< of a predicted rate, as in CalibrationCurve
  std::string labels{};

  bool operator==(const GemmCeiling&) const = default;
};

struct CalibrationData {
  std::string device{};  ///< executor
  std::vector<CalibrationCurve> curves{};
  std::vector<CalibrationGrowth> growth{};
  std::vector<GemmRate> gemms{};
  std::vector<GemmCeiling> ceilings{};

  [[nodiscard]] bool empty() const { return curves.empty() && gemms.empty(); }
  bool operator==(const CalibrationData&) const = default;
};

}  // namespace isoscale::results
