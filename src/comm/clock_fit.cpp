// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/clock_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace isoscale::comm {
namespace {

using units::Nanoseconds;

/// Linux corrects a clock's rate by 500 ppm at most (MAXFREQ of timex.h), and there are two clocks.
constexpr double steepest_drift = 1e-3;
/// Band within which the difference of two rates stays over minutes: crystals and NTP's corrections
/// once it has settled. Assumed, since round trips at two ends cannot tell.
constexpr double wander = 1e-7;
constexpr std::int64_t longest_kept = 2;  // times the least delay

Nanoseconds delay(const RoundTrip& trip) { return trip.received - trip.sent; }
Nanoseconds middle(const RoundTrip& trip) { return trip.sent + delay(trip) / 2; }
Nanoseconds rounded(double nanoseconds) { return Nanoseconds{std::llround(nanoseconds)}; }
double number(Nanoseconds time) { return static_cast<double>(time.value()); }

/// Where the offset lies when the own clock shows `at`: nanoseconds, less a base.
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
  // No steady clock does this: one was set. The best trip, and the contradiction as its doubt.
  const double doubt = result.low - result.high;
  return {.at = result.at,
          .low = number(best.sent - best.remote - base) - doubt,
          .high = number(best.received - best.remote - base) + doubt};
}

}  // namespace

Nanoseconds ClockFit::to_rank_0(Nanoseconds own) const {
  return own - offset - rounded(drift * number(own - reference));
}

ClockFit fit_clock(std::span<const RoundTrip> before, std::span<const RoundTrip> after,
                   Nanoseconds reference) {
  // Offsets may be years; what is left without this one fits into a double to the nanosecond.
  const Nanoseconds base = before.front().sent - before.front().remote;
  const Bounds first = bounds_of(before, base), last = bounds_of(after, base);
  const double apart = std::max(number(last.at - first.at), 1.0);
  const double drift = (last.centre() - first.centre()) / apart;
  const double rounding = 2;  // nanoseconds: of the offset, and of what to_rank_0() adds
  return {.reference = reference,
          .offset = base + rounded(first.centre() + drift * number(reference - first.at)),
          .drift = drift,
          .error = rounded(
              std::ceil(std::max(first.half(), last.half()) + wander * apart / 4 + rounding))};
}

Nanoseconds misread(const ClockFault& fault, Nanoseconds since, Nanoseconds time) {
  return time + fault.offset + rounded(fault.drift * number(time - since));
}

}  // namespace isoscale::comm
