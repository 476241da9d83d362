// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Points with faults of known size put in: where they show, and that they do no harm beside.
#include <gmock/gmock.h>

#include <optional>
#include <string_view>

#include "executor/host/host.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::runner {
namespace {

using results::PointData;
using results::PointStatus;
using testing::ElementsAre;

/// The world of this run as one point of small GEMMs that take long beside a look at the clock.
class Faults : public testing::Test {
 protected:
  /// Collective; complete on rank 0. Streams are folded.
  PointData run(std::string_view workload, std::string_view injections) {
    const auto executor = executor::make_host_executor({.streams = executor::HostStreams::folded});
    const workloads::Request base{
        .model = workloads::test_model(
            "hidden=128 ffn=128 heads=8 head_size=16 layers=4 sequence=64 vocabulary=32"),
        .options = workloads::options_of("microbatch=1 microbatches=4")};
    settings::RunConfig config = config_of(workload, base, world_.size());
    config.injections = settings::parse_injections(injections);
    const PointData data = PointRuns{*executor}.run(config, effort_of(3600, 0.0, 8));
    EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
    EXPECT_EQ(data.verified, std::optional{true}) << data.verification;
    return data;
  }

  comm::Communicator world_ = comm::Communicator::world();
};

TEST_F(Faults, OpsOfASlowRankFollowEachOther) {
  const PointData data = run("tp", "slow-rank=1:3,jitter=20%");
  for (const timeline::Timeline& step : data.traces) {
    for (const timeline::StepTrace& trace : step.ranks) {
      units::Nanoseconds last = trace.begin;
      for (const timeline::Span& span : trace.spans) {  // folded: one after the other
        EXPECT_GE(span.start, last);
        EXPECT_GE(span.end, span.start);
        last = span.end;
      }
      EXPECT_GE(trace.end, last);
    }
  }
}

TEST_F(Faults, SlowLinkDelaysNeitherForEverNorTheOthers) {
  // Were waiting lengthened too, each rank would answer the other's delay with twice its own.
  for (const char* const workload : {"dp", "pp"}) {
    const PointData data = run(workload, "slow-link=0-1:3");
    if (world_.rank() != 0) continue;
    EXPECT_THAT(data.injections, ElementsAre("slow-link=0-1:3"));
  }
}

TEST_F(Faults, WrongClocksAreFoundAndTracesAlignAgain) {
  const PointData data = run("dp", "clock=1:5ms:20ppm");
  if (world_.rank() != 0) return;
  ASSERT_EQ(data.clock_offset.size(), static_cast<std::size_t>(world_.size()));
  EXPECT_EQ(data.clock_offset[0], 0);
  EXPECT_EQ(data.clock_drift[0], 0);
  EXPECT_GT(data.clock_error[1], 0);
  // Between the fault's begin and the loop's lie round trips: a second of 20 ppm at the very most.
  EXPECT_NEAR(data.clock_offset[1], 5e-3, data.clock_error[1] + 20e-6);
  // All clocks here are one: an all-reduce ends on no rank before it has begun on every other.
  const units::Nanoseconds error = units::to_nanoseconds(units::Seconds{data.clock_error[1]});
  std::size_t compared = 0;
  for (const timeline::Timeline& step : data.traces) {
    const auto& zero = step.ranks[0];
    const auto& one = step.ranks[1];
    for (std::size_t op = 0; op < zero.spans.size(); ++op) {
      if (data.outline.of(0).ops[op].kind != program::OpKind::all_reduce) continue;
      EXPECT_GE(zero.spans[op].end + error, one.spans[op].start);
      EXPECT_GE(one.spans[op].end + error, zero.spans[op].start);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0U);
}

}  // namespace
}  // namespace isoscale::runner
