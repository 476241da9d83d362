// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The stop rule and warm-up as the loop over steps uses them, with the statistics they are lent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runner/measure/measure_steps.hpp"
#include "runner/plan/step_loop.hpp"
#include "series.hpp"
#include "statistics/estimate.hpp"
#include "statistics/trend.hpp"

namespace isoscale::runner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::optional<double> half_width(std::span<const double> samples, double confidence) {
  return statistics::relative_half_width(samples, confidence);
}

TEST(StopRule, PlansItsLooksAndKeepsTheLast) {
  std::vector<double> confidences;
  const plan::HalfWidth never = [&](std::span<const double>, double confidence) {
    confidences.push_back(confidence);
    return std::optional<double>{};
  };
  const plan::NominalConfidence nominal = [](int planned, double growth) {
    EXPECT_EQ(growth, 1.5);
    return 1 - 0.01 / planned;
  };
  // 12, 18, 27, ..., 12 * 1.5^6 = 137: the first, six more until 100, a spare one, the last.
  plan::StopRule rule{{.precision = 0.01, .first = 12, .most = 100}, never, nominal};
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
  const plan::HalfWidth known = [&](std::span<const double>, double) {
    return std::optional{width};
  };
  plan::StopRule rule{{.precision = 0.01, .first = 6, .most = 6}, known, {}};
  EXPECT_EQ(rule.planned(), 3);
  // Time is up before the first look: the last one is the only one, and six samples give 95%.
  EXPECT_EQ((plan::StopRule{{.precision = 0.01, .first = 18, .most = 17}, known, {}}.planned()), 1);
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
  const double confidence = statistics::nominal_confidence(
      plan::StopRule{{.precision = precision, .first = 12, .most = double(most)}, half_width, {}}
          .planned(),
      plan::StopRule::growth);
  for (int run = 0; run < runs; ++run) {
    samples::Autoregressive series{static_cast<std::uint64_t>(run), phi, 0.03};
    plan::StopRule rule{{.precision = precision, .first = 12, .most = double(most)},
                        half_width,
                        [&](int, double) { return confidence; }};
    std::vector<double> samples;
    bool suffices = false;
    while (samples.size() < most && !suffices) {
      samples.push_back(series.next());
      if (rule.is_due(samples.size())) suffices = rule.suffices(samples);
    }
    stopped += suffices ? 1 : 0;
    const auto estimate = statistics::estimate(samples, confidence);
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

// Without the correction, as many looks at a plain 95% hold the truth less often.
TEST(AdaptiveStop, IsNotPlainConfidence) {
  EXPECT_GT(statistics::nominal_confidence(10, plan::StopRule::growth), 0.99);
}

/// Steps played until warm-up is over, and why; each takes what `time_of` says.
template <class TimeOf>
std::pair<std::size_t, std::string> warm_up(double max_time, const TimeOf& time_of) {
  const plan::LastChange last_change = statistics::last_change;
  plan::WarmUp rule{units::Seconds{max_time}, 0.005, last_change};
  std::vector<double> times;
  std::optional<std::string> over;
  while (!over) {
    times.push_back(time_of(times.size()));
    over = rule.over(times, units::Seconds{std::reduce(times.begin(), times.end())});
  }
  return {times.size(), *over};
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

TEST(WarmUp, OfAConstantStepTakesHalfASecondButNoMoreThanThreeLongSteps) {
  struct Case {
    double max_time, step;
    std::size_t least, most;
    const char* why;
  };
  // After half a second of 10 ms, the next step sees that there are 16.
  for (const Case& is : {Case{30, 0.01, 49, 51, "no change in 5"},
                         Case{30, 2, 3, 3, "3 steps: too few to see a change"},
                         Case{1, 2, 1, 1, "1 step: too few to see a change"}}) {
    const auto [steps, why] = warm_up(is.max_time, [&](std::size_t) { return is.step; });
    EXPECT_GE(steps, is.least) << is.why;
    EXPECT_LE(steps, is.most) << is.why;
    EXPECT_THAT(why, HasSubstr(is.why));
    if (is.least == is.most) {
      EXPECT_EQ(why, is.why);
    }
  }
}

TEST(WarmUp, IsAsLongAsBeforeWhereNobodyLooksForChanges) {
  const plan::LastChange nobody;
  plan::WarmUp rule{units::Seconds{30}, 0.005, nobody};
  EXPECT_FALSE(rule.over(std::vector<double>(40, 0.01), units::Seconds{0.4}));
  EXPECT_TRUE(rule.over(std::vector<double>(50, 0.01), units::Seconds{0.5}));
  EXPECT_FALSE(rule.over(std::vector<double>(2, 1.0), units::Seconds{2}));
  EXPECT_TRUE(rule.over(std::vector<double>(3, 1.0), units::Seconds{3}));
}

plan::BlockPlan plan(double step, double left, plan::Tracing tracing) {
  return plan::plan_blocks(units::Seconds{step}, units::Seconds{left}, tracing);
}

TEST(BlockPlan, HasBlocksOfFiftyMilliseconds) {
  EXPECT_EQ(plan(0.01, 30, plan::Tracing::on), (plan::BlockPlan{.steps = 5, .pairs = 6}));
  EXPECT_EQ(plan(0.01, 30, plan::Tracing::off), (plan::BlockPlan{.steps = 5, .pairs = 0}));
  EXPECT_EQ(plan(1e-6, 30, plan::Tracing::on), (plan::BlockPlan{.steps = 64, .pairs = 6}));
  EXPECT_EQ(plan(1, 1000, plan::Tracing::on), (plan::BlockPlan{.steps = 2, .pairs = 6}));
}

TEST(BlockPlan, HasShorterBlocksThenFewerPairsWhereTimeIsShort) {
  // 12 blocks of 3 and a dropped step, 48 in all, take half of a second.
  EXPECT_EQ(plan(0.0104, 1, plan::Tracing::on), (plan::BlockPlan{.steps = 3, .pairs = 6}));
  EXPECT_EQ(plan(0.0138, 1, plan::Tracing::on), (plan::BlockPlan{.steps = 2, .pairs = 6}));
  // Not even 36 steps fit into half of the time: pairs of 6 in a quarter.
  EXPECT_EQ(plan(0.5, 30, plan::Tracing::on), (plan::BlockPlan{.steps = 2, .pairs = 2}));
  EXPECT_EQ(plan(2, 30, plan::Tracing::on), (plan::BlockPlan{.steps = 2, .pairs = 0}));
  EXPECT_EQ(plan(2, -1, plan::Tracing::on), (plan::BlockPlan{.steps = 2, .pairs = 0}));
}

TEST(WarmStep, IsTheMedianOfTheLaterHalf) {
  EXPECT_EQ(plan::warm_step(std::array{9.0, 8.0, 7.0, 1.0, 3.0, 2.0}), units::Seconds{2});
  EXPECT_EQ(plan::warm_step(std::array{9.0}), units::Seconds{9});
}

/// A loop played on a clock of its own, on which a step takes what `time_of` says of its number.
struct Played {
  std::vector<plan::Block> blocks;
  std::size_t warm_up = 0, counted = 0, traced = 0;  ///< steps; of traced blocks those that count
  double elapsed = 0;
  std::string end;
  int looks_planned = 0;
};
template <class TimeOf>
Played play(const plan::Effort& effort, const TimeOf& time_of) {
  plan::StepLoop loop{effort};
  Played played;
  while (loop.end().empty()) {
    const plan::Block block = loop.next();
    std::vector<double> times;
    for (std::size_t i = 0; i < block.steps; ++i) times.push_back(time_of(loop.steps() + i));
    played.elapsed += std::reduce(times.begin(), times.end());
    loop.played(block, times, units::Seconds{played.elapsed});
    played.blocks.push_back(block);
    played.warm_up += block.kind == plan::Block::Kind::warm_up ? 1 : 0;
    played.traced += block.kind == plan::Block::Kind::traced ? block.steps - 1 : 0;
  }
  played.counted = loop.counted();
  played.end = loop.end();
  played.looks_planned = loop.looks_planned();
  return played;
}

/// An interval of a hundred times what is asked for, from six steps on.
plan::Effort effort_of(double max_time, double overtime = plan::longest_overtime,
                       int trace_steps = 4) {
  return {.precision = 0.01,
          .max_time = units::Seconds{max_time},
          .overtime = overtime,
          .trace_steps = trace_steps,
          .half_width = [](std::span<const double> samples, double) {
            return samples.size() < 6 ? std::nullopt : std::optional{1.0};
          }};
}

TEST(StepLoop, CountsSixStepsBeforeAnyPair) {
  // Long steps, short ones, and steps of which six take longer than the time that is asked for.
  for (const double step : {1e-3, 0.03, 0.3, 0.45}) {
    const Played played = play(effort_of(2), [&](std::size_t) { return step; });
    const plan::Block& first = played.blocks.at(played.warm_up);
    EXPECT_EQ(first, (plan::Block{.kind = plan::Block::Kind::untraced, .steps = 7})) << step;
    EXPECT_GE(played.counted, 6U) << step;
    EXPECT_GE(played.traced, 2U) << step;
    EXPECT_EQ(played.end, "max-time");
  }
}

TEST(StepLoop, LastsNoLongerThanItMustForSixSteps) {
  // Two to warm up, seven of which six count, three of which two are traced.
  const Played played = play(effort_of(2), [](std::size_t) { return 0.4; });
  EXPECT_EQ(played.warm_up, 2U);
  EXPECT_EQ(played.counted, 6U);
  EXPECT_EQ(played.traced, 2U);
  EXPECT_EQ(played.looks_planned, 1) << "six steps have an interval only where nobody looks twice";
}

TEST(StepLoop, EndsAtThreeTimesTheTimeHoweverFewStepsCount) {
  const Played played = play(effort_of(2), [](std::size_t) { return 1.0; });
  // One warms up; five more fit into 6 s, of which the first does not count.
  EXPECT_EQ(played.warm_up, 1U);
  EXPECT_EQ(played.counted, 4U);
  EXPECT_EQ(played.traced, 2U);
  EXPECT_NEAR(played.elapsed, 6 + 3, 1e-9);
  const Played longer = play(effort_of(2), [](std::size_t) { return 100.0; });
  EXPECT_EQ(longer.counted, 1U);
  EXPECT_EQ(longer.traced, 2U);
}

TEST(StepLoop, EndsWithItsPortionOfABudget) {
  const Played played = play(effort_of(2, 1), [](std::size_t) { return 0.4; });
  EXPECT_LT(played.counted, 6U);
  EXPECT_GE(played.counted, 1U);
  EXPECT_NEAR(played.elapsed, 2 + 3 * 0.4, 0.4 + 1e-9);
}

TEST(StepLoop, TracesNothingUnlessAsked) {
  for (const double step : {0.01, 0.4}) {
    const Played played =
        play(effort_of(2, plan::longest_overtime, 0), [&](std::size_t) { return step; });
    EXPECT_EQ(played.traced, 0U);
    EXPECT_GE(played.counted, 6U);
  }
}

TEST(StepLoop, GoesOnWhileThereIsNoInterval) {
  // Correlated steps behave like this: 40 are too few.
  plan::Effort effort = effort_of(1);
  effort.half_width = [](std::span<const double> samples, double) {
    return samples.size() <= 40 ? std::nullopt : std::optional{1.0};
  };
  const Played played = play(effort, [](std::size_t) { return 0.02; });
  EXPECT_GT(played.counted, 40U);
  EXPECT_GT(played.elapsed, 1);
  EXPECT_LT(played.elapsed, 2);
  effort.half_width = [](std::span<const double>, double) { return std::optional<double>{}; };
  EXPECT_NEAR(play(effort, [](std::size_t) { return 0.02; }).elapsed, 3, 0.2);
}

struct Numbered {
  std::uint32_t step;
};
std::vector<std::uint32_t> thinned(std::uint32_t steps, std::size_t most) {
  std::vector<Numbered> entries;
  for (std::uint32_t step = 0; step < steps; ++step) {
    entries.push_back({step});
    measure::thin_to(entries, most);
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
  const std::array classes{measure::OpClass::gemm, measure::OpClass::communication,
                           measure::OpClass::copies, measure::OpClass::other_compute,
                           measure::OpClass::gemm};
  const auto span = [](std::uint32_t op, std::int64_t start, std::int64_t end) {
    return timeline::Span{
        .op = op, .start = units::Nanoseconds{start}, .end = units::Nanoseconds{end}};
  };
  const std::array spans{span(0, 0, 100), span(1, 50, 300), span(2, 100, 110), span(3, 110, 117),
                         span(4, 200, 205)};
  const measure::StepSums sums = measure::sum_up(7, spans, classes);
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
  EXPECT_EQ(measure::op_classes(program),
            (std::vector{measure::OpClass::gemm, measure::OpClass::copies,
                         measure::OpClass::other_compute}));
}

}  // namespace
}  // namespace isoscale::runner
