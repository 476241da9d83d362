// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fstream>

#include "analysis_test.hpp"
#include "results/records/measured_step_time.hpp"
#include "statistics/estimate.hpp"
#include "statistics/quantiles_and_fits.hpp"
#include "statistics/sample_flags.hpp"

namespace isoscale::analysis {
namespace {

using results::StepBlock;

/// 1, 2, ..., n in an order without correlation between neighbours.
std::vector<double> shuffled(std::size_t n) {
  std::vector<double> samples(n);
  std::iota(samples.begin(), samples.end(), 1.0);
  std::mt19937 engine{12345};
  do {
    for (std::size_t i = n - 1; i > 0; --i) std::swap(samples[i], samples[engine() % (i + 1)]);
  } while (n >= 8 && std::abs(*statistics::autocorrelation(samples)) >
                         0.5 / std::sqrt(static_cast<double>(n)));
  return samples;
}

TEST(Median, IsTheMiddleAndAbsentWhenUndefined) {
  EXPECT_EQ(statistics::median(std::array{3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(statistics::median(std::array{4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_EQ(statistics::median(std::array{7.0}), 7.0);
  EXPECT_FALSE(statistics::median({}));
  EXPECT_FALSE(statistics::median(std::array{1.0, std::numeric_limits<double>::quiet_NaN()}));
}

TEST(Autocorrelation, OfASeriesWorkedOutByHand) {
  // 1 ... 8: deviations -3.5 ... 3.5, sum of squares 42, lag-1 products sum to 26.25.
  EXPECT_DOUBLE_EQ(*statistics::autocorrelation(std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}),
                   0.625);
  // An alternating series: 7 products of -1 over 8 squares of 1.
  EXPECT_DOUBLE_EQ(*statistics::autocorrelation(std::array{1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0}),
                   -0.875);
  EXPECT_FALSE(statistics::autocorrelation(std::vector<double>(7, 1.0)));
  EXPECT_FALSE(statistics::autocorrelation(std::array{1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0}));
  EXPECT_FALSE(statistics::autocorrelation(std::vector<double>(100, 0.1))) << "no variance";
}

/// Expects the interval, where it has one.
void expect_interval(const std::optional<statistics::Estimate>& found, double lower, double upper) {
  ASSERT_TRUE(found && found->lower && found->upper);
  EXPECT_EQ(*found->lower, lower);
  EXPECT_EQ(*found->upper, upper);
}

/// The ranks that tables of the sign test give for 95%: the largest l with
/// sum of C(n, k) over k < l at most 0.025 * 2^n, and n + 1 - l.
TEST(Estimate, IntervalIsThatOfTheBinomialTables) {
  using Row = std::pair<int, int>;  // n and l
  constexpr std::array table{Row{6, 1},    Row{8, 1},      Row{9, 2},      Row{10, 2},  Row{12, 3},
                             Row{15, 4},   Row{20, 6},     Row{25, 8},     Row{30, 10}, Row{50, 18},
                             Row{100, 40}, Row{1000, 469}, Row{5000, 2431}};
  for (const auto& [n, lower] : table) {
    SCOPED_TRACE(n);
    const auto result = statistics::estimate(shuffled(static_cast<std::size_t>(n)));
    expect_interval(result, lower, n + 1 - lower);
    EXPECT_EQ(result->block, 1U);
    EXPECT_EQ(result->median, (n + 1) / 2.0);
    EXPECT_EQ(result->minimum, 1.0);
    EXPECT_EQ(result->maximum, n);
    EXPECT_EQ(result->samples, static_cast<std::size_t>(n));
  }
}

TEST(Estimate, GivesNoIntervalBelowSixSamplesNorOfADrift) {
  const auto few = statistics::estimate(std::array{5.0, 1.0, 4.0, 2.0, 3.0});
  EXPECT_EQ(few.value().median, 3.0);
  EXPECT_FALSE(few->lower || few->upper || statistics::relative_half_width(*few));
  EXPECT_FALSE(statistics::estimate({}));
  EXPECT_FALSE(statistics::estimate(std::array{1.0, std::numeric_limits<double>::infinity()}));
  std::vector<double> samples(60);
  std::iota(samples.begin(), samples.end(), 100.0);
  const auto drift = statistics::estimate(samples);
  EXPECT_GT(drift.value().block, 1U);
  EXPECT_FALSE(drift->lower.has_value());
  EXPECT_EQ(drift->median, 129.5) << "of all samples where there are no blocks";
}

TEST(Estimate, OfConstantSamplesHasNoWidthAndASpikeMovesNothing) {
  const auto constant = statistics::estimate(std::vector<double>(20, 0.3));
  expect_interval(constant, 0.3, 0.3);
  EXPECT_EQ(*statistics::relative_half_width(*constant), 0.0);
  std::vector<double> samples = shuffled(50);
  *std::ranges::max_element(samples) = 1e9;
  expect_interval(statistics::estimate(samples), 18, 33);
  EXPECT_EQ(statistics::estimate(samples)->median, 25.5);
}

TEST(Estimate, AtAHigherConfidenceIsWiderOrAbsent) {
  // Sign test at 99%, n = 20: ranks 4 and 17.
  expect_interval(statistics::estimate(shuffled(20), 0.99), 4, 17);
  // All of n samples enclose the median with 1 - 2^(1-n): 99.2% of 8, 98.4% of 7.
  const std::vector<double> eight{1, 5, 2, 7, 3, 8, 4, 6};
  EXPECT_TRUE(statistics::estimate(eight, 0.99)->lower);
  EXPECT_FALSE(statistics::estimate(std::span{eight}.first(7), 0.99)->lower);
}

TEST(RelativeHalfWidth, IsHalfTheIntervalOverTheMedian) {
  EXPECT_DOUBLE_EQ(*statistics::relative_half_width({.median = 8, .lower = 7.5, .upper = 9.5}),
                   0.125);
  EXPECT_FALSE(statistics::relative_half_width({.median = 0, .lower = 0.0, .upper = 0.0}));
}

/// The true median of each series is 1.
TEST(Coverage, HoldsUnderAutocorrelation) {
  constexpr int series = 2000;  // the standard error of a share of 95% is half a percent
  for (const auto& [phi, n] : {std::pair{0.3, 100U}, {0.6, 200U}, {0.8, 400U}, {0.9, 1000U}}) {
    int existing = 0, holding = 0;
    for (std::uint64_t seed = 0; seed < series; ++seed) {
      const auto result = statistics::estimate(Autoregressive{seed, phi, 0.05}.take(n));
      if (!result->lower) continue;
      ++existing;
      holding += *result->lower <= 1 && 1 <= *result->upper ? 1 : 0;
    }
    EXPECT_GT(holding, 0.93 * existing) << "phi = " << phi;
    EXPECT_GT(existing, 0.9 * series) << "phi = " << phi;
  }
}

TEST(NominalConfidence, IsThatOfTheLooks) {
  EXPECT_EQ(statistics::nominal_confidence(1, 1.5), 0.95);
  EXPECT_EQ(statistics::nominal_confidence(0, 1.5), 0.95);
  // More looks need more confidence, and looks that correlate need less than independent ones.
  for (int looks = 2; looks <= 40; ++looks) {
    const double confidence = statistics::nominal_confidence(looks, 1.5);
    EXPECT_GT(confidence, statistics::nominal_confidence(looks - 1, 1.5)) << looks;
    EXPECT_LT(confidence, std::pow(0.95, 1.0 / looks)) << looks;
  }
  results::PointData point;
  EXPECT_EQ(confidence_of(point), 0.95);
  point.looks = {.planned = 9, .made = 1, .growth = 1.5};
  EXPECT_EQ(confidence_of(point), statistics::nominal_confidence(9, 1.5));
}

TEST(NominalConfidence, IsNeverTooLowForAnotherPlan) {
  // Two equal groups: the second look has twice the samples. Pocock's table: 0.0294.
  EXPECT_GE(statistics::nominal_confidence(2, 2.0), 1 - 0.0294);
  EXPECT_DOUBLE_EQ(statistics::nominal_confidence(2, 2.0), std::sqrt(0.95));
  EXPECT_GT(statistics::nominal_confidence(41, 1.5), statistics::nominal_confidence(40, 1.5));
}

// 20,000 chains: the standard error of 5% is 0.15%.
TEST(NominalConfidence, KeepsFivePercentOfSimulatedChains) {
  constexpr int chains = 20'000;
  for (const int looks : {3, 12, 40}) {
    const double confidence = statistics::nominal_confidence(looks, 1.5);
    const double correlation = std::sqrt(1 / 1.5);
    Draw draw{5};
    int crossed = 0;
    for (int chain = 0; chain < chains; ++chain) {
      double z = draw.normal();
      bool is_out = false;
      for (int look = 0; look < looks; ++look) {
        is_out = is_out || std::erf(std::abs(z) / std::sqrt(2.0)) > confidence;
        z = correlation * z + std::sqrt(1 - correlation * correlation) * draw.normal();
      }
      crossed += is_out ? 1 : 0;
    }
    EXPECT_NEAR(crossed / double{chains}, 0.05, 0.006) << looks << " looks";
  }
}

TEST(OutOfTime, SaysHowFarItCame) {
  results::PointData point;
  point.stopped_because = "precision";
  const statistics::Estimate estimate{.median = 10, .lower = 9.8, .upper = 10.2};
  EXPECT_EQ(out_of_time(point, estimate), "");
  point.stopped_because = "max-time";
  EXPECT_THAT(out_of_time(point, estimate), EndsWith("±2.0%"));
  EXPECT_THAT(out_of_time(point, statistics::Estimate{.median = 10}), HasSubstr("before"));
}

TEST(OverLaunches, OneSaysNothingTwoHaveASpreadAndThreeATInterval) {
  const auto one = statistics::over_launches(std::vector{2.0});
  EXPECT_EQ(one.value().median, 2.0);
  EXPECT_EQ(one->samples, 1U);
  EXPECT_FALSE(one->lower || one->upper);
  EXPECT_FALSE(statistics::over_launches({}));
  for (const double no_time : {0.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(statistics::over_launches(std::vector{1.0, no_time}));
  }
  const auto two = statistics::over_launches(std::vector{1.0, 3.0});
  EXPECT_EQ(two->median, 2.0);
  EXPECT_EQ(two->maximum - two->minimum, 2.0);
  EXPECT_FALSE(two->lower || two->upper);
  // Logarithms -0.1, 0, 0.1: mean 0, standard deviation 0.1, t = 4.303 with 2 degrees of freedom.
  const auto three = statistics::over_launches(std::vector{std::exp(-0.1), 1.0, std::exp(0.1)});
  const double half = 4.303 * 0.1 / std::sqrt(3.0);
  EXPECT_EQ(three->median, 1.0);
  EXPECT_NEAR(*three->lower, std::exp(-half), 1e-12);
  EXPECT_NEAR(*three->upper, std::exp(half), 1e-12);
  EXPECT_NEAR(three->maximum - three->minimum, std::exp(0.1) - std::exp(-0.1), 1e-12);
}

TEST(Robust, CentreIsTheMedianOfPairMeans) {
  // Walsh averages of 1, 2, 9: 1 1.5 2 5 5.5 9.
  EXPECT_DOUBLE_EQ(statistics::centre(std::vector{1.0, 2.0, 9.0})->value, 3.5);
  EXPECT_FALSE(statistics::centre(std::vector{1.0, 2.0, 3.0, 4.0, 5.0})->lower);
  // For 6 values the exact test leaves only the extremes: P(V = 0) = 1/64 <= 2.5% < P(V <= 1).
  const auto six = *statistics::centre(std::vector{1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  EXPECT_DOUBLE_EQ(*six.lower, 1);
  EXPECT_DOUBLE_EQ(*six.upper, 6);
  EXPECT_FALSE(statistics::centre(std::vector<double>{}));
}

TEST(Robust, QuantileIsOfNearestRankWithItsInterval) {
  std::vector<double> samples(1000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<double>(i + 1);
  std::ranges::shuffle(samples, std::mt19937{1});
  const auto p99 = statistics::quantile(samples, 0.99);
  ASSERT_TRUE(p99 && p99->lower && p99->upper);
  EXPECT_EQ(p99->value, 990);
  // Binomial(1000, 0.99): 2.5% lie at or below 983, 97.5% at or below 996.
  EXPECT_NEAR(*p99->lower, 984, 1);
  EXPECT_NEAR(*p99->upper, 996, 1);
  EXPECT_FALSE(statistics::quantile(std::span{samples}.first(99), 0.99));
  const auto hundred = statistics::quantile(std::span{samples}.first(100), 0.99);
  EXPECT_FALSE(hundred.value().upper);  // the largest of 100 does not bound it with 97.5%
}

TEST(Robust, IsotonicPoolsWhatFalls) {
  EXPECT_THAT(statistics::isotonic(std::vector{1.0, 3.0, 2.0, 4.0, 0.0}),
              ElementsAre(1, 2.25, 2.25, 2.25, 2.25));
  EXPECT_TRUE(statistics::isotonic({}).empty());
}

TEST(Robust, PromisedErrorIsTheLargestOfFew) {
  EXPECT_FALSE(statistics::promised_error(std::vector{0.1, 0.2}));
  EXPECT_EQ(statistics::promised_error(std::vector{0.1, -0.4, 0.2}), 0.4);
  std::vector<double> errors(39);
  for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = static_cast<double>(i + 1);
  EXPECT_EQ(statistics::promised_error(errors), 38);
}

// Statistics of step times that were measured, see tests/golden/README.md. What is expected was
// computed with numpy, or can be seen in the series.

/// Milliseconds; the first line says what they are.
std::vector<double> recorded(const std::string& name) {
  std::ifstream file{std::string{ISOSCALE_GOLDEN} + "/step_times/" + name + ".txt"};
  std::string what;
  std::getline(file, what);
  std::vector<double> times;
  for (double time = 0; file >> time;) times.push_back(time);
  EXPECT_EQ(times.size(), 200U) << name;
  return times;
}

// A machine with more work than cores: what slows one step down slows the next down too.
TEST(RecordedSteps, ThatCorrelateAreTakenInBlocks) {
  const auto queued = recorded("queued");
  EXPECT_NEAR(*statistics::median(queued), 36.4620, 1e-3);
  EXPECT_NEAR(*statistics::autocorrelation(queued), 0.606784, 1e-5);
  const auto wide = statistics::estimate(queued);
  EXPECT_GE(wide->block, 10U);
  EXPECT_GT(statistics::relative_half_width(*wide).value(), 0.1) << "200 do not know their median";

  const auto two_ranks = recorded("two_ranks");
  EXPECT_NEAR(*statistics::median(two_ranks), 60.4435, 1e-3);
  EXPECT_NEAR(*statistics::autocorrelation(two_ranks), 0.351485, 1e-5);
  EXPECT_GT(statistics::estimate(two_ranks)->block, 1U);
  // Their trend is no more than such noise makes by chance.
  for (const auto& times : {queued, two_ranks}) {
    EXPECT_FALSE(statistics::sample_flags(times).drift);
    EXPECT_FALSE(statistics::sample_flags(times).bimodal);
  }
}

// Steps of 2.8 ms that an operating system lets run through, or holds up for a slice of 4 ms.
TEST(RecordedSteps, ThatAreHeldUpOrNotAreOfTwoKinds) {
  const auto times = recorded("time_slices");
  EXPECT_LT(*statistics::autocorrelation(times), -0.3) << "they take turns";
  EXPECT_EQ(statistics::estimate(times)->block, 1U);
  const statistics::SampleFlags flags = statistics::sample_flags(times);
  ASSERT_TRUE(flags.bimodal);
  EXPECT_NEAR(flags.bimodal->low, 2.8, 0.1);
  EXPECT_NEAR(flags.bimodal->high, 6.9, 0.1);
  EXPECT_NEAR(flags.bimodal->share_high, 0.61, 0.02);
  EXPECT_TRUE(flags.outliers);
  EXPECT_FALSE(flags.drift);
  EXPECT_EQ(statistics::last_change(times, 0.005), 0U);
}

using Kind = StepBlock::Kind;

/// Noise, in which each sample is as much longer than the first as a part of `slope`.
std::vector<double> drifting(Autoregressive noise, std::size_t count, double slope) {
  std::vector<double> samples = noise.take(count);
  for (std::size_t i = 0; i < count; ++i) {
    samples[i] *= 1 + slope * static_cast<double>(i) / static_cast<double>(count);
  }
  return samples;
}

TEST(Trend, OfASlopeWorkedOutByHandAndUnderCorrelatedNoise) {
  // 101 ... 110: S = 45, variance 10 * 9 * 25 / 18 = 125, z = 44 / sqrt(125).
  std::vector<double> samples(10);
  std::iota(samples.begin(), samples.end(), 101.0);
  const auto found = statistics::trend(samples);
  EXPECT_NEAR(found.value().change, 9 / 105.5, 1e-12);
  EXPECT_NEAR(found->probability, std::erfc(44 / std::sqrt(250.0)), 1e-12);
  EXPECT_EQ(statistics::trend(std::vector<double>(20, 1.0))->probability, 1.0);
  EXPECT_FALSE(statistics::trend(std::vector<double>(7, 1.0)));
  EXPECT_FALSE(statistics::trend(std::vector<double>(20, -1.0))) << "relative to what?";
  std::vector<double> unknown(20, 1.0);
  unknown[3] = nan;
  EXPECT_FALSE(statistics::trend(unknown));
  const auto correlated = statistics::trend(drifting({1, 0.5, 0.01}, 400, 0.05));
  EXPECT_NEAR(correlated.value().change, 0.05, 0.01);
  EXPECT_LT(correlated->probability, 1e-6);
}

TEST(Dip, IsThatOfSmallSamples) {
  EXPECT_DOUBLE_EQ(*statistics::dip(std::array{1.0, 1.0, 2.0, 2.0}), 0.25)
      << "the largest there is";
  EXPECT_DOUBLE_EQ(*statistics::dip(std::array{0.0, 1.0, 3.0, 6.0}), 0.125) << "1 / 2n: one mode";
  EXPECT_DOUBLE_EQ(*statistics::dip(std::array{6.0, 5.0, 3.0, 0.0}), 0.125) << "and mirrored";
  std::vector<double> even(10);
  std::iota(even.begin(), even.end(), 0.0);
  EXPECT_DOUBLE_EQ(*statistics::dip(even), 0.05);
  EXPECT_EQ(*statistics::dip(std::vector<double>(9, 2.0)), 0.0);
  EXPECT_FALSE(statistics::dip(std::array{1.0, 2.0, 3.0}));
  for (const std::size_t n : {20U, 100U, 400U}) {
    Draw draw{n};
    int above = 0;
    for (int series = 0; series < 1000; ++series) {
      std::vector<double> samples(n);
      std::ranges::generate(samples, [&] { return draw.uniform(); });
      above += *statistics::dip(samples) * std::sqrt(static_cast<double>(n)) > 0.65 ? 1 : 0;
    }
    EXPECT_LE(above, 10) << n;
  }
}

TEST(TwoGroups, OfTwoHeaps) {
  const auto groups = statistics::two_groups(std::array{1.0, 5.0, 1.2, 5.2, 0.8, 4.8, 5.0, 5.0});
  EXPECT_EQ(groups.value().low, 1.0);
  EXPECT_EQ(groups->high, 5.0);
  EXPECT_EQ(groups->share_high, 0.625);
  // Deviations 0.2, 0, 0.2 and 0, 0.2, 0.2, 0, 0.
  EXPECT_NEAR(groups->spread_low, 1.4826 * 0.2, 1e-12);
  EXPECT_NEAR(groups->spread_high, 0, 1e-12);
  EXPECT_NEAR(groups->separation, std::sqrt(2.0) * 4 / (1.4826 * 0.2), 1e-9);
  EXPECT_FALSE(statistics::two_groups(std::vector<double>(9, 2.0)));
}

TEST(SampleFlags, HaveASentenceEach) {
  const auto drift = statistics::sample_flags(drifting({2, 0, 0.001}, 100, 0.1));
  EXPECT_TRUE(drift.drift);
  EXPECT_THAT(drift.sentences, Contains(HasSubstr("slower")));
  std::vector<double> spiked = Autoregressive{2, 0, 0.01}.take(100);
  spiked[10] = 3;
  const auto outlier = statistics::sample_flags(spiked);
  EXPECT_NEAR(outlier.outliers.value().furthest, 3, 0.05);
  EXPECT_THAT(outlier.sentences, ElementsAre(HasSubstr("1 of 100")));
  for (const auto& nothing :
       {std::vector<double>{}, std::vector<double>(200, 1.0), std::vector<double>{1, 2, 9}}) {
    EXPECT_THAT(statistics::sample_flags(nothing).sentences, ElementsAre());
  }
  const auto small = statistics::sample_flags(drifting({2, 0, 0.0001}, 100, 0.008));
  EXPECT_FALSE(small.drift) << "a slope of less than one percent is none";
  ASSERT_TRUE(small.trend);
  EXPECT_NEAR(small.trend->change, 0.008, 0.001);
}

std::vector<double> levels(std::size_t first, double high, std::size_t then, double low) {
  std::vector<double> samples(first, high);
  samples.insert(samples.end(), then, low);
  return samples;
}

TEST(ChangePoint, OfTwoLevelsWorkedOutByHandAndOfNone) {
  // Mid-ranks 12.5 and 4.5; K = |2 * 8 * 12.5 - 8 * 17| = 64; 2 exp(-6 * 64^2 / (16^3 + 16^2)).
  const auto change = statistics::change_point(levels(8, 2, 8, 1));
  EXPECT_EQ(change.value().first, 8U);
  EXPECT_NEAR(change->probability, 2 * std::exp(-24576.0 / 4352.0), 1e-12);
  EXPECT_EQ(statistics::change_point(std::vector<double>(30, 1.0))->probability, 1.0);
  EXPECT_FALSE(statistics::change_point(std::array{1.0}));
  EXPECT_FALSE(statistics::change_point({}));
  EXPECT_FALSE(statistics::change_point(std::array{1.0, nan}));
}

TEST(LastChange, IsFoundBehindEarlierOnes) {
  std::vector<double> samples = levels(20, 3, 20, 2);
  samples.insert(samples.end(), 40, 1.0);
  EXPECT_EQ(statistics::last_change(samples, 0.01), 40U);
  // It may be too small to count, and cannot be seen in fifteen samples.
  EXPECT_EQ(statistics::last_change(levels(30, 1.004, 30, 1), 0.005), 0U);
  EXPECT_EQ(statistics::last_change(levels(30, 1.006, 30, 1), 0.005), 30U);
  EXPECT_EQ(statistics::last_change(levels(7, 9, 8, 1), 0.005), 0U);
  EXPECT_EQ(statistics::last_change(levels(8, 9, 8, 1), 0.005), 8U);
}

TEST(StepBlocks, BeginWithADroppedStepAndEndWithTheirKind) {
  results::PointData point;
  point.warm_up_steps = 1;
  const auto add = [&](std::vector<double> of_rank, int traced, int dropped) {
    point.step_times.push_back(std::move(of_rank));
    point.traced.push_back(static_cast<std::uint8_t>(traced));
    point.dropped.push_back(static_cast<std::uint8_t>(dropped));
  };
  add({9, 9}, 0, 0);  // warm-up
  add({8, 8}, 0, 1);
  add({1, 2}, 0, 0);
  add({3, 1}, 0, 0);
  add({8, 8}, 1, 1);
  add({4, 1}, 1, 0);
  add({8, 8}, 1, 1);  // a block that follows one of its kind
  add({5, nan}, 1, 0);
  add({5, 6}, 1, 0);
  add({8, 8}, 0, 1);  // nothing of it counts
  const auto is = [](Kind kind, std::vector<double> times) {
    return AllOf(Field(&StepBlock::kind, kind), Field(&StepBlock::times, times));
  };
  EXPECT_THAT(step_blocks(point), ElementsAre(is(Kind::untraced, {2, 3}), is(Kind::traced, {4}),
                                              is(Kind::traced, {6})));
}

/// Pairs whose order is swapped, traced steps longer by `overhead`, on a machine that drifts.
std::vector<StepBlock> pairs(std::size_t count, double overhead, double drift_per_block) {
  std::vector<StepBlock> blocks;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const bool traced = (i % 4 == 1) || (i % 4 == 2);
    const double time =
        (1 + drift_per_block * static_cast<double>(i)) * (traced ? 1 + overhead : 1);
    blocks.push_back({.kind = traced ? Kind::traced : Kind::untraced, .times = {time, time, time}});
  }
  return blocks;
}

TEST(Overhead, IsTheCentreOfThePairs) {
  // A subset is used where there are many pairs; drift does not move what swapped pairs show.
  for (const auto& [count, drift, tolerance] :
       {std::tuple{6U, 0.0, 1e-12}, {5000U, 0.0, 1e-12}, {8U, 0.01, 0.002}}) {
    const auto found = instrumentation_overhead(pairs(count, 0.02, drift));
    ASSERT_TRUE(found && found->lower && found->upper);
    EXPECT_NEAR(found->value, 0.02, tolerance);
    EXPECT_LE(*found->lower, 0.02 + 1e-12);
    EXPECT_GE(*found->upper, 0.02 - 1e-12);
    if (drift > 0) continue;
    EXPECT_NEAR(*found->lower, 0.02, tolerance);
    EXPECT_NEAR(*found->upper, 0.02, tolerance);
  }
  const auto few = instrumentation_overhead(pairs(5, 0.02, 0));
  EXPECT_FALSE(few.value().lower);
  EXPECT_FALSE(instrumentation_overhead({}));
  const StepBlock alone{.kind = Kind::untraced, .times = {1, 1}};
  EXPECT_FALSE(instrumentation_overhead(std::vector{alone, alone}));
}

TEST(OverheadWarning, IsGivenAboveOnePercentWithItsInterval) {
  using statistics::Located;
  EXPECT_EQ(overhead_warning(std::nullopt), "");
  EXPECT_EQ(overhead_warning(Located{.value = 0.02, .lower = 0.005, .upper = 0.03}), "");
  EXPECT_EQ(overhead_warning(Located{.value = 0.009}), "");
  EXPECT_THAT(overhead_warning(Located{.value = 0.02, .lower = 0.012, .upper = 0.03}),
              HasSubstr("2.0% longer (1.2% to 3.0%)"));
  EXPECT_THAT(overhead_warning(Located{.value = 0.02}), HasSubstr("too few"));
}

}  // namespace
}  // namespace isoscale::analysis
