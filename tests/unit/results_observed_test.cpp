// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "results/hdf5.hpp"
#include "results/reader.hpp"
#include "results/run_data.hpp"
#include "results/run_files.hpp"
#include "results/writer.hpp"
#include "results_samples.hpp"

namespace isoscale::results {
namespace {

using config::IfExists;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ObservedFile : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file() const { return directory_.path() / "run.h5"; }

 private:
  samples::Directory directory_;
};

TEST_F(ObservedFile, KeepsWhatWasSeenBesideTheTraces) {
  RunWriter{file(), samples::header(), IfExists::refuse}.commit(samples::point(7));
  const RunData run = read_run(file());
  const PointData& point = run.points.at(0);
  const PointData wanted = samples::point(7);
  EXPECT_EQ(point.warm_up_rule, "no change in the last 2 steps");
  EXPECT_EQ(point.looks, (Looks{.planned = 9, .made = 2, .growth = 1.5}));
  EXPECT_THAT(point.injections, ElementsAre("slow-rank=3:1.2", "clock=1:5ms"));
  EXPECT_THAT(point.clock_drift, ElementsAre(0, 1e-6, -2e-6, 0));
  EXPECT_EQ(point.measured_seconds, std::optional{0.25});
  EXPECT_EQ(point.soak, wanted.soak);
  EXPECT_EQ(point.op_sums, wanted.op_sums);
  EXPECT_EQ(point.solo_times, wanted.solo_times);
  EXPECT_EQ(point.device_series, wanted.device_series);
}

TEST_F(ObservedFile, KeepsThatNothingWasSeen) {
  RunWriter{file(), samples::header(), IfExists::refuse}.commit(samples::skipped_point(7));
  const RunData run = read_run(file());
  const PointData& point = run.points.at(0);
  EXPECT_EQ(point.measured_seconds, std::nullopt);
  EXPECT_TRUE(point.op_sums.empty());
  EXPECT_TRUE(point.solo_times.empty());
  EXPECT_TRUE(point.device_series.empty());
}

TEST_F(ObservedFile, OfSchema12HasNoneOfIt) {
  RunWriter{file(), samples::header(), IfExists::refuse}.commit(samples::point(0));
  hdf5::File open = hdf5::File::open_to_change(file());
  {
    hdf5::Group root = open.root();
    root.set("schema_version", "1.2");
    hdf5::Group point = root.open_group("points").open_group("0000");
    for (const char* name : {"op_sums", "solo_times", "device_series"}) point.remove(name);
  }
  open.close();
  const RunData run = read_run(file());
  EXPECT_EQ(run.points.at(0).looks, Looks{});
  EXPECT_EQ(run.points.at(0).soak, Soak{});
  EXPECT_EQ(run.points.at(0).measured_seconds, std::nullopt);
  EXPECT_TRUE(run.points.at(0).clock_drift.empty());
  EXPECT_EQ(run.points.at(0).stopped_because, "precision");
}

TEST(ValidateObserved, RefusesWhatContradictsThePoint) {
  const auto refused = [](auto damage, const char* why) {
    PointData point = samples::point(0);
    damage(point);
    EXPECT_THAT([&] { validate(point); }, ThrowsMessage<base::Error>(HasSubstr(why)));
  };
  EXPECT_NO_THROW(validate(samples::point(0)));
  refused([](PointData& p) { p.op_sums[0].gemm.pop_back(); }, "a row of op_sums");
  refused([](PointData& p) { p.op_sums[0].communication.clear(); }, "a row of op_sums");
  refused([](PointData& p) { p.op_sums[0].step = 3; }, "op sums are of step 3 of 3");
  refused([](PointData& p) { p.solo_times[0].rank = 4; }, "solo times of rank 4 of 4");
  refused([](PointData& p) { p.solo_times[0].op.pop_back(); }, "a row of solo_times");
  refused([](PointData& p) { p.device_series[0].rank = -1; }, "a device series of rank -1 of 4");
  refused([](PointData& p) { p.device_series[0].value.pop_back(); }, "a device series");
  refused([](PointData& p) { p.clock_drift.pop_back(); }, "clock_drift");
}

TEST(ValidateObserved, RefusesSoloTimesThatNoOpTakes) {
  const auto refused = [](auto damage, const char* why) {
    PointData point = samples::point(0);
    damage(point.solo_times);
    EXPECT_THAT([&] { validate(point); }, ThrowsMessage<base::Error>(HasSubstr(why)));
  };
  using Times = std::vector<SoloTimes>;
  constexpr std::int64_t longest = std::int64_t{1} << 53;
  refused([](Times& all) { all.push_back(all[0]); }, "solo times name rank 3 twice");
  refused([](Times& all) { all[0].op[0] = units::Nanoseconds{-1}; }, "an op of rank 3 took -1 ns");
  refused([](Times& all) { all[0].op[0] = units::Nanoseconds{longest + 1}; },
          "an op of rank 3 took 9007199254740993 ns");
  PointData point = samples::point(0);
  point.solo_times[0].op[0] = units::Nanoseconds{longest};
  EXPECT_NO_THROW(validate(point));
}

TEST(ValidateObserved, RefusesLooksThatNobodyMade) {
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

TEST_F(ObservedFile, RefusesColumnsThatDoNotFitTogether) {
  RunWriter{file(), samples::header(), IfExists::refuse}.commit(samples::point(0));
  hdf5::File open = hdf5::File::open_to_change(file());
  {
    hdf5::Group series =
        open.root().open_group("points").open_group("0000").open_group("device_series");
    series.remove("sample_begin");
    series.write<std::uint64_t>("sample_begin", std::array<std::uint64_t, 3>{0, 9, 3},
                                {"1", "not rising"});
  }
  open.close();
  EXPECT_THAT([&] { (void)read_run(file()); },
              ThrowsMessage<base::Error>(HasSubstr("sample_begin of device_series")));
}

}  // namespace
}  // namespace isoscale::results
