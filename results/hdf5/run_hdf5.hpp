// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "results/hdf5/hdf5.hpp"
#include "results/records/run_data.hpp"

namespace isoscale::results {

// Reads and writes a run's header, points and end in an open HDF5 file. Functions named get_...
// throw base::Error for missing or invalid values; `minor` is the file's minor schema version.

/// Returns an upper limit on the bytes of a point in a file, with a generous estimate for HDF5's
/// own data.
[[nodiscard]] std::uint64_t room_for(const PointData& point);
[[nodiscard]] std::uint64_t room_for(const CalibrationData& calibration);

/// Writes the two attributes that identify the file: its format and its schema version.
void put_marks(hdf5::Group& root, std::string_view format);
/// Writes a run's fields and an empty group for its points, but not what put_marks() writes.
void put_header(hdf5::Group& root, const RunData& run);
/// Writes the fields that may change until a run ends: its warnings and calibration (run_end in
/// run_and_calibration_fields.hpp), its status and its end time.
void put_end(hdf5::Group& root, const RunData& run);
/// Writes a point to the group `points` in a file's root group.
void put_point(const hdf5::Group& root, const PointData& point);

[[nodiscard]] RunData get_header(const hdf5::Group& root, int minor);  ///< without the points
[[nodiscard]] PointData get_point(const hdf5::Group& group, int minor);

}  // namespace isoscale::results
