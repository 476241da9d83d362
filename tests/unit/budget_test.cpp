// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "planned_runs.hpp"
#include "runner/plan/step_loop.hpp"
#include "runner/plan/time_estimates_and_schedule.hpp"
#include "series.hpp"

namespace isoscale::runner {
namespace {

using units::Seconds;

/// On two ranks, of which the busiest has 8 GFLOP to do, 1 GB to send along dp and 2 GB to keep.
plan::PlannedPoint point_of(std::string_view workload) {
  plan::PlannedPoint point{.workload = &workloads::find_workload(workload),
                           .ranks = 2,
                           .request = {},
                           .world_ranks = {0, 1},
                           .skip_reason = {}};
  point.sent_by_axes = {{mesh::Axis::dp, units::Bytes{2'000'000'000}}};
  point.load = {.flop = 8e9, .sent = units::Bytes{1'000'000'000}};
  point.memory_per_rank = units::Bytes{2'000'000'000};
  return point;
}

settings::RunConfig lasting(double seconds, double precision = settings::RunConfig{}.precision) {
  settings::RunConfig config;
  config.max_time = Seconds{seconds};
  config.precision = precision;
  return config;
}

// At 100 GFLOP/s and 3 GB/s a step takes 0.08 s + 1/3 s.
constexpr double step_seconds = 0.08 + 1.0 / 3;

TEST(Estimate, IsTheFormula) {
  const plan::PointTime time = plan::estimate(point_of("dp"), lasting(2), "host");
  EXPECT_NEAR(time.set_up.value(), 0.02 + 0.04 + 2, 1e-9);
  EXPECT_NEAR(time.verification.value(), 0.1 + 0.04 + 2 * step_seconds, 1e-9);
  // Two warm up, six of seven count, two of three are traced; then four without communication.
  EXPECT_NEAR(time.likely.value(), 12 * step_seconds, 1e-9);
  EXPECT_EQ(time.least, time.likely);
  EXPECT_EQ(time.most, time.likely);
  EXPECT_NEAR(time.after.value(), 4 * step_seconds, 1e-9);
  EXPECT_NEAR(plan::total(time, Seconds{1}).value(), 2.06 + 0.14 + 18 * step_seconds, 1e-9);
  EXPECT_EQ(plan::estimate(point_of("dp"), lasting(1000), "host").most, Seconds{1000});
  plan::PlannedPoint twice = point_of("dp");  // its twin is played in f32, too
  twice.request.options["grad_dtype"] = "bf16";
  EXPECT_NEAR(plan::estimate(twice, lasting(2), "host").verification.value(),
              2 * (0.1 + 0.04) + 2 * step_seconds, 1e-9);
  plan::PlannedPoint skipped = point_of("dp");
  skipped.skip_reason = "does not divide";
  EXPECT_EQ(plan::estimate(skipped, {}, "host"), plan::PointTime{});
}

TEST(Estimate, DependsOnDeviceTypeAndThreads) {
  using enum program::Precision;
  settings::RunConfig config;
  config.blas_threads = 2;
  plan::PlannedPoint point = point_of("dp");
  point.load.sent = {};
  for (const auto& [precision, device, step] :
       {std::tuple{f32, "host", 0.04}, {f64, "host", 0.08}, {bf16, "cuda", 8e-5}}) {
    point.request.precision = precision;
    EXPECT_NEAR(plan::estimate(point, config, device).least.value(), 13 * step, 1e-8 * step);
  }
}

/// Returns how long a loop lasts, the mean of ten launches, with the statistics that a run uses and
/// steps that scatter as is assumed.
double played(double step, const settings::RunConfig& config) {
  const plan::Effort effort{.precision = config.precision,
                            .max_time = config.max_time,
                            .trace_steps = config.trace_steps};
  constexpr int launches = 10;
  double elapsed = 0;
  for (std::uint64_t launch = 0; launch < launches; ++launch) {
    plan::StepLoop loop{effort};
    samples::Autoregressive series{launch, 0, plan::assumed_scatter};
    double now = 0;
    while (loop.end().empty()) {
      const plan::Block block = loop.next();
      std::vector<double> times = series.take(block.steps);
      for (double& time : times) time *= step;
      now += std::reduce(times.begin(), times.end());
      loop.played(block, times, Seconds{now});
    }
    elapsed += now / launches;
  }
  return elapsed;
}

TEST(LoopTime, IsRightWithinHalfOfWhatTheLoopDoes) {
  for (const double precision : {0.01, 0.02}) {
    for (const double max_time : {2.0, 30.0}) {
      for (const double step : {1e-3, 0.025, 0.1, 0.4, 1.0, 5.0, 40.0}) {
        const settings::RunConfig config = lasting(max_time, precision);
        const double really = played(step, config);
        const double thought = plan::loop_time(Seconds{step}, config).value();
        EXPECT_LT(thought, 1.5 * really) << precision << ", " << max_time << ", " << step;
        EXPECT_GT(thought, really / 1.5) << precision << ", " << max_time << ", " << step;
      }
    }
  }
  // No interval is narrow enough.
  EXPECT_EQ(plan::loop_time(Seconds{1e-6}, lasting(3600, 1e-6)), Seconds{3600});
}

TEST(Estimate, OfAMicroBenchmarkCountsCasesAndSessions) {
  plan::PlannedPoint point = point_of("collectives");
  point.load.cases = 50;
  point.load.sessions = 3;
  const plan::PointTime time = plan::estimate(point, lasting(2), "host");
  EXPECT_NEAR(time.set_up.value(), 3 * 2.06, 1e-9);
  EXPECT_EQ(time.verification, Seconds{0});
  // Two plays warm up; six more would take longer than half of what is asked for.
  EXPECT_NEAR(time.likely.value(), 2 * step_seconds + 0.5 + 1, 1e-9);
  EXPECT_EQ(time.least, time.likely);
  EXPECT_NEAR(plan::total(time, time.likely).value(), 3 * 2.06 + 1.3 * time.likely.value(), 1e-9);
  const plan::PointTime longer = plan::estimate(point, lasting(100), "host");
  EXPECT_NEAR(longer.likely.value(), 2 * step_seconds + 0.5 + 30, 1e-9);
  EXPECT_EQ(longer.most, Seconds{100});
}

TEST(AtPace, KeepsTheLoopThatIsAskedFor) {
  const auto time = [](double pace, double most) {
    return plan::PointTime{.set_up = Seconds{pace},
                           .verification = Seconds{2 * pace},
                           .after = Seconds{pace},
                           .least = Seconds{4 * pace},
                           .likely = Seconds{5 * pace},
                           .most = Seconds{most},
                           .stretch = 1.2};
  };
  EXPECT_EQ(plan::at_pace(time(1, 30), 3, Seconds{30}), time(3, 30));
  EXPECT_EQ(plan::at_pace(time(1, 30), 10, Seconds{30}).most, Seconds{50});
  // A point that was thought too slow for --max-time does fit.
  EXPECT_EQ(plan::at_pace(time(8, 40), 0.25, Seconds{30}), time(2, 30));
}

/// Takes `beside` and a loop from `least` to `most`, seconds.
plan::PointTime needs(double beside, double least, double most, double stretch = 1) {
  return {.set_up = Seconds{beside},
          .least = Seconds{least},
          .likely = Seconds{most},
          .most = Seconds{most},
          .stretch = stretch};
}

TEST(NextPortion, IsEqualSharesOfTheTimeBetweenTheFewestStepsAndWhatIsAsked) {
  using Points = std::vector<plan::PointTime>;
  const Points two(2, needs(1, 1, 10)), long_steps(2, needs(1, 5, 10));
  const Points unlike{needs(0, 1, 30), needs(0, 1, 2), needs(0, 8, 30)};
  for (const auto& [points, left, at, loop] :
       std::vector<std::tuple<Points, double, std::size_t, double>>{
           {two, 22, 0, 10},
           {two, 1000, 0, 10},
           {two, 14, 0, 6},  // 12 s for two loops beside 2 s of set-up
           // The first gets what the second cannot use; the third keeps what it needs.
           {unlike, 13, 0, 3},
           {unlike, 20, 0, 9},
           {{needs(0, 1, 100, 1.25)}, 10, 0, 8},  // what follows a loop counts
           {long_steps, 12, 0, 5},
           {long_steps, 11.9, 0, 10},  // one of them fits, and has the rest for itself
           {long_steps, 6, 0, 5},
           {{needs(100, 1, 10), needs(1, 1, 4)}, 50, 1, 4}}) {
    const auto portion = plan::next_portion(points, Seconds{left});
    ASSERT_TRUE(portion.has_value()) << left;
    EXPECT_EQ(portion->at, at) << left;
    EXPECT_DOUBLE_EQ(portion->loop.value(), loop) << left;
  }
  EXPECT_FALSE(plan::next_portion(long_steps, Seconds{5.9}).has_value());
  EXPECT_FALSE(plan::next_portion(two, Seconds{-1}).has_value());
  EXPECT_FALSE(plan::next_portion({}, Seconds{50}).has_value());
}

/// A plan of dp on 1, 2 and 4 ranks.
class TurnsOfACurve : public testing::Test {
 protected:
  [[nodiscard]] plan::Schedule turns_of(std::set<int> wanted = {0, 1, 2},
                                        const std::set<int>& failed = {}) const {
    return {plan_, config_, "host", std::move(wanted), failed};
  }
  [[nodiscard]] plan::PointTime estimate(int index) const {
    return plan::estimate(plan_.points[static_cast<std::size_t>(index)], config_, "host");
  }
  /// Plays all turns as if each took `factor` times what was expected of it.
  std::vector<int> play(plan::Schedule& turns, double factor) {
    std::vector<int> order;
    while (const auto turn = turns.next(elapsed_)) {
      const Seconds time = factor * plan::total(estimate(turn->index), turn->loop);
      elapsed_ += time;
      turns.done(*turn, time);
      order.push_back(turn->index);
    }
    return order;
  }

  settings::RunConfig config_ = samples::config_of("dp");
  plan::Plan plan_ = plan::make_plan(config_, samples::site_of(4));
  Seconds elapsed_{0};
};

TEST_F(TurnsOfACurve, WithoutABudgetAreThePlansAndEndWithWhatFailedBefore) {
  plan::Schedule turns = turns_of(), some = turns_of({0, 2}), again = turns_of({0, 1, 2}, {0});
  EXPECT_EQ(turns.next(Seconds{1e6})->loop, config_.max_time);
  EXPECT_THAT(play(turns, 100), ElementsAre(0, 1, 2));
  EXPECT_TRUE(turns.waiting().empty());
  EXPECT_EQ(turns.shortened(), 0);
  EXPECT_FALSE(turns.shortest().has_value());
  EXPECT_THAT(play(some, 1), ElementsAre(0, 2));
  EXPECT_THAT(play(again, 1), ElementsAre(1, 2, 0));
}

TEST_F(TurnsOfACurve, KeepABudgetAndMakeUseOfIt) {
  config_.budget = Seconds{50};
  plan::Schedule turns = turns_of();
  EXPECT_THAT(play(turns, 1), ElementsAre(0, 2, 1));
  EXPECT_EQ(turns.shortened(), 3);
  EXPECT_LT(*turns.shortest(), config_.max_time);
  EXPECT_LE(elapsed_, Seconds{50});
  EXPECT_GT(elapsed_, Seconds{45});
}

/// The first takes ten times its share: of the others, whatever fits comes still.
TEST_F(TurnsOfACurve, LearnFromPointsThatTakeLonger) {
  config_.budget = Seconds{20};
  plan::Schedule turns = turns_of();
  const auto first = turns.next(Seconds{0});
  ASSERT_EQ(first->index, 0);
  turns.done(*first, Seconds{15});
  const auto second = turns.next(Seconds{15});
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->index, 2);
  EXPECT_LT(second->loop, turns_of({2}).next(Seconds{15})->loop);
}

/// By its estimate, the second point does not fit any more.
TEST_F(TurnsOfACurve, LearnFromPointsThatTakeLess) {
  config_.budget = Seconds{10};
  plan::Schedule turns = turns_of({0, 2});
  const auto first = turns.next(Seconds{0});
  ASSERT_EQ(first->index, 0);
  const Seconds late = Seconds{9.8} - 0.5 * plan::total(estimate(2), {});
  EXPECT_FALSE(turns_of({2}).next(late).has_value());
  turns.done(*first, 0.1 * plan::total(estimate(0), {}));
  ASSERT_TRUE(turns.next(late).has_value());
  EXPECT_EQ(turns.next(late)->index, 2);
}

/// A point may have taken as long as thought even where it took the least time that it needs.
TEST_F(TurnsOfACurve, LearnNothingFromPointsThatFailNorFromALoopThatEndsEarly) {
  config_.budget = Seconds{100};
  const Seconds least = plan::total(estimate(0), {});
  for (const std::optional<Seconds> time : {std::optional<Seconds>{}, std::optional{least}}) {
    plan::Schedule turns = turns_of({0, 2});
    turns.done(*turns.next(Seconds{0}), time);
    EXPECT_EQ(turns.waiting(), (std::set<int>{2}));
    EXPECT_EQ(turns.next(Seconds{60})->loop, turns_of({2}).next(Seconds{60})->loop);
  }
}

TEST_F(TurnsOfACurve, AreForetoldByEstimates) {
  for (const auto& [index, loop] : plan::expected_loops(plan_, config_, "host")) {
    EXPECT_EQ(loop, estimate(index).likely);
  }
}

TEST_F(TurnsOfACurve, AreMissedWhenNoneWasTaken) {
  const auto warning = [&](const std::set<int>& left_out) {
    return plan::no_curve_warning(plan_, left_out, Seconds{40});
  };
  EXPECT_FALSE(warning({}).has_value());
  EXPECT_FALSE(warning({1, 2}).has_value());
  EXPECT_THAT(warning({0, 1, 2}), Optional(HasSubstr("3 points")));
  plan_.points[1].skip_reason = "does not divide";  // would not have been measured anyway
  EXPECT_TRUE(warning({0, 2}).has_value());
  for (plan::PlannedPoint& point : plan_.points)
    point.workload = &workloads::find_workload("calibrate");
  EXPECT_FALSE(warning({0, 1, 2}).has_value());
}

TEST_F(TurnsOfACurve, EndWhenTheBudgetDoes) {
  config_.budget = Seconds{5};
  plan::Schedule turns = turns_of();
  turns.done(*turns.next(Seconds{0}), Seconds{5});
  EXPECT_FALSE(turns.next(Seconds{5}).has_value());
  EXPECT_EQ(turns.waiting(), (std::set<int>{1, 2}));
}

TEST(EndsThenMiddles, BisectEveryGap) {
  const auto order = plan::ends_then_middles;
  EXPECT_THAT(order(0), IsEmpty());
  EXPECT_THAT(order(1), ElementsAre(0));
  EXPECT_THAT(order(9), ElementsAre(0, 8, 4, 2, 6, 1, 3, 5, 7));
}

TEST(MostTellingFirst, TakesTurnsOfCurvesAndCalibratesOnceThereIsOne) {
  using Reasons = std::vector<std::string>;  // why each point is skipped; "": it is not
  using Experiments = std::vector<std::pair<std::string, Reasons>>;
  const Reasons two(2), three(3), four(4);
  for (const auto& [asked, order] : std::vector<std::pair<Experiments, std::vector<int>>>{
           {{{"dp", four}, {"tp", three}}, {0, 3, 4, 6, 1, 5, 2}},
           {{{"calibrate", four}, {"dp", three}, {"tp", three}}, {4, 6, 0, 3, 7, 9, 1, 5, 8, 2}},
           // Micro-benchmarks are no curve.
           {{{"gemm", two}, {"calibrate", two}}, {2, 3, 0, 1}},
           // Skipped points are put down at once; the next ones are the baselines.
           {{{"dp", {"no", "", "", ""}}, {"dp", {"no", "", ""}}}, {0, 4, 1, 3, 5, 6, 2}}}) {
    std::vector<settings::Experiment> experiments(asked.size());
    plan::Plan plan;
    for (std::size_t e = 0; e < experiments.size(); ++e) {
      experiments[e].workload = asked[e].first;
      for (const std::string& reason : asked[e].second) {
        plan.points.push_back({.index = static_cast<int>(plan.points.size()),
                               .experiment = &experiments[e],
                               .request = {},
                               .world_ranks = {},
                               .skip_reason = reason});
      }
    }
    EXPECT_THAT(plan::most_telling_first(plan), ElementsAreArray(order));
  }
}

}  // namespace
}  // namespace isoscale::runner
