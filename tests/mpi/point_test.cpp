// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// One point on part of a world: who plays, who sleeps, and what a failure leaves behind.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <string>

#include "machine/device_sampler.hpp"
#include "tests/mpi/observed.hpp"
#include "tests/mpi/point_runs.hpp"
#include "tests/mpi/small_points.hpp"

namespace isoscale::runner {
namespace {

using results::PointData;
using results::PointStatus;
using testing::HasSubstr;

struct Wanted {
  int ranks = 1;
  settings::FillIdle fill = settings::FillIdle::idle;
  double max_time = 0.2;                 ///< seconds
  std::optional<double> half_width = 0;  ///< what the statistics say: precise at once
  std::string_view microbatches = "8";
  int trace_ranks = 64;
};

/// The world of this run, ready to run points of `dp` on some of its ranks.
class Point : public testing::Test {
 protected:
  [[nodiscard]] static settings::RunConfig config_of(const Wanted& wanted) {
    workloads::Request base = small_request();
    base.options["microbatches"] = wanted.microbatches;
    settings::RunConfig config = runner::config_of("dp", base, wanted.ranks);
    config.fill = wanted.fill;
    config.trace_ranks = wanted.trace_ranks;
    return config;
  }
  /// Collective.
  PointData run(const Wanted& wanted) {
    settings::RunConfig config = config_of(wanted);
    return run(plan::make_plan(config, runs_.site).points.front(), config, wanted);
  }
  PointData run(const plan::PlannedPoint& point, const settings::RunConfig& config,
                const Wanted& wanted) {
    executor_.observed = {};
    return runs_.run(point, config, effort_of(wanted.max_time, wanted.half_width, 2));
  }
  /// This rank's number of played steps, by rank, on every rank.
  [[nodiscard]] std::vector<std::int64_t> steps_by_rank() const {
    return world_.all_gather(executor_.observed.steps);
  }

