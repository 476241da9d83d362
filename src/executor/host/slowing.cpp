// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/slowing.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "comm/communicator.hpp"
#include "program/fill.hpp"

namespace isoscale::executor::host {

Slowing Slowing::compute(double factor, double jitter, std::uint64_t origin) {
  return {SlowedKind::compute, factor, jitter, origin};
}

Slowing Slowing::communication(double factor, LeastTime& least) {
  Slowing result{SlowedKind::communication, factor, 0, 0};
  result.least_ = &least;
  return result;
}

Slowing Slowing::delay(units::Nanoseconds time, double factor, double jitter,
                       std::uint64_t origin) {
  Slowing result{SlowedKind::delay, factor, jitter, origin};
  result.time_ = time;
  return result;
}

double Slowing::longer_share() {
  double share = factor_ - 1;
  if (jitter_ > 0) {
    const std::uint64_t word = program::scatter_bits(origin_ + ++drawn_ * 0x9e3779b97f4a7c15ULL);
    const double uniform = static_cast<double>((word >> 11) + 1) * 0x1p-53;  // in (0, 1]
    share -= jitter_ * std::log(uniform);
  }
  return share;
}

units::Nanoseconds Slowing::extra(units::Nanoseconds took) {
  const double share = longer_share();
  const auto times = [](double factor, units::Nanoseconds time) {
    return units::Nanoseconds{std::llround(factor * static_cast<double>(time.value()))};
  };
  if (kind_ == SlowedKind::delay) {
    return std::max(times(1 + share, time_) - took, units::Nanoseconds{});
  }
  if (least_ != nullptr) {
    least_->time = std::min(least_->time, took);
    if (++least_->plays < 2) return {};
    took = least_->time;
  }
  return times(share, took);
}

void pass_time(SlowedKind kind, units::Nanoseconds until) {
  if (kind == SlowedKind::delay) {
    // The kernel may end sleeps late to wake several at once, by 50 us unless told otherwise.
    static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL));
    constexpr std::int64_t second = 1'000'000'000;
    const timespec deadline{.tv_sec = until.value() / second, .tv_nsec = until.value() % second};
    // now() is this clock. A signal ends the sleep, and what is left of it passes below.
    static_cast<void>(::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr));
  }
  while (comm::now() < until) {
    if (kind != SlowedKind::compute) std::this_thread::yield();
  }
}

}  // namespace isoscale::executor::host
