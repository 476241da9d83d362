// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/why_not.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "units/quantity.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

/// Steps that differ by less are as fast.
constexpr double alike = 0.001;
/// Of all that a loser spends more, what has to be said, and with how many causes at most.
constexpr double said_enough = 0.8;
constexpr std::size_t most_causes = 3;

std::string share_text(double part, double whole) {
  return units::format_percent(whole > 0 ? part / whole : 0, 0);
}

/// "0.31 s more tp transfer"; of a bubble the shares, which are what a schedule is judged by.
std::string said(const LostTime& lost, const StepLoss& loser, const StepLoss& first) {
  if (lost.cause == "bubble") {
    const std::string here = share_text(loser.costs.bubble, loser.traced);
    const std::string there = share_text(first.costs.bubble, first.traced);
    if (here != there) return fmt::format("bubble {} against {}", here, there);
  }
  return fmt::format("{} more {}", units::format(units::Seconds{lost.seconds}), lost.cause);
}

std::string as_fast(const WholeStep& loser, const WholeStep& first) {
  const double more = loser.device_bytes - first.device_bytes;
  if (more > alike * first.device_bytes) {
    return fmt::format("as fast, but needs {} more memory",
                       units::format(units::Bytes{static_cast<std::uint64_t>(more)}));
  }
  return "as fast, within 0.1%";
}

}  // namespace

std::string why_not(const WholeStep& loser, const WholeStep& first) {
  if (loser.seconds - first.seconds < alike * first.seconds) return as_fast(loser, first);
  const std::string more =
      fmt::format("{} more", units::format(units::Seconds{loser.seconds - first.seconds}));
  if (!loser.loss || !first.loss) return more;
  std::vector<LostTime> lost = waterfall(*loser.loss, *first.loss).lost;
  std::ranges::stable_sort(lost, std::greater{}, &LostTime::seconds);
  double all = 0, told = 0;
  for (const LostTime& one : lost) all += std::max(0.0, one.seconds);
  std::vector<std::string> parts;
  for (const LostTime& one : lost) {
    if (one.seconds <= 0 || told >= said_enough * all || parts.size() == most_causes) break;
    parts.push_back(said(one, *loser.loss, *first.loss));
    told += one.seconds;
  }
  return parts.empty() ? more : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace isoscale::analysis
