// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// From what ranks report of a case to its rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runner/microbench/result_rows.hpp"

namespace isoscale::runner {
namespace {

using testing::ElementsAre;
using workloads::Case;
using workloads::RowSpec;

RankReport through_the_wire(const RankReport& report) {
  const std::vector<double> packed = pack(report);
  return unpack(std::as_bytes(std::span{packed}));
}

TEST(RankReport, ArrivesAsItWasSent) {
  for (const RankReport& report :
       {RankReport{}, RankReport{.wrong = 0, .plays = {1, 2}},
        RankReport{.wrong = 7, .plays = {}, .stream_times = {{1}, {}, {2, 3}}},
        RankReport{.plays = {1}, .gpu = {.sm_clock = 1.98e9, .throttle_reasons = 0x44}},
        RankReport{.plays = {1}, .gpu = {.throttle_reasons = 0}}}) {
    EXPECT_EQ(through_the_wire(report), report);
  }
  EXPECT_THROW(static_cast<void>(unpack({})), base::Error);
}

const std::vector<RankReport> reports{
    {.wrong = 0, .plays = {1, 2}, .stream_times = {{10, 11, 12}, {20, 21}}},
    {.wrong = std::nullopt, .plays = {3, 4}, .stream_times = {{13, 14, 15}, {22, 23}}},
    {.wrong = 5, .plays = {5, 6}, .stream_times = {{16, 17, 18}, {24, 25}}}};
const Case four_calls{.calls = 4};
const CaseRecord record{.first_call = 0.5, .times = 3, .call_times = {0.1, 0.2}};

TEST(Rows, OfAllRanksHaveTheTimesOfAll) {
  const auto row = row_of(RowSpec{.text = {{"op", "x"}}}, four_calls, record, reports);
  EXPECT_EQ(row.calls, 12);
  EXPECT_THAT(row.times, ElementsAre(ElementsAre(1, 3, 5), ElementsAre(2, 4, 6)));
  EXPECT_THAT(row.call_times, ElementsAre(0.1, 0.2));
  EXPECT_EQ(row.number.at("first_call"), 0.5);
  EXPECT_EQ(row.wrong, 5);
  EXPECT_EQ(row.status, results::PointStatus::failed);
  EXPECT_EQ(row.reason, "5 wrong elements");
}

TEST(Rows, OfSomeRanksHaveTheirTimesInTheirOrder) {
  const auto row = row_of(RowSpec{.ranks = {1, 0}}, four_calls, record, reports);
  EXPECT_THAT(row.times, ElementsAre(ElementsAre(3, 1), ElementsAre(4, 2)));
  EXPECT_EQ(row.wrong, 0);  // what rank 2 found is not this row's
  EXPECT_EQ(row.status, results::PointStatus::ok);
  EXPECT_FALSE(row_of(RowSpec{.ranks = {1}}, four_calls, record, reports).wrong.has_value());
}

TEST(Rows, OfAStreamHaveItsTimesFromTracedPasses) {
  const auto row = row_of(RowSpec{.ranks = {0, 2}, .stream = 1}, four_calls, record, reports);
  EXPECT_THAT(row.times, ElementsAre(ElementsAre(20, 24), ElementsAre(21, 25)));
  EXPECT_EQ(row.calls, 4);  // a traced play is one pass
  EXPECT_TRUE(row.call_times.empty());
}

TEST(Rows, HaveTheClocksOfTheirGpus) {
  const auto channel = [](const char* quantity) {
    return machine::Channel{.device = "gpu 0", .quantity = quantity, .unit = "1"};
  };
  const std::vector<machine::SampledSeries> sampled{
      {.channel = channel("sm_clock"), .time = {}, .value = {345e6, 1980e6, 1970e6}},
      {.channel = channel("throttle_reasons"), .time = {}, .value = {0x1, 0x4, 0x40}}};
  const GpuState state = gpu_state_of(sampled);
  EXPECT_EQ(state, (GpuState{.sm_clock = 1970e6, .throttle_reasons = 0x44}));  // idle counts not
  EXPECT_EQ(gpu_state_of({}), GpuState{});

  std::vector<RankReport> told = reports;
  told[0].gpu = state;
  told[1].gpu = {.sm_clock = 1410e6, .throttle_reasons = 0x8};
  told[2].gpu = {.sm_clock = 1980e6};
  const auto all = row_of(RowSpec{}, four_calls, record, told).number;
  EXPECT_EQ(all.at("sm_clock"), 1970e6);
  EXPECT_EQ(all.at("sm_clock_min"), 1410e6);
  EXPECT_EQ(all.at("throttle_reasons"), 0x4C);
  const auto some = row_of(RowSpec{.ranks = {0, 2}}, four_calls, record, told).number;
  EXPECT_EQ(some.at("sm_clock"), 1975e6);
  EXPECT_EQ(some.at("throttle_reasons"), 0x44);
  EXPECT_FALSE(row_of(RowSpec{}, four_calls, record, reports).number.contains("sm_clock"));
}

TEST(Rows, CountLatePlays) {
  CaseRecord late = record;
  EXPECT_FALSE(row_of(RowSpec{}, four_calls, late, reports).number.contains("late_plays"));
  late.repeated_plays = 20;
  late.late_plays = 2;
  const auto row = row_of(RowSpec{}, four_calls, late, reports).number;
  EXPECT_EQ(row.at("repeated_plays"), 20);
  EXPECT_EQ(row.at("late_plays"), 2);
}

TEST(Rows, AreNamedForPeople) {
  EXPECT_EQ(
      title_of({.text = {{"op", "all_reduce"}, {"dtype", "f32"}}, .number = {{"bytes", 1024}}}),
      "all_reduce f32 1.00 KiB");
}

}  // namespace
}  // namespace isoscale::runner
