// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/losses.hpp"
#include "analysis/render/document.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

/// Predicts steps on more ranks than were measured, on the machine of a run or of a data sheet.
namespace isoscale::analysis::predict {

/// A value and its 90% interval.
struct Expected {
  double value = 0, lower = 0, upper = 0;
};

/// Converts a value and its interval to another unit.
[[nodiscard]] inline Expected scaled(const Expected& at, double factor) {
  return {.value = at.value * factor, .lower = at.lower * factor, .upper = at.upper * factor};
}

/// The sources of an interval, as relative standard deviations that are independent of each other.
struct Uncertainty {
  double noise = 0;   ///< deviation of the step time from step to step
  double launch = 0;  ///< deviation of the median step from launch to launch
  double fit = 0;     ///< the model's error at the fitted points and in its extrapolation
};

/// The half-width of a 90% interval in standard deviations of a normal distribution.
inline constexpr double interval_90 = 1.6448536269514722;

/// The source of the numbers of one part of the machine.
struct PartSource {
  std::string part;    ///< "links between nodes"
  std::string from;    ///< data sheet, run file or software profile
  std::string source;  ///< the publications that a sheet or profile names, or "measured"
};

/// A point that was measured, for comparison with its prediction.
struct MeasuredPoint {
  int ranks = 0, nodes = 0;
  mesh::Shape mesh{};
  double step_time = 0, throughput = 0;
  std::optional<double> efficiency{};
  double simulated = 0;  ///< seconds, before the correction by measurements
};

/// The memory of one rank. Each field is from the program that needs most of this kind of memory.
struct StepMemory {
  double all = 0;     ///< bytes in all spaces, as the dry run of a measurement counts them
  double device = 0;  ///< bytes, without buffers on the host
  double host = 0;    ///< bytes in pinned and pageable memory
};

/// The forecast for one rank count.
struct Forecast {
  int ranks = 0, nodes = 0;
  workloads::Request request{};  ///< mesh, options and model at this rank count
  std::string refused{};         ///< why there is no forecast; "" if there is one
  Expected step_time{}, throughput{}, speedup{}, efficiency{};
  Uncertainty uncertainty{};
  double simulated = 0;        ///< seconds of the noiseless step
  double delay = 0;            ///< seconds that noise and slow ranks add
  StepMemory memory{};         ///< of the largest rank
  std::optional<bool> fits{};  ///< the device's memory; absent if the capacity is unknown
  bool extrapolated = false;   ///< more than 32 times the measured ranks
  std::optional<double> mfu{};
  std::optional<breakdown::Breakdown> breakdown{};
  std::optional<efficiency::StepCosts> costs{};
  std::optional<efficiency::Waterfall> waterfall{};
  /// Returns the work per second of one rank. expected_mfu() returns the MFU with an interval of
  /// the same relative width.
  [[nodiscard]] Expected throughput_per_rank() const { return scaled(throughput, 1.0 / ranks); }
  [[nodiscard]] std::optional<Expected> expected_mfu() const {
    if (!mfu || !(throughput.value > 0)) return std::nullopt;
    return scaled(throughput, *mfu / throughput.value);
  }
  std::string limit{};  ///< largest loss against the baseline: "dp transfer"; "" = none
};

/// A curve of forecasts, on the measured machine or on a changed one.
struct ForecastCurve {
  std::string title{};  ///< "as measured", "link.inter=2x"
  std::vector<Forecast> points{};
};

/// A measurement that would narrow the interval of a forecast.
struct NextMeasurement {
  std::string what{};  ///< "all_reduce on 4 nodes", "the run on 8 ranks"
  std::string command{};
  double width_now = 0, width_then = 0;  ///< width of the efficiency's interval, before and after
};

/// A mesh and options that a search tried.
struct Candidate {
  workloads::Request request{};
  double step_time = 0, throughput = 0;
  StepMemory memory{};
  std::optional<breakdown::Breakdown> breakdown{};
  std::string why_not{};  ///< why it is slower than the first; "" = first
};

struct Prediction {
  std::string source{};  ///< file name
  std::string machine{};
  std::string software{};  ///< "NeMo, 2025"; empty for a run, whose software was measured
  std::string workload{}, title{};
  std::string throughput_unit{};          ///< "tokens/s"
  int node_ranks = 1;                     ///< ranks on each node in the prediction
  std::optional<double> correction{};     ///< measured / simulated step time; only of runs
  std::optional<int> baseline{};          ///< rank count that efficiency is relative to
  std::vector<MeasuredPoint> measured{};  ///< points of the run
  ForecastCurve base{};
  std::vector<ForecastCurve> what_if{};
  std::vector<std::string> limits{};  ///< sentences of limit_sentences() on `base`
  std::optional<NextMeasurement> next{};
  std::vector<Candidate> best{};  ///< found by a search, best first
  int searched = 0;               ///< number of candidates examined
  std::string command{};          ///< the command that measures the best candidate
  /// The samples and the tokens of a step under strong scaling; absent if the work has no such
  /// count.
  std::optional<double> batch{}, tokens_per_step{};
  std::string options{};  ///< options that --set named, "batch=256 zero=1"
  std::string network{};  ///< a sentence on the source of a replaced network; "" = none
  std::vector<PartSource> parts{};
  std::string assumed{};  ///< options assumed for a whole training step
  std::vector<std::string> warnings{};

  /// False if there is only one rank count, since efficiency would compare this point with itself.
  [[nodiscard]] bool has_efficiency() const {
    const auto predicted =
        std::ranges::count_if(base.points, [](const Forecast& at) { return at.refused.empty(); });
    return !measured.empty() || predicted > 1;
  }
};

/// Returns the metrics of a forecast: those of its JSON object, and the parts of its uncertainty.
[[nodiscard]] render::Metrics<Forecast> forecast_metrics();

[[nodiscard]] std::string render_text(const Prediction& prediction);
/// Returns the prediction as JSON; docs/predicting.md describes the keys.
[[nodiscard]] std::string render_json(const Prediction& prediction);
[[nodiscard]] nlohmann::ordered_json prediction_json(const Prediction& prediction);
/// Returns the prediction as CSV with a row for each rank count of each curve.
[[nodiscard]] std::string render_csv(const Prediction& prediction);

}  // namespace isoscale::analysis::predict
