// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// One point on part of a world: who plays, who sleeps, and what a failure leaves behind.
#include <sys/resource.h>

#include "machine/device_sampler.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::runner {
namespace {

using results::PointData;
using results::PointStatus;

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
  /// Collective: of a point that goes well.
  PointData good(const Wanted& wanted) {
    PointData data = run(wanted);
    EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
    return data;
  }
  /// This rank's number of played steps, by rank, on every rank.
  [[nodiscard]] std::vector<int> steps_by_rank() const {
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
  const PointData data = good({.ranks = ranks, .max_time = 3600});
  EXPECT_EQ(data.verified, std::optional{true}) << data.verification;
  EXPECT_EQ(data.stopped_because, world_.rank() == 0 ? "precision" : data.stopped_because);
  if (world_.rank() != 0) return;
  EXPECT_THAT(data.verification, HasSubstr("all members of a collective held the same bits"));
  EXPECT_EQ(data.mesh, (mesh::Shape{.dp = ranks}));
  EXPECT_EQ(data.traces.size(), 2U);
  EXPECT_EQ(data.flop_of_rank.size(), static_cast<std::size_t>(ranks));
  EXPECT_EQ(data.traced.size(), data.step_times.size());
  EXPECT_FALSE(data.warm_up_rule.empty());
  EXPECT_GT(data.looks.planned, 1);
  EXPECT_EQ(std::pair(data.looks.made, data.looks.growth), std::pair(1, 1.5));
  ASSERT_FALSE(data.op_sums.empty());
  for (const results::OpSums& sums : data.op_sums) {
    EXPECT_EQ(data.traced.at(sums.step), 1);
    for (const auto* of : {&sums.gemm, &sums.other_compute, &sums.copies, &sums.communication}) {
      EXPECT_EQ(of->size(), static_cast<std::size_t>(ranks));
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
  const PointData data = good({.ranks = world_.size(), .trace_ranks = 1});
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
  const PointData data =
      good({.ranks = world_.size(), .max_time = 0.5, .half_width = std::nullopt});
  if (world_.rank() != 0) return;
  ASSERT_TRUE(data.measured_seconds.has_value());
  EXPECT_GT(*data.measured_seconds, 0);
  // Where the kernel tells clocks, as it does here, so does the point; elsewhere there are none.
  const auto sources = machine::node_sources("/", runs_.facts[0].bound_cpus);
  const bool told = std::ranges::any_of(sources, [](const machine::Source& source) {
    return source.channels.front().quantity == "clock";
  });
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

TEST_F(Point, ReplicasPlayAsLongAsThePointThatIsSampledAlone) {
  const int ranks = world_.size() / 2;
  const PointData data = good({.ranks = ranks,
                               .fill = settings::FillIdle::replicas,
                               .max_time = 0.3,
                               .half_width = std::nullopt});
  const auto steps = steps_by_rank();
  EXPECT_GT(steps[0], 0);
  EXPECT_THAT(steps, Each(steps[0]));
  if (world_.rank() != 0) return;
  EXPECT_EQ(data.step_times.front().size(), static_cast<std::size_t>(ranks));
  for (const results::DeviceSeries& series : data.device_series) EXPECT_EQ(series.rank, 0);
}

TEST_F(Point, RanksLeftOverByReplicasSleep) {
  // Three of four ranks: the fourth alone is no replica.
  if (world_.size() != 4) GTEST_SKIP() << "needs four ranks";
  const PointData data =
      good({.ranks = 3, .fill = settings::FillIdle::replicas, .microbatches = "12"});
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
    EXPECT_THAT(failed.reason,
                AllOf(HasSubstr("no memory is left"), HasSubstr(fmt::format("rank {}", unlucky))));
    // It never came to a measured step: two of the twin at most.
    EXPECT_LE(executor_.observed.steps, 2 * (prepare - 1));
    executor_.fail_at.reset();
    EXPECT_TRUE(good({.ranks = ranks}).reason.empty());
  }
}

TEST_F(Point, FailureIsKnownToTheRanksThatSleep) {
  if (world_.rank() == 0) executor_.fail_at = 2;
  const PointData data = run({});
  EXPECT_EQ(data.status, PointStatus::failed);
  EXPECT_EQ(data.reason.find("no memory") != std::string::npos, world_.rank() == 0);
}

TEST_F(Point, FailureOfAReplicaFailsThePoint) {
  if (world_.rank() == world_.size() - 1) executor_.fail_at = 1;
  const PointData data = run({.ranks = world_.size() / 2, .fill = settings::FillIdle::replicas});
  EXPECT_EQ(data.status, PointStatus::failed);
  EXPECT_THAT(data.reason, HasSubstr("no memory is left"));
}

TEST_F(Point, TakesTheMemoryThatThePlanSays) {
  const int ranks = world_.size();
  /// Collective: runs the first planned point, which takes as many bytes as the plan says.
  const auto memory_of = [&](const settings::RunConfig& config) {
    const plan::PlannedPoint planned = plan::make_plan(config, runs_.site).points.front();
    // It is prepared and verified as ever; of steps, few are enough.
    const PointData data = run(planned, config, {.ranks = ranks, .max_time = 0.001});
    EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
    const auto bytes = static_cast<double>(planned.memory_per_rank->value());
    if (world_.rank() == 0) {
      EXPECT_THAT(data.memory_of_rank, Contains(bytes));
      for (const double of_rank : data.memory_of_rank) EXPECT_LE(of_rank, bytes);
    }
    return bytes;
  };
  std::map<std::string, double> bytes;
  for (const std::string zero : {"0", "1", "2", "3", "1 gather=next_step", "3 grad_dtype=bf16"}) {
    SCOPED_TRACE("zero=" + zero);
    settings::RunConfig config = config_of({.ranks = ranks});
    for (const auto& [key, value] :
         workloads::options_of("optimizer=adam bucket=8KiB zero=" + zero)) {
      config.experiments[0].base.options[key] = value;
    }
    bytes[zero] = memory_of(config);
    config.soak = units::Seconds{0.01};
    EXPECT_GT(memory_of(config), bytes[zero]);
  }
  // ZeRO 1 keeps two f32 moments of 1/n of the weights; the host copies one part of a bucket aside.
  const workloads::Model& model = small_request().model;
  const double psi = static_cast<double>(model.layers) *
                     (4.0 * model.hidden * model.hidden + 2.0 * model.hidden * model.ffn);
  const double saved = 2 * 4 * psi * (1 - 1.0 / ranks);
  const double aside = 3 * 8192.0 / ranks;  // a bucket is closed once it has 8 KiB
  EXPECT_GE(bytes["0"] - bytes["1"], saved - aside);
  EXPECT_LE(bytes["0"] - bytes["1"], saved + 4096);
}

TEST(Site, HasOneMemoryPoolForRanksThatShareAGpu) {
  const auto world = comm::Communicator::world();
  executor::Description device;
  device.name = "cuda";
  device.memory_pool = fmt::format("GPU-{}", world.rank() % 2);
  device.memory_free = units::Bytes{static_cast<std::uint64_t>(10 + world.rank())};
  const plan::Site site = plan::make_site(world, device, plan::gather_facts(world));
  std::vector<int> pools;
  for (int rank = 0; rank < world.size(); ++rank) pools.push_back(rank % 2);
  EXPECT_EQ(site.pool_of_rank, pools);
  EXPECT_THAT(site.memory_free, ElementsAre(units::Bytes{10}, units::Bytes{11}));
}

}  // namespace
}  // namespace isoscale::runner
