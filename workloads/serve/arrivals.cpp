// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/serve/arrivals.hpp"

#include <cmath>

#include "program/fill_and_checksum.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::serve {
namespace {

/// Uniform in (0, 1], element `index` of a stream.
double uniform(std::uint64_t key, std::uint64_t index) {
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
  constexpr double unit = 0x1p-53;
  const std::uint64_t word = program::scatter_bits(program::fill_origin(key) + index * step);
  return static_cast<double>((word >> 11U) + 1) * unit;
}

}  // namespace

std::vector<double> arrival_times(const Arrivals& arrivals, std::uint64_t count,
                                  std::uint64_t seed) {
  const std::uint64_t key = stack::fill_key(seed, "arrivals");
  const std::uint64_t together = arrivals.process == Process::bursty ? arrivals.burst : 1;
  const double gap = static_cast<double>(together) / arrivals.rate;
  std::vector<double> times;
  double now = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % together == 0) now += -std::log(uniform(key, i / together)) * gap;
    times.push_back(now);
  }
  return times;
}

std::vector<std::uint64_t> answer_lengths(Lengths lengths, std::uint64_t output,
                                          std::uint64_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> tokens(count, output);
  if (lengths == Lengths::fixed) return tokens;
  const std::uint64_t key = stack::fill_key(seed, "lengths");
  for (std::uint64_t i = 0; i < count; ++i) {
    tokens[i] =
        static_cast<std::uint64_t>(std::ceil(uniform(key, i) * static_cast<double>(output)));
  }
  return tokens;
}

}  // namespace isoscale::workloads::serve
