// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runner/plan/step_loop.hpp"
#include "series.hpp"
#include "statistics/estimate.hpp"
#include "statistics/trend.hpp"

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
  point.sent_by_axes = {{.axes = mesh::Axis::dp, .sent = units::Bytes{2'000'000'000}}};
  point.load = {
      .flop = 8e9, .sent = units::Bytes{1'000'000'000}, .memory = units::Bytes{2'000'000'000}};
  return point;
}

// At 100 GFLOP/s and 3 GB/s a step takes 0.08 s + 1/3 s.
constexpr double step_seconds = 0.08 + 1.0 / 3;

TEST(Estimate, IsTheFormula) {
  settings::RunConfig config;
  config.max_time = Seconds{2};
  const plan::PointTime time = plan::estimate(point_of("dp"), config, "host");
  EXPECT_NEAR(time.set_up.value(), 0.02 + 0.04 + 2, 1e-9);
  EXPECT_NEAR(time.verification.value(), 0.1 + 0.04 + 2 * step_seconds, 1e-9);
  // Two warm up, seven of which six count, three of which two are traced; then four without
  // communication.
  EXPECT_NEAR(time.likely.value(), 12 * step_seconds, 1e-9);
  EXPECT_EQ(time.least, time.likely);
  EXPECT_EQ(time.most, time.likely);
  EXPECT_NEAR(time.after.value(), 4 * step_seconds, 1e-9);
  EXPECT_NEAR(plan::total(time, Seconds{1}).value(), 2.06 + 0.14 + 18 * step_seconds, 1e-9);
  config.max_time = Seconds{1000};
  EXPECT_EQ(plan::estimate(point_of("dp"), config, "host").most, Seconds{1000});
}

TEST(Estimate, DependsOnDeviceTypeAndThreads) {
  settings::RunConfig config;
  config.blas_threads = 2;
  plan::PlannedPoint point = point_of("dp");
  point.load.sent = {};
  EXPECT_NEAR(plan::estimate(point, config, "host").least.value(), 13 * 0.04, 1e-9);
  point.request.precision = program::Precision::f64;
  EXPECT_NEAR(plan::estimate(point, config, "host").least.value(), 13 * 0.08, 1e-9);
  point.request.precision = program::Precision::bf16;
  EXPECT_NEAR(plan::estimate(point, config, "cuda").least.value(), 13 * 8e-5, 1e-12);
}

/// How long a loop lasts, the mean of ten launches, with the statistics that a run uses and steps
/// that scatter as is assumed.
double played(double step, const settings::RunConfig& config) {
  const plan::Effort effort{.precision = config.precision,
                            .max_time = config.max_time,
                            .trace_steps = config.trace_steps,
                            .half_width =
                                [](std::span<const double> samples, double confidence) {
                                  return statistics::relative_half_width(samples, confidence);
                                },
                            .nominal_confidence = statistics::nominal_confidence,
                            .last_change = statistics::last_change};
  constexpr int launches = 10;
  double elapsed = 0;
  for (std::uint64_t launch = 0; launch < launches; ++launch) {
    plan::StepLoop loop{effort};
    samples::Autoregressive series{launch, 0, plan::assumed_scatter};
    double now = 0;
    while (loop.end().empty()) {
      const plan::Block block = loop.next();
      std::vector<double> times;
      for (std::size_t i = 0; i < block.steps; ++i) times.push_back(step * series.next());
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
        settings::RunConfig config;
        config.precision = precision;
        config.max_time = Seconds{max_time};
        const double really = played(step, config);
        const double thought = plan::loop_time(Seconds{step}, config).value();
        EXPECT_LT(thought, 1.5 * really) << precision << ", " << max_time << ", " << step;
        EXPECT_GT(thought, really / 1.5) << precision << ", " << max_time << ", " << step;
      }
    }
  }
}

TEST(LoopTime, IsBoundWhereNothingIsPreciseEnough) {
  settings::RunConfig config;
  config.precision = 1e-6;
  config.max_time = Seconds{3600};
  EXPECT_EQ(plan::loop_time(Seconds{1e-6}, config), Seconds{3600});
}

TEST(Estimate, OfAMicroBenchmarkCountsCasesAndSessions) {
  plan::PlannedPoint point = point_of("collectives");
  point.load.cases = 50;
  point.load.sessions = 3;
  settings::RunConfig config;
  config.max_time = Seconds{2};
  const plan::PointTime time = plan::estimate(point, config, "host");
  EXPECT_NEAR(time.set_up.value(), 3 * 2.06, 1e-9);
  EXPECT_EQ(time.verification, Seconds{0});
  // Two plays warm up; six more would take longer than half of what is asked for.
  EXPECT_NEAR(time.likely.value(), 2 * step_seconds + 0.5 + 1, 1e-9);
  EXPECT_EQ(time.least, time.likely);
  EXPECT_NEAR(plan::total(time, time.likely).value(), 3 * 2.06 + 1.3 * time.likely.value(), 1e-9);
  config.max_time = Seconds{100};
  EXPECT_NEAR(plan::estimate(point, config, "host").likely.value(), 2 * step_seconds + 0.5 + 30,
              1e-9);
  EXPECT_EQ(plan::estimate(point, config, "host").most, Seconds{100});
}

TEST(Estimate, OfWhatIsSkippedIsNothing) {
  plan::PlannedPoint point = point_of("dp");
  point.skip_reason = "does not divide";
  EXPECT_EQ(plan::estimate(point, {}, "host"), plan::PointTime{});
}

TEST(AtPace, KeepsTheLoopThatIsAskedFor) {
  const plan::PointTime time{.set_up = Seconds{1},
                             .verification = Seconds{2},
                             .after = Seconds{1},
                             .least = Seconds{4},
                             .likely = Seconds{5},
                             .most = Seconds{30},
                             .stretch = 1.2};
  EXPECT_EQ(plan::at_pace(time, 3, Seconds{30}), (plan::PointTime{.set_up = Seconds{3},
                                                                  .verification = Seconds{6},
                                                                  .after = Seconds{3},
                                                                  .least = Seconds{12},
                                                                  .likely = Seconds{15},
                                                                  .most = Seconds{30},
                                                                  .stretch = 1.2}));
  EXPECT_EQ(plan::at_pace(time, 10, Seconds{30}).most, Seconds{50});
  // A point that was thought too slow for --max-time does fit.
  const plan::PointTime slow{.least = Seconds{40}, .likely = Seconds{40}, .most = Seconds{40}};
  EXPECT_EQ(plan::at_pace(slow, 0.25, Seconds{30}),
            (plan::PointTime{.least = Seconds{10}, .likely = Seconds{10}, .most = Seconds{30}}));
}

}  // namespace
}  // namespace isoscale::runner
