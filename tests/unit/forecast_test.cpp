// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/forecast.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/predict/next_measurement.hpp"
#include "base/error.hpp"
#include "predict_samples.hpp"

namespace isoscale::analysis {
namespace {

predict::Prediction predicted(const settings::PredictCommand& command) {
  return predict::predict(predict::question_of(command, samples::plain_sheet()));
}

double all_lost(const efficiency::Waterfall& waterfall) {
  double sum = 0;
  for (const efficiency::LostTime& lost : waterfall.lost) sum += lost.seconds;
  return sum;
}

TEST(Forecast, HasIntervalsOfAllCausesTogether) {
  const predict::Uncertainty uncertainty{.noise = 0.01, .launch = 0.02, .fit = 0.02};
  EXPECT_DOUBLE_EQ(predict::total(uncertainty), 0.03);
  const predict::Expected at = predict::expected(10, uncertainty);
  // ln 1.0505... = 1.645 x 0.03
  EXPECT_NEAR(at.upper, 10.5059, 5e-4);
  EXPECT_NEAR(at.lower, 9.5185, 5e-4);
  EXPECT_DOUBLE_EQ(at.value, 10);
  // The rate of a rank has the interval of the step.
  const predict::Forecast four{
      .ranks = 4, .throughput = {.value = 400, .lower = 380, .upper = 420}, .mfu = 0.5};
  EXPECT_DOUBLE_EQ(four.throughput_per_rank().value, 100);
  EXPECT_DOUBLE_EQ(four.throughput_per_rank().lower, 95);
  EXPECT_DOUBLE_EQ(four.expected_mfu()->upper, 0.525);
}

TEST(Forecast, PlacesRanksAsExpertsAreSpread) {
  workloads::Request request{.mesh = {.ep = 2, .dp = 4}};
  EXPECT_EQ(predict::layout_of(request, 4).node_of_rank, (std::vector{0, 0, 0, 0, 1, 1, 1, 1}));
  // Experts apart: their replicas are neighbours instead.
  request.options = {{"expert_placement", "spread"}};
  EXPECT_EQ(predict::layout_of(request, 4).node_of_rank, (std::vector{0, 1, 0, 1, 0, 1, 0, 1}));
}

/// Returns a command for workload dp, which has only dp's communication between GEMMs.
settings::PredictCommand dp_command() {
  settings::PredictCommand command = samples::plain_command();
  command.workload = "dp";
  return command;
}

/// A forecast whose costs are GEMMs and dp transfers, and nothing else.
predict::Forecast made(int ranks, double gemm, double transfer, double throughput) {
  predict::Forecast forecast{.ranks = ranks};
  forecast.step_time.value = gemm + transfer;
  forecast.throughput.value = throughput;
  forecast.uncertainty = {.launch = 0.02};
  forecast.costs.emplace();
  forecast.costs->gemm = gemm;
  forecast.costs->gemm_alone = gemm;
  forecast.costs->gemm_overlap = 0.0;
  forecast.costs->transfer[mesh::Axis::dp] = transfer;
  forecast.costs->imbalance = forecast.costs->noise = 0.0;
  return forecast;
}

TEST(Forecast, IsSetAgainstItsBaseline) {
  // Strong scaling of 100 units of work from 2 ranks to 8.
  const predict::Forecast first = made(2, 1.0, 0.0, 100 / 1.0);
  predict::Forecast last = made(8, 0.25, 0.15, 100 / 0.4);
  const predict::ForecastBaseline baseline{
      .ranks = 2, .throughput = first.throughput.value, .loss = *step_loss(first)};
  predict::set_against(baseline, last);
  EXPECT_DOUBLE_EQ(last.speedup.value, 5);         // (1 / 0.4) x 2
  EXPECT_DOUBLE_EQ(last.efficiency.value, 0.625);  // 0.25 / 0.4
  EXPECT_NEAR(last.efficiency.upper, 0.625 * std::exp(1.645 * 0.02), 1e-5);
  ASSERT_TRUE(last.waterfall.has_value());
  EXPECT_DOUBLE_EQ(last.waterfall->ideal, 0.25);
  EXPECT_NEAR(last.waterfall->ideal + all_lost(*last.waterfall), 0.4, 1e-12);
  EXPECT_EQ(last.limit, "dp transfer");

  // A measured baseline tells what the model misses of it.
  predict::ForecastBaseline measured = baseline;
  measured.throughput = 100 / 1.2;
  measured.measured = true;
  measured.loss.step = 1.2;
  predict::set_against(measured, last);
  EXPECT_DOUBLE_EQ(last.efficiency.value, 0.75);
  EXPECT_DOUBLE_EQ(last.waterfall->ideal, 0.3);
  EXPECT_NEAR(last.waterfall->ideal + all_lost(*last.waterfall), 0.4, 1e-12);
  EXPECT_EQ(last.waterfall->lost.back().cause, "beyond the model");
  EXPECT_NEAR(last.waterfall->lost.back().seconds, -0.05, 1e-12);

  predict::Forecast itself = first;
  predict::set_against(baseline, itself);
  EXPECT_DOUBLE_EQ(itself.efficiency.value, 1);
  EXPECT_DOUBLE_EQ(itself.efficiency.lower, 1);
  EXPECT_FALSE(itself.waterfall.has_value());
  EXPECT_EQ(itself.limit, "");
}

TEST(Forecast, SaysWhereTheLimitMoves) {
  predict::ForecastCurve curve;
  const auto add = [&](int ranks, const std::string& limit, double lost) {
    predict::Forecast forecast{.ranks = ranks, .limit = limit};
    forecast.waterfall.emplace();
    forecast.waterfall->ideal = 1 - lost;
    forecast.waterfall->measured = 1;
    forecast.waterfall->lost = {{.cause = limit, .seconds = lost}};
    curve.points.push_back(forecast);
  };
  curve.points.push_back({.ranks = 8});
  add(16, "", 0);
  add(64, "bubble", 0.1);
  add(256, "bubble", 0.2);
  add(1024, "dp transfer", 0.25);
  add(4096, "dp transfer", 0.5);
  EXPECT_EQ(predict::limit_sentences(curve),
            (std::vector<std::string>{
                "up to 16 ranks: nothing costs a thousandth of the step",
                "from 64 to 256 ranks: bubble costs most (20.0% of the step on 256)",
                "from 1024 ranks on: dp transfer costs most (50.0% of the step on 4096)"}));
  curve.points.resize(2);
  add(32, "", 0);
  EXPECT_EQ(predict::limit_sentences(curve),
            std::vector<std::string>{"all along: nothing costs a thousandth of the step"});
}

TEST(Forecast, KnowsThePeakThatMfuIsOf) {
  simulate::Machine machine = samples::plain_sheet();
  EXPECT_EQ(predict::peak_rate(machine, program::Precision::f32), 1e12);
  EXPECT_EQ(predict::peak_rate(machine, program::Precision::bf16), std::nullopt);
  machine.measured.gemms = {
      {.type = program::DType::f32, .m = 100, .n = 100, .k = 100, .seconds = 4e-6},
      {.type = program::DType::f32, .m = 10, .n = 10, .k = 10, .seconds = 1e-6},
      {.type = program::DType::f64, .m = 100, .n = 100, .k = 100, .seconds = 1e-6}};
  EXPECT_DOUBLE_EQ(*predict::peak_rate(machine, program::Precision::f32), 2e6 / 4e-6);
}

TEST(Forecast, OfASheetIsAgainstItsSmallestPoint) {
  const predict::Prediction prediction = predicted(dp_command());
  ASSERT_EQ(prediction.base.points.size(), 3U);
  EXPECT_EQ(prediction.baseline, 8);
  EXPECT_FALSE(prediction.correction.has_value());
  const predict::Forecast& first = prediction.base.points[0];
  EXPECT_DOUBLE_EQ(first.efficiency.value, 1);
  EXPECT_DOUBLE_EQ(first.speedup.value, 8);
  for (const predict::Forecast& at : prediction.base.points) {
    EXPECT_DOUBLE_EQ(at.step_time.value, at.simulated + at.delay);
    EXPECT_DOUBLE_EQ(at.efficiency.value,
                     at.throughput.value / at.ranks / (first.throughput.value / 8));
    ASSERT_TRUE(at.breakdown.has_value());
    EXPECT_NEAR(at.breakdown->step, at.step_time.value, 2e-9);
    EXPECT_EQ(at.fits, true);
    EXPECT_FALSE(at.extrapolated);
    EXPECT_EQ(at.nodes, at.ranks / 8);
    if (&at == &first) continue;
    EXPECT_LT(at.efficiency.value, 1);
    EXPECT_LT(at.efficiency.lower, at.efficiency.value);
    EXPECT_NEAR(at.waterfall->ideal + all_lost(*at.waterfall), at.step_time.value,
                1e-6 * at.step_time.value);
    EXPECT_EQ(at.limit, "dp transfer");
    // GEMMs run at the peak, so what they take of the step is the MFU.
    EXPECT_NEAR(*at.mfu, at.costs->gemm / at.step_time.value, 1e-3);
  }
}

TEST(Forecast, ARankCountThatDoesNotDivideIsRefusedAlone) {
  settings::PredictCommand command = samples::plain_command();
  command.mesh = {{mesh::Axis::tp, 4}};
  command.ranks = {8, 10, 16};
  command.settings.emplace_back("gemm", "2x");
  const predict::Prediction prediction =
      predict::predict(predict::question_of(command, samples::plain_sheet()));
  ASSERT_EQ(prediction.base.points.size(), 3U);
  for (const predict::ForecastCurve* const curve : {&prediction.base, &prediction.what_if.at(0)}) {
    EXPECT_EQ(curve->points[0].refused, "");
    EXPECT_NE(curve->points[1].refused.find("8 or 16"), std::string::npos);
    EXPECT_EQ(curve->points[2].refused, "");
    EXPECT_GT(curve->points[2].step_time.value, 0);
  }
  command.ranks = {9, 10};
  EXPECT_THROW(
      static_cast<void>(predict::predict(predict::question_of(command, samples::plain_sheet()))),
      base::UsageError);
}

TEST(Forecast, OfAChangedMachineStandsBesideTheBase) {
  settings::PredictCommand command = dp_command();
  command.settings.emplace_back("gemm", "2x");
  command.settings.emplace_back("link.inter", "1000x,link.intra=1000x,latency=0.001x");
  const predict::Prediction prediction = predicted(command);
  ASSERT_EQ(prediction.what_if.size(), 2U);
  for (std::size_t i = 0; i < 3; ++i) {
    const predict::Forecast& now = prediction.base.points[i];
    const predict::Forecast& gemm = prediction.what_if[0].points[i];
    const predict::Forecast& link = prediction.what_if[1].points[i];
    EXPECT_NEAR(gemm.costs->gemm, now.costs->gemm / 2, 1e-2 * now.costs->gemm);
    EXPECT_LT(gemm.step_time.value, now.step_time.value);
    // A network that takes next to no time leaves the GEMMs, and scales.
    EXPECT_NEAR(link.step_time.value, now.costs->gemm, 2e-2 * now.costs->gemm);
    EXPECT_NEAR(link.efficiency.value, 1, 2e-2);
  }
  // Faster GEMMs on the same network scale worse.
  EXPECT_LT(prediction.what_if[0].points[2].efficiency.value,
            prediction.base.points[2].efficiency.value);
}

TEST(Forecast, TakesTheBaselineThatIsNamed) {
  settings::PredictCommand command = dp_command();
  command.baseline = 16;
  const predict::Prediction prediction = predicted(command);
  EXPECT_EQ(prediction.baseline, 16);
  EXPECT_DOUBLE_EQ(prediction.base.points[1].efficiency.value, 1);
  EXPECT_GT(prediction.base.points[0].efficiency.value, 1);
  command.baseline = 32;
  EXPECT_THROW((void)predicted(command), base::UsageError);
}

TEST(Forecast, SaysWhereMemoryDoesNotSuffice) {
  simulate::Machine small = samples::plain_sheet();
  small.memory->capacity = 1;
  const predict::Prediction prediction =
      predict::predict(predict::question_of(dp_command(), small));
  EXPECT_EQ(prediction.base.points[0].fits, false);
  ASSERT_FALSE(prediction.warnings.empty());
  EXPECT_NE(prediction.warnings.back().find("8, 16, 64 ranks"), std::string::npos);
}

}  // namespace
}  // namespace isoscale::analysis
