// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "planned_runs.hpp"
#include "runner/plan/schedule.hpp"

namespace isoscale::runner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using units::Seconds;

/// Takes `beside` and a loop from `least` to `most`, seconds.
plan::PointTime needs(double beside, double least, double most) {
  return {.set_up = Seconds{beside},
          .least = Seconds{least},
          .likely = Seconds{most},
          .most = Seconds{most}};
}

TEST(NextPortion, IsWhatWasAskedForWhereThereIsTime) {
  const std::vector points{needs(1, 1, 10), needs(1, 1, 10)};
  EXPECT_EQ(plan::next_portion(points, Seconds{22}), (plan::Portion{.at = 0, .loop = Seconds{10}}));
  EXPECT_EQ(plan::next_portion(points, Seconds{1000}),
            (plan::Portion{.at = 0, .loop = Seconds{10}}));
}

TEST(NextPortion, IsTheSameForAllWhereThereIsLess) {
  // 12 s for two loops beside 2 s of set-up.
  const std::vector points{needs(1, 1, 10), needs(1, 1, 10)};
  EXPECT_NEAR(plan::next_portion(points, Seconds{14})->loop.value(), 6, 1e-9);
  // The first gets what the second cannot use; the third keeps what it needs.
  const std::vector unlike{needs(0, 1, 30), needs(0, 1, 2), needs(0, 8, 30)};
  EXPECT_NEAR(plan::next_portion(unlike, Seconds{13})->loop.value(), 3, 1e-9);
  EXPECT_NEAR(plan::next_portion(unlike, Seconds{20})->loop.value(), 9, 1e-9);
}

TEST(NextPortion, CountsWhatFollowsALoop) {
  std::vector points{needs(0, 1, 100)};
  points.front().stretch = 1.25;
  EXPECT_NEAR(plan::next_portion(points, Seconds{10})->loop.value(), 8, 1e-9);
}

TEST(NextPortion, IsNeverLessThanTheFewestStepsNeed) {
  const std::vector points{needs(1, 5, 10), needs(1, 5, 10)};
  EXPECT_NEAR(plan::next_portion(points, Seconds{12})->loop.value(), 5, 1e-9);
  // One of them fits, and has the rest for itself.
  EXPECT_NEAR(plan::next_portion(points, Seconds{11.9})->loop.value(), 10, 1e-9);
  EXPECT_NEAR(plan::next_portion(points, Seconds{6})->loop.value(), 5, 1e-9);
  EXPECT_FALSE(plan::next_portion(points, Seconds{5.9}).has_value());
}

TEST(NextPortion, PassesOverWhatDoesNotFit) {
  const std::vector points{needs(100, 1, 10), needs(1, 1, 4)};
  EXPECT_EQ(plan::next_portion(points, Seconds{50}), (plan::Portion{.at = 1, .loop = Seconds{4}}));
  EXPECT_FALSE(plan::next_portion(points, Seconds{-1}).has_value());
  EXPECT_FALSE(plan::next_portion({}, Seconds{50}).has_value());
}

/// A plan of dp on 1, 2 and 4 ranks.
class TurnsOfACurve : public testing::Test {
 protected:
  TurnsOfACurve() {
    for (const plan::PlannedPoint& point : plan_.points) wanted_.insert(point.index);
  }

  /// The estimate of a point with the loop that is asked for.
  [[nodiscard]] Seconds whole(int index) const {
    const plan::PointTime time =
        plan::estimate(plan_.points[static_cast<std::size_t>(index)], config_, "host");
    return plan::total(time, time.most);
  }
  /// Plays all turns as if each took `factor` times what was expected of it.
  std::vector<int> play(plan::Schedule& turns, double factor) {
    std::vector<int> order;
    while (const auto turn = turns.next(elapsed_)) {
      const auto& point = plan_.points[static_cast<std::size_t>(turn->index)];
      const Seconds time = factor * plan::total(plan::estimate(point, config_, "host"), turn->loop);
      elapsed_ += time;
      turns.done(*turn, time);
      order.push_back(turn->index);
    }
    return order;
  }

  settings::RunConfig config_ = samples::config_of("dp");
  plan::Plan plan_ = plan::make_plan(config_, samples::site_of(4));
  std::set<int> wanted_;
  Seconds elapsed_{0};
};

TEST_F(TurnsOfACurve, WithoutABudgetAreThePlans) {
  plan::Schedule turns{plan_, config_, "host", wanted_};
  EXPECT_EQ(turns.next(Seconds{1e6})->loop, config_.max_time);
  EXPECT_THAT(play(turns, 100), ElementsAre(0, 1, 2));
  EXPECT_TRUE(turns.waiting().empty());
  EXPECT_FALSE(turns.shortest().has_value());
}

