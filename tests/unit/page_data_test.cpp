// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"
#include "analysis/render/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "analysis/page/point_details.hpp"
#include "analysis/page/prune.hpp"
#include "analysis/render/render_json.hpp"
#include "launch_samples.hpp"
#include "report_samples.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;

/// A report of one run, which it keeps.
struct OneRun {
  results::RunData run;
  RunReport made;
  explicit OneRun(results::RunData of) : run(std::move(of)), made(make_report(run, "a.h5", {})) {}
  OneRun(const OneRun&) = delete;
  OneRun& operator=(const OneRun&) = delete;
  [[nodiscard]] merge::Report report() const { return {.runs = {&made, 1}}; }
  [[nodiscard]] Json data() const { return page::page_data(report()); }
  [[nodiscard]] const PointReport& point(int index) const {
    for (const Curve& curve : made.curves) {
      for (const PointReport& at : curve.points) {
        if (at.data->index == index) return at;
      }
    }
    throw std::out_of_range("no such point");
  }
};

TEST(PageNumber, HasSoManyDigitsAndNoMore) {
  EXPECT_EQ(page::drawn(0.001234567).dump(), "0.00123457");
  EXPECT_EQ(page::drawn(1234567.0).dump(), "1234570");
  EXPECT_EQ(page::drawn(1.98e9).dump(), "1980000000");
  EXPECT_EQ(page::drawn(-2.0).dump(), "-2");
  EXPECT_EQ(page::drawn(0.0).dump(), "0");
  EXPECT_EQ(page::drawn(9.9999996).dump(), "10");
  EXPECT_EQ(page::drawn(0.1 + 0.2).dump(), "0.3");
  EXPECT_EQ(page::drawn(1e-300).dump(), "1e-300");
  EXPECT_EQ(page::drawn(1e300).dump(), "1e+300");
  EXPECT_TRUE(page::drawn(std::numeric_limits<double>::quiet_NaN()).is_null());
  EXPECT_TRUE(page::drawn(std::numeric_limits<double>::infinity()).is_null());
  EXPECT_TRUE(page::drawn(std::optional<double>{}).is_null());
}

TEST(PageData, HasTheReportAndDetailsOfEveryPointWithSteps) {
  const OneRun one{samples::two_curves()};
  const Json data = one.data();
  EXPECT_EQ(data["kind"], "report");
  EXPECT_EQ(data["notes"].is_array(), true);
  std::set<int> points;
  for (const Json& at : data["details"]) {
    EXPECT_EQ(at["run"], 0);
    points.insert(at["point"].get<int>());
  }
  EXPECT_THAT(points, ElementsAre(0, 1, 2, 4, 5));  // 3 was skipped
  // The page holds the report's values as they stand there, digit by digit.
  const Json whole = render::report_json(one.report());
  const Json& pruned = data["report"];
  for (const char* const key : {"step_time", "throughput", "efficiency", "breakdown", "findings"}) {
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(pruned["runs"][0]["points"][i][key], whole["runs"][0]["points"][i][key]) << key;
    }
  }
  EXPECT_FALSE(pruned["runs"][0]["points"][0].contains("breakdown_of_rank"));
  EXPECT_FALSE(pruned["runs"][0]["system"].contains("ranks"));
}

TEST(PageData, OfSeveralLaunchesHasTheTypicalOnes) {
  std::vector<results::RunData> launches;
  for (const double step : {1.0e-3, 3.0e-3, 2.0e-3}) {
    launches.push_back(samples::launch_of("launch" + std::to_string(launches.size()), 2, 2, step));
  }
  const samples::JoinedLaunches joined{std::move(launches)};
  const Json data = page::page_data(joined.report());
  ASSERT_EQ(data["details"].size(), 1U);
  EXPECT_EQ(data["details"][0]["run"], 2);  // 2 ms is the one in the middle
  EXPECT_EQ(data["report"]["runs"].size(), 3U);
}

TEST(StepSeries, HasEveryStepWithItsSlowestRankAndItsKind) {
  results::PointData point = samples::measured(0, {.dp = 2}, 1e-3);
  samples::add_traced_steps(point, 1e-3, 1.5);
  const Json series = page::step_series(point, 1000);
  ASSERT_EQ(series["first"].size(), 26U);
  EXPECT_EQ(series["every"], 1);
  for (std::size_t step = 0; step < 26; ++step) {
    EXPECT_EQ(series["first"][step], step);
    const auto& of_rank = point.step_times[step];
    EXPECT_NEAR(series["time"][step].get<double>(), std::max(of_rank[0], of_rank[1]), 1e-8);
    const int kind = step < 2 ? 3 : step < 22 ? 0 : step == 22 ? 2 : 1;
    EXPECT_EQ(series["kind"][step], kind) << step;
  }
  ASSERT_EQ(series["quantiles"].size(), 101U);
  // The 20 measured steps lie at 1 ms * (1 + 0.001 k) for 20 of the k from -10 to 10.
  std::vector<double> measured;
  for (std::size_t step = 2; step < 22; ++step) measured.push_back(point.step_times[step].back());
  std::ranges::sort(measured);
  EXPECT_NEAR(series["quantiles"][0].get<double>(), measured.front(), 1e-8);
  EXPECT_NEAR(series["quantiles"][100].get<double>(), measured.back(), 1e-8);
  EXPECT_NEAR(series["quantiles"][50].get<double>(), (measured[9] + measured[10]) / 2, 1e-8);
}

