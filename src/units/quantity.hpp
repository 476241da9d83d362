// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace isoscale::units {

/// A number with a unit (bytes, seconds, nanoseconds, ...). It has only operations that keep the
/// unit or give a plain ratio; conversions between units are the named functions below.
template <class Tag, class Representation>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Representation value) : value_(value) {}

  [[nodiscard]] constexpr Representation value() const { return value_; }

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Representation factor) {
    return Quantity{a.value_ * factor};
  }
  friend constexpr Quantity operator*(Representation factor, Quantity a) { return a * factor; }
  friend constexpr Quantity operator/(Quantity a, Representation divisor) {
    return Quantity{a.value_ / divisor};
  }
  /// Returns the ratio of two quantities of one unit.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;

 private:
  Representation value_{};
};

using Bytes = Quantity<struct BytesTag, std::uint64_t>;
using Flops = Quantity<struct FlopsTag, double>;  ///< a count of floating-point operations
using Seconds = Quantity<struct SecondsTag, double>;
using Nanoseconds = Quantity<struct NanosecondsTag, std::int64_t>;  ///< time stamps, durations
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

[[nodiscard]] constexpr Seconds to_seconds(Nanoseconds time) {
  return Seconds{static_cast<double>(time.value()) * 1e-9};
}
/// Rounds to the nearest nanosecond. Times beyond 2^63 ns (some 292 years) give the largest
/// representable time of the same sign; NaN gives 0.
[[nodiscard]] constexpr Nanoseconds to_nanoseconds(Seconds time) {
  using Limits = std::numeric_limits<std::int64_t>;
  const double rounded = time.value() * 1e9 + (time.value() < 0 ? -0.5 : 0.5);
  if (rounded >= 0x1p63) return Nanoseconds{Limits::max()};
  if (rounded <= -0x1p63) return Nanoseconds{Limits::min()};
  // Only NaN does not equal itself; converting it would be undefined behaviour.
  return Nanoseconds{rounded == rounded ? static_cast<std::int64_t>(rounded) : 0};
}
[[nodiscard]] constexpr BytesPerSecond rate(Bytes bytes, Seconds time) {
  return BytesPerSecond{static_cast<double>(bytes.value()) / time.value()};
}
[[nodiscard]] constexpr FlopsPerSecond rate(Flops work, Seconds time) {
  return FlopsPerSecond{work.value() / time.value()};
}

}  // namespace isoscale::units
