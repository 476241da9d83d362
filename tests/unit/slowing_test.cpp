// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// How much longer slowed ops last, and what injections mean on a rank of a point.
#include "executor/host/fault_injection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "executor/host/player.hpp"
#include "executor/host/prepare.hpp"
#include "runner/plan/rank_faults.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale {
namespace {

using executor::host::LeastTime;
using executor::host::SlowedKind;
using executor::host::Slowing;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using units::Nanoseconds;

TEST(Slowing, ComputeLastsTheFactor) {
  Slowing slowing = Slowing::compute(3, 0, 0);
  EXPECT_EQ(slowing.extra(Nanoseconds{100}).value(), 200);
  EXPECT_EQ(slowing.extra(Nanoseconds{7}).value(), 14);
  EXPECT_EQ(slowing.kind(), SlowedKind::compute);
}

TEST(Slowing, CommunicationLastsTheFactorOfTheLeastTimeOfLikeOps) {
  LeastTime least;
  Slowing one = Slowing::communication(2.5, least), other = Slowing::communication(2.5, least);
  EXPECT_EQ(one.extra(Nanoseconds{1'000}).value(), 0);
  EXPECT_EQ(one.extra(Nanoseconds{2'000}).value(), 1'500);
  EXPECT_EQ(other.extra(Nanoseconds{200}).value(), 300);
  EXPECT_EQ(one.extra(Nanoseconds{1'000'000}).value(), 300);
  EXPECT_EQ(one.kind(), SlowedKind::communication);
}

TEST(Slowing, TheFirstOfLikeOpsIsNotLengthened) {
  // It waited half a second until its partner had started: a hundred times that would be a minute.
  LeastTime least;
  Slowing one = Slowing::communication(100, least), like = Slowing::communication(100, least);
  EXPECT_EQ(one.extra(Nanoseconds{500'000'000}).value(), 0);
  EXPECT_EQ(like.extra(Nanoseconds{10'000}).value(), 990'000);
  EXPECT_EQ(one.extra(Nanoseconds{500'000'000}).value(), 990'000);
}

TEST(Slowing, JitterIsExponentialOfTheMeanAsked) {
  Slowing slowing = Slowing::compute(1, 0.05, 42);
  constexpr int draws = 100'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double share = static_cast<double>(slowing.extra(Nanoseconds{1'000'000}).value()) / 1e6;
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
  Slowing one = Slowing::compute(1, 0.05, 1), same = Slowing::compute(1, 0.05, 1),
          other = Slowing::compute(1, 0.05, 2);
  const Nanoseconds took{1'000'000'000};
  const Nanoseconds first = one.extra(took);
  EXPECT_EQ(same.extra(took), first);
  EXPECT_NE(other.extra(took), first);
  EXPECT_NE(one.extra(took), first);
}

TEST(Slowing, DelaysLastWhatIsLeftOfTheirTime) {
  Slowing slowing = Slowing::delay(Nanoseconds{1'000}, 1.5, 0, 0);
  EXPECT_EQ(slowing.extra(Nanoseconds{100}).value(), 1'400);
  EXPECT_EQ(slowing.extra(Nanoseconds{0}).value(), 1'500);
  EXPECT_EQ(slowing.extra(Nanoseconds{2'000}).value(), 0);
  EXPECT_EQ(slowing.kind(), SlowedKind::delay);
}

/// The tests show what OpSlower makes of one op on rank 0 of four, with a slow link to rank 1 (its
/// tp neighbour).
class SlowedOps : public testing::Test {
 protected:
  /// Absent: the op plays as it is.
  std::optional<Slowing> slowing_of(program::Payload payload, std::size_t lane = 0) {
    return slower_.slowing_of({.payload = std::move(payload)}, index_++, lane);
  }
  static program::Collective reduction(mesh::AxisSet axes, std::uint64_t count) {
    return {.axes = axes, .send = {.count = count}, .receive = {.count = count}};
  }
  static program::Exchange message(mesh::Axis axis, program::Direction direction) {
    return {.transfers = {{.direction = direction, .axis = axis, .offset = 1}}};
  }

  program::Faults faults_{.gemm_factor = 2, .slow_links = {{.low = 0, .high = 1, .factor = 3}}};
  mesh::Shape mesh_{.tp = 2, .dp = 2};
  executor::host::LeastTimes least_times_;
  executor::host::OpSlower slower_{faults_, mesh_, 0, least_times_};
  std::uint32_t index_ = 0;
};

TEST_F(SlowedOps, GemmsAndNoOtherComputeWithoutJitter) {
  std::optional<Slowing> gemm = slowing_of(program::Gemm{});
  ASSERT_TRUE(gemm);
  EXPECT_EQ(gemm->extra(Nanoseconds{100}).value(), 100);
  EXPECT_FALSE(slowing_of(program::Add{}));
  faults_.jitter = 0.1;
  EXPECT_TRUE(slowing_of(program::Add{}));
  EXPECT_TRUE(slowing_of(program::Update{}));
  EXPECT_FALSE(slowing_of(program::Copy{}));
}

TEST_F(SlowedOps, CollectivesWhoseGroupHoldsBothEnds) {
  std::optional<Slowing> along = slowing_of(reduction(mesh::Axis::tp, 8));
  ASSERT_TRUE(along);
  EXPECT_EQ(along->extra(Nanoseconds{100}).value(), 0);
  EXPECT_EQ(along->extra(Nanoseconds{100}).value(), 200);
  EXPECT_TRUE(slowing_of(reduction({mesh::Axis::tp, mesh::Axis::dp}, 8)));
  EXPECT_FALSE(slowing_of(reduction(mesh::Axis::dp, 8)));
}

TEST_F(SlowedOps, MessagesBetweenBothEnds) {
  for (const auto direction : {program::Direction::send, program::Direction::receive}) {
    EXPECT_TRUE(slowing_of(message(mesh::Axis::tp, direction)));
    EXPECT_FALSE(slowing_of(message(mesh::Axis::dp, direction)));
  }
}

TEST_F(SlowedOps, OnlyOpsThatAreAlikeShareALeastTime) {
  std::optional<Slowing> one = slowing_of(reduction(mesh::Axis::tp, 8));
  std::optional<Slowing> like = slowing_of(reduction(mesh::Axis::tp, 8));
  std::optional<Slowing> larger = slowing_of(reduction(mesh::Axis::tp, 9));
  std::optional<Slowing> elsewhere = slowing_of(reduction(mesh::Axis::tp, 8), 1);
  EXPECT_EQ(one->extra(Nanoseconds{10}).value(), 0);
  EXPECT_EQ(like->extra(Nanoseconds{100}).value(), 20);
  for (std::optional<Slowing>* const unlike : {&larger, &elsewhere}) {
    EXPECT_EQ((*unlike)->extra(Nanoseconds{100}).value(), 0);
    EXPECT_EQ((*unlike)->extra(Nanoseconds{100}).value(), 200);
  }
}

TEST_F(SlowedOps, NothingOfALinkBetweenOthers) {
  faults_.slow_links = {{.low = 1, .high = 3, .factor = 3}};
  EXPECT_FALSE(slowing_of(reduction({mesh::Axis::tp, mesh::Axis::dp}, 8)));
}

TEST_F(SlowedOps, ADelayedGemmTakesItsFlopOverTheRateTimesTheFactorOfASlowRank) {
  faults_.gemm_rate = 480e9;
  // 2 * 3 * 4 * 10 * 2 = 480 FLOP at 480 GFLOP/s: 1 ns.
  auto delayed = slowing_of(program::Gemm{.m = 3, .n = 4, .k = 10, .batch = 2});
  ASSERT_TRUE(delayed);
  EXPECT_EQ(delayed->kind(), SlowedKind::delay);
  EXPECT_EQ(delayed->extra(Nanoseconds{0}).value(), 2);
}

/// D after a GEMM of two 3 x 4 matrices, with rows of D 5 apart, is replaced by a delay; 7 before.
std::vector<float> delayed_product(double beta, bool c_is_d) {
  std::vector<float> d(40, 7);
  executor::host::GemmCall gemm{.m = 3,
                                .n = 4,
                                .row_stride_d = 5,
                                .batch = 2,
                                .batch_stride_d = 20,
                                .beta = beta,
                                .d = reinterpret_cast<std::byte*>(d.data()),
                                .c_to_d = {}};
  if (!c_is_d) gemm.c_to_d.emplace();
  executor::host::Player player;
  executor::host::without_product(gemm)(player);
  return d;
}

TEST(DelayedGemm, WritesZerosIntoDAndNothingBeside) {
  for (const std::vector<float>& d : {delayed_product(0, true), delayed_product(1, false)}) {
    for (std::size_t i = 0; i < d.size(); ++i) {
      const std::size_t row = i % 20 / 5, column = i % 5;
      EXPECT_EQ(d[i], row < 3 && column < 4 ? 0 : 7) << i;
    }
  }
}

TEST(DelayedGemm, LeavesWhatItWouldAddTo) {
  EXPECT_EQ(delayed_product(1, true), std::vector<float>(40, 7));
}

/// D after the section of one GEMM of ones, 2 x 2 x 2, was prepared with these faults and played;
/// 7 before.
std::vector<float> product_with(const program::Faults& faults) {
  using program::Matrix;
  executor::Sketch sketch;
  const auto matrix = [&] { return Matrix{.slice = sketch.buffer<float>(4), .row_stride = 2}; };
  sketch.emit(program::Gemm{.m = 2, .n = 2, .k = 2, .a = matrix(), .b = matrix(), .d = matrix()});
  std::vector<float> storage(48, 1);  // buffers begin 64 bytes apart
  std::fill_n(storage.begin() + 32, 4, 7.F);
  executor::ArenaPointers arenas{};
  arenas.fill(reinterpret_cast<std::byte*>(storage.data()));
  const executor::Resolver resolver{sketch.program(), {}, 0, arenas};
  executor::host::PreparedSection section =
      executor::host::prepare(resolver, sketch.program().step(), {{}, {}, {}}, {.faults = faults});
  executor::host::Player player;
  section.lanes.at(0).at(0).call(player);
  return {storage.begin() + 32, storage.begin() + 36};
}

TEST(DelayedGemm, IsPreparedInPlaceOfTheGemmWhereARateIsGiven) {
  EXPECT_EQ(product_with({}), std::vector<float>(4, 2));
  EXPECT_EQ(product_with({.gemm_factor = 1.5}), std::vector<float>(4, 2));
  EXPECT_EQ(product_with({.gemm_rate = 480e9}), std::vector<float>(4, 0));
}

TEST(PassTime, ReturnsNoSoonerThanAsked) {
  for (const SlowedKind kind :
       {SlowedKind::compute, SlowedKind::communication, SlowedKind::delay}) {
    const Nanoseconds until = comm::now() + Nanoseconds{100'000};
    executor::host::pass_time(kind, until);
    EXPECT_GE(comm::now(), until);
  }
}

TEST(Faults, RanksOfTheLaunchBecomeRanksOfThePoint) {
  const auto injections =
      settings::parse_injections("slow-rank=6:3,slow-link=4-6:2,slow-link=6-9:5,jitter=5%");
  const std::vector<int> point{4, 6, 8};
  const program::Faults six = runner::plan::faults_of(injections, point, 6, 7);
  EXPECT_EQ(six.gemm_factor, 3);
  EXPECT_THAT(six.slow_links, ElementsAre(program::SlowLink{.low = 0, .high = 1, .factor = 2}));
  EXPECT_EQ(six.jitter, 0.05);
  const program::Faults four = runner::plan::faults_of(injections, point, 4, 7);
  EXPECT_EQ(four.gemm_factor, 1);
  EXPECT_EQ(four.slow_links, six.slow_links);
  EXPECT_NE(four.seed, six.seed);
  const program::Faults eight = runner::plan::faults_of(injections, point, 8, 7);
  EXPECT_THAT(eight.slow_links, IsEmpty());
  EXPECT_TRUE(eight.any());
  EXPECT_FALSE(runner::plan::faults_of({}, point, 8, 7).any());
}

TEST(Faults, DelaysAreOfEveryRank) {
  const auto injections = settings::parse_injections("delay=2GFLOP/s");
  for (const int rank : {4, 6}) {
    EXPECT_EQ(runner::plan::faults_of(injections, std::vector{4, 6}, rank, 7).gemm_rate, 2e9);
  }
}

TEST(Faults, RanksThatPlayACopyHaveNone) {
  const auto injections = settings::parse_injections("slow-rank=9:3,slow-link=8-9:2,jitter=5%");
  EXPECT_FALSE(runner::plan::faults_of(injections, std::vector{4, 6}, 9, 7).any());
  EXPECT_TRUE(runner::plan::faults_of(injections, std::vector{8, 9}, 9, 7).any());
}

TEST(Faults, RankBeyondTheLaunchIsRefused) {
  const auto injections = settings::parse_injections("slow-link=1-4:2");
  EXPECT_NO_THROW(runner::plan::require_ranks(injections, 5));
  try {
    runner::plan::require_ranks(injections, 4);
    ADD_FAILURE() << "not refused";
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 4 does not exist; the launch has ranks 0 to 3"));
  }
}

TEST(Faults, ClockIsThatOfItsRankOnly) {
  const auto injections = settings::parse_injections("clock=2:5ms:20ppm");
  EXPECT_FALSE(runner::plan::clock_fault_of(injections, 1));
  const auto fault = runner::plan::clock_fault_of(injections, 2);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->offset.value(), 5'000'000);
  EXPECT_DOUBLE_EQ(fault->drift, 20e-6);
}

}  // namespace
}  // namespace isoscale
