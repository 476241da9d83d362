// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/synchrony.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace isoscale::simulate {
namespace {

using Table = std::vector<units::Nanoseconds>;

/// The stream that computes most.
program::StreamId main_stream(const program::Outline& outline, const Table& table) {
  std::array<std::int64_t, program::max_streams> compute{};
  for (std::size_t i = 0; i < outline.ops.size(); ++i) {
    if (program::computes(outline.ops[i].kind)) {
      compute[outline.ops[i].stream] += table[i].value();
    }
  }
  return static_cast<program::StreamId>(std::max_element(compute.begin(), compute.end()) -
                                        compute.begin());
}

/// Along each axis, the longest stretch of computation on the main stream without a meeting, as a
/// share of all; the end of a step and the beginning of the next are one stretch.
class Stretches {
 public:
  Stretches(const program::Outline& outline, const Table& table)
      : outline_(outline), main_(main_stream(outline, table)), meetings_(outline.streams.size()) {
    for (std::size_t i = 0; i < outline.ops.size(); ++i) {
      const program::OutlineOp& op = outline.ops[i];
      // What an op of the main stream waits for is before it in the program.
      auto& here = meetings_[op.stream];
      here.push_back(here.empty() ? std::array<std::uint32_t, mesh::axis_count>{} : here.back());
      for (const mesh::Axis axis : mesh::all_axes) {
        if (program::communicates(op.kind) && op.axes.contains(axis)) ++here.back()[index(axis)];
      }
      if (op.stream != main_) continue;
      meet(here.back(), op.stream);
      for (const program::Wait& wait : outline.waits_of(op)) {
        meet(meetings_[wait.stream][wait.count - 1], wait.stream);
      }
      if (program::computes(op.kind)) time_ += static_cast<double>(table[i].value());
    }
  }

  [[nodiscard]] bool is_tight(mesh::Axis axis) const {
    const std::size_t a = index(axis);
    if (!met_[a] || time_ == 0) return false;
    return std::max(longest_[a], first_[a] + time_ - last_[a]) <= time_ / 2;
  }

 private:
  using Counts = std::array<std::uint32_t, mesh::axis_count>;
  static std::size_t index(mesh::Axis axis) { return static_cast<std::size_t>(axis); }

  /// The main stream now knows of that many meetings along each axis on `stream`.
  void meet(const Counts& counts, program::StreamId stream) {
    for (std::size_t a = 0; a < counts.size(); ++a) {
      if (counts[a] <= seen_[stream][a]) continue;
      seen_[stream][a] = counts[a];
      if (met_[a]) {
        longest_[a] = std::max(longest_[a], time_ - last_[a]);
      } else {
        first_[a] = time_;
      }
      met_[a] = true;
      last_[a] = time_;
    }
  }

  const program::Outline& outline_;
  program::StreamId main_;
  std::vector<std::vector<Counts>> meetings_;  ///< by stream and op: so far, this one included
  std::array<Counts, program::max_streams> seen_{};
  double time_ = 0;  ///< computed so far
  std::array<bool, mesh::axis_count> met_{};
  std::array<double, mesh::axis_count> first_{}, last_{}, longest_{};
};

}  // namespace

mesh::AxisSet tight_axes(const mesh::Shape& mesh, const std::vector<program::Outline>& outlines,
                         const std::vector<Table>& tables,
                         const std::vector<std::uint32_t>& outline_of_class,
                         const std::vector<std::uint32_t>& table_of_class) {
  std::uint8_t bits = mesh::varying(mesh, mesh::every_axis).bits();
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  for (std::size_t c = 0; c < outline_of_class.size(); ++c) {
    if (!known.insert({outline_of_class[c], table_of_class[c]}).second) continue;
    const Stretches stretches{outlines[outline_of_class[c]], tables[table_of_class[c]]};
    for (const mesh::Axis axis : mesh::all_axes) {
      if (stretches.is_tight(axis)) continue;
      bits = static_cast<std::uint8_t>(bits & ~mesh::AxisSet{axis}.bits());
    }
  }
  return mesh::AxisSet::from_bits(bits);
}

}  // namespace isoscale::simulate
