// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The stop rule and warm-up as the loop over steps uses them, with the statistics they are lent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "analysis/statistics/change_point.hpp"
#include "analysis/statistics/looks.hpp"
#include "analysis/statistics/statistics.hpp"
#include "runner/block_plan.hpp"
#include "runner/op_sums.hpp"
#include "runner/spread.hpp"
#include "runner/stop_rule.hpp"
#include "runner/warm_up.hpp"
#include "series.hpp"

namespace isoscale::runner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::optional<double> half_width(std::span<const double> samples, double confidence) {
  const auto estimate = analysis::estimate(samples, confidence);
  return estimate ? analysis::relative_half_width(*estimate) : std::nullopt;
}

TEST(StopRule, PlansItsLooksAndKeepsTheLast) {
  std::vector<double> confidences;
  const HalfWidth never = [&](std::span<const double>, double confidence) {
    confidences.push_back(confidence);
    return std::optional<double>{};
  };
  const NominalConfidence nominal = [](int planned, double growth) {
    EXPECT_EQ(growth, 1.5);
    return 1 - 0.01 / planned;
  };
  // 12, 18, 27, ..., 12 * 1.5^6 = 137: the first, six more until 100, a spare one, the last.
  StopRule rule{{.precision = 0.01, .first = 12, .most = 100}, never, nominal};
  EXPECT_EQ(rule.planned(), 9);
  EXPECT_FALSE(rule.is_due(11));
  std::vector<double> samples;
  std::vector<std::size_t> looked;
  while (samples.size() < 1000) {
    samples.push_back(1);
    if (!rule.is_due(samples.size())) continue;
    EXPECT_FALSE(rule.suffices(samples));
    looked.push_back(samples.size());
  }
  EXPECT_THAT(looked, ElementsAre(12, 18, 27, 41, 62, 93, 140, 210));
  EXPECT_FALSE(rule.suffices(samples)) << "time is up";
  EXPECT_EQ(rule.made(), rule.planned());
  EXPECT_THAT(confidences, testing::Each(1 - 0.01 / 9));
  EXPECT_FALSE(rule.half_width());
}

TEST(StopRule, IsContentWithThePrecisionAskedFor) {
  double width = 0.02;
  const HalfWidth known = [&](std::span<const double>, double) { return std::optional{width}; };
  StopRule rule{{.precision = 0.01, .first = 6, .most = 6}, known, {}};
  EXPECT_EQ(rule.planned(), 3);
  EXPECT_FALSE(rule.suffices(std::vector<double>(6)));
  EXPECT_EQ(rule.half_width(), 0.02);
  width = 0.01;
  EXPECT_TRUE(rule.suffices(std::vector<double>(9)));
}

/// How often the interval that 1,000 runs end with holds the true median, 1.
struct Coverage {
  double holding = 0;   ///< share of the intervals
  double existing = 0;  ///< share of the runs that have one
  double stopped = 0;   ///< share of the runs that were precise enough before the time was up
};
Coverage coverage(double phi, double precision, std::size_t most) {
  constexpr int runs = 1000;
  int holding = 0;
  int existing = 0;
  int stopped = 0;
  // Memoized: the integration is the same for all runs.
  const double confidence = analysis::nominal_confidence(
      StopRule{{.precision = precision, .first = 12, .most = double(most)}, half_width, {}}
          .planned(),
      StopRule::growth);
  for (int run = 0; run < runs; ++run) {
    samples::Autoregressive series{static_cast<std::uint64_t>(run), phi, 0.03};
    StopRule rule{{.precision = precision, .first = 12, .most = double(most)},
                  half_width,
                  [&](int, double) { return confidence; }};
    std::vector<double> samples;
    bool suffices = false;
    while (samples.size() < most && !suffices) {
      samples.push_back(series.next());
      if (rule.is_due(samples.size())) suffices = rule.suffices(samples);
    }
    stopped += suffices ? 1 : 0;
    const auto estimate = analysis::estimate(samples, confidence);
    if (!estimate->lower) continue;
    ++existing;
    holding += *estimate->lower <= 1 && 1 <= *estimate->upper ? 1 : 0;
  }
  return {.holding = double(holding) / existing,
          .existing = double(existing) / runs,
          .stopped = double(stopped) / runs};
}

