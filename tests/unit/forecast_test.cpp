// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/forecast.hpp"
#include "analysis/page/page.hpp"
#include "analysis_test.hpp"
#include "predict_samples.hpp"

namespace isoscale::analysis::predict {
namespace {

Prediction predicted(const settings::PredictCommand& command,
                     const simulate::Machine& machine = plain_sheet()) {
  return predict(question_of(command, machine));
}

double all_lost(const efficiency::Waterfall& waterfall) {
  double sum = 0;
  for (const efficiency::LostTime& lost : waterfall.lost) sum += lost.seconds;
  return sum;
}

TEST(Forecast, HasIntervalsOfAllCausesTogether) {
  const Uncertainty uncertainty{.noise = 0.01, .launch = 0.02, .fit = 0.02};
  EXPECT_DOUBLE_EQ(total(uncertainty), 0.03);
  const Expected at = expected(10, uncertainty);
  // ln 1.0505... = 1.645 x 0.03
  EXPECT_NEAR(at.upper, 10.5059, 5e-4);
  EXPECT_NEAR(at.lower, 9.5185, 5e-4);
  EXPECT_DOUBLE_EQ(at.value, 10);
  const Forecast four{
      .ranks = 4, .throughput = {.value = 400, .lower = 380, .upper = 420}, .mfu = 0.5};
  EXPECT_DOUBLE_EQ(four.throughput_per_rank().value, 100);
  EXPECT_DOUBLE_EQ(four.throughput_per_rank().lower, 95);
  EXPECT_DOUBLE_EQ(four.expected_mfu()->upper, 0.525);
}

TEST(Forecast, PlacesRanksAsExpertsAreSpread) {
  workloads::Request request{.mesh = {.ep = 2, .dp = 4}};
  EXPECT_EQ(layout_of(request, 4).node_of_rank, (std::vector{0, 0, 0, 0, 1, 1, 1, 1}));
  // Experts apart: their replicas are neighbours instead.
  request.options = {{"expert_placement", "spread"}};
  EXPECT_EQ(layout_of(request, 4).node_of_rank, (std::vector{0, 1, 0, 1, 0, 1, 0, 1}));
}

/// An error that lengthens the steps of all rank counts alike changes the efficiency only by the
/// share of the lost time: ln(upper / value) = 1.645 x hypot(2%, 25% of the loss).
TEST(Forecast, EfficiencyIsSurerThanTheStepsOfADataSheet) {
  simulate::Machine sheet = plain_sheet();
  sheet.software.spread = 0.25;
  const Prediction prediction = predicted(plain_command("dp"), sheet);
  const Forecast& first = prediction.base.points.front();
  const Forecast& last = prediction.base.points.back();
  EXPECT_NEAR(std::log(last.step_time.upper / last.step_time.value), 1.645 * 0.25, 1e-3);
  EXPECT_EQ(first.efficiency.upper, 1);
  const double efficiency = last.efficiency.value;
  ASSERT_LT(efficiency, 0.95);
  EXPECT_NEAR(std::log(last.efficiency.upper / efficiency),
              1.645 * std::hypot(0.02, 0.25 * (1 - efficiency)), 1e-3);
}

/// A forecast whose costs are GEMMs and dp transfers, and nothing else.
Forecast made(int ranks, double gemm, double transfer, double throughput) {
  Forecast forecast{.ranks = ranks};
  forecast.step_time.value = gemm + transfer;
  forecast.throughput.value = throughput;
  forecast.uncertainty = {.launch = 0.02};
  forecast.costs.emplace();
  forecast.costs->gemm = gemm;
  forecast.costs->gemm_alone = gemm;
  forecast.costs->gemm_overlap = 0.0;
  forecast.costs->transfer[Axis::dp] = transfer;
  forecast.costs->imbalance = forecast.costs->noise = 0.0;
  return forecast;
}

TEST(Forecast, IsSetAgainstItsBaseline) {
  // Strong scaling of 100 units of work from 2 ranks to 8.
  const Forecast first = made(2, 1.0, 0.0, 100 / 1.0);
  Forecast last = made(8, 0.25, 0.15, 100 / 0.4);
  const ForecastBaseline baseline{
      .ranks = 2, .throughput = first.throughput.value, .loss = *step_loss(first)};
  set_against(baseline, last);
  EXPECT_DOUBLE_EQ(last.speedup.value, 5);         // (1 / 0.4) x 2
  EXPECT_DOUBLE_EQ(last.efficiency.value, 0.625);  // 0.25 / 0.4
  EXPECT_NEAR(last.efficiency.upper, 0.625 * std::exp(1.645 * 0.02), 1e-5);
  ASSERT_TRUE(last.waterfall.has_value());
  EXPECT_DOUBLE_EQ(last.waterfall->ideal, 0.25);
  EXPECT_NEAR(last.waterfall->ideal + all_lost(*last.waterfall), 0.4, 1e-12);
  EXPECT_EQ(last.limit, "dp transfer");

  // A measured baseline tells what the model misses of it.
  ForecastBaseline measured = baseline;
  measured.throughput = 100 / 1.2;
  measured.measured = true;
  measured.loss.step = 1.2;
  set_against(measured, last);
  EXPECT_DOUBLE_EQ(last.efficiency.value, 0.75);
  EXPECT_DOUBLE_EQ(last.waterfall->ideal, 0.3);
  EXPECT_NEAR(last.waterfall->ideal + all_lost(*last.waterfall), 0.4, 1e-12);
  EXPECT_EQ(last.waterfall->lost.back().cause, "beyond the model");
  EXPECT_NEAR(last.waterfall->lost.back().seconds, -0.05, 1e-12);

  Forecast itself = first;
  set_against(baseline, itself);
  EXPECT_DOUBLE_EQ(itself.efficiency.value, 1);
  EXPECT_DOUBLE_EQ(itself.efficiency.lower, 1);
  EXPECT_FALSE(itself.waterfall.has_value());
  EXPECT_EQ(itself.limit, "");
}

TEST(Forecast, SaysWhereTheLimitMoves) {
  ForecastCurve curve{.points = {{.ranks = 8}}};
  const auto add = [&](int ranks, const std::string& limit, double lost) {
    Forecast& forecast = curve.points.emplace_back(Forecast{.ranks = ranks, .limit = limit});
    forecast.waterfall = {.ideal = 1 - lost, .measured = 1};
    forecast.waterfall->lost = {{.cause = limit, .seconds = lost}};
  };
  add(16, "", 0);
  add(64, "bubble", 0.1);
  add(256, "bubble", 0.2);
  add(1024, "dp transfer", 0.25);
  add(4096, "dp transfer", 0.5);
  EXPECT_THAT(limit_sentences(curve),
              ElementsAre(StartsWith("up to 16 ranks: nothing"),
                          AllOf(StartsWith("from 64 to 256 ranks: bubble"), HasSubstr("20.0%")),
                          AllOf(StartsWith("from 1024 ranks on: dp"), HasSubstr("50.0%"))));
  curve.points.resize(2);
  add(32, "", 0);
  EXPECT_THAT(limit_sentences(curve), ElementsAre(StartsWith("all along: nothing")));
}

TEST(Forecast, KnowsThePeakThatMfuIsOf) {
  simulate::Machine machine = plain_sheet();
  EXPECT_EQ(mfu_ceiling(machine, program::Precision::f32)->rate, 1e12);
  EXPECT_FALSE(mfu_ceiling(machine, program::Precision::bf16));
  machine.measured.gemms = {
      {.type = program::DType::f32, .shape = {100, 100, 100, 1}, .seconds = 4e-6},
      {.type = program::DType::f32, .shape = {10, 10, 10, 1}, .seconds = 1e-6},
      {.type = program::DType::f64, .shape = {100, 100, 100, 1}, .seconds = 1e-6}};
  EXPECT_DOUBLE_EQ(mfu_ceiling(machine, program::Precision::f32)->rate, 2e6 / 4e-6);
  // The ceiling of the run's rows counts, although a multiplication of its steps was faster.
  machine.measured.gemm_ceilings = {{"f32", 4e11}};
  EXPECT_EQ(mfu_ceiling(machine, program::Precision::f32)->rate, 4e11);
  const simulate::Machine faster = changed(machine, parse_what_if("gemm=2x"));
  EXPECT_EQ(mfu_ceiling(faster, program::Precision::f32)->rate, 8e11);
}

TEST(Forecast, WeakScalingCountsTokensAsOftenAsTheModelIsLarger) {
  settings::PredictCommand command = plain_command("tp");
  command.scaling = workloads::Scaling::weak;
  command.ranks = {8, 16};
  command.settings.clear();
  Prediction prediction = predicted(command);
  const json of = json::parse(render_json(prediction));
  EXPECT_EQ(of["throughput_unit"], "scaled tokens/s");
  EXPECT_EQ(of["curve"]["points"][0]["work_growth"], 8);
  EXPECT_EQ(of["curve"]["points"][1]["work_growth"], 16);
  EXPECT_THAT(render_text(prediction), HasSubstr("scaled tokens/s/rank"));
  EXPECT_THAT(render_csv(prediction), HasSubstr(",scaled tokens/s,"));
  command.workload = "dp";
  prediction = predicted(command);
  EXPECT_EQ(prediction.throughput_unit, "tokens/s") << "the batch grows, not the model";
  EXPECT_EQ(prediction.base.points[1].work_growth, 1);
}

TEST(Forecast, OfASheetIsAgainstItsSmallestPoint) {
  const Prediction prediction = predicted(plain_command("dp"));
  ASSERT_EQ(prediction.base.points.size(), 3U);
  EXPECT_EQ(prediction.baseline, 8);
  EXPECT_FALSE(prediction.correction.has_value());
  const Forecast& first = prediction.base.points[0];
  EXPECT_DOUBLE_EQ(first.efficiency.value, 1);
  EXPECT_DOUBLE_EQ(first.speedup.value, 8);
  for (const Forecast& at : prediction.base.points) {
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
  settings::PredictCommand command = plain_command();
  command.mesh = {{Axis::tp, 4}};
  command.ranks = {8, 10, 16};
  command.settings.emplace_back("gemm", "2x");
  const Prediction prediction = predicted(command);
  for (const ForecastCurve* const curve : {&prediction.base, &prediction.what_if.at(0)}) {
    EXPECT_THAT(curve->points.at(1).refused, HasSubstr("8 or 16"));
    EXPECT_EQ(curve->points.at(2).refused, "");
    EXPECT_GT(curve->points[2].step_time.value, 0);
  }
  command.ranks = {9, 10};
  EXPECT_THROW((void)predicted(command), base::UsageError);
}

TEST(Forecast, WarnsOfTheUsersOptionsWithoutEffect) {
  settings::PredictCommand command = plain_command();
  const std::size_t warnings = predicted(command).warnings.size();
  command.settings.insert(command.settings.end(), {{"v", "3"}, {"prefetch", "2"}, {"topk", "2"}});
  EXPECT_EQ(predicted(command).warnings.size(), warnings + 2) << "topk has its default";
  command.settings.insert(command.settings.end(), {{"zero", "3"}});
  EXPECT_EQ(predicted(command).warnings.size(), warnings + 1);
  simulate::Machine sheet = plain_sheet();
  sheet.software.options = {{"prefetch", "2"}};
  EXPECT_EQ(predicted(plain_command(), sheet).warnings.size(), warnings);
}

TEST(Forecast, OfAChangedMachineStandsBesideTheBase) {
  settings::PredictCommand command = plain_command("dp");
  command.settings.emplace_back("gemm", "2x");
  command.settings.emplace_back("link.inter", "1000x,link.intra=1000x,latency=0.001x");
  const Prediction prediction = predicted(command);
  ASSERT_EQ(prediction.what_if.size(), 2U);
  for (std::size_t i = 0; i < 3; ++i) {
    const Forecast& now = prediction.base.points[i];
    const Forecast& gemm = prediction.what_if[0].points[i];
    const Forecast& link = prediction.what_if[1].points[i];
    EXPECT_NEAR(gemm.costs->gemm, now.costs->gemm / 2, 1e-2 * now.costs->gemm);
    EXPECT_LT(gemm.step_time.value, now.step_time.value);
    // A network that takes next to no time leaves the GEMMs, and scales.
    EXPECT_NEAR(link.step_time.value, now.costs->gemm, 2e-2 * now.costs->gemm);
    EXPECT_NEAR(link.efficiency.value, 1, 2e-2);
  }
  EXPECT_LT(prediction.what_if[0].points[2].efficiency.value,
            prediction.base.points[2].efficiency.value);
}

TEST(Forecast, TakesTheBaselineThatIsNamed) {
  settings::PredictCommand command = plain_command("dp");
  command.baseline = 16;
  const Prediction prediction = predicted(command);
  EXPECT_EQ(prediction.baseline, 16);
  EXPECT_DOUBLE_EQ(prediction.base.points[1].efficiency.value, 1);
  EXPECT_GT(prediction.base.points[0].efficiency.value, 1);
}

TEST(Forecast, SaysWhereMemoryDoesNotSuffice) {
  simulate::Machine small = plain_sheet();
  small.memory->capacity = 1;
  const Prediction prediction = predicted(plain_command("dp"), small);
  EXPECT_EQ(prediction.base.points[0].fits, false);
  EXPECT_THAT(prediction.warnings, Contains(HasSubstr("8, 16, 64 ranks")));
}

Forecast forecast(int ranks, double step) {
  Forecast at{.ranks = ranks, .nodes = ranks / 8};
  at.request.mesh = {.tp = 8, .dp = ranks / 8};
  at.request.options = {{"microbatch", "2"}};
  at.step_time = {.value = step, .lower = 0.9 * step, .upper = 1.1 * step};
  at.throughput = {.value = 1 / step, .lower = 0.8 / step, .upper = 1.2 / step};
  at.efficiency = {.value = 0.75, .lower = 0.5, .upper = 0.875};
  at.uncertainty = {.noise = 0.01, .launch = 0.02, .fit = 0.04};
  at.breakdown = {.compute = 0.75 * step, .transfer = 0.25 * step, .step = step};
  at.waterfall = {.ideal = 0.75 * step, .measured = step};
  at.waterfall->lost = {{.cause = "dp transfer", .seconds = 0.25 * step}};
  return at;
}

/// Returns a prediction from a run, with a what-if, a search and a measurement to make.
Prediction prediction() {
  Prediction made{{.source = "run.h5", .title = "hybrid"}};
  made.machine = "2 x A";
  made.workload = "hybrid";
  made.baseline = 8;
  made.measured = {{.ranks = 8, .nodes = 1, .step_time = 4, .throughput = 0.25, .efficiency = 1.0}};
  made.base = {.title = "as measured", .points = {forecast(16, 2), forecast(512, 0.5)}};
  made.base.points.back().extrapolated = true;
  made.base.points.push_back({.ranks = 1000, .nodes = 125, .refused = "tp=8 does not divide 1000"});
  made.what_if = {{.title = "gemm=2x", .points = {forecast(16, 1), forecast(512, 0.25)}}};
  made.next = NextMeasurement{.what = "the run on 64 ranks",
                              .command = "isoscale run",
                              .width_now = 0.375,
                              .width_then = 0.125};
  made.searched = 99;
  made.best = {{.step_time = 1, .throughput = 1}, {.step_time = 2, .why_not = "more bubbles"}};
  made.limits = {"all along: dp transfer costs most"};
  return made;
}

TEST(PredictionPage, HoldsTheNumbersOfThePrediction) {
  const auto data = page::page_data(prediction());
  EXPECT_EQ(data["kind"], "predict");
  EXPECT_TRUE(data["notes"].empty());
  const auto& predicted = data["prediction"];
  const auto& points = predicted["curve"]["points"];
  ASSERT_EQ(points.size(), 3U);
  expect_holds(points[0], {{"ranks", 16},
                           {"mesh", {{"dp", 2}}},
                           {"options", {{"microbatch", "2"}}},
                           {"efficiency", {{"lower", 0.5}, {"value", 0.75}, {"upper", 0.875}}},
                           {"uncertainty", {{"fit", 0.04}}},
                           {"breakdown", {{"transfer", 0.5}}},
                           {"waterfall", {{"predicted", 2.0}, {"lost", {{"dp transfer", 0.5}}}}},
                           {"extrapolated", false}});
  EXPECT_EQ(points[1]["extrapolated"], true);
  EXPECT_EQ(points[2]["refused"], "tp=8 does not divide 1000");
  EXPECT_EQ(predicted["measured"][0]["throughput"], 0.25);
  EXPECT_EQ(predicted["what_if"][0]["points"][1]["step_time"]["value"], 0.25);
  EXPECT_EQ(predicted["next"]["width_then"], 0.125);
  EXPECT_EQ(predicted["best"][1]["why_not"], "more bubbles");
  EXPECT_EQ(predicted["limits"].size(), 1U);
}

TEST(PredictionCsv, HasAValueInEveryColumnOfAFullPoint) {
  Prediction made = prediction();
  made.throughput_unit = "tokens/s";
  made.what_if.clear();
  made.base.points.resize(1);
  Forecast& full = made.base.points.front();
  full.request.mesh = {.dp = 16};
  full.fits = true;
  full.mfu = 0.5;
  full.limit = "dp transfer";
  const auto rows = parse_csv(render_csv(made));
  ASSERT_THAT(rows, ElementsAre(SizeIs(45), SizeIs(45)));
  for (std::size_t i = 0; i < rows[0].size(); ++i) {
    EXPECT_EQ(rows[1][i].empty(), rows[0][i] == "refused") << rows[0][i];
  }
}

TEST(PredictionPage, OneCountAloneHasNoEfficiency) {
  Prediction made = prediction();
  EXPECT_EQ(page::page_data(made)["prediction"]["has_efficiency"], true);
  made.base.points.erase(made.base.points.begin());
  EXPECT_EQ(page::page_data(made)["prediction"]["has_efficiency"], true) << "8 are measured";
  made.measured.clear();
  made.baseline = 512;
  const auto data = page::page_data(made);
  EXPECT_EQ(data["prediction"]["has_efficiency"], false) << "1000 ranks are refused";
  EXPECT_EQ(data["prediction"]["curve"]["points"][0]["step_time"]["value"], 0.5);
  EXPECT_THAT(render_text(made), Not(HasSubstr("fficiency")));
}

TEST(PredictionPage, OfVeryManyRankCountsShowsSomeWithBothEnds) {
  Prediction made = prediction();
  made.base.points.clear();
  for (int ranks = 8; ranks <= 8 * 10'000; ranks += 8)
    made.base.points.push_back(forecast(ranks, 1));
  made.what_if.front().points = made.base.points;
  const auto data = page::page_data(made);
  const auto& base = data["prediction"]["curve"]["points"];
  const auto& changed = data["prediction"]["what_if"][0]["points"];
  EXPECT_EQ(base.size() + changed.size(), page::most_page_forecasts);
  EXPECT_EQ(base.front()["ranks"], 8);
  EXPECT_EQ(base.back()["ranks"], 80'000);
  ASSERT_EQ(base.size(), changed.size());
  for (std::size_t i = 0; i < base.size(); ++i) EXPECT_EQ(base[i]["ranks"], changed[i]["ranks"]);
  ASSERT_EQ(data["notes"].size(), 1U);
  EXPECT_THAT(data["notes"][0].get<std::string>(), HasSubstr("750 of 10000"));
  if (page::page_asset()) {
    EXPECT_LT(page::page_document(data).size(), 8'000'000U);
  }
}

TEST(PredictionPage, LeavesOutWhatIfsThatAreTooManyAndSaysSo) {
  Prediction many = prediction();
  many.what_if.resize(5000, many.what_if.front());
  const auto first = page::page_data(many);
  EXPECT_EQ(first["prediction"]["what_if"].size(), page::most_page_forecasts / 2 - 1);
  EXPECT_FALSE(first["notes"].empty());
}

}  // namespace
}  // namespace isoscale::analysis::predict
