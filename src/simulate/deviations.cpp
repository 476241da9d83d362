// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/deviations.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulate/normal.hpp"

namespace isoscale::simulate {
namespace {

/// Keys of draws of one thing never meet those of another.
enum class Of : std::uint64_t { order = 1, node = 2, rank = 3 };

std::uint64_t key(std::uint64_t seed, Of of, int a, int b) {
  const auto word = [](int value) { return static_cast<std::uint64_t>(value) + 1; };
  return mixed(mixed(mixed(seed ^ (static_cast<std::uint64_t>(of) << 56U)) ^ word(a)) ^ word(b));
}

constexpr double never = -1e4;  ///< logarithm of a chance of 0
constexpr double reach = 7;     ///< standard deviations that a normal part is looked at

/// P(draw <= x) of what quantile() draws from.
double chance_below(const std::vector<double>& draws, double x) {
  const auto count = static_cast<double>(draws.size());
  if (x < draws.front()) return 0;
  if (x >= draws.back()) return 1;
  const auto after = std::upper_bound(draws.begin(), draws.end(), x);
  const double high = *after, low = *(after - 1);
  const auto before = static_cast<double>(after - draws.begin()) - 1;
  return (before + 0.5 + (x - low) / (high - low)) / count;
}

/// P(own + further <= x) of one rank without its standing deviation.
double chance_own_below(const Noise& noise, double further, double x) {
  if (noise.draws.empty()) {
    const double spread = std::hypot(noise.rank, further);
    if (spread == 0) return x >= 0 ? 1 : 0;
    return normal_cdf(x / spread);
  }
  if (further == 0) return chance_below(noise.draws, x);
  double chance = 0;
  for (const double draw : noise.draws) chance += normal_cdf((x - draw) / further);
  return chance / static_cast<double>(noise.draws.size());
}

}  // namespace

double quantile(const std::vector<double>& draws, double p) {
  const double place = p * static_cast<double>(draws.size()) - 0.5;
  if (place <= 0) return draws.front();
  const auto before = static_cast<std::size_t>(place);
  if (before + 1 >= draws.size()) return draws.back();
  const double share = place - static_cast<double>(before);
  return draws[before] + share * (draws[before + 1] - draws[before]);
}

double DeviationDraws::standing(int rank) const {
  const std::vector<double>& standing = noise_.standing;
  if (standing.empty()) return 0;
  const int size = static_cast<int>(standing.size());
  const int round = rank / size, place = rank % size;
  if (round == 0) return standing[static_cast<std::size_t>(place)] - 1;
  // Later rounds deal the same factors out in another order: the place of this rank's key among
  // those of its round.
  const std::uint64_t mine = key(seed_, Of::order, round, place);
  int smaller = 0;
  for (int other = 0; other < size; ++other) {
    if (key(seed_, Of::order, round, other) < mine) ++smaller;
  }
  return standing[static_cast<std::size_t>(smaller)] - 1;
}

double DeviationDraws::operator()(int rank, int node, int step) const {
  double deviation = standing(rank);
  if (noise_.node > 0) {
    deviation += noise_.node * normal_quantile(uniform(key(seed_, Of::node, node, step)));
  }
  const double p = uniform(key(seed_, Of::rank, rank, step));
  if (!noise_.draws.empty()) {
    deviation += quantile(noise_.draws, p);
  } else if (noise_.rank > 0) {
    deviation += noise_.rank * normal_quantile(p);
  }
  return std::max(deviation, -1.0);
}

OwnDeviation::OwnDeviation(const Noise& noise, double further) {
  std::vector<double> standing;
  for (const double factor : noise.standing) standing.push_back(factor - 1);
  if (standing.empty()) standing.push_back(0);
  const auto [least, most] = std::minmax_element(standing.begin(), standing.end());
  double own_low = -reach * noise.rank, own_high = reach * noise.rank;
  if (!noise.draws.empty()) {
    own_low = noise.draws.front();
    own_high = noise.draws.back();
  }
  constexpr int parts = 2000;
  low_ = *least + own_low - reach * further;
  const double width = *most + own_high + reach * further - low_;
  step_ = width > 0 ? width / parts : 1;
  for (int i = 0; i <= (width > 0 ? parts : 0); ++i) {
    const double x = low_ + step_ * i;
    double sum = 0;
    for (const double deviation : standing) {
      // Half a part of tolerance: a factor that the last place of a grid just misses is below it.
      const double chance = chance_own_below(noise, further, x - deviation + step_ * 1e-6);
      sum += chance > 0 ? std::max(std::log(chance), never) : never;
    }
    log_.push_back(sum / static_cast<double>(standing.size()));
  }
}

double OwnDeviation::log_below(double x) const {
  const double place = (x - low_) / step_;
  if (place < 0) return never;
  const auto before = static_cast<std::size_t>(place);
  if (before + 1 >= log_.size()) return 0;
  const double share = place - static_cast<double>(before);
  return log_[before] + share * (log_[before + 1] - log_[before]);
}

}  // namespace isoscale::simulate
