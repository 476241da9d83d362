// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/pop_factors_and_losses.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis::render {
template <class Item>
struct Metric;
}

/// Predicts step times on more ranks than were measured, for the machine of a run or data sheet.
namespace isoscale::analysis::predict {

/// A value and its 90% interval.
struct Expected {
  double value = 0, lower = 0, upper = 0;
};

/// Converts a value and its interval to another unit.
[[nodiscard]] inline Expected scaled(const Expected& at, double factor) {
  return {.value = at.value * factor, .lower = at.lower * factor, .upper = at.upper * factor};
}

/// The sources of a prediction's error, as independent relative standard deviations.
struct Uncertainty {
  double noise = 0;   ///< deviation of the step time from step to step
  double launch = 0;  ///< deviation of the median step from launch to launch
  double fit = 0;     ///< error of the model, at the measured points and for larger rank counts
  /// The part of `fit` (fit^2 includes common^2) that lengthens or shortens the steps of all rank
  /// counts alike, since all are predicted from the same data sheet and software profile.
  double common = 0;
};

/// The half-width of a 90% interval in standard deviations of a normal distribution.
inline constexpr double interval_90 = 1.6448536269514722;

/// Says where the numbers of one part of the machine come from.
struct PartSource {
  std::string part;    ///< "links between nodes"
  std::string from;    ///< the file they are in: data sheet, run or software profile
  std::string source;  ///< publications that a sheet or profile cites, or "measured"
};

/// The rate that MFU is relative to.
struct MfuCeiling {
  double rate = 0;          ///< FLOP/s of one rank
  std::string_view what{};  ///< "the best multiplication of the run"
};

/// A measured point of the run, for comparison with its prediction.
struct MeasuredPoint {
  int ranks = 0, nodes = 0;
  mesh::Shape mesh{};
  double step_time = 0, throughput = 0;
  double work_growth = 1;  ///< work of a step / tokens of its batch
  std::optional<double> efficiency{};
  double simulated = 0;  ///< seconds; without the factor Prediction::correction
};

/// The memory of one rank. Each member is that of the rank which needs most of this kind of memory.
struct StepMemory {
  double all = 0;     ///< bytes in all kinds of memory, counted as by `run --dry-run`
  double device = 0;  ///< bytes, without buffers in host memory
  double host = 0;    ///< bytes in pinned and pageable host memory
};

/// The forecast for one rank count.
struct Forecast {
  int ranks = 0, nodes = 0;
  workloads::Request request{};  ///< mesh, options and model at this rank count
  std::string refused{};         ///< why there is no forecast; "" if there is one
  Expected step_time{}, throughput{}, speedup{}, efficiency{};
  double work_growth = 1;  ///< the ratio of the work of a step to the tokens of its batch
  Uncertainty uncertainty{};
  double simulated = 0;        ///< seconds of the simulated step without noise
  double delay = 0;            ///< seconds that noise and slow ranks add to `simulated`
  StepMemory memory{};         ///< largest over ranks
  std::optional<bool> fits{};  ///< true if it fits on the device; absent if the capacity is unknown
  bool extrapolated = false;   ///< more than 32 times the largest measured rank count
  std::optional<double> mfu{};
  std::optional<breakdown::Breakdown> breakdown{};
  std::optional<efficiency::StepCosts> costs{};
  std::optional<efficiency::Waterfall> waterfall{};
  /// Returns the work per second of one rank. The function below, expected_mfu(), returns the MFU
  /// with an interval of the same relative width.
  [[nodiscard]] Expected throughput_per_rank() const { return scaled(throughput, 1.0 / ranks); }
  [[nodiscard]] std::optional<Expected> expected_mfu() const {
    if (!mfu || !(throughput.value > 0)) return std::nullopt;
    return scaled(throughput, *mfu / throughput.value);
  }
  std::string limit{};  ///< cause of the largest loss: "dp transfer"; "" = none
};

/// A curve of forecasts, on the measured machine or on a changed one.
struct ForecastCurve {
  std::string title{};  ///< "as measured", "link.inter=2x"
  std::vector<Forecast> points{};
};

/// A measurement that would narrow the interval of a forecast.
struct NextMeasurement {
  std::string what{};  ///< "the run on 8 ranks"
  std::string command{};
  double width_now = 0, width_then = 0;  ///< of the efficiency's interval, before and after
};

/// A mesh and options that a search tried.
struct Candidate {
  workloads::Request request{};
  double step_time = 0, throughput = 0;
  StepMemory memory{};
  std::optional<breakdown::Breakdown> breakdown{};
  std::string why_not{};  ///< why it is slower than the best one; "" for the best one
};

/// The parts of a question that its prediction repeats: they say what is predicted.
struct Subject {
  std::string source{};  ///< name of the file with the run or the data sheet
  std::string title{};   ///< title of the curve
  int node_ranks = 1;    ///< ranks on each node in the prediction
  /// The measured points of the predicted work, ascending in ranks. Any may be the baseline.
  std::vector<MeasuredPoint> measured{};
  std::string network{};  ///< a sentence that says where a replaced network is from; "" = none
  std::vector<PartSource> parts{};
  std::string assumed{};  ///< options assumed because they are usual in training, "vocabulary=on"
  std::vector<std::string> warnings{};
};

struct Prediction : Subject {
  std::string machine{};
  std::string software{};  ///< "NeMo, 2025"; "" for a run, which measured its software
  std::string workload{};
  std::string throughput_unit{};        ///< unit of the throughput of all points
  std::optional<double> correction{};   ///< measured / simulated step time; absent for a data sheet
  std::optional<MfuCeiling> ceiling{};  ///< what MFU on the unchanged machine is relative to
  std::optional<int> baseline{};        ///< rank count that efficiency is relative to
  ForecastCurve base{};
  std::vector<ForecastCurve> what_if{};
  std::vector<std::string> limits{};  ///< limit_sentences() of `base`
  std::optional<NextMeasurement> next{};
  std::vector<Candidate> best{};  ///< found by the search on the most ranks, best first
  int searched = 0;               ///< number of candidates that this search examined
  std::string command{};          ///< the command that measures the best candidate
  /// The bytes that this command needs on the device of a rank, as `run --dry-run` counts them. A
  /// run may need more than the training software whose memory is predicted.
  std::optional<double> command_memory{};
  /// The samples and tokens of a step under strong scaling; absent if the workload has none.
  std::optional<double> batch{}, tokens_per_step{};
  std::string options{};  ///< options that the user gave with --set: "batch=256 zero=1"

  /// False if the only rank count is its own baseline, so that an efficiency would have no meaning.
  [[nodiscard]] bool has_efficiency() const {
    const auto predicted =
        std::ranges::count_if(base.points, [](const Forecast& at) { return at.refused.empty(); });
    return !measured.empty() || predicted > 1;
  }
};

/// Returns the metrics of a forecast: the entries of its JSON object.
[[nodiscard]] std::span<const render::Metric<Forecast>> forecast_metrics();

[[nodiscard]] std::string render_text(const Prediction& prediction);
/// Returns the prediction as JSON; docs/predicting.md describes the keys.
[[nodiscard]] std::string render_json(const Prediction& prediction);
[[nodiscard]] nlohmann::ordered_json prediction_json(const Prediction& prediction);
/// Returns the prediction as CSV with a row for each rank count of each curve.
[[nodiscard]] std::string render_csv(const Prediction& prediction);

}  // namespace isoscale::analysis::predict
