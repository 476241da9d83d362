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

/// Reads the environment variables in which launchers and schedulers describe a job.
namespace isoscale::machine {

/// Looks an environment variable up; nullopt = unset.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;
[[nodiscard]] Lookup process_environment();

/// Returns the variables that a run file keeps, if they are set. Their names are an explicit list,
/// which also gives their order. They are never chosen by a prefix, which could also match secrets
/// such as a scheduler's token.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> recorded_environment(
    const Lookup& environment);
/// Returns the part of the recorded variables that sets how threads, MPI, networks and devices
/// work, without those that describe the job and its ranks.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> recorded_settings(
    const Lookup& environment);
/// Reads the numbers of processes, nodes, CPUs and GPUs that launchers give, by an explicit list of
/// names. Returns those that are set and whole numbers.
[[nodiscard]] std::map<std::string, std::int64_t> launcher_numbers(const Lookup& environment);

/// Returns the reason to stop, as a sentence with the fix, if MPI counts one rank although the
/// launcher started several processes, which then cannot find each other; else nullopt. `world` is
/// the number of ranks that MPI counts. The launcher started several if OMPI_COMM_WORLD_SIZE or
/// PMI_SIZE is above 1. If neither of these is set, it did so if SLURM_STEP_NUM_TASKS is above 1 or
/// SLURM_PROCID is above 0.
[[nodiscard]] std::optional<std::string> singleton_problem(int world, const Lookup& environment);

/// True if this process prints messages for all processes of the launch, before MPI has started or
/// without it: its rank in the launcher's numbering is 0, or there is no launcher.
[[nodiscard]] bool speaks_for_launch(const Lookup& environment);

/// The time that a scheduler grants a job.
struct TimeLimit {
  /// until_end: the time that is left. of_job: the time of the whole job, part of which has passed.
  enum class Span : std::uint8_t { until_end, of_job };

  units::Seconds time{};
  std::string source;  ///< the variable that gives `time`
  Span span = Span::until_end;

  bool operator==(const TimeLimit&) const = default;
};

/// Reads the time limit that the scheduler gives the job's processes: SLURM_JOB_END_TIME (seconds
/// since 1970), else PBS_WALLTIME (seconds or HH:MM:SS; the limit of the whole job, since the time
/// of its start is unknown). `now` is in seconds since 1970. Returns a time of 0 if the limit has
/// passed; nullopt if neither variable is set and readable.
[[nodiscard]] std::optional<TimeLimit> time_limit(const Lookup& environment, std::int64_t now);

/// Returns a warning if a run is expected to take longer than the scheduler allows its job. If the
/// time left is known and longer than about a second, the warning suggests a --budget that fits.
/// Absent if the run fits, or no limit is known.
[[nodiscard]] std::optional<std::string> time_limit_warning(const std::optional<TimeLimit>& limit,
                                                            units::Seconds expected);

}  // namespace isoscale::machine
