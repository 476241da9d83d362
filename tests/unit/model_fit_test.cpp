// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

/// From a run whose machine is known to the step on eight times its ranks.
#include "analysis/predict/forecast.hpp"
#include "analysis_test.hpp"
#include "known_machine.hpp"

namespace isoscale::analysis::predict {
namespace {

constexpr int more_ranks = 64;

struct Known {
  samples::KnownMachine truth{};
  results::RunData run = samples::known_run(truth);
  simulate::Machine machine = run_machine(run);
  std::vector<const results::PointData*> points = stepped_points(run);
  ModelFit fit = fit_model(run, points, machine);
};

/// Made once: it takes a second.
const Known& known() {
  static const Known made;
  return made;
}

Forecast forecast_of(int ranks) {
  Forecast forecast{.ranks = ranks, .nodes = ranks, .request = samples::known_request(ranks)};
  forecast.efficiency.value = 0.8;
  return forecast;
}

TEST(ModelFit, NeedsNoCorrectionOfItself) {
  ASSERT_EQ(known().fit.points.size(), 4U);
  for (const MeasuredPoint& at : known().fit.points) {
    EXPECT_NEAR(at.simulated, at.step_time, 0.02 * at.step_time) << at.ranks;
  }
  EXPECT_NEAR(known().fit.correction, 1, 0.02);
  EXPECT_LT(std::abs(known().fit.drift), 0.01);
  EXPECT_EQ(known().fit.predicted, 3);  // the points after the first
  EXPECT_EQ(known().fit.most_ranks, 8);
  EXPECT_EQ(known().fit.points.back().nodes, 8);
  EXPECT_EQ(known().fit.workload, "dp");
  EXPECT_EQ(known().fit.known.launch, 0.02);
  EXPECT_LT(known().fit.known.fit, 0.05);
}

Question question_of(const settings::PredictCommand& command, const results::RunData& run) {
  return predict::question_of(command, std::span{&run, 1});
}

/// The fit tells efficiency against the same point as the report of the run.
TEST(ModelFit, IsToldAgainstThePointThatTheReportTakes) {
  results::RunData run = known().run;
  run.config_toml =
      "[[experiment]]\nworkload = 'dp'\nmodel = 'tiny'\nscaling = 'weak'\n"
      "set = { microbatch = 4, microbatches = 2 }\n";
  settings::PredictCommand command;
  command.ranks = {more_ranks};
  EXPECT_EQ(question_of(command, run).baseline, run.points[0].ranks);
  results::RunData of_few = run;
  of_few.points[0].step_times.resize(3);
  EXPECT_EQ(question_of(command, of_few).baseline, run.points[0].ranks);
  run.points[0].labels = {"oversubscribed"};
  const Question question = question_of(command, run);
  EXPECT_EQ(question.baseline, run.points[1].ranks);
  EXPECT_EQ(question.measured.at(0).efficiency, 1) << "the labelled point is left out";
  command.baseline = more_ranks;
  EXPECT_EQ(question_of(command, run).baseline, more_ranks);
}

TEST(ModelFit, PredictsEightTimesTheRanks) {
  const auto& workload = workloads::find_workload("dp");
  const StepEstimate estimate =
      estimate_step({workload, known().machine, simulate::packed(more_ranks, 1)},
                    samples::known_request(more_ranks));
  const double truth = samples::known_step(known().truth, more_ranks, 60);
  const double predicted = estimate.seconds() * known().fit.correction;
  EXPECT_NEAR(predicted, truth, 0.02 * truth);
}

/// The largest point took 1.5 times as long in the middle of steps from 0.5 to 2.5 times: the
/// others, which are known well, say more.
TEST(ModelFit, CorrectsWhatItMissesByThePointsThatAreKnownWell) {
  const auto fitted = [](const results::RunData& run) {
    return fit_model(run, stepped_points(run), known().machine);
  };
  results::RunData run = known().run;
  for (results::PointData& point : run.points) samples::slow_down(point, 1.2);
  EXPECT_NEAR(fitted(run).correction, 1.2 * known().fit.correction, 1e-6);
  run = known().run;
  int number = 0;
  for (auto& step : run.points[3].step_times) {
    const double factor = 0.5 + 0.5 * (number++ % 5);
    for (double& time : step) time *= factor;
  }
  const ModelFit fit = fitted(run);
  EXPECT_NEAR(fit.points[3].step_time, 1.5 * known().fit.points[3].step_time,
              0.05 * fit.points[3].step_time);
  EXPECT_LT(fit.correction, 1.15);
}

TEST(ModelFit, KnowsLessFurtherAway) {
  const Uncertainty uncertainty{.noise = 0.03, .launch = 0, .fit = 0.04};
  // 0.05 is the root of the sum of squares of the three; the interval is one of the logarithm.
  const double half = 1.6448536269514722 * 0.05;
  EXPECT_NEAR(interval_width(0.5, uncertainty), 0.5 * (std::exp(half) - std::exp(-half)), 1e-12);
  double before = known().fit.known.fit;
  for (const int ranks : {8, 16, 64, 256}) {
    const Uncertainty at =
        uncertainty_with(known().fit, fit_parts(known().fit, known().machine, forecast_of(ranks)));
    EXPECT_GE(at.fit, before - 1e-12) << ranks;
    if (ranks == 8) {
      EXPECT_NEAR(at.fit, before, 1e-12);
    }
    EXPECT_EQ(at.launch, known().fit.known.launch);
    before = at.fit;
  }
}

/// The known machine without the groups of 4: of two sizes of groups both laws are possible.
simulate::Machine with_open_law(double slower = 1) {
  simulate::Machine machine = known().machine;
  std::erase_if(machine.measured.communication,
                [](const simulate::TimedCommunication& at) { return at.members == 4; });
  for (simulate::TimedCommunication& at : machine.measured.communication) {
    at.law = simulate::GrowthLaw::fitted;
    for (simulate::SizeSeconds& size : at.samples) size.seconds *= slower;
  }
  return machine;
}

TEST(ModelFit, IsLessSureWhereTwoLawsFit) {
  const auto law_part = [](const simulate::Machine& machine, int ranks) {
    return fit_parts(known().fit, machine, forecast_of(ranks)).law;
  };
  EXPECT_EQ(law_part(known().machine, more_ranks), 0);
  // On 64 ranks, from 8 us among 2 and 56 us among 8, a sum takes 128 us by the one law and 504 us
  // by the other; little of it is not hidden. The laws part further with every rank.
  const double open = law_part(with_open_law(), more_ranks);
  EXPECT_GT(open, 0.001);
  EXPECT_GT(law_part(with_open_law(), 4 * more_ranks), 3 * open);
}

std::vector<NextMeasurement> next_of(const Known& of) {
  return next_measurements(of.run, of.points, of.fit, of.machine, forecast_of(more_ranks));
}

TEST(NextMeasurement, NarrowsTheIntervalMostFirst) {
  const auto found = next_of(known());
  ASSERT_EQ(found.size(), 3U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_LE(found[i].width_then, found[i].width_now * (1 + 1e-12)) << found[i].what;
    if (i > 0) {
      EXPECT_GE(found[i].width_then, found[i - 1].width_then);
    }
  }
  const auto larger = std::ranges::find(found, "the run on 16 ranks", &NextMeasurement::what);
  ASSERT_NE(larger, found.end());
  EXPECT_LT(larger->width_then, larger->width_now);
  for (const char* part :
       {"mpirun -np 16 isoscale run --workload dp,calibrate ", "--ranks 1,2,4,8,16", "--model tiny",
        "--scaling weak", "--device host", "--dtype f32"}) {
    EXPECT_THAT(larger->command, HasSubstr(part));
  }
}

TEST(NextMeasurement, NamesTheModelsFileAsTheRunDid) {
  Known made = known();
  for (results::PointData& point : made.run.points) point.model = "even";
  made.points = stepped_points(made.run);
  for (const auto& [arguments, model] :
       {std::pair{"--model even.toml", "--model even.toml "},
        {"'--model=m d/own.toml' --force", "--model 'm d/own.toml' "},
        {"--model tiny,a/even.toml,b/odd.toml", "--model a/even.toml "},
        {"plan.toml", "--model even.toml "},
        {"a/even.toml", "--model even-model.toml "}}) {
    made.run.command_line = std::string{"isoscale run "} + arguments;
    EXPECT_THAT(next_of(made),
                Contains(AllOf(Field(&NextMeasurement::what, "another launch of the same"),
                               Field(&NextMeasurement::command, HasSubstr(model)))));
  }
}

/// The model of an experiment file has no file of its own: its keys are what to write.
TEST(NextMeasurement, SaysWhichModelFileToWrite) {
  results::RunData run = known().run;
  Question question;
  question.workload = &workloads::find_workload("dp");
  question.run = &run;
  question.base.model = workloads::load_model("tiny");
  EXPECT_EQ(model_to_write(question), "");
  question.base.model.name = "mine";
  run.command_line = "isoscale run plan.toml";
  EXPECT_THAT(model_to_write(question), AllOf(HasSubstr("mine.toml"), HasSubstr("layers = ")));
  run.command_line = "isoscale run mine.toml";
  EXPECT_THAT(model_to_write(question), Not(HasSubstr("mine.toml")));
  run.command_line = "isoscale run --model own.toml";
  EXPECT_EQ(model_to_write(question), "");
}

TEST(NextMeasurement, DoesNotAskAgainForPointsThatWereLeftOut) {
  Known made = known();
  results::PointData point = *made.points.back();
  point.ranks = 16;
  point.labels = {"oversubscribed"};
  made.run.points.push_back(point);
  point.workload = "calibrate";
  made.run.points.push_back(point);
  EXPECT_THAT(next_of(made), Each(Field(&NextMeasurement::what, Not(HasSubstr("16 ranks")))));
}

/// Collectives alone would narrow the interval too, but no prediction could use their file.
TEST(NextMeasurement, HasTheStepsAndTheCollectivesOfAPrediction) {
  Known made = known();
  made.machine = with_open_law(20);  // slow enough for the law to be what is least known
  made.fit.known.fit = 0.01;
  const auto found = next_of(made);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().what, "the run on 16 ranks");
  EXPECT_LE(found.front().width_then, 0.98 * found.front().width_now);
  EXPECT_THAT(found,
              Each(Field(&NextMeasurement::command, AllOf(HasSubstr(" --workload dp,calibrate "),
                                                          HasSubstr(" --ranks 1,2,4,8")))));
}

}  // namespace
}  // namespace isoscale::analysis::predict
