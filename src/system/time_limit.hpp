// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "system/facts.hpp"
#include "units/quantity.hpp"

/// How long a scheduler leaves a job.
namespace isoscale::system {

struct TimeLimit {
  /// until_end = of what is left; of_job = of the job as a whole, of which some has passed already.
  enum class Span : std::uint8_t { until_end, of_job };

  units::Seconds time{};
  std::string source;  ///< the variable that says so
  Span span = Span::until_end;

  bool operator==(const TimeLimit&) const = default;
};

/// What the scheduler tells the job's processes: SLURM_JOB_END_TIME (seconds since 1970), else
/// PBS_WALLTIME (seconds or HH:MM:SS, of the whole job: nobody says when it began). `now` in
/// seconds since 1970. A time that has passed leaves 0; absent when nothing readable is set.
[[nodiscard]] std::optional<TimeLimit> time_limit(const Lookup& environment, std::int64_t now);

/// The sentence that a run begins with when it is expected to take longer than its job may, with a
/// budget that fits where it is known how much is left; absent when it is not, or when no limit is
/// known.
[[nodiscard]] std::optional<std::string> time_limit_warning(const std::optional<TimeLimit>& limit,
                                                            units::Seconds expected);

}  // namespace isoscale::system
