// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The tests check what is kept of a point's steps, and which ranks sample or trace it.

#include "runner/measure/gather_point.hpp"
#include "matchers.hpp"
#include "runner/measure/measure_steps.hpp"

namespace isoscale::runner {
namespace {

struct Numbered {
  std::uint32_t step;
};
std::vector<std::uint32_t> thinned(std::uint32_t steps, std::size_t most) {
  std::vector<Numbered> entries;
  for (std::uint32_t step = 0; step < steps; ++step) {
    entries.push_back({step});
    measure::thin_to(entries, most);
  }
  return mapped(entries, &Numbered::step);
}

TEST(Spread, KeepsTheEndsAndAnEvenShareOfWhatLiesBetween) {
  EXPECT_THAT(thinned(3, 4), ElementsAre(0, 1, 2));
  EXPECT_THAT(thinned(100, 2), ElementsAre(0, 99));
  EXPECT_THAT(thinned(100, 1), ElementsAre(99));
  EXPECT_TRUE(thinned(100, 0).empty());
  const auto kept = thinned(1000, 32);
  ASSERT_EQ(kept.size(), 32U);
  EXPECT_EQ(kept.front(), 0U);
  EXPECT_EQ(kept.back(), 999U);
  for (std::size_t i = 1; i < kept.size(); ++i) EXPECT_LE(kept[i] - kept[i - 1], 3 * 1000U / 32);
}

TEST(OpSums, AddSpansUpByTheClassesOfTheirPayloads) {
  program::Program program;
  for (program::Payload payload : {program::Payload{program::Gemm{}},
                                   {program::Collective{}},
                                   {program::Copy{}},
                                   {program::Update{}},
                                   {program::Gemm{}}}) {
    program.ops.push_back({.payload = std::move(payload)});
  }
  const auto span = [](std::uint32_t op, std::int64_t start, std::int64_t end) {
    return timeline::Span{
        .op = op, .start = units::Nanoseconds{start}, .end = units::Nanoseconds{end}};
  };
  const std::array spans{span(0, 0, 100), span(1, 50, 300), span(2, 100, 110), span(3, 110, 117),
                         span(4, 200, 205)};
  const measure::StepSums sums = measure::sum_up(7, spans, program);
  EXPECT_EQ(sums.step, 7U);
  EXPECT_EQ(sums.gemm, units::Nanoseconds{105});
  EXPECT_EQ(sums.communication, units::Nanoseconds{250});
  EXPECT_EQ(sums.copies, units::Nanoseconds{10});
  EXPECT_EQ(sums.other_compute, units::Nanoseconds{7});
}

/// Two nodes of two ranks each, two CPUs a rank.
const std::vector<int> node_of_rank{0, 0, 1, 1};

std::vector<machine::MachineFacts> facts() {
  std::vector<machine::MachineFacts> all(4);
  all[0].bound_cpus = all[2].bound_cpus = {0, 1};
  all[1].bound_cpus = all[3].bound_cpus = {2, 3};
  return all;
}

measure::SamplingDuty duty(int rank, const std::vector<int>& world_ranks, const char* gpu = "") {
  return measure::sampling_duty(rank, world_ranks, node_of_rank, facts(), gpu);
}

TEST(SamplingDuty, OfANodeIsItsLowestRankOfThePointForTheCpusOfAll) {
  using Numbers = std::vector<int>;
  const Numbers all{0, 1, 2, 3};
  // A rank of the point and all its ranks in the world; the CPUs if it samples its node.
  for (const auto& [rank, world_ranks, cpus] : {std::tuple{0, all, Numbers{0, 1, 2, 3}},
                                                {1, all, {}},
                                                {2, all, {0, 1, 2, 3}},
                                                {3, all, {}},
                                                {0, {3, 1}, {2, 3}},
                                                {1, {3, 1}, {2, 3}},
                                                {0, {0, 2}, {0, 1}},
                                                {1, {0, 3}, {2, 3}}}) {
    EXPECT_EQ(duty(rank, world_ranks).node, !cpus.empty()) << rank;
    EXPECT_EQ(duty(rank, world_ranks).cpus, cpus) << rank;
  }
  // No CPUs are known where a binding is not.
  std::vector<machine::MachineFacts> some = facts();
  some[1].bound_cpus.clear();
  EXPECT_THAT(measure::sampling_duty(0, all, node_of_rank, some, "").cpus, IsEmpty());
  EXPECT_THAT(measure::sampling_duty(2, all, node_of_rank, some, "").cpus, ElementsAre(0, 1, 2, 3));
  // A GPU is sampled by its own rank.
  EXPECT_EQ(duty(1, {0, 1}, "GPU-1").gpu_uuid, "GPU-1");
  EXPECT_EQ(duty(1, {0, 1}).gpu_uuid, "");
}

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST(SamplingDuty, IsSmallerWhereManyRanksSample) {
  for (const auto& [ranks, most] : {std::pair{1, 600U}, {128, 600U}, {256, 300U}, {4096, 60U}}) {
    const std::vector<int> nodes(static_cast<std::size_t>(ranks), 0);
    EXPECT_EQ(measure::sampling_duty(0, first_ranks(ranks), nodes, {}, "").most_samples, most);
  }
}

// Which ranks of a point keep their spans.

/// 8 stages of 64 ranks, each 8 replicas of 8.
constexpr mesh::Shape large{.tp = 8, .dp = 8, .pp = 8};

TEST(TracedRanks, AreAsManyReplicasOfAllStagesAsFit) {
  EXPECT_EQ(measure::traced_ranks({}, 1), first_ranks(1));
  EXPECT_EQ(measure::traced_ranks({.tp = 2, .dp = 4}, 8), first_ranks(8));
  EXPECT_EQ(measure::traced_ranks({.tp = 2, .dp = 4}, 1000), first_ranks(8));
  EXPECT_EQ(measure::traced_ranks(large, 512), first_ranks(512));
  // tp varies fastest: ranks 0-7 of each stage's 64.
  std::vector<int> expected;
  for (int stage = 0; stage < 8; ++stage) {
    for (int tp = 0; tp < 8; ++tp) expected.push_back(64 * stage + tp);
  }
  EXPECT_EQ(measure::traced_ranks(large, 64), expected);
  EXPECT_EQ(measure::traced_ranks(large, 127), expected);  // a second replica does not fit
  const std::vector<int> two = measure::traced_ranks(large, 128);
  ASSERT_EQ(two.size(), 128U);
  EXPECT_EQ(two[15], 15);
  EXPECT_EQ(two[16], 64);
  EXPECT_EQ(measure::traced_ranks(large, 200).size(), 192U);
  EXPECT_EQ(measure::traced_ranks({.dp = 512}, 64), first_ranks(64));
}

TEST(TracedRanks, KeepStagesBeforeAllElseAndLoseExpertsAndContextBeforeTensors) {
  EXPECT_THAT(measure::traced_ranks(large, 16), ElementsAre(0, 1, 64, 65, 128, 129, 192, 193, 256,
                                                            257, 320, 321, 384, 385, 448, 449));
  EXPECT_THAT(measure::traced_ranks(large, 8), ElementsAre(0, 64, 128, 192, 256, 320, 384, 448));
  EXPECT_THAT(measure::traced_ranks(large, 7), ElementsAre(0, 64, 128, 192, 256, 320, 384));
  EXPECT_THAT(measure::traced_ranks(large, 1), ElementsAre(0));
  EXPECT_EQ(measure::traced_ranks({.pp = 128}, 64), first_ranks(64));
  const mesh::Shape shape{.tp = 2, .cp = 2, .ep = 2, .dp = 2};
  EXPECT_EQ(measure::traced_ranks(shape, 8), first_ranks(8));  // ranks 8-15 are dp 1
  EXPECT_EQ(measure::traced_ranks(shape, 4), first_ranks(4));  // 4-7 are ep 1
  EXPECT_EQ(measure::traced_ranks(shape, 2), first_ranks(2));  // 2 and 3 are cp 1
  EXPECT_THAT(measure::traced_ranks({.cp = 2, .pp = 2}, 2), ElementsAre(0, 2));
}

TEST(TracedRanks, AreNeverTooManyNorNone) {
  for (const mesh::Shape& shape : {large, mesh::Shape{.tp = 3, .cp = 2, .ep = 5, .dp = 7, .pp = 2},
                                   mesh::Shape{.ep = 6, .pp = 5}}) {
    for (int most = 1; most <= shape.size() + 1; ++most) {
      const std::vector<int> ranks = measure::traced_ranks(shape, most);
      EXPECT_FALSE(ranks.empty()) << most;
      EXPECT_LE(ranks.size(), static_cast<std::size_t>(most));
      EXPECT_EQ(ranks.front(), 0);
      EXPECT_TRUE(std::ranges::is_sorted(ranks));
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
