// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/clock_offset.hpp"
#include "matchers.hpp"
#include "runner/measure/gather_point_and_sample_devices.hpp"
#include "runner/measure/measure_steps.hpp"

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

namespace isoscale::runner {
namespace {

struct Numbered {
  std::uint32_t step;
};
std::vector<std::uint32_t> thinned(std::uint32_t steps, std::size_t most) {
  std::vector<Numbered> entries;
  for (std::uint32_t step = 0; step < steps; ++step) {
    entries.push_back({step});
    measure::thin_to(entries, most);
  }
  return mapped(entries, &Numbered::step);
}

TEST(Spread, KeepsTheEndsAndAnEvenShareOfWhatLiesBetween) {
  EXPECT_THAT(thinned(3, 4), ElementsAre(0, 1, 2));
  EXPECT_THAT(thinned(100, 2), ElementsAre(0, 99));
  EXPECT_THAT(thinned(100, 1), ElementsAre(99));
  EXPECT_TRUE(thinned(100, 0).empty());
  const auto kept = thinned(1000, 32);
  ASSERT_EQ(kept.size(), 32U);
  EXPECT_EQ(kept.front(), 0U);
  EXPECT_EQ(kept.back(), 999U);
  for (std::size_t i = 1; i < kept.size(); ++i) EXPECT_LE(kept[i] - kept[i - 1], 3 * 1000U / 32);
}

TEST(OpSums, AddSpansUpByTheClassesOfTheirPayloads) {
  program::Program program;
  for (program::Payload payload : {program::Payload{program::Gemm{}},
                                   {program::Collective{}},
                                   {program::Copy{}},
                                   {program::Update{}},
                                   {program::Gemm{}}}) {
    program.ops.push_back({.payload = std::move(payload)});
  }
  const auto span = [](std::uint32_t op, std::int64_t start, std::int64_t end) {
    return timeline::Span{
        .op = op, .start = units::Nanoseconds{start}, .end = units::Nanoseconds{end}};
  };
  const std::array spans{span(0, 0, 100), span(1, 50, 300), span(2, 100, 110), span(3, 110, 117),
                         span(4, 200, 205)};
  const measure::StepSums sums = measure::sum_up(7, spans, program);
  EXPECT_EQ(sums.step, 7U);
  EXPECT_EQ(sums.gemm, units::Nanoseconds{105});
  EXPECT_EQ(sums.communication, units::Nanoseconds{250});
  EXPECT_EQ(sums.copies, units::Nanoseconds{10});
  EXPECT_EQ(sums.other_compute, units::Nanoseconds{7});
}

/// Two nodes of two ranks each, two CPUs a rank.
const std::vector<int> node_of_rank{0, 0, 1, 1};

std::vector<machine::MachineFacts> facts() {
  std::vector<machine::MachineFacts> all(4);
  all[0].bound_cpus = all[2].bound_cpus = {0, 1};
  all[1].bound_cpus = all[3].bound_cpus = {2, 3};
  return all;
}

measure::SamplingDuty duty(int rank, const std::vector<int>& world_ranks, const char* gpu = "") {
  return measure::sampling_duty(rank, world_ranks, node_of_rank, facts(), gpu);
}

TEST(SamplingDuty, OfANodeIsItsLowestRankOfThePointForTheCpusOfAll) {
  using Numbers = std::vector<int>;
  const Numbers all{0, 1, 2, 3};
  // A rank of the point and all its ranks in the world; the CPUs if it samples its node.
  for (const auto& [rank, world_ranks, cpus] : {std::tuple{0, all, Numbers{0, 1, 2, 3}},
                                                {1, all, {}},
                                                {2, all, {0, 1, 2, 3}},
                                                {3, all, {}},
                                                {0, {3, 1}, {2, 3}},
                                                {1, {3, 1}, {2, 3}},
                                                {0, {0, 2}, {0, 1}},
                                                {1, {0, 3}, {2, 3}}}) {
    EXPECT_EQ(duty(rank, world_ranks).node, !cpus.empty()) << rank;
    EXPECT_EQ(duty(rank, world_ranks).cpus, cpus) << rank;
  }
  // No CPUs are known where a binding is not.
  std::vector<machine::MachineFacts> some = facts();
  some[1].bound_cpus.clear();
  EXPECT_THAT(measure::sampling_duty(0, all, node_of_rank, some, "").cpus, IsEmpty());
  EXPECT_THAT(measure::sampling_duty(2, all, node_of_rank, some, "").cpus, ElementsAre(0, 1, 2, 3));
  // A GPU is sampled by its own rank.
  EXPECT_EQ(duty(1, {0, 1}, "GPU-1").gpu_uuid, "GPU-1");
  EXPECT_EQ(duty(1, {0, 1}).gpu_uuid, "");
}

std::vector<int> first_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

TEST(SamplingDuty, IsSmallerWhereManyRanksSample) {
  for (const auto& [ranks, most] : {std::pair{1, 600U}, {128, 600U}, {256, 300U}, {4096, 60U}}) {
    const std::vector<int> nodes(static_cast<std::size_t>(ranks), 0);
    EXPECT_EQ(measure::sampling_duty(0, first_ranks(ranks), nodes, {}, "").most_samples, most);
  }
}

/// 8 stages of 64 ranks, each 8 replicas of 8.
constexpr mesh::Shape large{.tp = 8, .dp = 8, .pp = 8};

TEST(TracedRanks, AreAsManyReplicasOfAllStagesAsFit) {
  EXPECT_EQ(measure::traced_ranks({}, 1), first_ranks(1));
  EXPECT_EQ(measure::traced_ranks({.tp = 2, .dp = 4}, 8), first_ranks(8));
  EXPECT_EQ(measure::traced_ranks({.tp = 2, .dp = 4}, 1000), first_ranks(8));
  EXPECT_EQ(measure::traced_ranks({.dp = 512}, 64), first_ranks(64));
  // tp varies fastest: ranks 0-7 of each stage's 64.
  std::vector<int> expected;
  for (int stage = 0; stage < 8; ++stage) {
    for (int tp = 0; tp < 8; ++tp) expected.push_back(64 * stage + tp);
  }
  EXPECT_EQ(measure::traced_ranks(large, 64), expected);
  EXPECT_EQ(measure::traced_ranks(large, 127), expected);  // a second replica does not fit
  EXPECT_EQ(measure::traced_ranks(large, 200).size(), 192U);
}

TEST(TracedRanks, KeepStagesBeforeAllElseAndLoseExpertsAndContextBeforeTensors) {
  EXPECT_THAT(measure::traced_ranks(large, 16), ElementsAre(0, 1, 64, 65, 128, 129, 192, 193, 256,
                                                            257, 320, 321, 384, 385, 448, 449));
  EXPECT_THAT(measure::traced_ranks(large, 8), ElementsAre(0, 64, 128, 192, 256, 320, 384, 448));
  EXPECT_THAT(measure::traced_ranks(large, 7), ElementsAre(0, 64, 128, 192, 256, 320, 384));
  EXPECT_THAT(measure::traced_ranks(large, 1), ElementsAre(0));
  EXPECT_EQ(measure::traced_ranks({.pp = 128}, 64), first_ranks(64));
  const mesh::Shape shape{.tp = 2, .cp = 2, .ep = 2, .dp = 2};
  EXPECT_EQ(measure::traced_ranks(shape, 8), first_ranks(8));  // ranks 8-15 are dp 1
  EXPECT_EQ(measure::traced_ranks(shape, 4), first_ranks(4));  // 4-7 are ep 1
  EXPECT_EQ(measure::traced_ranks(shape, 2), first_ranks(2));  // 2 and 3 are cp 1
  EXPECT_THAT(measure::traced_ranks({.cp = 2, .pp = 2}, 2), ElementsAre(0, 2));
}

}  // namespace
}  // namespace isoscale::runner