TEST_F(TurnsOfACurve, AreOfWhatIsWantedAndEndWithWhatFailedBefore) {
  plan::Schedule some{plan_, config_, "host", {0, 2}}, again{plan_, config_, "host", wanted_, {0}};
  EXPECT_THAT(play(some, 1), ElementsAre(0, 2));
  EXPECT_THAT(play(again, 1), ElementsAre(1, 2, 0));
}

TEST_F(TurnsOfACurve, KeepABudgetThatHoldsAll) {
  config_.budget = Seconds{50};
  plan::Schedule turns{plan_, config_, "host", wanted_};
  EXPECT_THAT(play(turns, 1), ElementsAre(0, 2, 1));
  EXPECT_EQ(turns.shortened(), 3);
  EXPECT_LT(*turns.shortest(), config_.max_time);
  EXPECT_LE(elapsed_, Seconds{50});
  EXPECT_GT(elapsed_, Seconds{45});  // and is made use of
}

TEST_F(TurnsOfACurve, LeaveNothingShortWhereThereIsTimeForAll) {
  config_.budget = 2 * (whole(0) + whole(1) + whole(2));
  plan::Schedule turns{plan_, config_, "host", wanted_};
  EXPECT_THAT(play(turns, 1), ElementsAre(0, 2, 1));
  EXPECT_EQ(turns.shortened(), 0);
}

TEST_F(TurnsOfACurve, LearnFromPointsThatTakeLonger) {
  // The first takes ten times its share: of the others, whatever fits comes still.
  config_.budget = Seconds{20};
  plan::Schedule turns{plan_, config_, "host", wanted_};
  const auto first = turns.next(Seconds{0});
  ASSERT_EQ(first->index, 0);
  turns.done(*first, Seconds{15});
  const auto second = turns.next(Seconds{15});
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->index, 2);
  plan::Schedule strict{plan_, config_, "host", {2}};
  EXPECT_LT(second->loop, strict.next(Seconds{15})->loop);
}

TEST_F(TurnsOfACurve, LearnFromPointsThatTakeLess) {
  // By its estimate, the second point does not fit any more.
  config_.budget = Seconds{10};
  plan::Schedule turns{plan_, config_, "host", {0, 2}};
  const auto first = turns.next(Seconds{0});
  ASSERT_EQ(first->index, 0);
  const Seconds late =
      Seconds{9.8} - 0.5 * plan::total(plan::estimate(plan_.points[2], config_, "host"), {});
  EXPECT_FALSE((plan::Schedule{plan_, config_, "host", {2}}.next(late).has_value()));
  turns.done(*first, 0.1 * plan::total(plan::estimate(plan_.points[0], config_, "host"), {}));
  ASSERT_TRUE(turns.next(late).has_value());
  EXPECT_EQ(turns.next(late)->index, 2);
}

TEST_F(TurnsOfACurve, LearnNothingFromPointsThatFailNorFromALoopThatEndsEarly) {
  config_.budget = Seconds{100};
  // A point may have taken as long as thought even where it took the least time that it needs.
  const Seconds least = plan::total(plan::estimate(plan_.points[0], config_, "host"), {});
  for (const std::optional<Seconds> time : {std::optional<Seconds>{}, std::optional{least}}) {
    plan::Schedule turns{plan_, config_, "host", {0, 2}};
    turns.done(*turns.next(Seconds{0}), time);
    EXPECT_EQ(turns.waiting(), (std::set<int>{2}));
    EXPECT_EQ(turns.next(Seconds{60})->loop,
              (plan::Schedule{plan_, config_, "host", {2}}.next(Seconds{60})->loop));
  }
}

TEST_F(TurnsOfACurve, AreForetoldByEstimates) {
  for (const auto& [index, loop] : plan::expected_loops(plan_, config_, "host")) {
    EXPECT_EQ(
        loop,
        plan::estimate(plan_.points[static_cast<std::size_t>(index)], config_, "host").likely);
  }
  config_.budget = Seconds{50};
  const auto loops = plan::expected_loops(plan_, config_, "host");
  ASSERT_EQ(loops.size(), 3U);
  plan::Schedule turns{plan_, config_, "host", wanted_};
  EXPECT_LE(loops.at(0), turns.next(Seconds{0})->loop);
  config_.budget = Seconds{1e-3};
  EXPECT_TRUE(plan::expected_loops(plan_, config_, "host").empty());
}

