// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include "analysis/page/page.hpp"
#include "analysis/render/text.hpp"
#include "launch_samples.hpp"
#include "reported.hpp"

/// The tests check what a page shows of one point, but for its lanes.
namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json map_of(const OneRun& one, std::size_t point) {
  return page::rank_map(one.run.rank_facts, one.point(point), {});
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
  for (auto& times : point.step_times) times.assign(24, 1e-3);
  point.step_times[7][5] = 1.25e-3;  // a measured step
  for (auto& times : point.step_times) times[9] = 1.1e-3;
  return run;
}

TEST(RankMap, HasARowPerRankByHostAndItsStepsAgainstTheMedian) {
  const OneRun one{twelve_hosts()};
  const Json map = map_of(one, 0);
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
  EXPECT_THAT(ranks, IsSupersetOf({0, 9, 14, 21}));
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

TEST(RankMap, HasWhatTracesTellInTheOrderOfTheRanksInTheWorld) {
  results::RunData run = samples::two_curves();
  run.points[2].world_rank = {0, 2, 1, 3};
  const Json map = map_of(OneRun{std::move(run)}, 2);
  EXPECT_EQ(map["world_rank"], (Json{0, 1, 2, 3}));
  EXPECT_EQ(map["rank"], (Json{0, 2, 1, 3}));
  // Each rank computes 640 + 50 rank ns, by the hand-made trace: [0, 400 + 50 r] and [720, 960].
  for (std::size_t row = 0; row < 4; ++row) {
    const double rank = map["rank"][row];
    EXPECT_NEAR(map["compute"][row].get<double>(), (640 + 50 * rank) * 1e-9, 1e-15);
    EXPECT_NEAR(map["copies"][row].get<double>(), 20e-9, 1e-15);
    EXPECT_NEAR(map["wait"][row].get<double>(), (150 - 50 * rank) * 1e-9, 1e-15);
  }
  EXPECT_NEAR(map["caused_wait"][3].get<double>(), (150 + 100 + 50) * 1e-9, 1e-15);
}

results::DeviceSeries series(int rank, const char* quantity, const char* unit,
                             std::vector<double> values) {
  results::DeviceSeries made{.rank = rank,
                             .device = "gpu " + std::to_string(rank),
                             .quantity = quantity,
                             .unit = unit,
                             .value = std::move(values)};
  for (std::size_t i = 0; i < made.value.size(); ++i) {
    made.time.push_back(0.1 * static_cast<double>(i));
  }
  return made;
}

TEST(DeviceLines, KeepWhatIsLeastAndMost) {
  results::PointData point = samples::measured(0, {.dp = 2}, 1e-3);
  std::vector<double> power(1000, 500), reasons(1000, 0);
  for (std::size_t i = 0; i < 1000; ++i) power[i] += 10.0 * static_cast<double>(i / 10 % 2);
  power[123] = 100;
  power[777] = 700;
  reasons[400] = 8;
  reasons[401] = 64;
  point.device_series = {series(0, "throttle_reasons", "1", reasons),
                         series(0, "power", "W", power),
                         series(0, "energy", "J", std::vector<double>(1000, 5)),
                         series(0, "sample_time", "s", std::vector<double>(1000, 1e-3)),
                         series(1, "sm_clock", "Hz", {1.5e9, 1.5e9})};
  const results::RunData run = samples::launch("one", 2, 1);
  const Json lines = page::device_lines(run.rank_facts, point, {.samples = 100});
  ASSERT_EQ(lines.size(), 3U);
  expect_holds(lines[0],
               {{"quantity", "sm_clock"}, {"host", "node1"}, {"value", {1500000000, 1500000000}}});
  EXPECT_FALSE(lines[0].contains("low"));
  expect_holds(lines[1], {{"quantity", "power"}, {"averaged", 10}});
  ASSERT_EQ(lines[1]["value"].size(), 100U);
  EXPECT_EQ(lines[1]["low"][12], 100);
  EXPECT_EQ(lines[1]["high"][77], 700);
  EXPECT_EQ(lines[1]["value"][77], 529);
  EXPECT_NEAR(lines[1]["time"][1].get<double>(), 1.45, 1e-9);
  // A line that stays level needs no values in between.
  EXPECT_EQ(lines[2]["value"],
            (Json{"", "", "hardware slowdown, hardware thermal slowdown", "", ""}));
  EXPECT_NEAR(lines[2]["time"][2].get<double>(), 40.45, 1e-9);
}

TEST(DeviceLines, AndLanesNameTheRanksInTheWorld) {
  results::RunData run = samples::launch("one", 4, 1);
  results::PointData point = samples::two_curves().points[2];
  point.world_rank = {0, 2, 1, 3};
  PointReport of_point;
  of_point.data = &point;
  const Json lanes = page::lanes({}, of_point, {})["lanes"];
  ASSERT_EQ(lanes.size(), 4U);
  expect_holds(lanes[1], {{"rank", 1}, {"world_rank", 2}, {"label", "rank 2"}});
  EXPECT_EQ(lanes[2]["world_rank"], 1);
  point.device_series = {series(1, "sm_clock", "Hz", {1.5e9, 1.5e9})};
  const Json lines = page::device_lines(run.rank_facts, point, {});
  ASSERT_EQ(lines.size(), 1U);
  expect_holds(lines[0], {{"rank", 1}, {"world_rank", 2}, {"host", "node2"}});
}

TEST(DeviceLines, AreOfTheDevicesThatDifferMost) {
  results::PointData point = samples::measured(0, {.dp = 24}, 1e-3);
  for (int rank = 0; rank < 24; ++rank) {
    point.device_series.push_back(series(rank, "sm_clock", "Hz", {rank == 20 ? 1e9 : 2e9, 2e9}));
    point.device_series.push_back(series(rank, "temperature", "K", {rank == 22 ? 350. : 320.}));
  }
  const Json lines = page::device_lines({}, point, {});
  ASSERT_EQ(lines.size(), 32U);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < 16; ++i) ranks.push_back(lines[i]["rank"].get<int>());
  EXPECT_THAT(ranks, IsSupersetOf({20, 22}));
  EXPECT_TRUE(std::ranges::is_sorted(ranks));
  EXPECT_EQ(page::count_device_lines(point, 16), 32U);
  EXPECT_EQ(page::count_device_lines(point, 100), 48U);
}

}  // namespace
}  // namespace isoscale::analysis
