// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "machine/device_sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <utility>

namespace isoscale::machine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

units::Nanoseconds at(std::size_t time) {
  return units::Nanoseconds{static_cast<std::int64_t>(time)};
}

TEST(SampleStore, DropsEverySecondSampleWhereThereAreTooMany) {
  SampleStore store{4};
  for (std::size_t time = 0; time < 4; ++time) {
    EXPECT_EQ(store.add(at(time), {static_cast<double>(time)}), SampleStore::Thinned::no);
  }
  EXPECT_EQ(store.add(at(4), {4.0}), SampleStore::Thinned::yes);
  const auto series = store.series({{.device = "a", .quantity = "b", .unit = "1"}});
  ASSERT_THAT(series, SizeIs(1));
  EXPECT_THAT(series[0].time, ElementsAre(at(0), at(2), at(4)));
  EXPECT_THAT(series[0].value, ElementsAre(0, 2, 4));
}

TEST(SampleStore, StaysBoundedAndKeepsBothEnds) {
  SampleStore store{7};
  for (std::size_t time = 0; time < 1000; ++time) {
    static_cast<void>(store.add(at(time), {static_cast<double>(time)}));
    const auto series = store.series({{.device = "a", .quantity = "b", .unit = "1"}});
    ASSERT_LE(series[0].time.size(), 7U);
    ASSERT_EQ(series[0].value.front(), 0);
    ASSERT_EQ(series[0].value.back(), static_cast<double>(time));
  }
}

TEST(SampleStore, LeavesOutReadingsThatFailed) {
  SampleStore store{10};
  static_cast<void>(store.add(at(1), {nan, 5, nan}));
  static_cast<void>(store.add(at(2), {7, nan, nan}));
  const auto series = store.series({{.device = "a", .quantity = "x", .unit = "1"},
                                    {.device = "b", .quantity = "x", .unit = "1"},
                                    {.device = "c", .quantity = "x", .unit = "1"}});
  ASSERT_THAT(series, SizeIs(2));
  EXPECT_EQ(series[0].channel.device, "a");
  EXPECT_THAT(series[0].time, ElementsAre(at(2)));
  EXPECT_EQ(series[1].channel.device, "b");
  EXPECT_THAT(series[1].value, ElementsAre(5));
}

/// A counter that counts its readings, and waits for them.
struct Readings {
  std::atomic<int> count = 0;
  [[nodiscard]] Source source() {
    return {.channels = {{.device = "test", .quantity = "readings", .unit = "1"}},
            .read = [this](auto values) {
              values[0] = ++count;
              count.notify_all();
            }};
  }
  void wait_for(int wanted) {
    for (int now = count; now < wanted; now = count) count.wait(now);
  }
};

TEST(DeviceSampler, TakesTheFirstSampleAndTheLastHoweverShortItRuns) {
  Readings readings;
  DeviceSampler sampler{{readings.source()}, {.interval = units::Seconds{3600}}};
  EXPECT_EQ(readings.count, 1);
  const auto series = sampler.stop();
  ASSERT_THAT(series, SizeIs(2));
  EXPECT_THAT(series[0].value, ElementsAre(1, 2));
  EXPECT_LT(series[0].time[0], series[0].time[1]);
  EXPECT_EQ(series[1].channel,
            (Channel{.device = "sampler", .quantity = "sample_time", .unit = "s"}));
  EXPECT_THAT(series[1].value, ElementsAre(testing::Ge(0), testing::Ge(0)));
}

TEST(DeviceSampler, SamplesUntilItIsStopped) {
  Readings readings;
  DeviceSampler sampler{{readings.source()}, {.interval = units::Seconds{1e-4}}};
  readings.wait_for(20);
  const auto series = sampler.stop();
  EXPECT_GE(series[0].value.size(), 21U);
  EXPECT_EQ(series[0].value.back(), static_cast<double>(readings.count));
  EXPECT_TRUE(std::ranges::is_sorted(series[0].time));
}

TEST(DeviceSampler, LeavesOutASampleForWhichNoMemoryIsLeft) {
  Readings readings;
  Source source = readings.source();
  source.read = [read = source.read, &readings](auto values) {
    read(values);
    if (readings.count == 2) throw std::bad_alloc{};
  };
  DeviceSampler sampler{{std::move(source)}, {.interval = units::Seconds{1e-4}}};
  readings.wait_for(4);
  const auto series = sampler.stop();
  EXPECT_EQ(series[0].value.size() + 1, static_cast<std::size_t>(readings.count));
  EXPECT_THAT(series[0].value, testing::Not(testing::Contains(2)));
}

TEST(DeviceSampler, HoldsNoMoreSamplesThanItMay) {
  Readings readings;
  DeviceSampler sampler{{readings.source()}, {.interval = units::Seconds{1e-6}, .most_samples = 8}};
  readings.wait_for(40);  // the interval has grown a thousandfold
  const auto series = sampler.stop();
  EXPECT_LE(series[0].value.size(), 8U);
  EXPECT_EQ(series[0].value.front(), 1);
  EXPECT_EQ(series[0].value.back(), static_cast<double>(readings.count));
}

TEST(DeviceSampler, WithoutSourcesHasNothing) {
  DeviceSampler sampler{{}, {}};
  EXPECT_THAT(sampler.stop(), IsEmpty());
}

TEST(DeviceSampler, EndsItsThreadWhenItIsDropped) {
  Readings readings;
  {
    const DeviceSampler sampler{{readings.source()}, {.interval = units::Seconds{1e-4}}};
    readings.wait_for(2);
  }
  const int then = readings.count;
  usleep(2000);
  EXPECT_EQ(readings.count, then);
}

}  // namespace
}  // namespace isoscale::machine
