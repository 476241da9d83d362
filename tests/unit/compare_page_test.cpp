// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "analysis/page/asset.hpp"
#include "compare_samples.hpp"

namespace isoscale::analysis {
namespace {

using samples::around;
using samples::Compared;
using samples::side;
using samples::with_gate;
using testing::HasSubstr;
using testing::Not;

TEST(ComparePage, HoldsTheComparisonOfTheSides) {
  // 2 ranks: 50 ms against 60 ms, so 5/6 of the throughput.
  const Compared of{{side("a", around(1)), side("b", around(1.2))}, with_gate(0.05)};
  const auto data = page_data(*of);
  EXPECT_EQ(data["kind"], "compare");
  EXPECT_TRUE(data["notes"].empty());
  const auto& compared = data["compare"];
  ASSERT_EQ(compared["sides"].size(), 2U);
  EXPECT_EQ(compared["sides"][1]["launches"].size(), 3U);
  ASSERT_EQ(compared["differences"].size(), 3U);
  for (const auto& at : compared["differences"]) {
    EXPECT_NEAR(at["throughput"]["ratio"].get<double>(), 1 / 1.2, 1e-9);
    EXPECT_EQ(at["verdict"], "regression");
  }
  EXPECT_EQ(compared["gate"]["verdict"], "failed");
}

TEST(ComparePage, CutsTextsThatAreTooLongAndSaysSo) {
  auto sides = side("b", around(1));
  for (auto& run : sides) run.mpi_library = std::string(1'000'000, 'x');
  const Compared of{{side("a", around(1)), sides}};
  const auto data = page_data(*of);
  EXPECT_LT(data.dump().size(), 100'000U);
  EXPECT_FALSE(data["notes"].empty());
}

TEST(ComparePage, TextOfRunFilesIsNoMarkup) {
  if (!page_asset()) GTEST_SKIP() << "this build has no page";
  const std::string hostile = "</script><img src=x onerror=alert(1)>";
  auto sides = side("b", around(1));
  for (auto& run : sides) run.mpi_library = hostile;
  const Compared of{{side("a", around(1)), sides}};
  const std::string document = page_document(page_data(*of));
  EXPECT_THAT(document, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(document, HasSubstr("\\u003c/script>\\u003cimg src=x onerror=alert(1)>"));
}

}  // namespace
}  // namespace isoscale::analysis
