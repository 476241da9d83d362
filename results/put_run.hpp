// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "results/hdf5.hpp"
#include "results/row_table.hpp"
#include "results/run_data.hpp"
#include "results/tables.hpp"

/// A run's header and points into the groups of an open file.
namespace isoscale::results {

/// What a point has besides its own fields, as columns.
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
/// What may differ between a run's beginning and its end.
void put_end(hdf5::Group& root, const RunData& run);
void put_point(hdf5::Group& points, const PointData& point, const PointTables& tables);

}  // namespace isoscale::results