TEST(StepSeries, ThinsOutWithoutLosingALargestOrMixingKinds) {
  results::PointData point = samples::measured(0, {.dp = 2}, 1e-3);
  for (int block = 0; block < 500; ++block) {
    for (int i = 0; i < 9; ++i) {
      point.step_times.push_back({1e-3, 1e-3});
      point.traced.push_back(i >= 6 ? 1 : 0);
      point.dropped.push_back(i == 0 ? 1 : 0);
    }
  }
  point.step_times[774] = {1e-3, 0.5};  // one of the measured
  ASSERT_EQ(page::kind_of_step(point, 774), page::StepKind::measured);
  const Json series = page::step_series(point, 300);
  EXPECT_LE(series["first"].size(), 300U);
  EXPECT_GT(series["first"].size(), 75U);
  const std::size_t every = series["every"].get<std::size_t>();
  ASSERT_GT(every, 1U);
  bool found = false;
  for (std::size_t i = 0; i < series["first"].size(); ++i) {
    const auto first = series["first"][i].get<std::size_t>();
    EXPECT_EQ(series["kind"][i], static_cast<int>(page::kind_of_step(point, first)));
    if (series["time"][i] == 0.5) {
      EXPECT_EQ(series["kind"][i], 0);
      EXPECT_EQ(first / every, 774 / every);
      found = true;
    }
    EXPECT_LT(i == 0 ? Json(-1) : series["first"][i - 1], series["first"][i]);
  }
  EXPECT_TRUE(found);
}

TEST(StepSeries, HasNoTimeWhereARankHasNone) {
  results::PointData point = samples::measured(0, {.dp = 2}, 1e-3);
  point.step_times[5][0] = std::numeric_limits<double>::quiet_NaN();
  const Json series = page::step_series(point, 1000);
  EXPECT_TRUE(series["time"][5].is_null());
  EXPECT_FALSE(series["time"][6].is_null());
  point.step_times.resize(1);
  EXPECT_TRUE(page::step_series(point, 1000)["quantiles"].is_null());
}

TEST(RankMap, SortsHostsByTheirNumbers) {
  std::vector<std::string> hosts{"node10", "node2", "a", "node1", "node02", "b3x10", "b3x9", ""};
  std::ranges::sort(hosts, render::before_naturally);
  EXPECT_THAT(hosts, ElementsAre("", "a", "b3x9", "b3x10", "node1", "node02", "node2", "node10"));
}

/// 24 ranks on 12 hosts, two each.
results::RunData twelve_hosts() {
  results::RunData run = samples::launch("big", 12, 2);
  results::PointData& point = samples::add(run, {.dp = 24}, 1e-3);
  for (std::size_t step = 0; step < point.step_times.size(); ++step) {
    for (std::size_t rank = 0; rank < 24; ++rank) point.step_times[step][rank] = 1e-3;
  }
  point.step_times[7][5] = 1.25e-3;  // a measured step
  for (auto& times : point.step_times) times[9] = 1.1e-3;
  return run;
}

TEST(RankMap, HasARowPerRankByHostAndItsStepsAgainstTheMedian) {
  const OneRun one{twelve_hosts()};
  const Json map = page::rank_map(one.run.rank_facts, one.point(0), {});
  ASSERT_EQ(map["rank"].size(), 24U);
  ASSERT_EQ(map["hosts"].size(), 12U);
  EXPECT_EQ(map["hosts"][2], "node2");
  EXPECT_EQ(map["hosts"][10], "node10");
  for (std::size_t row = 0; row < 24; ++row) {
    EXPECT_EQ(map["rank"][row], row);
    EXPECT_EQ(map["host"][row], row / 2);
    EXPECT_NEAR(map["step"][row].get<double>(), row == 9 ? 1.1e-3 : 1e-3, 1e-9);
    EXPECT_TRUE(map["wait"][row].is_null());  // nothing was traced
  }
  const Json& cells = map["cells"];
  ASSERT_EQ(cells["first"].size(), 20U);
  EXPECT_EQ(cells["first"][5], 7);
  EXPECT_EQ(map["median"]["step"], 1e-3);
  EXPECT_EQ(cells["time"][5][5], 0.25);
  EXPECT_EQ(cells["time"][5][6], 0);
  EXPECT_EQ(cells["time"][9][6], 0.1);
}

TEST(RankMap, IsInTheOrderOfTheRanksInTheWorld) {
  results::RunData run = samples::two_curves();
  run.points[2].world_rank = {0, 2, 1, 3};
  const OneRun one{std::move(run)};
  const Json map = page::rank_map(one.run.rank_facts, one.point(2), {});
  EXPECT_EQ(map["world_rank"], (Json{0, 1, 2, 3}));
  EXPECT_EQ(map["rank"], (Json{0, 2, 1, 3}));
  EXPECT_NEAR(map["compute"][1].get<double>(), (400 + 50 * 2 + 240) * 1e-9, 1e-15);
}

