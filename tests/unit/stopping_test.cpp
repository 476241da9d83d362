// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "matchers.hpp"
#include "runner/plan/step_loop.hpp"
#include "series.hpp"

namespace isoscale::runner {
namespace {

std::optional<double> half_width(std::span<const double> samples, double confidence) {
  return statistics::relative_half_width(samples, confidence);
}

double plain(int /*planned*/, double /*growth*/) { return statistics::plain_confidence; }

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
  EXPECT_THAT(confidences, Each(1 - 0.01 / 9));
  EXPECT_FALSE(rule.half_width());
}

TEST(StopRule, IsContentWithThePrecisionAskedFor) {
  double width = 0.02;
  const plan::HalfWidth known = [&](std::span<const double>, double) {
    return std::optional{width};
  };
  plan::StopRule rule{{.precision = 0.01, .first = 6, .most = 6}, known, plain};
  EXPECT_EQ(rule.planned(), 3);
  // Time is up before the first look: the last one is the only one, and six samples give 95%.
  EXPECT_EQ((plan::StopRule{{.precision = 0.01, .first = 18, .most = 17}, known, plain}.planned()),
            1);
  EXPECT_FALSE(rule.suffices(std::vector<double>(6)));
  EXPECT_EQ(rule.half_width(), 0.02);
  width = 0.01;
  EXPECT_TRUE(rule.suffices(std::vector<double>(9)));
}

/// Shares of 1,000 runs.
struct Coverage {
  double holding = 0;   ///< of those that end with an interval, it holds the true median, 1
  double existing = 0;  ///< there is one
  double stopped = 0;   ///< precise enough before the time was up
};
Coverage coverage(double phi, double precision, std::size_t most) {
  constexpr int runs = 1000;
  int holding = 0, existing = 0, stopped = 0;
  const plan::StopRule::Goal ahead{.precision = precision, .first = 12, .most = double(most)};
  const double confidence = statistics::nominal_confidence(
      plan::StopRule{ahead, half_width, plain}.planned(), plan::StopRule::growth);
  for (int run = 0; run < runs; ++run) {
    samples::Autoregressive series{static_cast<std::uint64_t>(run), phi, 0.03};
    plan::StopRule rule{ahead, half_width, [&](int, double) { return confidence; }};
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

TEST(AdaptiveStop, HoldsTheTruth) {
  for (const double precision : {0.005, 0.01, 0.03}) {
    const Coverage result = coverage(0, precision, 600);
    EXPECT_GE(result.holding, 0.95) << precision;
    EXPECT_GE(result.existing, 0.99) << precision;
    EXPECT_GE(result.stopped, 0.5) << precision << ": the rule was not in force";
  }
  // These samples are correlated.
  for (const auto& [precision, most] : {std::pair{0.03, 200U}, {0.01, 200U}, {0.01, 1000U}}) {
    const Coverage result = coverage(0.5, precision, most);
    EXPECT_GE(result.holding, 0.90) << precision << ", " << most;
    EXPECT_GE(result.existing, 0.95) << precision << ", " << most;
  }
  // Without the correction, as many looks at a plain 95% hold the truth less often.
  EXPECT_GT(statistics::nominal_confidence(10, plan::StopRule::growth), 0.99);
}

/// Steps played until warm-up is over, and why; each takes what `time_of` says.
std::pair<std::size_t, std::string> warm_up(double max_time, const auto& time_of) {
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
  EXPECT_THAT(why, HasSubstr(std::to_string(steps - 36) + " of " + std::to_string(steps)));
  const auto gave_up = warm_up(10, [](std::size_t i) { return 0.01 * (1 + 0.01 * double(i)); });
  EXPECT_THAT(gave_up.second, AllOf(HasSubstr("still changing"), HasSubstr("gave up after 3")));
}

TEST(WarmUp, OfAConstantStepTakesHalfASecondButNoMoreThanThreeLongSteps) {
  // After half a second of 10 ms, the next step sees that there are 16.
  for (const auto& [max_time, step, least, most, reason] :
       {std::tuple{30.0, 0.01, 49U, 51U, "no change in 5"},
        // 16 steps of a third of a second take less than three tenths of the time.
        {30.0, 0.33, 16U, 16U, "no change in 16 steps"},
        {30.0, 2.0, 3U, 3U, "3 steps: too few"},
        {1.0, 2.0, 1U, 1U, "1 step: too few"}}) {
    const auto [steps, why] = warm_up(max_time, [&, time = step](std::size_t) { return time; });
    EXPECT_GE(steps, least) << reason;
    EXPECT_LE(steps, most) << reason;
    EXPECT_THAT(why, StartsWith(reason));
  }
}

TEST(BlockPlan, HasBlocksOfFiftyMillisecondsShorterOnesThenFewerPairsWhereTimeIsShort) {
  using plan::Tracing;
  for (const auto& [step, left, tracing, steps, pairs] :
       {std::tuple{0.01, 30.0, Tracing::on, 5U, 6U},
        {0.01, 30.0, Tracing::off, 5U, 0U},
        {1e-6, 30.0, Tracing::on, 64U, 6U},
        {1.0, 1000.0, Tracing::on, 2U, 6U},
        // 12 blocks of 3 and a dropped step, 48 in all, take half of a second.
        {0.0104, 1.0, Tracing::on, 3U, 6U},
        {0.0138, 1.0, Tracing::on, 2U, 6U},
        // Not even 36 steps fit into half of the time: pairs of 6 in half of it.
        {0.5, 30.0, Tracing::on, 2U, 5U},
        {2.0, 30.0, Tracing::on, 2U, 1U},
        {2.0, -1.0, Tracing::on, 2U, 0U}}) {
    EXPECT_EQ(plan::plan_blocks(units::Seconds{step}, units::Seconds{left}, tracing),
              (plan::BlockPlan{.steps = steps, .pairs = pairs}))
        << step << " s of " << left << " s";
  }
}

TEST(WarmStep, IsTheMedianOfTheLaterHalf) {
  EXPECT_EQ(plan::warm_step(std::array{9.0, 8.0, 7.0, 1.0, 3.0, 2.0}), units::Seconds{2});
  EXPECT_EQ(plan::warm_step(std::array{9.0}), units::Seconds{9});
}

/// A loop played on a clock of its own, on which a step takes what `time_of` says of its number.
struct Played {
  plan::StepLoop loop;
  std::vector<plan::Block> blocks{};
  std::size_t warm_up = 0, traced = 0;  ///< steps; of traced blocks those that count
  double elapsed = 0;
};
Played play(const plan::Effort& effort, const auto& time_of) {
  Played played{.loop = plan::StepLoop{effort}};
  plan::StepLoop& loop = played.loop;
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
  return played;
}

/// An interval of a hundred times what is asked for, from six steps on.
plan::Effort effort_of(double max_time, double overtime = plan::longest_overtime) {
  return {.precision = 0.01,
          .max_time = units::Seconds{max_time},
          .overtime = overtime,
          .trace_steps = 4,
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
    EXPECT_GE(played.loop.counted(), 6U) << step;
    EXPECT_GE(played.traced, 2U) << step;
    EXPECT_EQ(played.loop.end(), "max-time");
  }
}

TEST(StepLoop, LastsNoLongerThanItMustForSixStepsAndThreeTimesTheTimeAtMost) {
  // After the step of 1 s that warms up, five more fit into 6 s; the first of them does not count.
  for (const auto& [step, warm_up, counted] :
       {std::tuple{0.4, 2U, 6U}, {1.0, 1U, 4U}, {100.0, 1U, 1U}}) {
    const Played played = play(effort_of(2), [time = step](std::size_t) { return time; });
    EXPECT_EQ(played.warm_up, warm_up) << step;
    EXPECT_EQ(played.loop.counted(), counted) << step;
    EXPECT_EQ(played.traced, 2U) << step;
    EXPECT_EQ(played.loop.looks().planned, 1)
        << "six steps have an interval where nobody looks twice";
  }
  EXPECT_NEAR(play(effort_of(2), [](std::size_t) { return 1.0; }).elapsed, 6 + 3, 1e-9);
}

TEST(StepLoop, EndsWithItsPortionOfABudget) {
  const Played played = play(effort_of(2, 1), [](std::size_t) { return 0.4; });
  EXPECT_LT(played.loop.counted(), 6U);
  EXPECT_GE(played.loop.counted(), 1U);
  EXPECT_NEAR(played.elapsed, 2 + 3 * 0.4, 0.4 + 1e-9);
}

TEST(StepLoop, GoesOnWhileThereIsNoInterval) {
  // Correlated steps behave like this: 40 are too few.
  plan::Effort effort = effort_of(1);
  effort.half_width = [](std::span<const double> samples, double) {
    return samples.size() <= 40 ? std::nullopt : std::optional{1.0};
  };
  const Played played = play(effort, [](std::size_t) { return 0.02; });
  EXPECT_GT(played.loop.counted(), 40U);
  EXPECT_GT(played.elapsed, 1);
  EXPECT_LT(played.elapsed, 2);
  effort.half_width = [](std::span<const double>, double) { return std::optional<double>{}; };
  EXPECT_NEAR(play(effort, [](std::size_t) { return 0.02; }).elapsed, 3, 0.2);
}

TEST(StepLoop, WarmsUpUntilNothingChangesByMoreThanHalfThePrecision) {
  plan::Effort effort = effort_of(30);
  // Half a second of steps is over long before the change is.
  effort.last_change = [](std::span<const double> times, double smallest) -> std::size_t {
    EXPECT_EQ(smallest, 0.005);
    return times.size() < 40 ? times.size() - 1 : 3;
  };
  EXPECT_GE(play(effort, [](std::size_t) { return 0.03; }).warm_up, 40U);
}

TEST(StepLoop, PlaysPairsAndHalfAsManySamplesMoreFromLookToLook) {
  int looks = 0;
  plan::Effort effort = effort_of(3600);
  effort.half_width = [&](std::span<const double>, double) {
    return std::optional{++looks < 5 ? 1.0 : 0.0};
  };
  const Played played = play(effort, [](std::size_t) { return 1e-3; });
  EXPECT_EQ(played.loop.end(), "precision");
  EXPECT_EQ(looks, 5);
  EXPECT_GT(std::ranges::count(played.blocks, plan::Block::Kind::traced, &plan::Block::kind), 6);
  const std::size_t of_block = played.blocks.at(played.warm_up + 1).steps - 1;
  std::size_t expected = 6 + 6 * of_block;
  for (int look = 1; look < 5; ++look) expected += (expected + 1) / 2;
  EXPECT_EQ(played.loop.counted(), expected);
}

}  // namespace
}  // namespace isoscale::runner
