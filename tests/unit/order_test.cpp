// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace isoscale::runner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A plan of `experiments`, each of whose points has one of `skipped`'s reasons.
Plan plan_of(std::span<const settings::Experiment> experiments,
             const std::vector<std::vector<std::string>>& reasons) {
  Plan plan;
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
  EXPECT_THAT(ends_then_middles(0), IsEmpty());
  EXPECT_THAT(ends_then_middles(1), ElementsAre(0));
  EXPECT_THAT(ends_then_middles(2), ElementsAre(0, 1));
  EXPECT_THAT(ends_then_middles(3), ElementsAre(0, 2, 1));
  EXPECT_THAT(ends_then_middles(6), ElementsAre(0, 5, 2, 1, 3, 4));
  EXPECT_THAT(ends_then_middles(9), ElementsAre(0, 8, 4, 2, 6, 1, 3, 5, 7));
}

TEST(MostTellingFirst, TakesTurns) {
  std::array<settings::Experiment, 2> experiments;
  experiments[0].workload = "dp";
  experiments[1].workload = "tp";
  // dp: points 0 to 3, tp: points 4 to 6.
  // Both ends of dp, so that there is a curve.
  EXPECT_THAT(most_telling_first(plan_of(experiments, {measured(4), measured(3)})),
              ElementsAre(0, 3, 4, 6, 1, 5, 2));
}

TEST(MostTellingFirst, CalibratesOnceThereIsACurve) {
  std::array<settings::Experiment, 3> experiments;
  experiments[0].workload = "calibrate";
  experiments[1].workload = "dp";
  experiments[2].workload = "tp";
  // calibrate: points 0 to 3, dp: points 4 to 6, tp: points 7 to 9.
  EXPECT_THAT(most_telling_first(plan_of(experiments, {measured(4), measured(3), measured(3)})),
              ElementsAre(4, 6, 0, 3, 7, 9, 1, 5, 8, 2));
}

TEST(MostTellingFirst, IsNoCurveOfMicroBenchmarks) {
  std::array<settings::Experiment, 2> experiments;
  experiments[0].workload = "gemm";
  experiments[1].workload = "calibrate";
  EXPECT_THAT(most_telling_first(plan_of(experiments, {measured(2), measured(2)})),
              ElementsAre(2, 3, 0, 1));
}

TEST(MostTellingFirst, PutsDownWhatIsSkippedAtOnce) {
  std::array<settings::Experiment, 2> experiments;
  experiments[0].workload = "dp";
  experiments[1].workload = "dp";  // another curve of the same workload
  // Points 0 and 4 do not fit: the baselines are 1 and 5.
  EXPECT_THAT(most_telling_first(plan_of(experiments, {{"no", "", "", ""}, {"no", "", ""}})),
              ElementsAre(0, 4, 1, 3, 5, 6, 2));
}

}  // namespace
}  // namespace isoscale::runner
