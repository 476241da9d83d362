// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "comm/clock_offset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

namespace isoscale::comm {
namespace {

using units::Nanoseconds;

/// The largest possible difference between the rates of two clocks: Linux corrects each by at most
/// 500 ppm (MAXFREQ of timex.h).
constexpr double steepest_drift = 1e-3;
/// The assumed change in the relative rate of two clocks over minutes, caused by their crystals and
/// by NTP's corrections once NTP has settled. Round trips before and after a measurement cannot
/// show this change.
constexpr double wander = 1e-7;
constexpr std::int64_t longest_kept = 2;  // in units of the shortest trip; longer trips are dropped

Nanoseconds delay(const RoundTrip& trip) { return trip.received - trip.sent; }
Nanoseconds middle(const RoundTrip& trip) { return trip.sent + delay(trip) / 2; }
Nanoseconds rounded(double nanoseconds) { return Nanoseconds{std::llround(nanoseconds)}; }
double number(Nanoseconds time) { return static_cast<double>(time.value()); }

/// The bounds of the offset when this rank's clock shows `at`, in nanoseconds. A base offset, which
/// the caller chooses, has been subtracted from them.
struct Bounds {
  Nanoseconds at;
  double low = 0, high = 0;

  [[nodiscard]] double centre() const { return (low + high) / 2; }
  [[nodiscard]] double half() const { return (high - low) / 2; }
};

Bounds bounds_of(std::span<const RoundTrip> trips, Nanoseconds base) {
  const RoundTrip& best = *std::ranges::min_element(trips, {}, delay);
  Bounds result{.at = middle(best),
                .low = -std::numeric_limits<double>::infinity(),
                .high = std::numeric_limits<double>::infinity()};
  for (const RoundTrip& trip : trips) {
    if (delay(trip) > longest_kept * delay(best)) continue;
    const double apart = std::abs(number(middle(trip) - result.at)) + number(delay(trip));
    const double slack = steepest_drift * apart;
    result.low = std::max(result.low, number(trip.sent - trip.remote - base) - slack);
    result.high = std::min(result.high, number(trip.received - trip.remote - base) + slack);
  }
  if (result.low <= result.high) return result;
  // The bounds contradict each other, which is impossible for steady clocks, so one of the clocks
  // was set. The shortest trip then gives the bounds, widened by the size of the contradiction.
  const double doubt = result.low - result.high;
  return {.at = result.at,
          .low = number(best.sent - best.remote - base) - doubt,
          .high = number(best.received - best.remote - base) + doubt};
}

constexpr int clock_tag = 2;
constexpr int rounds = 20;  // round trips for each clock but rank 0's, before and again after a
                            // measurement

/// Collective: returns the number of each rank's clock. Clocks are numbered in the order in which
/// they first appear by rank. The result is the same on all ranks.
std::vector<int> clock_of_rank(const Communicator& communicator, const std::string& identity) {
  std::map<std::string, int> number;
  std::vector<int> clocks;
  for (const std::string& clock : communicator.gather(identity)) {
    clocks.push_back(number.try_emplace(clock, static_cast<int>(number.size())).first->second);
  }
  clocks.resize(static_cast<std::size_t>(communicator.size()));
  communicator.broadcast(std::as_writable_bytes(std::span{clocks}));
  return clocks;
}

}  // namespace

Nanoseconds ClockFit::to_rank_0(Nanoseconds own) const {
  return own - offset - rounded(drift * number(own - reference));
}

ClockFit fit_clock(std::span<const RoundTrip> before, std::span<const RoundTrip> after,
                   Nanoseconds reference) {
  // Offsets may be as large as years. After this base is subtracted, a double can hold the
  // difference to the nanosecond.
  const Nanoseconds base = before.front().sent - before.front().remote;
  const Bounds first = bounds_of(before, base), last = bounds_of(after, base);
  const double apart = std::max(number(last.at - first.at), 1.0);
  const double drift = (last.centre() - first.centre()) / apart;
  const double rounding = 2;  // nanoseconds: one for rounding `offset`, one for rounding in
                              // to_rank_0()
  return {.reference = reference,
          .offset = base + rounded(first.centre() + drift * number(reference - first.at)),
          .drift = drift,
          .error = rounded(
              std::ceil(std::max(first.half(), last.half()) + wander * apart / 4 + rounding))};
}

Nanoseconds misread(const ClockFault& fault, Nanoseconds since, Nanoseconds time) {
  return time + fault.offset + rounded(fault.drift * number(time - since));
}

std::string clock_identity() {
  std::string boot;
  std::getline(std::ifstream{"/proc/sys/kernel/random/boot_id"}, boot);
  if (boot.empty()) return {};
  std::error_code failure;  // reading fails before Linux 5.6, where all processes share one clock
  const auto space = std::filesystem::read_symlink("/proc/self/ns/time", failure);
  return boot + " " + (failure ? std::string{} : space.string());
}

ClockSync::ClockSync(const Communicator& communicator, std::optional<ClockFault> fault)
    : communicator_(communicator), fault_(fault), since_(now()) {
  const int rank = communicator.rank();
  std::string own = fault ? std::string{} : clock_identity();
  if (own.empty()) own = fmt::format("clock of rank {}", rank);
  const std::vector<int> clocks = clock_of_rank(communicator, own);
  int seen = 0;  // highest number of a clock so far; rank 0's clock has number 0
  for (std::size_t other = 0; other < clocks.size(); ++other) {
    if (clocks[other] <= seen) continue;
    seen = clocks[other];
    askers_.push_back(static_cast<int>(other));
  }
  const int mine = clocks[static_cast<std::size_t>(rank)];
  has_own_clock_ = mine != 0;
  kernel_ = communicator.split(mine, rank);
  before_ = round_trips();
  reference_ = shown(now());
}

ClockFit ClockSync::fit() const {
  const std::vector<RoundTrip> after = round_trips();
  if (!has_own_clock_) return {.reference = reference_};
  return fit_clock(before_, after, reference_);
}

units::Nanoseconds ClockSync::shown(units::Nanoseconds time) const {
  return fault_ ? misread(*fault_, since_, time) : time;
}

std::vector<RoundTrip> ClockSync::round_trips() const {
  if (!has_own_clock_) {
    // Rank 0 answers one rank at a time. The first trip of a rank that waits for its turn is long,
    // so the fit drops it.
    if (communicator_.rank() == 0) {
      for (const int rank : askers_) answer(rank);
    }
    return {};
  }
  std::vector<RoundTrip> trips(rounds);
  if (kernel_.rank() == 0) {
    for (RoundTrip& trip : trips) trip = ask();
  }
  kernel_.broadcast(std::as_writable_bytes(std::span{trips}));
  return trips;
}

RoundTrip ClockSync::ask() const {
  RoundTrip trip{.sent = shown(now())};
  std::int64_t theirs = 0;
  check(MPI_Send(nullptr, 0, MPI_BYTE, 0, clock_tag, communicator_.get()));
  check(MPI_Recv(&theirs, 1, MPI_INT64_T, 0, clock_tag, communicator_.get(), MPI_STATUS_IGNORE));
  trip.received = shown(now());
  trip.remote = units::Nanoseconds{theirs};
  return trip;
}

/// Runs on rank 0: answers each question of `rank` with the time at which rank 0 received it.
void ClockSync::answer(int rank) const {
  for (int round = 0; round < rounds; ++round) {
    check(MPI_Recv(nullptr, 0, MPI_BYTE, rank, clock_tag, communicator_.get(), MPI_STATUS_IGNORE));
    const std::int64_t time = shown(now()).value();
    check(MPI_Send(&time, 1, MPI_INT64_T, rank, clock_tag, communicator_.get()));
  }
}

}  // namespace isoscale::comm