TEST_F(TurnsOfACurve, AreMissedWhenNoneWasTaken) {
  EXPECT_FALSE(plan::no_curve_warning(plan_, {}, Seconds{40}).has_value());
  EXPECT_FALSE(plan::no_curve_warning(plan_, {1, 2}, Seconds{40}).has_value());
  EXPECT_THAT(*plan::no_curve_warning(plan_, {0, 1, 2}, Seconds{40}),
              testing::AllOf(testing::HasSubstr("--budget 40 s"), testing::HasSubstr("3 points")));
  plan_.points[1].skip_reason = "does not divide";  // would not have been measured anyway
  EXPECT_TRUE(plan::no_curve_warning(plan_, {0, 2}, Seconds{40}).has_value());
  for (plan::PlannedPoint& point : plan_.points)
    point.workload = &workloads::find_workload("calibrate");
  EXPECT_FALSE(plan::no_curve_warning(plan_, {0, 1, 2}, Seconds{40}).has_value());
}

TEST_F(TurnsOfACurve, EndWhenTheBudgetDoes) {
  config_.budget = Seconds{5};
  plan::Schedule turns{plan_, config_, "host", wanted_};
  const auto first = turns.next(Seconds{0});
  turns.done(*first, Seconds{5});
  EXPECT_FALSE(turns.next(Seconds{5}).has_value());
  EXPECT_EQ(turns.waiting(), (std::set<int>{1, 2}));
}

/// A plan of `experiments`, each of whose points has one of `skipped`'s reasons.
plan::Plan plan_of(std::span<const settings::Experiment> experiments,
                   const std::vector<std::vector<std::string>>& reasons) {
  plan::Plan plan;
  for (std::size_t e = 0; e < experiments.size(); ++e) {
    for (const std::string& reason : reasons[e]) {
      plan.points.push_back({.index = static_cast<int>(plan.points.size()),
                             .experiment = &experiments[e],
                             .request = {},
                             .world_ranks = {},
                             .skip_reason = reason});
    }
  }
  return plan;
}

std::vector<std::string> measured(std::size_t count) { return std::vector<std::string>(count); }

TEST(EndsThenMiddles, BisectEveryGap) {
  EXPECT_THAT(plan::ends_then_middles(0), IsEmpty());
  EXPECT_THAT(plan::ends_then_middles(1), ElementsAre(0));
  EXPECT_THAT(plan::ends_then_middles(2), ElementsAre(0, 1));
  EXPECT_THAT(plan::ends_then_middles(3), ElementsAre(0, 2, 1));
  EXPECT_THAT(plan::ends_then_middles(6), ElementsAre(0, 5, 2, 1, 3, 4));
  EXPECT_THAT(plan::ends_then_middles(9), ElementsAre(0, 8, 4, 2, 6, 1, 3, 5, 7));
}

TEST(MostTellingFirst, TakesTurns) {
  std::array<settings::Experiment, 2> experiments;
  experiments[0].workload = "dp";
  experiments[1].workload = "tp";
  // dp: points 0 to 3, tp: points 4 to 6.
  // Both ends of dp, so that there is a curve.
  EXPECT_THAT(plan::most_telling_first(plan_of(experiments, {measured(4), measured(3)})),
              ElementsAre(0, 3, 4, 6, 1, 5, 2));
}

TEST(MostTellingFirst, CalibratesOnceThereIsACurve) {
  std::array<settings::Experiment, 3> experiments;
  experiments[0].workload = "calibrate";
  experiments[1].workload = "dp";
  experiments[2].workload = "tp";
  // calibrate: points 0 to 3, dp: points 4 to 6, tp: points 7 to 9.
  EXPECT_THAT(
      plan::most_telling_first(plan_of(experiments, {measured(4), measured(3), measured(3)})),
      ElementsAre(4, 6, 0, 3, 7, 9, 1, 5, 8, 2));
}

TEST(MostTellingFirst, IsNoCurveOfMicroBenchmarks) {
  std::array<settings::Experiment, 2> experiments;
  experiments[0].workload = "gemm";
  experiments[1].workload = "calibrate";
  EXPECT_THAT(plan::most_telling_first(plan_of(experiments, {measured(2), measured(2)})),
              ElementsAre(2, 3, 0, 1));
}

TEST(MostTellingFirst, PutsDownWhatIsSkippedAtOnce) {
  std::array<settings::Experiment, 2> experiments;
  experiments[0].workload = "dp";
  experiments[1].workload = "dp";  // another curve of the same workload
  // Points 0 and 4 do not fit: the baselines are 1 and 5.
  EXPECT_THAT(plan::most_telling_first(plan_of(experiments, {{"no", "", "", ""}, {"no", "", ""}})),
              ElementsAre(0, 4, 1, 3, 5, 6, 2));
}

}  // namespace
}  // namespace isoscale::runner
