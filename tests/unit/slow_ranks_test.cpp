// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/stragglers.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis {
namespace {

constexpr int ops_in_step = 24;

/// How a rank's GEMMs vary; relative.
struct Noise {
  double of_step = 0;  ///< alike for all GEMMs of a rank's step
  double of_op = 0;
  double of_rank = 0;  ///< persistent
  double of_all = 0;   ///< alike for all ranks in a step
};

/// How much longer `rank` takes in step number `step`.
using RankFactor = std::function<double(int rank, int step)>;

RankFactor slow_from(int slow, double factor, int first = 0) {
  return [=](int rank, int step) { return rank == slow && step >= first ? factor : 1.0; };
}
double nobody(int, int) { return 1; }

struct Shape {
  int ranks = 8, steps = 20;
  int named = 98;  ///< least of 100 runs in which the slow rank is named
};

/// Traced every second step of a run, seconds of GEMMs on each rank.
void simulate(results::PointData& point, int steps, const Noise& noise, const RankFactor& factor,
              std::uint64_t seed) {
  Draw draw{seed};
  std::vector<double> persistent;
  for (int rank = 0; rank < point.ranks; ++rank) {
    persistent.push_back(1 + noise.of_rank * draw.normal());
  }
  for (int step = 0; step < steps; ++step) {
    const double all = 1 + noise.of_all * draw.normal();
    results::OpSums& sums =
        point.op_sums.emplace_back(results::OpSums{.step = 100 + 2 * static_cast<unsigned>(step)});
    for (int rank = 0; rank < point.ranks; ++rank) {
      double ops = 0;
      for (int op = 0; op < ops_in_step; ++op) ops += 1e-3 * (1 + noise.of_op * draw.normal());
      sums.gemm.push_back(ops * all * persistent[static_cast<std::size_t>(rank)] *
                          factor(rank, step) * (1 + noise.of_step * draw.normal()));
    }
  }
}

std::vector<efficiency::SlowRank> found(const Shape& shape, const Noise& noise,
                                        const RankFactor& factor, std::uint64_t seed) {
  results::PointData point = alike({.dp = shape.ranks}, Script{}.compute());
  simulate(point, shape.steps, noise, factor, seed);
  return efficiency::slow_ranks(point);
}

const std::vector<Noise> noises{{.of_step = 0.02},
                                {.of_op = 0.02},
                                {.of_step = 0.02, .of_rank = 0.01},
                                {.of_step = 0.02, .of_all = 0.05}};
const std::vector<Shape> shapes{
    {.steps = 6, .named = 90}, {.steps = 10}, {.steps = 20}, {.steps = 64}, {.ranks = 64}};

/// Expects that one rank is slow, and returns what is known of it.
efficiency::SlowRank only_rank(const std::vector<efficiency::SlowRank>& slow, int rank) {
  EXPECT_EQ(slow.size(), 1U);
  if (slow.size() != 1) return {};
  EXPECT_EQ(slow[0].rank, rank);
  return slow[0];
}

TEST(SlowRanks, AreNamedAndNoOthersAndNotFoundInNoise) {
  for (const Shape& shape : shapes) {
    for (const Noise& noise : noises) {
      SCOPED_TRACE(testing::Message()
                   << shape.ranks << " ranks, " << shape.steps << " steps, noise of step "
                   << noise.of_step << ", op " << noise.of_op << ", rank " << noise.of_rank);
      int right = 0, alarms = 0;
      for (std::uint64_t seed = 0; seed < 100; ++seed) {
        const auto slow = found(shape, noise, slow_from(5, 1.10), seed);
        right += slow.size() == 1 && slow[0].rank == 5 && !slow[0].since ? 1 : 0;
        alarms += found(shape, noise, nobody, seed).empty() ? 0 : 1;
      }
      EXPECT_GE(right, shape.named);
      EXPECT_LE(alarms, 2);
    }
  }
}

TEST(SlowRanks, HaveTheirFactorWithItsIntervalAndCanBeTwo) {
  const auto slow = only_rank(found({}, {.of_step = 0.02}, slow_from(3, 1.25), 1), 3);
  EXPECT_NEAR(slow.factor, 1.25, 0.02);
  EXPECT_LT(slow.lower.value(), 1.25);
  EXPECT_GT(slow.upper.value(), 1.25);
  EXPECT_FALSE(slow.by_rate);
  const auto both = [](int rank, int) { return rank == 1 || rank == 6 ? 1.2 : 1.0; };
  EXPECT_THAT(
      found({}, {.of_step = 0.02}, both, 1),
      ElementsAre(Field(&efficiency::SlowRank::rank, 1), Field(&efficiency::SlowRank::rank, 6)));
}

TEST(SlowRanks, OfTwoAreComparedWithEachOther) {
  int right = 0, alarms = 0, at_the_end = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto slow = found({.ranks = 2}, {.of_step = 0.02}, slow_from(1, 1.15), seed);
    right += slow.size() == 1 && slow[0].rank == 1 ? 1 : 0;
    alarms += found({.ranks = 2}, {.of_step = 0.02}, nobody, seed).empty() ? 0 : 1;
    // Ranks that differ by 3% for good: some are 5% above the middle, and none is out of line.
    at_the_end += found({}, {.of_step = 0.02, .of_rank = 0.03}, nobody, seed).empty() ? 0 : 1;
  }
  EXPECT_GE(right, 98);
  EXPECT_LE(alarms, 2);
  EXPECT_LE(at_the_end, 5);
}

