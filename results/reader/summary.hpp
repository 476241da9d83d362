// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/hdf5/run_files.hpp"
#include "results/records/counted_steps.hpp"
#include "results/records/run_data.hpp"

/// The summary of a run file: the facts that an index of many runs needs, as JSON behind the HDF5
/// data, with a digest of its own (SCHEMA.md). It can be read without HDF5, on any thread. A
/// program that changes the file through HDF5 cuts it off.
namespace isoscale::results {

/// The measured part of a point in a summary.
struct PointFigures {
  std::optional<double> step_time{};  ///< seconds, median of the untraced steps that count
  std::size_t counted = 0;            ///< number of these steps
  std::size_t steps = 0, rows = 0;    ///< all that the point has
  /// The name of the file that holds the point; absent: the run file.
  std::optional<std::string> part_file{};
};

struct RunSummary {
  /// The run's identity; host, node, cpu_model, gpu_name and cores of each rank in any order;
  /// experiment, status and labels of each point. All other fields are empty.
  RunData run;
  std::vector<PointFigures> figures;  ///< one per point of the run
};

/// Returns the summary of a run that was read or is being measured.
[[nodiscard]] RunSummary summary_of(const RunData& run, Confidences& confidences);
/// Appends a point whose step time is judged with this confidence (see confidence_of).
void add_point(RunSummary& summary, const PointData& point, double confidence,
               std::optional<std::string> part_file = {});

/// Returns what is appended to a run file whose HDF5 data is complete.
[[nodiscard]] std::string summary_text(const RunSummary& summary);

/// Returns true if a file whose HDF5 data ends after `end_of_data` bytes has a part of a summary
/// behind it, but no whole one: it was cut off or damaged there.
[[nodiscard]] bool has_broken_summary(const std::filesystem::path& path, std::uint64_t end_of_data);

/// Returns the summary of a run file with its points by index. Absent where the file has none or
/// none that this version can use, where its digest differs, and where a part file is missing:
/// read_run() then says what can be read, or why nothing can.
[[nodiscard]] std::optional<RunSummary> read_summary(const std::filesystem::path& path);

}  // namespace isoscale::results
