// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/error.hpp"
#include "results/hdf5/run_hdf5.hpp"
#include "tests/unit/results_fixture.hpp"

/// The tables of a point and of a calibration, and which of them are refused.
namespace isoscale::results {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Rows : public RunFileTest {
 protected:
  static constexpr const char* rows = "points/0000/rows";
};

TEST_F(Rows, MayBeNone) {
  PointData point = samples::point(0);
  point.rows.clear();
  EXPECT_TRUE(written_and_read(point).rows.empty());
}

TEST_F(Rows, WithEmptyTextsAndUnknownNumbersLackThese) {
  PointData point = samples::point(0);
  point.rows = {
      {.text = {{"op", "gemm"}, {"cache", ""}}, .number = {{"m", 0}, {"n", std::nan("")}}}, {}};
  const PointData read = written_and_read(point);
  EXPECT_EQ(read.rows[0].text, (std::map<std::string, std::string>{{"op", "gemm"}}));
  EXPECT_EQ(read.rows[0].number, (std::map<std::string, double>{{"m", 0}}));
  EXPECT_EQ(read.rows[1], RowData{});
}

TEST_F(Rows, MayBeManyThousands) {
  PointData point = samples::point(0);
  point.rows.clear();
  for (int i = 0; i < 20'000; ++i) {
    point.rows.push_back({.text = {{"op", "p2p"}, {"kind", i % 2 == 0 ? "latency" : "bandwidth"}},
                          .number = {{"src", i % 4}, {"dst", (i + 1) % 4}, {"bytes", i}},
                          .ranks = {i % 4, (i + 1) % 4},
                          .calls = i + 1,
                          .times = {{i * 1e-6, i * 2e-6}, {i * 3e-6, i * 4e-6}},
                          .call_times = std::vector<double>(static_cast<std::size_t>(i % 3), 1.0),
                          .wrong = i % 5 == 0 ? std::nullopt : std::optional<std::int64_t>{i}});
  }
  EXPECT_EQ(written_and_read(point).rows, point.rows);
  EXPECT_LT(std::filesystem::file_size(file()), 4'000'000U);
}

TEST_F(Rows, FitTheRoomThatIsReservedForThem) {
  PointData point = samples::point(0);
  for (int i = 0; i < 300; ++i) {
    RowData row = samples::rows()[0];
    row.text["key" + std::to_string(i)] = "some text";  // a column each
    row.number["number" + std::to_string(i)] = i;
    point.rows.push_back(row);
  }
  (void)written_and_read(point);
  EXPECT_LE(std::filesystem::file_size(file()), room_for(point));
}

TEST_F(Rows, AreRefusedWhenTheyContradictThemselves) {
  RunWriter writer = new_writer();
  const auto refused = [&](const std::function<void(RowData&)>& spoil, const char* why) {
    PointData point = samples::point(0);
    spoil(point.rows[1]);
    EXPECT_THAT([&] { writer.commit(point); }, ThrowsMessage<base::Error>(HasSubstr(why))) << why;
  };
  refused([](RowData& row) { row.ranks[0] = 4; }, "a row is of rank 4 of 4");
  refused([](RowData& row) { row.ranks[0] = -1; }, "a row is of rank -1 of 4");
  refused([](RowData& row) { row.ranks[1] = 3; }, "names rank 3 twice");
  refused([](RowData& row) { row.times[0].pop_back(); }, "1 entries instead of 2");
  refused([](RowData& row) { row.ranks.clear(); }, "2 entries instead of 4");
  refused([](RowData& row) { row.calls = 0; }, "0 calls a play");
  refused([](RowData& row) { row.wrong = -1; }, "-1 wrong elements");
  refused([](RowData& row) { row.text["a/b"] = "c"; }, "the impossible key 'a/b'");
  refused([](RowData& row) { row.number[""] = 1; }, "the impossible key ''");
}

TEST_F(Rows, OfAFileAreRefusedWhenTheyContradictThemselves) {
  new_writer().commit(samples::point(0));
  using Naturals = std::vector<std::uint64_t>;
  using Integers = std::vector<std::int64_t>;
  replace(rows, "wrong", Integers{0, 5, -1, -2});
  expect_refused("less than nothing");
  replace(rows, "wrong", Integers{0, 5});
  expect_refused("the columns of rows differ in length");
  replace(rows, "wrong", Integers{0, 5, -1, -1});
  replace(rows, "plays", Naturals{3, 1, 0, 0});
  expect_refused("do not fit its plays");
  replace(rows, "plays", Naturals{2, 1, 1ULL << 60U, 0});
  expect_refused("do not fit its plays");
  replace(rows, "plays", Naturals{2, 1, 0, 0});
  replace(rows, "time_begin", Naturals{0, 8, 1ULL << 40U, 10, 10});
  expect_refused("'time_begin' of rows is out of order");
  replace(rows, "time_begin", Naturals{});
  expect_refused("'time_begin' of rows is out of order");
  replace(rows, "time_begin", Naturals{0, 8, 10, 10, 10});
  EXPECT_EQ(read_run(file()).points[0].rows, samples::rows());
  change("points/0000/rows/number", [](hdf5::Group& number) {
    number.write("bad", std::span<const double>{}, {"1", "short"});
  });
  expect_refused("the columns of rows differ in length");
}

TEST_F(Rows, OfDeviceSeriesAreRefusedWhenTheyDoNotFitTogether) {
  new_writer().commit(samples::point(0));
  replace("points/0000/device_series", "sample_begin", std::vector<std::uint64_t>{0, 9, 3});
  expect_refused("'sample_begin' of device_series is out of order");
  replace("points/0000/device_series", "sample_begin", std::vector<std::uint64_t>{0, 3, 3});
  replace("points/0000/device_series", "value", std::vector<double>{100, 500});
  expect_refused("the entries of device_series differ in number");
}

TEST_F(Rows, LeaveACalibrationThatIsKept) {
  RunData last = samples::header();
  RunWriter writer = new_writer();
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).calibration, std::nullopt);
  // An empty one: nothing was fitted.
  for (const auto& kept : {std::optional{samples::calibration()}, std::optional{CalibrationData{}},
                           std::optional<CalibrationData>{}}) {
    last.calibration = kept;
    writer.finish(last);
    EXPECT_EQ(read_run(file()).calibration, kept);
  }
}

