// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/time_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "units/text.hpp"

namespace isoscale::system {
namespace {

/// Of what is left, a run may plan with so much: the rest is for MPI to start and to end.
constexpr double usable = 0.9;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// "3600" or "01:00:00", seconds.
std::optional<std::int64_t> duration(std::string_view text) {
  std::int64_t sum = 0;
  while (true) {
    const auto colon = text.find(':');
    const auto part = whole_number(text.substr(0, colon));
    // Beyond a century it is no duration, and would overflow.
    if (!part || *part > 3'200'000'000 || sum > 3'200'000'000) return std::nullopt;
    sum = 60 * sum + *part;
    if (colon == std::string_view::npos) return sum;
    text.remove_prefix(colon + 1);
  }
}

/// A budget as it is typed: whole minutes, or seconds where there are fewer than ten of them.
std::string budget_text(units::Seconds left) {
  const auto seconds = static_cast<std::int64_t>(usable * left.value());
  return seconds >= 600 ? fmt::format("{}m", seconds / 60) : fmt::format("{}s", seconds);
}

}  // namespace

std::optional<TimeLimit> time_limit(const Lookup& environment, std::int64_t now) {
  if (const auto text = environment("SLURM_JOB_END_TIME")) {
    if (const auto end = whole_number(*text)) {
      const std::int64_t left = std::max<std::int64_t>(0, *end - now);
      return TimeLimit{.time = units::Seconds{static_cast<double>(left)},
                       .source = "SLURM_JOB_END_TIME"};
    }
  }
  if (const auto text = environment("PBS_WALLTIME")) {
    if (const auto length = duration(*text)) {
      return TimeLimit{.time = units::Seconds{static_cast<double>(*length)},
                       .source = "PBS_WALLTIME",
                       .span = TimeLimit::Span::of_job};
    }
  }
  return std::nullopt;
}

std::optional<std::string> time_limit_warning(const std::optional<TimeLimit>& limit,
                                              units::Seconds expected) {
  if (!limit || expected <= limit->time) return std::nullopt;
  const std::string run =
      fmt::format("the run is expected to take {}, and its job ", units::format(expected));
  constexpr std::string_view lost = "points that are not finished by then are lost";
  if (limit->span == TimeLimit::Span::of_job) {
    return fmt::format(
        "{}may take at most {} as a whole ({}), of which some has passed: {}; give a --budget of "
        "what is left, and continue with --resume in another job",
        run, units::format(limit->time), limit->source, lost);
  }
  const std::string end =
      fmt::format("{}ends in {} ({})", run, units::format(limit->time), limit->source);
  if (usable * limit->time.value() < 1) return end + "; ask the scheduler for more time";
  return fmt::format(
      "{}: {}; --budget {} fits the run into the job; continue with --resume in another", end, lost,
      budget_text(limit->time));
}

}  // namespace isoscale::system
