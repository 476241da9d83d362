// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/slowing.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "comm/world.hpp"
#include "program/fill.hpp"

namespace isoscale::executor::host {

Slowing Slowing::compute(double factor, double jitter, std::uint64_t origin) {
  return {factor, jitter, origin, nullptr};
}

Slowing Slowing::communication(double factor, LeastTime& least) { return {factor, 0, 0, &least}; }

SlowedKind Slowing::kind() const {
  return least_ == nullptr ? SlowedKind::compute : SlowedKind::communication;
}

units::Nanoseconds Slowing::extra(units::Nanoseconds took) {
  double share = factor_ - 1;
  if (jitter_ > 0) {
    const std::uint64_t word = program::scatter_bits(origin_ + ++drawn_ * 0x9e3779b97f4a7c15ULL);
    const double uniform = static_cast<double>((word >> 11) + 1) * 0x1p-53;  // in (0, 1]
    share -= jitter_ * std::log(uniform);
  }
  if (least_ != nullptr) {
    least_->time = std::min(least_->time, took);
    if (++least_->plays < 2) return {};
    took = least_->time;
  }
  return units::Nanoseconds{std::llround(share * static_cast<double>(took.value()))};
}

void pass_time(SlowedKind kind, units::Nanoseconds until) {
  while (comm::now() < until) {
    if (kind == SlowedKind::communication) std::this_thread::yield();
  }
}

}  // namespace isoscale::executor::host
