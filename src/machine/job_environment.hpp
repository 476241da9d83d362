// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "units/quantity.hpp"

/// Launchers and schedulers describe a job in environment variables; these functions read them.
namespace isoscale::machine {

/// Looks an environment variable up; nullopt = unset.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;
[[nodiscard]] Lookup process_environment();

/// The variables that a run file keeps, by an explicit list of names (never by prefix: a
/// scheduler's token is a secret). Only those that are set, in list order.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> recorded_environment(
    const Lookup& environment);
/// The same, only of those that set how threads, MPI, networks and devices work; not what describes
/// the job and its ranks.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> recorded_settings(
    const Lookup& environment);
/// Reads what launchers say of numbers of processes, nodes, CPUs and GPUs, by an explicit list of
/// names; only those that are set, and to whole numbers.
[[nodiscard]] std::map<std::string, std::int64_t> launcher_numbers(const Lookup& environment);

/// Finds out if a job's processes were started without MPI's wiring, so that each thinks it is
/// alone. Returns the reason to stop as a sentence with the fix, or nullopt. Rule: world = 1 and
/// (OMPI_COMM_WORLD_SIZE or PMI_SIZE > 1, or neither set and SLURM_STEP_NUM_TASKS > 1 or
/// SLURM_PROCID > 0). Nothing is concluded when world > 1.
[[nodiscard]] std::optional<std::string> singleton_problem(int world, const Lookup& environment);

/// True if this process is the one that speaks for all that a launcher started: its rank as the
/// launcher numbers it is 0, or there is no launcher. For messages before (or without) MPI.
[[nodiscard]] bool speaks_for_launch(const Lookup& environment);

/// The time that a scheduler leaves a job.
struct TimeLimit {
  /// until_end = of what is left; of_job = of the job as a whole, of which some has passed already.
  enum class Span : std::uint8_t { until_end, of_job };

  units::Seconds time{};
  std::string source;  ///< the variable that says so
  Span span = Span::until_end;

  bool operator==(const TimeLimit&) const = default;
};

/// Reads what the scheduler tells the job's processes: SLURM_JOB_END_TIME (seconds since 1970),
/// else PBS_WALLTIME (seconds or HH:MM:SS, of the whole job: nobody says when it began). `now` in
/// seconds since 1970. A time that has passed leaves 0; absent when nothing readable is set.
[[nodiscard]] std::optional<TimeLimit> time_limit(const Lookup& environment, std::int64_t now);

/// The sentence that a run begins with when it is expected to take longer than its job may, with a
/// budget that fits where it is known how much is left; absent when it is not, or when no limit is
/// known.
[[nodiscard]] std::optional<std::string> time_limit_warning(const std::optional<TimeLimit>& limit,
                                                            units::Seconds expected);

}  // namespace isoscale::machine
