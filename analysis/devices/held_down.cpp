// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/devices/held_down.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace isoscale::analysis {
namespace {

constexpr double reason_share = 0.1;

struct Reason {
  std::uint64_t bit;
  std::string_view name;
  double least_share;  ///< of the samples, from which it is worth a word
};
/// nvmlClocksEventReasons without idleness (1), settings of clocks (2) and of displays (0x100).
constexpr std::array<Reason, 6> reasons{{{0x04, "software power cap", reason_share},
                                         {0x08, "hardware slowdown", 0},
                                         {0x10, "sync boost", reason_share},
                                         {0x20, "software thermal slowdown", 0},
                                         {0x40, "hardware thermal slowdown", 0},
                                         {0x80, "hardware power brake", 0}}};

}  // namespace

std::optional<std::uint64_t> sampled_bits(double sample) {
  constexpr double largest = 0x1p53;
  if (!(sample >= 0 && sample <= largest)) return std::nullopt;
  return static_cast<std::uint64_t>(sample);
}

std::vector<std::string_view> reason_names(std::uint64_t bits) {
  std::vector<std::string_view> names;
  for (const Reason& reason : reasons) {
    if ((bits & reason.bit) != 0) names.push_back(reason.name);
  }
  return names;
}

std::vector<HeldDown> held_down(const results::DeviceSeries& series, double begin) {
  std::vector<std::uint64_t> seen;
  for (std::size_t i = 0; i < series.value.size(); ++i) {
    const std::optional<std::uint64_t> bits = sampled_bits(series.value[i]);
    if (series.time[i] >= begin && bits) seen.push_back(*bits);
  }
  std::vector<HeldDown> said;
  for (const Reason& reason : reasons) {
    const auto count =
        std::ranges::count_if(seen, [&](std::uint64_t bits) { return (bits & reason.bit) != 0; });
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(seen.size());
    if (share < reason.least_share) continue;
    said.push_back({.reason = reason.name, .share = share});
  }
  return said;
}

}  // namespace isoscale::analysis
