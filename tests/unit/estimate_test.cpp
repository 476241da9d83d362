// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/estimate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isoscale::runner {
namespace {

using units::Seconds;

/// On two ranks, of which the busiest has 8 GFLOP to do, 1 GB to send along dp and 2 GB to keep.
PlannedPoint point_of(std::string_view workload) {
  PlannedPoint point{.workload = &workloads::find_workload(workload),
                     .ranks = 2,
                     .request = {},
                     .world_ranks = {0, 1},
                     .skip_reason = {}};
  point.sent_by_axes = {{.axes = mesh::Axis::dp, .sent = units::Bytes{2'000'000'000}}};
  point.load = {
      .flop = 8e9, .sent = units::Bytes{1'000'000'000}, .memory = units::Bytes{2'000'000'000}};
  return point;
}

TEST(Estimate, IsTheFormula) {
  config::RunConfig config;
  const PointTime time = estimate(point_of("dp"), config, "host");
  EXPECT_NEAR(time.set_up.value(), 0.05 + 0.04 + 4, 1e-9);
  EXPECT_NEAR(time.verification.value(), 0.5 + 0.04, 1e-9);
  EXPECT_NEAR(time.least.value(), 20 * (1.0 + 2.0), 1e-9);
  EXPECT_EQ(time.most, time.least);  // more than the 30 s that are asked for
  EXPECT_NEAR(time.stretch, 1.2, 1e-9);
  EXPECT_NEAR(total(time, Seconds{1}).value(), 4.09 + 0.54 + 1.2 * 60, 1e-9);
  config.max_time = Seconds{100};
  EXPECT_EQ(estimate(point_of("dp"), config, "host").most, Seconds{100});
}

TEST(Estimate, DependsOnDeviceTypeAndThreads) {
  config::RunConfig config;
  config.blas_threads = 2;
  PlannedPoint point = point_of("dp");
  point.load.sent = {};
  EXPECT_NEAR(estimate(point, config, "host").least.value(), 20 * 0.5, 1e-9);
  point.request.precision = workloads::Precision::f64;
  EXPECT_NEAR(estimate(point, config, "host").least.value(), 20 * 1.0, 1e-9);
  point.request.precision = workloads::Precision::bf16;
  EXPECT_NEAR(estimate(point, config, "cuda").least.value(), 20 * 8e-5, 1e-12);
}

TEST(Estimate, OfAMicroBenchmarkCountsCasesAndSessions) {
  PlannedPoint point = point_of("collectives");
  point.load.cases = 50;
  point.load.sessions = 3;
  config::RunConfig config;
  config.max_time = Seconds{2};
  const PointTime time = estimate(point, config, "host");
  EXPECT_NEAR(time.set_up.value(), 3 * 4.09, 1e-9);
  EXPECT_EQ(time.verification, Seconds{0});
  EXPECT_NEAR(time.least.value(), 5, 1e-9);
  EXPECT_NEAR(total(time, time.most).value(), 3 * 4.09 + 1.3 * 5, 1e-9);
}

TEST(Estimate, OfWhatIsSkippedIsNothing) {
  PlannedPoint point = point_of("dp");
  point.skip_reason = "does not divide";
  EXPECT_EQ(estimate(point, {}, "host"), PointTime{});
}

TEST(AtPace, KeepsTheLoopThatIsAskedFor) {
  const PointTime time{.set_up = Seconds{1},
                       .verification = Seconds{2},
                       .least = Seconds{4},
                       .most = Seconds{30},
                       .stretch = 1.2};
  EXPECT_EQ(at_pace(time, 3, Seconds{30}), (PointTime{.set_up = Seconds{3},
                                                      .verification = Seconds{6},
                                                      .least = Seconds{12},
                                                      .most = Seconds{30},
                                                      .stretch = 1.2}));
  EXPECT_EQ(at_pace(time, 10, Seconds{30}).most, Seconds{40});
  // What was thought not to fit into --max-time does.
  const PointTime slow{.least = Seconds{40}, .most = Seconds{40}};
  EXPECT_EQ(at_pace(slow, 0.25, Seconds{30}),
            (PointTime{.least = Seconds{10}, .most = Seconds{30}}));
}

}  // namespace
}  // namespace isoscale::runner
