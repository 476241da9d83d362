// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Statistics of step times that were measured, see tests/golden/README.md. What is expected was
// computed with numpy, or can be seen in the series.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "statistics/estimate.hpp"
#include "statistics/sample_flags.hpp"
#include "statistics/trend.hpp"

namespace isoscale::analysis {
namespace {

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
  ASSERT_TRUE(wide->lower && wide->upper);
  EXPECT_GT(*statistics::relative_half_width(*wide), 0.1)
      << "200 of such steps do not know their median well";

  const auto two_ranks = recorded("two_ranks");
  EXPECT_NEAR(*statistics::median(two_ranks), 60.4435, 1e-3);
  EXPECT_NEAR(*statistics::autocorrelation(two_ranks), 0.351485, 1e-5);
  EXPECT_GT(statistics::estimate(two_ranks)->block, 1U);
}

// Their trend is no more than such noise makes by chance.
TEST(RecordedSteps, ThatCorrelateDoNotDrift) {
  for (const char* name : {"queued", "two_ranks"}) {
    EXPECT_FALSE(statistics::sample_flags(recorded(name)).drift) << name;
    EXPECT_FALSE(statistics::sample_flags(recorded(name)).bimodal) << name;
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

}  // namespace
}  // namespace isoscale::analysis
