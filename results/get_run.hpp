// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/hdf5.hpp"
#include "results/run_data.hpp"

/// A run's header and points out of the groups of an open file. All throw base::Error for what is
/// missing or makes no sense. `minor` is that of the file's schema version: what later ones added
/// is not looked for.
namespace isoscale::results {

[[nodiscard]] RunData get_header(const hdf5::Group& root, int minor);  ///< all but the points
[[nodiscard]] PointData get_point(const hdf5::Group& group, int minor);

/// The same of what a summary has (see Depth in reader.hpp); the rest is as in an empty one.
[[nodiscard]] RunData get_header_summary(const hdf5::Group& root, int minor);
[[nodiscard]] PointData get_point_summary(const hdf5::Group& group, int minor);

}  // namespace isoscale::results
