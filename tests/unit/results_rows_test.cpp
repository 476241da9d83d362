// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/error.hpp"
#include "results/hdf5.hpp"
#include "results/layout.hpp"
#include "results/point_tables.hpp"
#include "results/reader.hpp"
#include "results/writer.hpp"
#include "tests/unit/results_samples.hpp"

namespace isoscale::results {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Rows : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file() const { return directory_.path() / "run.h5"; }
  [[nodiscard]] PointData written_and_read(const PointData& point) const {
    RunWriter{file(), samples::header(), config::IfExists::refuse}.commit(point);
    return read_run(file()).points.at(0);
  }
  void change_rows(const std::function<void(hdf5::Group&)>& change) const {
    hdf5::File open = hdf5::File::open_to_change(file());
    {
      hdf5::Group rows = open.root().open_group("points").open_group("0000").open_group("rows");
      change(rows);
    }
    open.close();
  }
  samples::Directory directory_;
};

TEST_F(Rows, ComeBackAsTheyWere) {
  const PointData point = samples::point(0);
  ASSERT_EQ(point.rows.size(), 4U);
  EXPECT_EQ(written_and_read(point).rows, point.rows);
}

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
  const PointTables tables{.ops = to_table(point.outline),
                           .traces = to_table(point.traces),
                           .rows = to_table(point.rows)};
  const std::uint64_t room = room_for(point, tables);
  (void)written_and_read(point);
  EXPECT_LE(std::filesystem::file_size(file()), room);
}

TEST_F(Rows, AreRefusedWhenTheyContradictThemselves) {
  RunWriter writer{file(), samples::header(), config::IfExists::refuse};
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
  RunWriter{file(), samples::header(), config::IfExists::refuse}.commit(samples::point(0));
  const auto refused = [&](const std::function<void(hdf5::Group&)>& spoil, const char* why) {
    change_rows(spoil);
    EXPECT_THAT([&] { (void)read_run(file()); }, ThrowsMessage<base::UsageError>(HasSubstr(why)));
  };
  const auto replace = [](hdf5::Group& group, const char* name, auto values) {
    group.remove(name);
    group.write(name, std::span<const typename decltype(values)::value_type>{values},
                {"1", "wrong"});
  };
  using Naturals = std::vector<std::uint64_t>;
  using Integers = std::vector<std::int64_t>;
  refused([&](auto& rows) { replace(rows, "wrong", Integers{0, 5, -1, -2}); }, "less than no");
  refused([&](auto& rows) { replace(rows, "wrong", Integers{0, 5}); }, "differ in length");
  refused(
      [&](auto& rows) {
        replace(rows, "wrong", Integers{0, 5, -1, -1});
        replace(rows, "plays", Naturals{3, 1, 0, 0});
      },
      "do not fit its plays");
  refused(
      [&](auto& rows) {
        replace(rows, "plays", Naturals{2, 1, 1ULL << 60U, 0});
      },
      "do not fit its plays");
  refused(
      [&](auto& rows) {
        replace(rows, "plays", Naturals{2, 1, 0, 0});
        replace(rows, "time_begin", Naturals{0, 8, 1ULL << 40U, 10, 10});
      },
      "'time_begin' is out of order");
  refused([&](auto& rows) { replace(rows, "time_begin", Naturals{}); }, "differ in length");
  refused(
      [&](auto& rows) {
        replace(rows, "time_begin", Naturals{0, 8, 10, 10, 10});
        rows.open_group("number").write("bad", std::span<const double>{}, {"1", "short"});
      },
      "rows/number differ in length");
}

TEST_F(Rows, LeaveACalibrationThatIsKept) {
  RunData last = samples::header();
  RunWriter writer{file(), last, config::IfExists::refuse};
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).calibration, std::nullopt);
  last.calibration = samples::calibration();
  writer.finish(last);
  EXPECT_EQ(read_run(file()).calibration, samples::calibration());
  last.calibration = CalibrationData{};  // nothing was fitted
  writer.finish(last);
  EXPECT_EQ(read_run(file()).calibration, CalibrationData{});
  last.calibration.reset();
  writer.finish(last);
  EXPECT_EQ(read_run(file()).calibration, std::nullopt);
}

TEST_F(Rows, LeaveACalibrationThatIsRefusedWhenItContradictsItself) {
  RunData last = samples::header();
  last.calibration = samples::calibration();
  RunWriter{file(), last, config::IfExists::refuse}.finish(last);
  const auto refused = [&](const char* table, const char* column, const std::vector<double>& values,
                           const char* why) {
    hdf5::File open = hdf5::File::open_to_change(file());
    {
      hdf5::Group group = open.root().open_group("calibration").open_group(table);
      group.remove(column);
      group.write(column, std::span<const double>{values}, {"1", "wrong"});
    }
    open.close();
    EXPECT_THAT([&] { (void)read_run(file()); }, ThrowsMessage<base::UsageError>(HasSubstr(why)));
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

}  // namespace
}  // namespace isoscale::results