  ObservedExecutor executor_;
  PointRuns runs_{executor_};
  const comm::Communicator& world_ = runs_.world;
};

double cpu_seconds() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_F(Point, OnAllRanksIsVerifiedMeasuredAndCollected) {
  const int ranks = world_.size();
  const PointData data = run({.ranks = ranks, .max_time = 3600});
  EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
  EXPECT_EQ(data.verified, std::optional{true}) << data.verification;
  EXPECT_EQ(data.stopped_because, world_.rank() == 0 ? "precision" : data.stopped_because);
  if (world_.rank() != 0) return;
  EXPECT_EQ(data.mesh, (mesh::Shape{.dp = ranks}));
  EXPECT_EQ(data.traces.size(), 2U);
  EXPECT_EQ(data.flop_of_rank.size(), static_cast<std::size_t>(ranks));
  EXPECT_EQ(data.traced.size(), data.step_times.size());
  EXPECT_FALSE(data.warm_up_rule.empty());
  EXPECT_EQ(data.looks.made, 1);
  EXPECT_GT(data.looks.planned, 1);
  EXPECT_EQ(data.looks.growth, 1.5);
  ASSERT_FALSE(data.op_sums.empty());
  for (const results::OpSums& sums : data.op_sums) {
    EXPECT_EQ(data.traced.at(sums.step), 1);
    for (const auto* of_rank :
         {&sums.gemm, &sums.other_compute, &sums.copies, &sums.communication}) {
      EXPECT_EQ(of_rank->size(), static_cast<std::size_t>(ranks));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      EXPECT_GT(sums.gemm[at], 0);
      EXPECT_LT(sums.gemm[at] + sums.other_compute[at], data.step_times[sums.step][at]);
    }
  }
  for (const std::vector<double>& step : data.step_times) {
    EXPECT_EQ(step.size(), static_cast<std::size_t>(ranks));
  }
}

TEST_F(Point, KeepsSpansOfChosenRanksOnly) {
  const PointData data = run({.ranks = world_.size(), .trace_ranks = 1});
  EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
  if (world_.rank() != 0) return;
  ASSERT_EQ(data.traces.size(), 2U);
  for (const timeline::Timeline& step : data.traces) {
    ASSERT_EQ(step.ranks.size(), 1U);
    EXPECT_EQ(step.ranks[0].rank, 0);
    EXPECT_FALSE(step.ranks[0].spans.empty());
  }
  // Ranks that share cores do not play without communication: they would slow each other down.
  const bool shares_cores = std::ranges::find(data.labels, "oversubscribed") != data.labels.end();
  ASSERT_EQ(data.solo_times.size(), shares_cores ? 0U : 1U);
  for (const results::SoloTimes& solo : data.solo_times) {
    EXPECT_EQ(solo.rank, 0);
    const auto& ops = data.outline.of(0).ops;
    ASSERT_EQ(solo.op.size(), ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const bool is_gemm = ops[i].kind == program::OpKind::gemm;
      EXPECT_GE(solo.op[i], units::Nanoseconds{is_gemm ? 1 : 0}) << i;
      EXPECT_LT(solo.op[i], units::Nanoseconds{60'000'000'000}) << i;
    }
  }
}

TEST_F(Point, IsSampledBesideItsLoop) {
  const PointData data = run({.ranks = world_.size(), .max_time = 0.5, .half_width = std::nullopt});
  EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
  if (world_.rank() != 0) return;
  ASSERT_TRUE(data.measured_seconds.has_value());
  EXPECT_GT(*data.measured_seconds, 0);
  // Where the kernel tells clocks, as it does here, so does the point; elsewhere there are none.
  const bool told = !machine::cpu_clock_sources({}, runs_.facts[0].bound_cpus).empty();
  bool clocks = false;
  for (const results::DeviceSeries& series : data.device_series) {
    clocks = clocks || (series.device == "cpu" && series.quantity == "clock");
    EXPECT_EQ(series.rank, 0) << "all ranks are on one node";
    ASSERT_EQ(series.time.size(), series.value.size());
    ASSERT_GE(series.time.size(), 2U) << series.quantity;
    EXPECT_TRUE(std::ranges::is_sorted(series.time));
    // From before the first step until after the last.
    EXPECT_LE(series.time.front(), 0) << series.quantity;
    EXPECT_GE(series.time.back(), *data.measured_seconds) << series.quantity;
  }
  EXPECT_EQ(clocks, told);
}

TEST_F(Point, OfWhichOthersAreCopiesIsSampledAlone) {
  const PointData data = run({.ranks = world_.size() / 2, .fill = settings::FillIdle::replicas});
  EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
  if (world_.rank() != 0) return;
  for (const results::DeviceSeries& series : data.device_series) EXPECT_EQ(series.rank, 0);
}

TEST_F(Point, RanksOutsideSleep) {
  const double cpu = cpu_seconds();
  const units::Nanoseconds begin = comm::now();
  const PointData data = run({.max_time = 1, .half_width = std::nullopt});
  const double wall = units::to_seconds(comm::now() - begin).value();
  const double busy = cpu_seconds() - cpu;
  EXPECT_EQ(data.status, PointStatus::ok);
  const auto steps = steps_by_rank();
  EXPECT_GT(steps[0], 0);
  for (std::size_t r = 1; r < steps.size(); ++r) EXPECT_EQ(steps[r], 0) << r;
  if (world_.rank() == 0) {
    EXPECT_EQ(data.stopped_because, "max-time");
  } else {
    EXPECT_GE(wall, 1.0);
    EXPECT_LT(busy, 0.2 * wall);
  }
}

TEST_F(Point, ReplicasPlayAsLongAsThePoint) {
  const int ranks = world_.size() / 2;
  const PointData data = run({.ranks = ranks,
                              .fill = settings::FillIdle::replicas,
                              .max_time = 0.3,
                              .half_width = std::nullopt});
  EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
  const auto steps = steps_by_rank();
  EXPECT_GT(steps[0], 0);
  EXPECT_THAT(steps, testing::Each(steps[0]));
  if (world_.rank() == 0) {
    EXPECT_EQ(data.step_times.front().size(), static_cast<std::size_t>(ranks));
  }
}

TEST_F(Point, RanksLeftOverByReplicasSleep) {
  // Three of four ranks: the fourth alone is no replica.
  if (world_.size() != 4) GTEST_SKIP() << "needs four ranks";
  const PointData data =
      run({.ranks = 3, .fill = settings::FillIdle::replicas, .microbatches = "12"});
  EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
  const auto steps = steps_by_rank();
  EXPECT_GT(steps[2], 0);
  EXPECT_EQ(steps[3], 0);
}

TEST_F(Point, ThatCannotBePreparedOnOneRankFailsOnAllAndTheNextOneRuns) {
  const int ranks = world_.size();
  const int unlucky = ranks - 1;
  for (const int prepare : {1, 2}) {  // of the twin, of the point itself
    if (world_.rank() == unlucky) executor_.fail_at = prepare;
    const PointData failed = run({.ranks = ranks});
    EXPECT_EQ(failed.status, PointStatus::failed);
    EXPECT_THAT(failed.reason, HasSubstr("no memory is left"));
    EXPECT_THAT(failed.reason, HasSubstr(fmt::format("rank {}", unlucky)));
    // It never came to a measured step: two of the twin at most.
    EXPECT_LE(executor_.observed.steps, 2 * (prepare - 1));
    executor_.fail_at.reset();
    const PointData next = run({.ranks = ranks});
    EXPECT_EQ(next.status, PointStatus::ok) << next.reason;
    EXPECT_TRUE(next.reason.empty());
  }
}

TEST_F(Point, FailureIsKnownToTheRanksThatSleep) {
  if (world_.rank() == 0) executor_.fail_at = 2;
  const PointData data = run({});
  EXPECT_EQ(data.status, PointStatus::failed);
  EXPECT_EQ(data.reason.find("no memory is left") != std::string::npos, world_.rank() == 0);
}

TEST_F(Point, FailureOfAReplicaFailsThePoint) {
  if (world_.rank() == world_.size() - 1) executor_.fail_at = 1;
  const PointData data = run({.ranks = world_.size() / 2, .fill = settings::FillIdle::replicas});
  EXPECT_EQ(data.status, PointStatus::failed);
  EXPECT_THAT(data.reason, HasSubstr("no memory is left"));
}

TEST_F(Point, ThatIsSkippedKeepsItsReason) {
  const settings::RunConfig config = config_of({});
  plan::Plan plan = plan::make_plan(config, runs_.site);
  plan.points.front().skip_reason = "because";
  const PointData data = run(plan.points.front(), config, {});
  EXPECT_EQ(data.status, PointStatus::skipped);
  EXPECT_EQ(data.reason, "because");
  EXPECT_EQ(executor_.observed.prepared, 0);
}

/// Collective: a run of the first planned point takes the memory that the plan says, to the byte.
void expect_planned_memory(const PointData& data, const plan::PlannedPoint& planned,
                           int world_rank) {
  ASSERT_EQ(data.status, PointStatus::ok) << data.reason;
  if (world_rank != 0) return;
  ASSERT_FALSE(data.memory_of_rank.empty());
  EXPECT_EQ(std::ranges::max(data.memory_of_rank),
            static_cast<double>(planned.memory_per_rank->value()));
}

TEST_F(Point, TakesTheMemoryThatThePlanSays) {
  const int ranks = world_.size();
  std::map<std::string, units::Bytes> planned;
  for (const std::string zero : {"0", "1", "2", "3"}) {
    SCOPED_TRACE("zero=" + zero);
    const Wanted wanted{.ranks = ranks};
    settings::RunConfig config = config_of(wanted);
    config.experiments[0].base.options["zero"] = zero;
    config.experiments[0].base.options["optimizer"] = "adam";
    config.experiments[0].base.options["bucket"] = "8KiB";
    const plan::Plan plan = plan::make_plan(config, runs_.site);
    planned[zero] = *plan.points.front().memory_per_rank;
    expect_planned_memory(run(plan.points.front(), config, wanted), plan.points.front(),
                          world_.rank());
    config.soak = units::Seconds{0.01};
    const plan::Plan soaked = plan::make_plan(config, runs_.site);
    EXPECT_GT(*soaked.points.front().memory_per_rank, planned[zero]);
    expect_planned_memory(run(soaked.points.front(), config, wanted), soaked.points.front(),
                          world_.rank());
  }
  // ZeRO 1 keeps two f32 moments of 1/n of the weights; the host copies one part of a bucket aside.
  const workloads::Model& model = small_request().model;
  const double psi = static_cast<double>(model.layers) *
                     (4.0 * model.hidden * model.hidden + 2.0 * model.hidden * model.ffn);
  const double saved = 2 * 4 * psi * (1 - 1.0 / ranks);
  const double aside = 3 * 8192.0 / ranks;  // a bucket is closed once it has 8 KiB
  const auto bytes = [&](const char* zero) { return static_cast<double>(planned[zero].value()); };
  EXPECT_GE(bytes("0") - bytes("1"), saved - aside);
  EXPECT_LE(bytes("0") - bytes("1"), saved + 4096);
}

}  // namespace
}  // namespace isoscale::runner