TEST(AdaptiveStop, HoldsTheTruthOfIndependentSamples) {
  for (const double precision : {0.005, 0.01, 0.03}) {
    const Coverage result = coverage(0, precision, 600);
    EXPECT_GE(result.holding, 0.95) << precision;
    EXPECT_GE(result.existing, 0.99) << precision;
    EXPECT_GE(result.stopped, 0.5) << precision << ": the rule was not in force";
  }
}

TEST(AdaptiveStop, HoldsTheTruthOfCorrelatedSamples) {
  struct Case {
    double precision;
    std::size_t most;
  };
  for (const Case& at : {Case{0.03, 200}, Case{0.01, 200}, Case{0.01, 1000}}) {
    const Coverage result = coverage(0.5, at.precision, at.most);
    EXPECT_GE(result.holding, 0.90) << at.precision << ", " << at.most;
    EXPECT_GE(result.existing, 0.95) << at.precision << ", " << at.most;
  }
}

// What the correction is for: as many looks at a plain 95% hold the truth less often.
TEST(AdaptiveStop, IsNotPlainConfidence) {
  EXPECT_GT(analysis::nominal_confidence(10, StopRule::growth), 0.99);
}

/// Steps played until warm-up is over, and why; each takes what `time_of` says.
template <class TimeOf>
std::pair<std::size_t, std::string> warm_up(double max_time, const TimeOf& time_of) {
  const LastChange last_change = analysis::last_change;
  WarmUp rule{units::Seconds{max_time}, 0.005, last_change};
  std::vector<double> times;
  std::optional<std::string> over;
  while (!over) {
    times.push_back(time_of(times.size()));
    over = rule.over(times, units::Seconds{std::reduce(times.begin(), times.end())});
  }
  return {times.size(), *over};
}

TEST(WarmUp, OfAConstantStepTakesTheLeastTime) {
  // Half a second of 10 ms; the next step sees that there are 16.
  const auto [steps, why] = warm_up(30, [](std::size_t) { return 0.01; });
  EXPECT_NEAR(static_cast<double>(steps), 50, 1);
  EXPECT_THAT(why, HasSubstr("no change in 5"));
}

TEST(WarmUp, LastsUntilStepsHaveSettled) {
  const auto [steps, why] = warm_up(30, [](std::size_t i) { return i < 36 ? 0.011 : 0.01; });
  EXPECT_GE(steps, 36U + 18U);
  EXPECT_LE(steps, 36U + 36U);
  EXPECT_EQ(why, "no change in the last " + std::to_string(steps - 36) + " of " +
                     std::to_string(steps) + " steps");
}

TEST(WarmUp, GivesUpOnStepsThatNeverSettle) {
  const auto [steps, why] =
      warm_up(10, [](std::size_t i) { return 0.01 * (1 + 0.01 * static_cast<double>(i)); });
  EXPECT_THAT(why, HasSubstr("still changing"));
  EXPECT_THAT(why, HasSubstr("gave up after 3"));
}

TEST(WarmUp, OfLongStepsTakesThree) {
  const auto [steps, why] = warm_up(30, [](std::size_t) { return 2.0; });
  EXPECT_EQ(steps, 3U);
  EXPECT_EQ(why, "3 steps: too few to see a change");
}

TEST(WarmUp, OfStepsLongerThanAllTheTimeTakesOne) {
  const auto [steps, why] = warm_up(1, [](std::size_t) { return 2.0; });
  EXPECT_EQ(steps, 1U);
  EXPECT_EQ(why, "1 step: too few to see a change");
}

TEST(WarmUp, IsAsLongAsBeforeWhereNobodyLooksForChanges) {
  const LastChange nobody;
  WarmUp rule{units::Seconds{30}, 0.005, nobody};
  EXPECT_FALSE(rule.over(std::vector<double>(40, 0.01), units::Seconds{0.4}));
  EXPECT_TRUE(rule.over(std::vector<double>(50, 0.01), units::Seconds{0.5}));
  EXPECT_FALSE(rule.over(std::vector<double>(2, 1.0), units::Seconds{2}));
  EXPECT_TRUE(rule.over(std::vector<double>(3, 1.0), units::Seconds{3}));
}

