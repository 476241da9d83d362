// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/tracing_overhead.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "statistics/estimate.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

/// The Hodges-Lehmann centre combines every two values, so its cost grows with the square of pairs.
constexpr std::size_t most_pairs = 256;
/// The largest relative overhead of tracing for which there is no warning.
constexpr double tolerated = 0.01;

/// Returns traced / untraced - 1 of the median step times of two blocks, one of each kind. Absent
/// if a time is missing or the untraced one is 0.
std::optional<double> difference(const results::StepBlock& one, const results::StepBlock& other) {
  const bool first = one.kind == results::StepBlock::Kind::traced;
  const auto traced = statistics::median(first ? one.times : other.times);
  const auto untraced = statistics::median(first ? other.times : one.times);
  if (!traced || !untraced || !(*untraced > 0)) return std::nullopt;
  return *traced / *untraced - 1;
}

}  // namespace

std::optional<statistics::Located> instrumentation_overhead(
    std::span<const results::StepBlock> blocks) {
  std::vector<double> pairs;
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    if (blocks[i].kind == blocks[i + 1].kind) continue;
    if (const auto pair = difference(blocks[i], blocks[i + 1])) pairs.push_back(*pair);
    ++i;  // each block belongs to one pair only, so the next pair begins after this one
  }
  if (pairs.size() > most_pairs) {
    for (std::size_t i = 0; i < most_pairs; ++i) pairs[i] = pairs[i * pairs.size() / most_pairs];
    pairs.resize(most_pairs);
  }
  return statistics::centre(pairs);
}

std::string overhead_warning(const std::optional<statistics::Located>& overhead) {
  if (!overhead) return "";
  if (overhead->lower && overhead->upper) {
    if (!(*overhead->lower > tolerated)) return "";
    return fmt::format(
        "tracing makes steps {} longer ({} to {}), so the breakdown is of disturbed steps",
        units::format_percent(overhead->value), units::format_percent(*overhead->lower),
        units::format_percent(*overhead->upper));
  }
  if (!(overhead->value > tolerated)) return "";
  return fmt::format(
      "tracing seems to make steps {} longer, but there are too few blocks to be sure",
      units::format_percent(overhead->value));
}

}  // namespace isoscale::analysis
