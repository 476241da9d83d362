// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/slow_ranks_and_links.hpp"
#include "analysis_test.hpp"

/// The tests check which ranks and which links are found to be slower than others.
namespace isoscale::analysis::efficiency {
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
  const std::vector<double> persistent = mapped(
      std::views::iota(0, point.ranks), [&](int) { return 1 + noise.of_rank * draw.normal(); });
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

std::vector<SlowRank> found(const Shape& shape, const Noise& noise, const RankFactor& factor,
                            std::uint64_t seed) {
  results::PointData point = alike({.dp = shape.ranks}, Script{}.compute());
  simulate(point, shape.steps, noise, factor, seed);
  return slow_ranks(point);
}

const std::vector<Noise> noises{{.of_step = 0.02},
                                {.of_op = 0.02},
                                {.of_step = 0.02, .of_rank = 0.01},
                                {.of_step = 0.02, .of_all = 0.05}};
const std::vector<Shape> shapes{
    {.steps = 6, .named = 90}, {.steps = 10}, {.steps = 20}, {.steps = 64}, {.ranks = 64}};

/// Expects that one rank is slow, and returns what is known of it.
SlowRank only_rank(const std::vector<SlowRank>& slow, int rank) {
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
  EXPECT_THAT(found({}, {.of_step = 0.02}, both, 1),
              ElementsAre(Field(&SlowRank::rank, 1), Field(&SlowRank::rank, 6)));
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
std::vector<SlowRank> found_by_rate(const std::vector<double>& flop, const RankFactor& factor,
                                    std::uint64_t seed) {
  results::PointData point =
      samples::point({.pp = 4}, std::vector<Script>(4, Script{}.compute()), {});
  point.flop_of_rank = flop;
  simulate(point, 20, {.of_step = 0.02}, factor, seed);
  return slow_ranks(point);
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
  EXPECT_FALSE(only_rank(slow_ranks(point), 1).by_rate);
}

TEST(SlowRanks, AreNotToldFromStepsThatWereNotMeasured) {
  results::PointData point = alike({.dp = 8}, Script{}.compute());
  simulate(point, 20, {.of_step = 0.02}, slow_from(5, 1.2), 1);
  // Times that are none, of several ranks, in several steps: those steps do not count.
  point.op_sums[0].gemm[0] = std::numeric_limits<double>::quiet_NaN();
  point.op_sums[1].gemm[5] = 0;
  point.op_sums[2].gemm[3] = std::numeric_limits<double>::infinity();
  point.op_sums[3].gemm.clear();
  only_rank(slow_ranks(point), 5);
  for (results::OpSums& step : point.op_sums) step.gemm.assign(8, 0);
  EXPECT_THAT(slow_ranks(point), IsEmpty());
  // Others and steps are needed, too.
  EXPECT_THAT(slow_ranks(alike({.dp = 8}, Script{}.compute())), IsEmpty());
  EXPECT_THAT(found({.ranks = 1}, {}, slow_from(0, 2), 1), IsEmpty());
  EXPECT_THAT(found({.steps = 5}, {.of_step = 0.001}, slow_from(5, 1.5), 1), IsEmpty());
  EXPECT_EQ(found({.steps = 6}, {.of_step = 0.001}, slow_from(5, 1.5), 1).size(), 1U);
}

constexpr int slot = 1'000'000;       // ns from the begin of one op to that of the next
constexpr double transfer = 100'000;  // ns of a sound link

/// How much longer the ranks that `rank` meets along `axes` take.
using LinkFactor = std::function<double(int rank, AxisSet axes)>;

double sound(int, AxisSet) { return 1; }

/// Number of what an op of `rank` belongs to: the same for all of its members.
int group_of(const results::PointData& point, int rank, const program::OutlineOp& op) {
  if (op.kind != program::OpKind::exchange)
    return mesh::group_members(point.mesh, rank, op.axes)[0];
  const auto& first = point.outline.of(rank).transfers_of(op).front();
  return std::min(rank, mesh::neighbour(point.mesh, rank, first.axis, first.offset));
}

struct Play {
  int steps = 4;
  double noise = 0.03;  ///< relative, of each instance
  std::uint64_t seed = 1;
  double late = 0;            ///< ns that rank 0 comes late to everything
  double interrupted = 0;     ///< share of instances that take `interruption` ns longer
  double interruption = 3e5;  ///< what else the machine did meanwhile
};

/// Plays op k of all ranks at k slots.
void play(results::PointData& point, const LinkFactor& factor, const Play& how = {}) {
  Draw draw{how.seed};
  point.traces.clear();
  for (int step = 0; step < how.steps; ++step) {
    timeline::Timeline timeline;
    std::map<std::pair<std::size_t, int>, int> ends;  // of instances, after their slot's begin
    for (int rank = 0; rank < point.ranks; ++rank) {
      const auto& ops = point.outline.of(rank).ops;
      Spans spans;
      for (std::size_t op = 0; op < ops.size(); ++op) {
        const int begin = static_cast<int>(op) * slot;
        const auto [end, added] = ends.try_emplace({op, group_of(point, rank, ops[op])});
        if (added) {
          end->second = static_cast<int>(how.late + transfer * factor(rank, ops[op].axes) *
                                                        (1 + how.noise * draw.normal()));
          if (draw.uniform() < how.interrupted) end->second += static_cast<int>(how.interruption);
        }
        const int late = rank == 0 ? static_cast<int>(how.late) : 0;
        spans.emplace_back(begin + late, begin + end->second);
      }
      timeline.ranks.push_back(trace(rank, {0, static_cast<int>(ops.size()) * slot}, spans));
    }
    add_step(point, std::move(timeline));
  }
}

std::vector<SlowLink> slow_links(const results::PointData& point) {
  return efficiency::slow_links(point, breakdown::traced_steps(point));
}
std::vector<SlowLink> played(results::PointData& point, const LinkFactor& factor,
                             const Play& how = {}) {
  play(point, factor, how);
  return slow_links(point);
}

/// 16 ranks: 4 dp groups and 4 tp groups of 4.
results::PointData grid() {
  Script script;
  for (int i = 0; i < 4; ++i) script.all_reduce(Axis::tp).all_reduce(Axis::dp);
  return alike({.tp = 4, .dp = 4}, script);
}

/// The dp group of rank 2: 2, 6, 10, 14.
LinkFactor slow_dp(double times) {
  return [times](int rank, AxisSet axes) {
    return axes == AxisSet{Axis::dp} && rank % 4 == 2 ? times : 1.0;
  };
}

/// Expects that one link is slow, with these members and this factor; returns it.
SlowLink only_link(const std::vector<SlowLink>& links, const std::vector<int>& members,
                   double factor, double tolerance) {
  EXPECT_EQ(links.size(), 1U);
  if (links.size() != 1) return {};
  EXPECT_EQ(links[0].members, members);
  EXPECT_NEAR(links[0].factor, factor, tolerance);
  return links[0];
}

TEST(SlowLinks, AreGroupsThatTakeLongerThanOthersOfTheirAxisAndNotNoise) {
  results::PointData point = grid();
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    EXPECT_THAT(played(point, sound, {.seed = seed}), IsEmpty());
    EXPECT_THAT(played(point, slow_dp(1.15), {.seed = seed}), IsEmpty());  // too little
    if (seed >= 50) continue;
    const auto links = played(point, slow_dp(1.5), {.seed = seed});
    const SlowLink link = only_link(links, {2, 6, 10, 14}, 1.5, 0.1);
    EXPECT_EQ(link.op, "all_reduce");
    EXPECT_EQ(link.axes, "dp");
    EXPECT_THAT(shared_by(links), IsEmpty());  // one link shares nothing
    // A quarter of all calls takes four times as long on a busy machine.
    only_link(played(point, slow_dp(3), {.steps = 8, .seed = seed, .interrupted = 0.25}),
              {2, 6, 10, 14}, 3, 0.3);
    EXPECT_THAT(played(point, sound, {.steps = 8, .seed = seed, .interrupted = 0.25}), IsEmpty());
  }
}

TEST(SlowLinks, AreNotJudgedByOneStep) {
  const auto found = [](const LinkFactor& usual, const LinkFactor& odd, int steps) {
    results::PointData point = grid(), other = grid();
    play(point, usual, {.steps = steps});
    play(other, odd, {.steps = 1});
    add_step(point, other.traces[0]);
    return slow_links(point);
  };
  EXPECT_THAT(found(sound, slow_dp(4), 4), IsEmpty()) << "a bad one";
  // All others are as slow in the odd step.
  only_link(found(
                slow_dp(3), [](int, AxisSet) { return 3.0; }, 4),
            {2, 6, 10, 14}, 3, 0.2);
  // One step without what slows all others down in the other three.
  const auto lucky = [](int rank, AxisSet axes) {
    return axes == AxisSet{Axis::dp} && rank % 4 != 2 ? 0.5 : 1.0;
  };
  EXPECT_THAT(found(sound, lucky, 3), IsEmpty());
}

TEST(SlowLinks, DoNotCountWaitingForALateRankNorTransferForLessThanNothing) {
  // Rank 0 comes late by three times what a transfer takes: the others' spans are long.
  results::PointData late = grid();
  EXPECT_THAT(played(late, sound, {.late = 3 * transfer}), IsEmpty());
  // Rank 0 has sent 50 ns before rank 2 begins to receive: both pairs take 100 ns all the same.
  const Script send = Script{}.send(1), receive = Script{}.receive(-1);
  results::PointData point = samples::point({.dp = 2, .pp = 2}, {send, send, receive, receive}, {});
  point.traces.clear();
  for (int i = 0; i < 3; ++i) {
    add_step(point, step({0, 900}, {{{0, 10}}, {{0, 10}}, {{60, 160}}, {{10, 110}}}));
  }
  EXPECT_THAT(slow_links(point), IsEmpty());
}

TEST(SlowLinks, OfTwoGroupsHaveToDifferMore) {
  results::PointData point =
      alike({.tp = 2, .dp = 2}, Script{}.all_reduce(Axis::dp).all_reduce(Axis::dp));
  const auto found = [&point](double times) {
    return played(point, [times](int rank, AxisSet) { return rank % 2 == 1 ? times : 1.0; });
  };
  EXPECT_THAT(found(1.35), IsEmpty());
  only_link(found(1.8), {1, 3}, 1.8, 0.15);
}

TEST(SlowLinks, AreNotToldWithoutOthersAndAllMembers) {
  results::PointData alone = alike({.dp = 4}, Script{}.all_reduce(Axis::dp));
  EXPECT_THAT(played(alone, [](int, AxisSet) { return 100.0; }), IsEmpty());
  EXPECT_THAT(efficiency::slow_links(alone, {}), IsEmpty());
  // It is not known how long its partners wait for rank 14, nor that it is late.
  results::PointData point = grid();
  ASSERT_EQ(played(point, slow_dp(3)).size(), 1U);
  for (timeline::Timeline& step : point.traces) step.ranks.erase(step.ranks.begin() + 14);
  EXPECT_THAT(slow_links(point), IsEmpty());
}

TEST(SlowLinks, OfExchangesArePairs) {
  // Two stages of 4 ranks, that exchange both ways: pairs 0-4, 1-5, 2-6 and 3-7.
  std::vector<Script> ranks(4, Script{}.send(1).receive(1).send(1).receive(1));
  ranks.resize(8, Script{}.receive(-1).send(-1).receive(-1).send(-1));
  results::PointData point = samples::point({.dp = 4, .pp = 2}, ranks, {});
  const auto odd = [](int rank, AxisSet) { return rank % 4 == 1 ? 1.6 : 1.0; };
  const SlowLink link = only_link(played(point, odd), {1, 5}, 1.6, 0.1);
  EXPECT_EQ(link.op, "exchange");
  EXPECT_EQ(link.axes, "pp");
  EXPECT_THAT(played(point, sound), IsEmpty());
}

TEST(SlowLinks, OfExchangesWithSeveralPartnersAreNotTold) {
  // A ring of four stages, twice: each rank's first exchange sends to the next and receives from
  // the one before. What follows it with one partner tells of pairs all the same.
  results::PointData point =
      samples::point({.dp = 2, .pp = 4}, std::vector<Script>(8, Script{}), {});
  for (int rank = 0; rank < 8; ++rank) {
    const bool even = rank / 2 % 2 == 0;
    auto& outline = point.outline.outlines[static_cast<std::size_t>(rank)];
    // transfers 0 and 1 are of the ring, 2 of the pairs 0-1 and 2-3 of the stages.
    outline =
        (even ? Script{}.send(1).receive(-1).send(1) : Script{}.receive(-1).send(1).receive(-1))
            .outline();
    outline.ops.erase(outline.ops.begin() + 1);
    outline.ops[0].transfer_count = 2;
  }
  only_link(played(point, [](int rank, AxisSet) { return rank % 2 == 1 && rank < 4 ? 2.0 : 1.0; }),
            {1, 3}, 2, 0.15);
}

TEST(SlowLinks, ThatShareARankNameIt) {
  EXPECT_THAT(shared_by({}), IsEmpty());
  EXPECT_THAT(shared_by({{.members = {0, 1}}, {.members = {2, 3}}}), IsEmpty());
  EXPECT_THAT(shared_by({{.members = {0, 1, 2}}, {.members = {1, 2, 3}}, {.members = {2, 5}}}),
              ElementsAre(2));
}

}  // namespace
}  // namespace isoscale::analysis::efficiency