BlockPlan plan(double step, double left, Tracing tracing) {
  return plan_blocks(units::Seconds{step}, units::Seconds{left}, tracing);
}

TEST(BlockPlan, HasBlocksOfFiftyMilliseconds) {
  EXPECT_EQ(plan(0.01, 30, Tracing::on), (BlockPlan{.steps = 5, .pairs = 6}));
  EXPECT_EQ(plan(0.01, 30, Tracing::off), (BlockPlan{.steps = 5, .pairs = 0}));
  EXPECT_EQ(plan(1e-6, 30, Tracing::on), (BlockPlan{.steps = 64, .pairs = 6}));
  EXPECT_EQ(plan(1, 1000, Tracing::on), (BlockPlan{.steps = 2, .pairs = 6}));
}

TEST(BlockPlan, HasShorterBlocksThenFewerPairsWhereTimeIsShort) {
  // 12 blocks of 3 and a dropped step, 48 in all, take half of a second.
  EXPECT_EQ(plan(0.0104, 1, Tracing::on), (BlockPlan{.steps = 3, .pairs = 6}));
  EXPECT_EQ(plan(0.0138, 1, Tracing::on), (BlockPlan{.steps = 2, .pairs = 6}));
  // Not even 36 steps fit into half of the time: pairs of 6 in a quarter.
  EXPECT_EQ(plan(0.5, 30, Tracing::on), (BlockPlan{.steps = 2, .pairs = 2}));
  EXPECT_EQ(plan(2, 30, Tracing::on), (BlockPlan{.steps = 2, .pairs = 1}));
  EXPECT_EQ(plan(2, -1, Tracing::on), (BlockPlan{.steps = 2, .pairs = 1}));
}

TEST(WarmStep, IsTheMedianOfTheLaterHalf) {
  EXPECT_EQ(warm_step(std::array{9.0, 8.0, 7.0, 1.0, 3.0, 2.0}), units::Seconds{2});
  EXPECT_EQ(warm_step(std::array{9.0}), units::Seconds{9});
}

struct Numbered {
  std::uint32_t step;
};
std::vector<std::uint32_t> thinned(std::uint32_t steps, std::size_t most) {
  std::vector<Numbered> entries;
  for (std::uint32_t step = 0; step < steps; ++step) {
    entries.push_back({step});
    thin_to(entries, most);
  }
  std::vector<std::uint32_t> kept;
  for (const Numbered& entry : entries) kept.push_back(entry.step);
  return kept;
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

TEST(OpSums, AddSpansUpByClass) {
  const std::array classes{OpClass::gemm, OpClass::communication, OpClass::copies,
                           OpClass::other_compute, OpClass::gemm};
  const auto span = [](std::uint32_t op, std::int64_t start, std::int64_t end) {
    return timeline::Span{
        .op = op, .start = units::Nanoseconds{start}, .end = units::Nanoseconds{end}};
  };
  const std::array spans{span(0, 0, 100), span(1, 50, 300), span(2, 100, 110), span(3, 110, 117),
                         span(4, 200, 205)};
  const StepSums sums = sum_up(7, spans, classes);
  EXPECT_EQ(sums.step, 7U);
  EXPECT_DOUBLE_EQ(sums.gemm, 105e-9);
  EXPECT_DOUBLE_EQ(sums.communication, 250e-9);
  EXPECT_DOUBLE_EQ(sums.copies, 10e-9);
  EXPECT_DOUBLE_EQ(sums.other_compute, 7e-9);
}

TEST(OpClasses, FollowThePayload) {
  program::Program program;
  program.ops.resize(3);
  program.ops[0].payload = program::Gemm{};
  program.ops[1].payload = program::Copy{};
  program.ops[2].payload = program::Update{};
  EXPECT_EQ(op_classes(program),
            (std::vector{OpClass::gemm, OpClass::copies, OpClass::other_compute}));
}

}  // namespace
}  // namespace isoscale::runner
