// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Clocks of known offset and drift, seen through messages that take any time.
#include "comm/clock_offset.hpp"
#include "matchers.hpp"

namespace isoscale::comm {
namespace {

using units::Nanoseconds;

/// A clock that shows time * (1 + drift) + offset when rank 0's shows `time`.
struct Clock {
  double offset = 0;  ///< nanoseconds
  double drift = 0;

  [[nodiscard]] Nanoseconds at(double time) const {
    return Nanoseconds{std::llround(time + offset + drift * time)};
  }
};

constexpr double least_way = 4'000;  // nanoseconds

/// Twenty round trips from `time` on: each way takes its least time and a random one more, the way
/// back twice as much, and now and then something is waited for.
std::vector<RoundTrip> trips(const Clock& clock, double time, std::mt19937_64& random) {
  std::exponential_distribution<double> noise{1.0 / 3'000};
  std::bernoulli_distribution stalls{0.1};
  std::vector<RoundTrip> result(20);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double stall = i == 0 || stalls(random) ? 1e6 : 0;
    const double seen = time + least_way + noise(random) + stall;
    const double received = seen + least_way + 2 * noise(random);
    result[i] = {.sent = clock.at(time),
                 .received = clock.at(received),
                 .remote = Nanoseconds{std::llround(seen)}};
    time = received + 500;
  }
  return result;
}

TEST(ClockFit, OffsetAndDriftAreWithinTheStatedErrorForEverySeed) {
  double worst_error = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random{seed};
    const Clock clock{.offset = std::uniform_real_distribution{-1e9, 1e9}(random),
                      .drift = std::uniform_real_distribution{-50e-6, 50e-6}(random)};
    const double begin = std::uniform_real_distribution{0.0, 1e16}(random);
    const double length = std::uniform_real_distribution{1e8, 60e9}(random);
    const auto before = trips(clock, begin, random);
    const auto after = trips(clock, begin + length, random);
    const double loop = begin + 5e7;
    const ClockFit fit = fit_clock(before, after, clock.at(loop));
    const auto error = static_cast<double>(fit.error.value());
    // Times near 1e16 ns are whole numbers of 2 ns as doubles.
    const double representation = 4;
    for (const double share : {0.0, 0.3, 0.7, 1.0}) {
      const double time = loop + share * (begin + length - loop);
      const double found = static_cast<double>(fit.to_rank_0(clock.at(time)).value());
      ASSERT_LE(std::abs(found - time), error + representation) << "seed " << seed;
    }
    ASSERT_LE(std::abs(fit.drift - clock.drift / (1 + clock.drift)),
              2 * (error + representation) / length)
        << "seed " << seed;
    // Half of the least delay, what of the rate may wander, and what the least noise leaves.
    worst_error = std::max(worst_error, error - 1e-7 * length / 4);
  }
  EXPECT_LT(worst_error, least_way + 3'000);
}

/// A round trip from `sent` that takes `delay`; rank 0 looked at its clock at `remote`.
RoundTrip trip(std::int64_t sent, std::int64_t delay, std::int64_t remote) {
  return {.sent = Nanoseconds{sent},
          .received = Nanoseconds{sent + delay},
          .remote = Nanoseconds{remote}};
}
using Trips = std::vector<RoundTrip>;

TEST(ClockFit, LineIsExactWhereTripsTakeNoTime) {
  const ClockFit fit = fit_clock(Trips{trip(1'000, 0, 0)},
                                 Trips{trip(1'001'002'000, 0, 1'001'000'000)}, Nanoseconds{1'000});
  EXPECT_EQ(fit.offset.value(), 1'000);
  EXPECT_NEAR(fit.drift, 1e-6, 1e-8);
  EXPECT_EQ(fit.to_rank_0(Nanoseconds{1'000}).value(), 0);
  EXPECT_EQ(fit.to_rank_0(Nanoseconds{1'001'002'000}).value(), 1'001'000'000);
  // 2 ns of rounding, and 1e-7 of a second over 4 for a rate that wanders.
  EXPECT_EQ(fit.error.value(), 2 + 26);
}

/// The long one would tighten the bounds, were drift not of any size until it was over.
TEST(ClockFit, LongTripsAreNotKept) {
  const ClockFit fit = fit_clock(Trips{trip(0, 1'000, 500), trip(2'000, 1'000'000, 1'002'000)},
                                 Trips{trip(10'000'000, 1'000, 10'000'500)}, Nanoseconds{0});
  EXPECT_EQ(fit.offset.value(), 0);
  EXPECT_GE(fit.error.value(), 500);
}

TEST(ClockFit, TripsOfBothAsymmetriesLeaveLessThanHalfOfOne) {
  const ClockFit fit =
      fit_clock(Trips{trip(0, 1'000, 100), trip(2'000, 1'000, 2'900)},
                Trips{trip(10'000'000, 1'000, 10'000'100), trip(10'002'000, 1'000, 10'002'900)},
                Nanoseconds{0});
  EXPECT_LE(std::abs(fit.offset.value()), 2);
  EXPECT_LT(fit.error.value(), 110);
}

/// 5 us between two trips: no rate explains it.
TEST(ClockFit, ClockThatWasSetIsDoubted) {
  const ClockFit fit = fit_clock(Trips{trip(0, 100, 50), trip(5'200, 100, 250)},
                                 Trips{trip(10'000'000, 100, 9'995'050)}, Nanoseconds{0});
  EXPECT_GE(fit.error.value(), 4'900);
}

TEST(Misread, OffsetIsThatOfTheBeginAndDriftAddsToIt) {
  const ClockFault fault{.offset = Nanoseconds{5'000}, .drift = 20e-6};
  EXPECT_EQ(misread(fault, Nanoseconds{100}, Nanoseconds{100}).value(), 5'100);
  EXPECT_EQ(misread(fault, Nanoseconds{0}, Nanoseconds{1'000'000'000}).value(), 1'000'025'000);
}

}  // namespace
}  // namespace isoscale::comm
