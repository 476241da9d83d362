// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/fault_injection.hpp"
#include "executor/host/stream_threads.hpp"
#include "planned_runs.hpp"
#include "runner/dry_run.hpp"
#include "runner/plan/injected_faults.hpp"

namespace isoscale {
namespace {

using executor::host::SlowedKind;
using executor::host::Slowing;
using program::Direction;
using units::Nanoseconds;

/// The nanoseconds by which an op that took so many is lengthened.
std::int64_t extra(Slowing& slowing, std::int64_t took) {
  return slowing.extra(Nanoseconds{took}).value();
}

TEST(Slowing, ComputeLastsTheFactorAndDelaysWhatIsLeftOfTheirTime) {
  Slowing compute = Slowing{.factor = 3};
  EXPECT_EQ(extra(compute, 100), 200);
  EXPECT_EQ(extra(compute, 7), 14);
  Slowing delay{.kind = SlowedKind::delay, .factor = 1.5, .time = Nanoseconds{1'000}};
  EXPECT_EQ(extra(delay, 100), 1'400);
  EXPECT_EQ(extra(delay, 0), 1'500);
  EXPECT_EQ(extra(delay, 2'000), 0);
}

/// A message or reduction; its copies are ops like it.
Slowing of_communication(double factor) {
  return {.kind = SlowedKind::communication,
          .factor = factor,
          .least = std::make_shared<executor::host::LeastTime>()};
}

TEST(Slowing, CommunicationLastsTheFactorOfTheLeastTimeOfLikeOps) {
  Slowing one = of_communication(2.5), other = one;
  EXPECT_EQ(extra(one, 1'000), 0);
  EXPECT_EQ(extra(one, 2'000), 1'500);
  EXPECT_EQ(extra(other, 200), 300);
  EXPECT_EQ(extra(one, 1'000'000), 300);
}

/// It waited half a second until its partner had started: a hundred times that would be a minute.
TEST(Slowing, TheFirstOfLikeOpsIsNotLengthened) {
  Slowing one = of_communication(100), like = one;
  EXPECT_EQ(extra(one, 500'000'000), 0);
  EXPECT_EQ(extra(like, 10'000), 990'000);
  EXPECT_EQ(extra(one, 500'000'000), 990'000);
}

TEST(Slowing, JitterIsExponentialOfTheMeanAsked) {
  Slowing slowing{.jitter = 0.05, .origin = 42};
  constexpr int draws = 100'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double share = static_cast<double>(extra(slowing, 1'000'000)) / 1e6;
    ASSERT_GE(share, 0);
    sum += share;
    squares += share * share;
  }
  const double mean = sum / draws;
  // Mean 0.05 with a standard error of 0.05 / sqrt(draws); of an exponential, E[x^2] = 2 mean^2.
  EXPECT_NEAR(mean, 0.05, 5 * 0.05 / 316);
  EXPECT_NEAR(squares / draws, 2 * 0.05 * 0.05, 0.05 * 0.05 * 0.1);
}

TEST(Slowing, JitterIsTheSameForTheSameOrigin) {
  Slowing one{.jitter = 0.05, .origin = 1}, same = one, other{.jitter = 0.05, .origin = 2};
  const std::int64_t took = 1'000'000'000, first = extra(one, took);
  EXPECT_EQ(extra(same, took), first);
  EXPECT_NE(extra(other, took), first);
  EXPECT_NE(extra(one, took), first);
}

program::Exchange message(mesh::Axis axis, Direction direction, int offset) {
  return {.transfers = {{.direction = direction, .axis = axis, .offset = offset}}};
}

/// The tests show what OpSlower makes of an op on rank 0, with a slow link to its tp neighbour 1.
class SlowedOps : public testing::Test {
 protected:
  /// Absent: the op plays as it is.
  std::optional<Slowing> slowing_of(program::Payload payload, std::size_t lane = 0) {
    return slower_.slowing_of({.payload = std::move(payload)}, index_++, lane);
  }
  static program::Collective reduction(mesh::AxisSet axes, std::uint64_t count) {
    return {.axes = axes, .send = {.count = count}, .receive = {.count = count}};
  }

  program::Faults faults_{.gemm_factor = 2, .slow_links = {{.low = 0, .high = 1, .factor = 3}}};
  mesh::Shape mesh_{.tp = 2, .dp = 2};
  executor::host::OpSlower slower_{faults_, mesh_, 0};
  std::uint32_t index_ = 0;
};

TEST_F(SlowedOps, GemmsAndNoOtherComputeWithoutJitter) {
  std::optional<Slowing> gemm = slowing_of(program::Gemm{});
  EXPECT_EQ(extra(gemm.value(), 100), 100);
  EXPECT_FALSE(slowing_of(program::Add{}));
  faults_.jitter = 0.1;
  EXPECT_TRUE(slowing_of(program::Add{}));
  EXPECT_TRUE(slowing_of(program::Update{}));
  EXPECT_FALSE(slowing_of(program::Copy{}));
}

TEST_F(SlowedOps, CollectivesAndMessagesThatBothEndsTakePartIn) {
  std::optional<Slowing> along = slowing_of(reduction(mesh::Axis::tp, 8));
  EXPECT_EQ(extra(along.value(), 100), 0);
  EXPECT_EQ(extra(*along, 100), 200);
  EXPECT_TRUE(slowing_of(reduction({mesh::Axis::tp, mesh::Axis::dp}, 8)));
  EXPECT_FALSE(slowing_of(reduction(mesh::Axis::dp, 8)));
  for (const auto direction : {Direction::send, Direction::receive}) {
    EXPECT_TRUE(slowing_of(message(mesh::Axis::tp, direction, 1)));
    EXPECT_FALSE(slowing_of(message(mesh::Axis::dp, direction, 1)));
  }
  faults_.slow_links = {{.low = 1, .high = 3, .factor = 3}};  // between others
  EXPECT_FALSE(slowing_of(reduction({mesh::Axis::tp, mesh::Axis::dp}, 8)));
}

TEST_F(SlowedOps, OnlyOpsThatAreAlikeShareALeastTime) {
  std::optional<Slowing> one = slowing_of(reduction(mesh::Axis::tp, 8));
  std::optional<Slowing> like = slowing_of(reduction(mesh::Axis::tp, 8));
  std::optional<Slowing> larger = slowing_of(reduction(mesh::Axis::tp, 9));
  std::optional<Slowing> elsewhere = slowing_of(reduction(mesh::Axis::tp, 8), 1);
  EXPECT_EQ(extra(*one, 10), 0);
  EXPECT_EQ(extra(*like, 100), 20);
  for (std::optional<Slowing>* const unlike : {&larger, &elsewhere}) {
    EXPECT_EQ(extra(**unlike, 100), 0);
    EXPECT_EQ(extra(**unlike, 100), 200);
  }
}

TEST_F(SlowedOps, ADelayedGemmTakesItsFlopOverTheRateTimesTheFactorOfASlowRank) {
  faults_.gemm_rate = 480e9;
  // 2 * 3 * 4 * 10 * 2 = 480 FLOP at 480 GFLOP/s: 1 ns.
  auto delayed = slowing_of(program::Gemm{.m = 3, .n = 4, .k = 10, .batch = 2});
  EXPECT_EQ(delayed.value().kind, SlowedKind::delay);
  EXPECT_EQ(extra(*delayed, 0), 2);
}

/// D after a GEMM of two 3 x 4 matrices, with rows of D 5 apart, is replaced by a delay; 7 before.
std::vector<float> delayed_product(double beta, bool c_is_d) {
  std::vector<float> d(40, 7);
  const program::Matrix matrix{.row_stride = 5, .batch_stride = 20};
  executor::host::GemmCall gemm{.op = {.m = 3, .n = 4, .batch = 2, .beta = beta, .d = matrix},
                                .d = reinterpret_cast<std::byte*>(d.data()),
                                .c_to_d = {}};
  if (!c_is_d) gemm.c_to_d.emplace();
  executor::host::Player player;
  executor::host::without_product(gemm)(player);
  return d;
}

TEST(DelayedGemm, WritesZerosIntoDAndNothingBesideUnlessItWouldAdd) {
  for (const std::vector<float>& d : {delayed_product(0, true), delayed_product(1, false)}) {
    for (std::size_t i = 0; i < d.size(); ++i) {
      const std::size_t row = i % 20 / 5, column = i % 5;
      EXPECT_EQ(d[i], row < 3 && column < 4 ? 0 : 7) << i;
    }
  }
  EXPECT_EQ(delayed_product(1, true), std::vector<float>(40, 7));
}

TEST(PassTime, ReturnsNoSoonerThanAsked) {
  for (const SlowedKind kind :
       {SlowedKind::compute, SlowedKind::communication, SlowedKind::delay}) {
    const Nanoseconds until = comm::now() + Nanoseconds{100'000};
    executor::host::pass_time(kind, until);
    EXPECT_GE(comm::now(), until);
  }
}

/// The faults of a rank in a point on these ranks of the launch.
program::Faults faults_of(std::string_view injections, const std::vector<int>& point, int rank) {
  return runner::plan::faults_of(settings::parse_injections(injections), point, rank, 7);
}

TEST(Faults, RanksOfTheLaunchBecomeRanksOfThePoint) {
  const char* const injections = "slow-rank=6:3,slow-link=4-6:2,slow-link=6-9:5,jitter=5%";
  const std::vector<int> point{4, 6, 8};
  const program::Faults six = faults_of(injections, point, 6);
  EXPECT_EQ(six.gemm_factor, 3);
  EXPECT_THAT(six.slow_links, ElementsAre(program::SlowLink{.low = 0, .high = 1, .factor = 2}));
  EXPECT_EQ(six.jitter, 0.05);
  const program::Faults four = faults_of(injections, point, 4);
  EXPECT_EQ(four.gemm_factor, 1);
  EXPECT_EQ(four.slow_links, six.slow_links);
  EXPECT_NE(four.seed, six.seed);
  const program::Faults eight = faults_of(injections, point, 8);
  EXPECT_THAT(eight.slow_links, IsEmpty());
  EXPECT_TRUE(eight.any());
  EXPECT_FALSE(runner::plan::faults_of({}, point, 8, 7).any());
  // Delays are of every rank; ranks that play a copy have no faults.
  for (const int rank : {4, 6}) EXPECT_EQ(faults_of("delay=2GFLOP/s", {4, 6}, rank).gemm_rate, 2e9);
  EXPECT_FALSE(faults_of("slow-rank=9:3,slow-link=8-9:2,jitter=5%", {4, 6}, 9).any());
  EXPECT_TRUE(faults_of("slow-rank=9:3,slow-link=8-9:2,jitter=5%", {8, 9}, 9).any());
}

TEST(Faults, BitsAreFlippedOnEachRankOfThePointThatIsNamed) {
  EXPECT_THAT(runner::plan::flipping_ranks(settings::parse_injections("flip=8,flip=9,flip=4"),
                                           std::vector{4, 6, 8}),
              ElementsAre(2, 0));
}

TEST(Faults, RankBeyondTheLaunchIsRefused) {
  const auto injections = settings::parse_injections("slow-link=1-4:2");
  EXPECT_NO_THROW(runner::plan::require_ranks(injections, 5));
  EXPECT_THAT(
      [&] { runner::plan::require_ranks(injections, 4); },
      testing::ThrowsMessage<base::UsageError>(AllOf(HasSubstr("rank 4 "), HasSubstr("0 to 3"))));
}

TEST(Faults, ClockIsThatOfItsRankOnly) {
  const auto injections = settings::parse_injections("clock=2:5ms:20ppm");
  EXPECT_FALSE(runner::plan::clock_fault_of(injections, 1));
  const auto fault = runner::plan::clock_fault_of(injections, 2);
  EXPECT_EQ(fault.value().offset.value(), 5'000'000);
  EXPECT_DOUBLE_EQ(fault->drift, 20e-6);
}

namespace plan = runner::plan;

/// One program of these ops for all ranks of the mesh.
program::ProgramSet set_of(const mesh::Shape& mesh, std::vector<program::Payload> payloads) {
  program::ProgramSet set{.mesh = mesh, .programs = {{}}, .program_of_rank = {}};
  set.program_of_rank.assign(static_cast<std::size_t>(mesh.size()), 0);
  for (program::Payload& payload : payloads) {
    set.programs[0].step().ops.push_back({.payload = std::move(payload)});
  }
  return set;
}

/// Returns true if an injection touches a point on ranks 4 to 7 of the launch.
bool touched(std::string_view injection, const program::ProgramSet& set,
             const char* workload = "pp") {
  plan::PlannedPoint point;
  point.workload = &workloads::find_workload(workload);
  point.world_ranks = {4, 5, 6, 7};
  return plan::touches(settings::parse_injections(injection).at(0), point, set);
}

TEST(Touches, WhatTheProgramsOfThePointDoWithTheRanksThatAreNamed) {
  const program::ProgramSet pipeline =
      set_of({.pp = 4}, {program::Gemm{}, message(mesh::Axis::pp, Direction::send, 1),
                         message(mesh::Axis::pp, Direction::receive, -1)});
  const program::ProgramSet reductions =
      set_of({.tp = 2, .dp = 2}, {program::Collective{.axes = mesh::Axis::dp}});
  const program::ProgramSet gemms = set_of({.dp = 4}, {program::Gemm{}});
  const program::ProgramSet adds = set_of({.dp = 4}, {program::Add{}});
  program::ProgramSet copies = set_of({.dp = 4}, {program::Copy{}, program::Collective{}});
  copies.programs[0].setup.ops.push_back({.payload = program::Fill{}});  // is not measured
  using Texts = std::vector<std::string>;
  for (const auto& [set, touching, idle] : {
           std::tuple{pipeline,
                      Texts{"slow-link=4-5:2", "slow-link=5-6:2", "slow-rank=7:2", "jitter=5%",
                            "delay=1GFLOP/s", "clock=4:5ms"},
                      Texts{"slow-link=4-6:2", "slow-link=5-7:2", "slow-link=3-4:2",
                            "slow-link=7-8:2", "slow-rank=0:2", "clock=1:5ms"}},
           {reductions, {"slow-link=4-6:2"}, {"slow-link=4-5:2", "slow-link=4-7:2"}},
           {gemms, {}, {"slow-link=4-5:2"}},
           {adds, {"jitter=5%"}, {"slow-rank=7:2", "delay=1GFLOP/s"}},
           {copies, {}, {"jitter=5%"}},
       }) {
    for (const std::string& one : touching) EXPECT_TRUE(touched(one, set)) << one;
    for (const std::string& one : idle) EXPECT_FALSE(touched(one, set)) << one;
  }
  EXPECT_FALSE(touched("clock=4:5ms", pipeline, "gemm"));  // compares no times of ranks
}

class InjectedPlan : public testing::Test {
 protected:
  plan::Plan plan(const char* workload, std::string_view injections) {
    config_ = samples::config_of(workload);
    config_.injections = settings::parse_injections(injections);
    return plan::make_plan(config_, samples::site_of(4));
  }
  settings::RunConfig config_;
};

TEST_F(InjectedPlan, NamesPointsByTheProgramsThatTheyPlay) {
  const plan::Plan all = plan("pp", "slow-link=0-1:2,slow-rank=2:3,slow-link=0-2:2,jitter=5%");
  ASSERT_EQ(all.points.size(), 3U);  // of 1, 2 and 4 ranks
  EXPECT_THAT(all.points[0].injections, ElementsAre("jitter=5%"));
  EXPECT_THAT(all.points[1].injections, ElementsAre("slow-link=0-1:2", "jitter=5%"));
  EXPECT_THAT(all.points[2].injections,
              ElementsAre("slow-link=0-1:2", "slow-rank=2:3", "jitter=5%"));
  EXPECT_THAT(plan::idle_injections(config_.injections, all), ElementsAre("slow-link=0-2:2"));
  EXPECT_THAT(runner::describe(all, config_, "host"),
              AllOf(HasSubstr("slow-link=0-2:2 touches no point."), HasSubstr("into point 2, 3")));
}

TEST_F(InjectedPlan, PointsThatAreSkippedAreNotTouched) {
  plan::Plan all = plan("dp", "slow-link=2-3:2");
  EXPECT_THAT(plan::idle_injections(config_.injections, all), IsEmpty());
  all.points.back().skip_reason = "too large";
  EXPECT_THAT(plan::idle_injections(config_.injections, all), ElementsAre("slow-link=2-3:2"));
}

}  // namespace
}  // namespace isoscale