TEST(RankMap, OfVeryManyRanksKeepsTheFirstAndTheSlowest) {
  const OneRun one{twelve_hosts()};
  PointReport point = one.point(0);
  for (int rank = 0; rank < 24; ++rank) {
    point.breakdown.ranks.push_back(rank);
    point.breakdown.of_rank.push_back({.compute = rank == 14 ? 2.0 : 1.0});
    point.breakdown.caused.of_rank.push_back(rank == 21 ? 2.0 : 0.0);
  }
  const Json map = page::rank_map(one.run.rank_facts, point, {.columns = 7, .rows = 8});
  const auto ranks = map["rank"].get<std::vector<int>>();
  ASSERT_EQ(ranks.size(), 8U);
  EXPECT_THAT(ranks, testing::IsSupersetOf({0, 9, 14, 21}));
  EXPECT_TRUE(std::ranges::is_sorted(ranks));
  EXPECT_EQ(map["traced"], 24);
  EXPECT_EQ(map["median"]["step"], 1e-3) << "of all ranks, not of those that are shown";
  EXPECT_EQ(map["median"]["compute"], 1);
  EXPECT_EQ(map["cells"]["every"], 3);
  EXPECT_EQ(map["cells"]["steps"], 20);
  EXPECT_EQ(map["cells"]["first"].size(), 7U);
  const Json all = page::rank_map(one.run.rank_facts, point, {.columns = 7});
  EXPECT_EQ(all["cells"]["time"][5][1], 0.25) << "step 7 is the furthest from the median of three";
}

TEST(RankMap, HasWhatTracesTell) {
  const OneRun one{samples::two_curves()};
  const PointReport& point = one.point(2);
  const Json map = page::rank_map(one.run.rank_facts, point, {});
  // Each rank computes 640 + 50 rank ns, by the hand-made trace: [0, 400 + 50 r] and [720, 960].
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_NEAR(map["compute"][rank].get<double>(),
                (400 + 50 * static_cast<double>(rank) + 240) * 1e-9, 1e-15);
    EXPECT_NEAR(map["copies"][rank].get<double>(), 20e-9, 1e-15);
    EXPECT_NEAR(map["wait"][rank].get<double>(), (150 - 50 * static_cast<double>(rank)) * 1e-9,
                1e-15);
  }
  EXPECT_NEAR(map["caused_wait"][3].get<double>(), (150 + 100 + 50) * 1e-9, 1e-15);
}

Json rank_json(int rank, const std::string& host, Json text, Json number = Json::object()) {
  return {{"rank", rank}, {"host", host}, {"node", 0}, {"text", text}, {"number", number}};
}

TEST(Prune, PutsRanksThatAreAlikeTogether) {
  Json ranks = Json::array();
  for (int rank = 0; rank < 24; ++rank) {
    const std::string name = rank == 7 ? "GPU B" : "GPU A";
    ranks.push_back(rank_json(rank, "n" + std::to_string(rank / 2),
                              {{"gpu_name", name},
                               {"bound_cpus", std::to_string(rank % 2)},
                               {"odd_fact", std::to_string(rank)}},
                              {{"cores", 64}}));
  }
  const Json kinds = page::kinds_of_ranks(ranks);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0]["ranks"], "0-6, 8-23");
  EXPECT_EQ(kinds[0]["count"], 23);
  EXPECT_EQ(kinds[0]["hosts"].size(), 8U);
  EXPECT_EQ(kinds[0]["more_hosts"], 4);
  EXPECT_EQ(kinds[0]["text"], (Json{{"gpu_name", "GPU A"}}));
  EXPECT_EQ(kinds[0]["number"], (Json{{"cores", 64}}));
  EXPECT_EQ(kinds[1]["ranks"], "7");
}

TEST(Prune, TellsHostsApartThatDiffer) {
  Json ranks = Json::array();
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(
        rank_json(rank, "n" + std::to_string(rank), {{"os", rank == 2 ? "old" : "new"}}));
  }
  EXPECT_EQ(page::kinds_of_ranks(ranks).size(), 2U);
}

TEST(Prune, CutsLongTextsAndKeysAtWholeCharacters) {
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "ü";
  Json data{{"a", umlauts}, {std::string(5000, 'k'), Json::array({"short", umlauts})}};
  page::PageNotes notes;
  page::cut_texts(data, notes);
  EXPECT_EQ(data["a"], umlauts.substr(0, 4000) + "… (3000 characters)");
  const std::string key = std::string(2000, 'k') + "… (5000 characters)";
  ASSERT_TRUE(data.contains(key));
  EXPECT_EQ(data[key][0], "short");
  EXPECT_THAT(notes, ElementsAre("3 texts longer than 2000 characters are cut"));
  page::PageNotes none;
  Json small{{"a", std::string(2000, 'x')}};
  page::cut_texts(small, none);
  EXPECT_EQ(small["a"], std::string(2000, 'x'));
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace isoscale::analysis
