// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "results/calibration_data.hpp"
#include "results/hdf5.hpp"
#include "results/point_tables.hpp"
#include "results/run_data.hpp"

namespace isoscale::results {

// The parts of a run in the groups of an open file. Functions called get_... throw base::Error for
// what is missing or makes no sense; `minor` is that of the file's schema version: what later ones
// added is not looked for.

/// Ops, traces and rows of a point as columns.
struct PointTables {
  OpTable ops;
  TraceTable traces;
  RowTable rows;
};

/// Bytes that a point needs at most, text and structure by a generous guess.
[[nodiscard]] std::uint64_t room_for(const PointData& point, const PointTables& tables);

/// The two attributes that tell what the file is.
void put_marks(hdf5::Group& root, std::string_view format);
/// Everything of the run but its marks and points; the status is partial.
void put_header(hdf5::Group& root, const RunData& run);
/// The fields that may differ between a run's beginning and its end.
void put_end(hdf5::Group& root, const RunData& run);
void put_point(hdf5::Group& points, const PointData& point, const PointTables& tables);

[[nodiscard]] RunData get_header(const hdf5::Group& root, int minor);  ///< all but the points
[[nodiscard]] PointData get_point(const hdf5::Group& group, int minor);

/// The same of what a summary has (see Depth in reader.hpp); the rest is as in an empty one.
[[nodiscard]] RunData get_header_summary(const hdf5::Group& root, int minor);
[[nodiscard]] PointData get_point_summary(const hdf5::Group& group, int minor);

/// Writes a calibration into a group that is empty.
void put_calibration(hdf5::Group& group, const CalibrationData& calibration);
[[nodiscard]] CalibrationData get_calibration(const hdf5::Group& group, int minor);
/// Bytes that a calibration needs at most, structure by a generous guess.
[[nodiscard]] std::uint64_t room_for(const CalibrationData& calibration);

/// Writes the results of preflight into a group that is empty: a column per field of
/// preflight::CheckResult, and the facts.
void put_preflight(hdf5::Group& group, const PreflightData& preflight);
[[nodiscard]] PreflightData get_preflight(const hdf5::Group& group, int minor);

}  // namespace isoscale::results
