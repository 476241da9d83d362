// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/hdf5/publish_and_lock_files.hpp"
#include "results/records/run_data.hpp"

/// The summary of a run file: the facts that an index of many runs needs, as JSON behind the HDF5
/// data, with a digest of its own (SCHEMA.md). It is read without HDF5, on any thread. Changing the
/// file with HDF5 removes the summary.
namespace isoscale::results {

/// The measured results of a point that a summary keeps (see measured_step_time.hpp).
struct PointFigures {
  std::optional<double> step_time{};  ///< seconds, median of untraced_times()
  std::size_t counted = 0;            ///< number of untraced_times()
  std::size_t steps = 0, rows = 0;    ///< numbers of all steps and of all result rows of the point
  std::optional<std::string> part_file{};  ///< the file that holds the point; absent: the run file
};

struct RunSummary {
  /// A run with only these fields: the run's identity; host, node, cpu_model, gpu_name and cores of
  /// each rank, in any order; experiment, status and labels of each point.
  RunData run;
  std::vector<PointFigures> figures;  ///< one for each point of the run
};

/// Returns the summary of a run that was read or is being measured.
[[nodiscard]] RunSummary summary_of(const RunData& run);
/// Appends a point to a summary.
void add_point(RunSummary& summary, const PointData& point,
               std::optional<std::string> part_file = {});

/// Returns the text that is appended to a run file when its HDF5 data is complete.
[[nodiscard]] std::string summary_text(const RunSummary& summary);

/// Returns the summary of a run file, with its points in ascending order of their indices. Absent
/// if the file has no summary that this version can use, if the digest of the summary differs, or
/// if a part file is missing; read_run() then reads the file or says why it cannot.
[[nodiscard]] std::optional<RunSummary> read_summary(const std::filesystem::path& path);

}  // namespace isoscale::results