TEST_F(Rows, LeaveACalibrationThatIsRefusedWhenItContradictsItself) {
  RunData last = samples::header();
  last.calibration = samples::calibration();
  const auto refused = [&](const char* table, const char* column, const std::vector<double>& values,
                           const char* why) {
    new_writer(settings::IfExists::overwrite).finish(last);
    replace((std::string{"calibration/"} + table).c_str(), column, values);
    expect_refused(why);
  };
  refused("ceilings", "error", {1}, "calibration/ceilings differ in length");
  refused("gemms", "m", {1}, "calibration/gemms differ in length");
  refused("growth", "base", {1}, "calibration/growth differ in length");
  refused("curves", "sample_bytes", {8, 4096, 1024}, "samples of a curve are out of order");
  refused("curves", "latency", {1}, "calibration/curves differ in length");
}

TEST(UnitOfNumber, FollowsFromItsName) {
  for (const auto& [name, unit] : {std::pair{"bytes", "B"},
                                   {"flop", "FLOP"},
                                   {"estimate", "s"},
                                   {"first_call", "s"},
                                   {"best_seconds", "s"},
                                   {"count", "1"},
                                   {"m", "1"}}) {
    EXPECT_EQ(unit_of_number(name), unit) << name;
  }
}

TEST(Validate, RefusesWhatContradictsThePoint) {
  const auto refused = [](auto damage, const char* why) {
    PointData point = samples::point(0);
    damage(point);
    EXPECT_THAT([&] { validate(point); }, ThrowsMessage<base::Error>(HasSubstr(why)));
  };
  constexpr std::int64_t longest = std::int64_t{1} << 53;
  EXPECT_NO_THROW(validate(samples::point(0)));
  refused([](PointData& p) { p.op_sums[0].gemm.pop_back(); }, "a row of op_sums");
  refused([](PointData& p) { p.op_sums[0].communication.clear(); }, "a row of op_sums");
  refused([](PointData& p) { p.op_sums[0].step = 3; }, "op sums are of step 3 of 3");
  refused([](PointData& p) { p.solo_times[0].rank = 4; }, "solo times of rank 4 of 4");
  refused([](PointData& p) { p.solo_times[0].op.pop_back(); }, "a row of solo_times");
  refused([](PointData& p) { p.solo_times.push_back(p.solo_times[0]); },
          "solo times name rank 3 twice");
  refused([](PointData& p) { p.solo_times[0].op[0] = units::Nanoseconds{-1}; },
          "an op of rank 3 took -1 ns");
  refused([](PointData& p) { p.solo_times[0].op[0] = units::Nanoseconds{longest + 1}; },
          "an op of rank 3 took 9007199254740993 ns");
  refused([](PointData& p) { p.device_series[0].rank = -1; }, "a device series of rank -1 of 4");
  refused([](PointData& p) { p.device_series[0].value.pop_back(); }, "a device series");
  refused([](PointData& p) { p.clock_drift.pop_back(); }, "clock_drift");
  PointData point = samples::point(0);
  point.solo_times[0].op[0] = units::Nanoseconds{longest};
  EXPECT_NO_THROW(validate(point));
}

TEST(Validate, RefusesLooksThatNobodyMade) {
  const auto check = [](int planned, double growth) {
    PointData point = samples::point(0);
    point.looks = {.planned = planned, .made = 1, .growth = growth};
    validate(point);
  };
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_NO_THROW(check(1, 1));
  EXPECT_NO_THROW(check(1000, 1000));
  for (const int planned : {0, -1, 1001, 100'000}) EXPECT_THROW(check(planned, 1.5), base::Error);
  for (const double growth : {0.5, 1001.0, infinite, std::nan("")}) {
    EXPECT_THROW(check(9, growth), base::Error);
  }
}

}  // namespace
}  // namespace isoscale::results
