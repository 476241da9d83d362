// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/hdf5/run_hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include "results/records/point_fields.hpp"

namespace isoscale::results {
namespace {

/// Estimates the size of records in a file: an upper limit on the bytes of their values, plus a
/// generous estimate for HDF5's own data on groups, datasets and attributes.
class Room {
 public:
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  Room& create_group(const std::string& /*name*/) {
    bytes_ += structure;
    return *this;
  }
  template <class Value>
  void set(const std::string& /*name*/, const Value& value) {
    bytes_ += attribute;
    if constexpr (!std::is_arithmetic_v<Value>) bytes_ += valid_utf8(value).size();
  }
  template <class Value>
  void write(const std::string& /*name*/, Dimensions /*dimensions*/, std::span<const Value> values,
             const About& /*about*/, std::span<const std::string> /*names*/ = {}) {
    std::size_t longest = sizeof(Value);
    if constexpr (std::same_as<Value, std::string>) {  // each takes as many bytes as the longest
      longest = 1;
      for (const std::string& text : values) longest = std::max(longest, valid_utf8(text).size());
    }
    bytes_ += structure + values.size() * longest;
  }

 private:
  static constexpr std::uint64_t structure = 4096, attribute = 128;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::uint64_t room_for(const PointData& point) {
  Room room;
  put_record(room, point, static_cast<std::size_t>(point.ranks));
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
  root.create_group("points");
}

void put_end(hdf5::Group& root, const RunData& run) {
  for_each_field(run_end, [&](const auto& field) {
    if (root.has(field.name)) root.remove(field.name);
  });
  put_record(root, run, 0, run_end);
  put_record(root, run, 0, std::tuple{run_status});
  root.set("ended", run.ended);
}

void put_point(const hdf5::Group& root, const PointData& point) {
  hdf5::Group group = root.open_group("points").create_group(point_group_name(point.index));
  put_record(group, point, static_cast<std::size_t>(point.ranks));
}

RunData get_header(const hdf5::Group& root, int minor) {
  RunData run;
  get_record(root, run, minor);
  require(run.ranks >= 1 && run.nodes >= 1, "the run has no ranks or nodes");
  if (run.calibration) {
    for (const CalibrationCurve& curve : run.calibration->curves) validate(curve);
  }
  return run;
}

PointData get_point(const hdf5::Group& group, int minor) {
  PointData point;
  get_record(group, point, minor);
  point.outline.mesh = point.mesh;
  validate(point);
  return point;
}

}  // namespace isoscale::results
