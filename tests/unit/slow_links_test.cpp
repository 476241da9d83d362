// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/stragglers.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis {
namespace {

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
      std::vector<std::pair<int, int>> spans;
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

std::vector<efficiency::SlowLink> slow_links(const results::PointData& point) {
  return efficiency::slow_links(point, breakdown::traced_steps(point));
}
std::vector<efficiency::SlowLink> played(results::PointData& point, const LinkFactor& factor,
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
efficiency::SlowLink only_link(const std::vector<efficiency::SlowLink>& links,
                               const std::vector<int>& members, double factor, double tolerance) {
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
    const efficiency::SlowLink link = only_link(links, {2, 6, 10, 14}, 1.5, 0.1);
    EXPECT_EQ(link.op, "all_reduce");
    EXPECT_EQ(link.axes, "dp");
    EXPECT_THAT(efficiency::shared_by(links), IsEmpty());  // one link shares nothing
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
  const efficiency::SlowLink link = only_link(played(point, odd), {1, 5}, 1.6, 0.1);
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
  // The dp group and the tp group of rank 6.
  results::PointData point = grid();
  const auto links = played(point, [](int rank, AxisSet axes) {
    return (axes == AxisSet{Axis::dp} ? rank % 4 == 2 : rank / 4 == 1) ? 2.0 : 1.0;
  });
  ASSERT_EQ(links.size(), 2U);
  EXPECT_THAT(efficiency::shared_by(links), ElementsAre(6));
  EXPECT_THAT(efficiency::shared_by({}), IsEmpty());
  EXPECT_THAT(efficiency::shared_by({{.members = {0, 1}}, {.members = {2, 3}}}), IsEmpty());
  EXPECT_THAT(
      efficiency::shared_by({{.members = {0, 1, 2}}, {.members = {1, 2, 3}}, {.members = {2, 5}}}),
      ElementsAre(2));
}

}  // namespace
}  // namespace isoscale::analysis