TEST(SlowRanks, SinceWhen) {
  // Slow from the 20th of 40 traced steps on, which is step 100 + 2 * 20.
  for (const double factor : {1.10, 1.5}) {
    int right = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const auto slow = found({.steps = 40}, {.of_step = 0.02}, slow_from(5, factor, 20), seed);
      if (slow.size() != 1 || slow[0].rank != 5 || !slow[0].since) continue;
      const bool in_time = std::abs(static_cast<double>(*slow[0].since) - 140) <= 4;
      right += in_time && std::abs(slow[0].factor - factor) < 0.03 ? 1 : 0;
    }
    EXPECT_GE(right, 98) << factor;
  }
}

TEST(SlowRanks, AreForgivenOnceTheyAreNotSlowAnyMoreButNotOnceTheyAreLessSlow) {
  // Slow in the first 10 of 40 steps only.
  const auto early = [](int rank, int step) { return rank == 5 && step < 10 ? 1.1 : 1.0; };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_THAT(found({.steps = 40}, {.of_step = 0.02}, early, seed), IsEmpty());
  }
  const auto less = [](int rank, int step) { return rank != 5 ? 1.0 : step < 15 ? 1.4 : 1.2; };
  EXPECT_FALSE(only_rank(found({.steps = 40}, {.of_step = 0.01}, less, 1), 5).since);
}

/// Ranks that all play a program of their own, with these FLOP.
std::vector<efficiency::SlowRank> found_by_rate(const std::vector<double>& flop,
                                                const RankFactor& factor, std::uint64_t seed) {
  results::PointData point =
      samples::point({.pp = 4}, std::vector<Script>(4, Script{}.compute()), {});
  point.flop_of_rank = flop;
  simulate(point, 20, {.of_step = 0.02}, factor, seed);
  return efficiency::slow_ranks(point);
}

TEST(SlowRanks, WithProgramsOfTheirOwnAreComparedByRate) {
  const auto found = [](double times, std::uint64_t seed) {
    const auto by_flop = [times](int rank, int) { return (rank + 1) * (rank == 2 ? times : 1); };
    return found_by_rate({1e9, 2e9, 3e9, 4e9}, by_flop, seed);
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_THAT(found(1, seed), IsEmpty());
    EXPECT_THAT(found(1.08, seed), IsEmpty());  // shapes may be to blame
    const auto slow = only_rank(found(1.3, seed), 2);
    EXPECT_TRUE(slow.by_rate);
    EXPECT_NEAR(slow.factor, 1.3, 0.05);
  }
  EXPECT_THAT(found_by_rate({}, slow_from(1, 2), 1), IsEmpty()) << "no FLOP known";
  EXPECT_THAT(found_by_rate({1e9, 1e9, 0, 1e9}, slow_from(1, 2), 1), IsEmpty());
  only_rank(found_by_rate({1e9, 1e9, 1e9, 1e9}, slow_from(1, 2), 1), 1);
}

TEST(SlowRanks, AreNamedOnceWhereLikeRanksAndRatesTellTheSame) {
  // Ranks 0 to 3 are alike and rank 4 is alone; rank 1 is slow by both comparisons.
  results::PointData point =
      samples::point({.pp = 5}, std::vector<Script>(5, Script{}.compute()), {});
  point.outline.outline_of_rank = {0, 0, 0, 0, 1};
  point.flop_of_rank.assign(5, 1e9);
  simulate(point, 20, {.of_step = 0.02}, slow_from(1, 1.4), 1);
  EXPECT_FALSE(only_rank(efficiency::slow_ranks(point), 1).by_rate);
}

TEST(SlowRanks, AreNotToldFromStepsThatWereNotMeasured) {
  results::PointData point = alike({.dp = 8}, Script{}.compute());
  simulate(point, 20, {.of_step = 0.02}, slow_from(5, 1.2), 1);
  // Times that are none, of several ranks, in several steps: those steps do not count.
  point.op_sums[0].gemm[0] = std::numeric_limits<double>::quiet_NaN();
  point.op_sums[1].gemm[5] = 0;
  point.op_sums[2].gemm[3] = std::numeric_limits<double>::infinity();
  point.op_sums[3].gemm.clear();
  only_rank(efficiency::slow_ranks(point), 5);
  for (results::OpSums& step : point.op_sums) step.gemm.assign(8, 0);
  EXPECT_THAT(efficiency::slow_ranks(point), IsEmpty());
  // Others and steps are needed, too.
  EXPECT_THAT(efficiency::slow_ranks(alike({.dp = 8}, Script{}.compute())), IsEmpty());
  EXPECT_THAT(found({.ranks = 1}, {}, slow_from(0, 2), 1), IsEmpty());
  EXPECT_THAT(found({.steps = 5}, {.of_step = 0.001}, slow_from(5, 1.5), 1), IsEmpty());
  EXPECT_EQ(found({.steps = 6}, {.of_step = 0.001}, slow_from(5, 1.5), 1).size(), 1U);
}

}  // namespace
}  // namespace isoscale::analysis
