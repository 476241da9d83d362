// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "results/hdf5/run_hdf5.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "results/records/get_fields.hpp"
#include "results/records/layout.hpp"
#include "results/records/op_records.hpp"
#include "results/records/point_layout.hpp"
#include "results/records/put_fields.hpp"

namespace isoscale::results {

namespace {

/// The minor schema versions that added groups of the run.
constexpr int has_calibration = 2, has_preflight = 4;

/// Writes all of a point to its group, or adds it to the estimate of its size.
template <class Sink>
void put_whole_point(Sink& group, const PointData& point) {
  put_record(group, point, static_cast<std::size_t>(point.ranks));
  auto&& ops = group.create_group("ops");
  put_record(ops, to_stored(point.outline));
  auto&& traces = group.create_group("traces");
  put_rows(traces, to_stored(point.traces));
}

std::string_view status_of(const RunData& run) { return run.complete ? "complete" : "partial"; }

void get_status(const hdf5::Group& root, RunData& run) {
  const std::string status = root.text("status");
  run.complete = status == "complete";
  require(status == status_of(run),
          fmt::format("attribute 'status' has the unknown value '{}'", status));
  require(run.ranks >= 1 && run.nodes >= 1, "the run has no ranks or nodes");
}

}  // namespace

std::uint64_t room_for(const PointData& point) {
  Room room;
  put_whole_point(room, point);
  return room.bytes();
}

std::uint64_t room_for(const CalibrationData& calibration) {
  Room room;
  put_record(room, calibration);
  return room.bytes();
}

void put_marks(hdf5::Group& root, std::string_view format) {
  root.set("format", format);
  root.set("schema_version", fmt::format("{}.{}", schema_major, schema_minor));
}

void put_header(hdf5::Group& root, const RunData& run) {
  put_record(root, run);
  root.set("ended", "");
  root.set("status", "partial");
  if (run.preflight) {
    hdf5::Group group = root.create_group("preflight");
    put_record(group, *run.preflight);
  }
  root.create_group("points");
}

void put_end(hdf5::Group& root, const RunData& run) {
  root.set("ended", run.ended);
  root.set("status", status_of(run));
  root.remove("warnings");
  put_record(root, run, 0, std::tuple{run_warnings});
  if (root.has("calibration")) root.remove("calibration");
  if (!run.calibration) return;
  hdf5::Group group = root.create_group("calibration");
  put_record(group, *run.calibration);
}

void put_point(hdf5::Group& points, const PointData& point) {
  hdf5::Group group = points.create_group(point_group_name(point.index));
  put_whole_point(group, point);
}

RunData get_header(const hdf5::Group& root, int minor) {
  RunData run;
  get_record(root, run, minor);
  get_status(root, run);
  if (minor >= has_preflight && root.has("preflight")) {
    get_record(root.open_group("preflight"), run.preflight.emplace(), minor);
  }
  if (minor >= has_calibration && root.has("calibration")) {
    CalibrationData& calibration = run.calibration.emplace();
    get_record(root.open_group("calibration"), calibration, minor);
    for (const CalibrationCurve& curve : calibration.curves) validate(curve);
  }
  return run;
}

PointData get_point(const hdf5::Group& group, int minor) {
  PointData point;
  get_record(group, point, minor);
  StoredOps ops;
  get_record(group.open_group("ops"), ops, minor);
  point.outline = to_outlines(std::move(ops), point.mesh);
  point.traces = to_timelines(get_rows<StoredTrace>(group.open_group("traces"), minor, "traces"));
  validate(point);
  return point;
}

}  // namespace isoscale::results
