// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Points of which too few steps count, in what is computed from them and in what is shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/curves.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/render.hpp"
#include "launch_samples.hpp"

namespace isoscale::analysis {
namespace {

using nlohmann::json;
using samples::JoinedLaunches;
using samples::launch_of;
using samples::measured;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

/// `count` steps that count, after two of warm-up.
void keep_steps(results::PointData& point, std::size_t count) {
  point.step_times.resize(count + 2);
  point.traced.resize(count + 2);
  point.dropped.resize(count + 2);
}

TEST(FewSteps, LabelPointsBelowSixThatCount) {
  const auto point_with = [](std::size_t count) {
    results::RunData run = samples::run();
    run.points = {measured(0, {}, 0.2)};
    keep_steps(run.points[0], count);
    return make_report(run, "", {}).curves.at(0).points.at(0);
  };
  EXPECT_THAT(point_with(5).labels, ElementsAre("few-steps"));
  EXPECT_EQ(point_with(5).steps, 5U);
  EXPECT_THAT(point_with(6).labels, ElementsAre());
}

TEST(FewSteps, LeaveTheLossUnexplained) {
  results::RunData run = samples::run();
  samples::add_dp_curve(run);
  const auto explains = [&] {
    const RunReport report = make_report(run, "", {});
    return report.curves.at(0).points.at(1).causes.waterfall.value().explains;
  };
  EXPECT_TRUE(explains());
  // Five untraced steps of the baseline are left beside its traced ones.
  std::vector<std::uint8_t>& dropped = run.points[0].dropped;
  std::fill(dropped.begin() + 6, dropped.begin() + 21, 1);
  EXPECT_FALSE(explains());
}

TEST(FewSteps, KeepTheBaselineWhereItIsAndMakeItUnsure) {
  results::RunData run = samples::run();
  run.points = {measured(0, {}, 6), measured(1, {.dp = 2}, 0.25), measured(2, {.dp = 4}, 0.125)};
  const auto curve = [&] { return make_report(run, "", {}).curves.at(0); };
  EXPECT_FALSE(has_unsure_baseline(curve()));
  keep_steps(run.points[0], 1);
  EXPECT_EQ(curve().baseline, 1);
  EXPECT_TRUE(has_unsure_baseline(curve()));
  EXPECT_FALSE(curve().points[2].speedup_interval) << "nothing is known of the baseline's";
  EXPECT_NEAR(*curve().points[2].efficiency, 12, 0.2);
  EXPECT_THAT(baseline_remark(curve()).at(0).second, HasSubstr("only 1 of its steps counts"));
}

TEST(FewSteps, OfALaunchDoNotCountBesideThoseOfEnough) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 6.5), launch_of("b", 1, 2, 0.2)};
  keep_steps(runs[0].points[0], 1);
  const JoinedLaunches mixed{runs};
  ASSERT_EQ(mixed.joined.curves.size(), 1U);
  EXPECT_THAT(mixed.joined.curves[0].launches, ElementsAre(SizeIs(1)));
  EXPECT_FALSE(spread_of(mixed.joined.curves[0].curve.points[0]));
  EXPECT_EQ(mixed.joined.curves[0].left_out.at(0).reason, "few-steps: 1 of the 6 that it takes");
  keep_steps(runs[1].points[0], 1);
  const JoinedLaunches few{runs};
  EXPECT_THAT(few.joined.curves.at(0).launches, ElementsAre(SizeIs(2)));
  EXPECT_EQ(few.joined.curves[0].curve.points[0].steps, 2U);
  EXPECT_THAT(few.joined.curves[0].curve.points[0].labels, ElementsAre("few-steps"));
}

TEST(FewSteps, AreSeenInTheTableAndSaidBelow) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 6.5), launch_of("b", 2, 2, 0.2)};
  keep_steps(runs[0].points[0], 1);
  const JoinedLaunches of{std::move(runs)};
  const std::string joined = render_text(of.report());
  EXPECT_THAT(joined, HasSubstr(" s (1 step) "));
  EXPECT_THAT(joined, HasSubstr("label    2 ranks: few-steps: 1 step counts"));
  EXPECT_THAT(joined, HasSubstr("vs 2 ranks"));
  const Report alone{.runs = std::span{of.reports}.first(1)};
  for (const auto& render : {render_text, render_markdown}) {
    EXPECT_THAT(render(alone), HasSubstr("1 step"));
    EXPECT_THAT(render(alone), HasSubstr("2 ranks: few-steps: 1 step counts"));
  }
  EXPECT_EQ(json::parse(render_json(alone))["runs"][0]["points"][0]["labels"],
            json::array({"few-steps"}));
  EXPECT_EQ(json::parse(render_json(of.report()))["curves"][0]["points"][0]["labels"],
            json::array({"few-steps"}));
}

}  // namespace
}  // namespace isoscale::analysis
