// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

/// Seeded series for the tests of statistics, the same with every standard library.
namespace isoscale::samples {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  /// In [0, 1).
  double uniform() { return std::ldexp(static_cast<double>(engine_() >> 11U), -53); }
  /// Mean 0, variance 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 engine_;
};

/// 1 + spread * a stationary series x = phi x + noise of variance 1.
class Autoregressive {
 public:
  Autoregressive(std::uint64_t seed, double phi, double spread)
      : draw_(seed), phi_(phi), spread_(spread), state_(draw_.normal()) {}
  double next() {
    const double sample = 1 + spread_ * state_;
    state_ = phi_ * state_ + std::sqrt(1 - phi_ * phi_) * draw_.normal();
    return sample;
  }
  std::vector<double> take(std::size_t n) {
    std::vector<double> samples(n);
    for (double& sample : samples) sample = next();
    return samples;
  }

 private:
  Draw draw_;
  double phi_, spread_, state_;
};

}  // namespace isoscale::samples
