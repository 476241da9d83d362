// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/page/point_details.hpp"
#include "analysis/report.hpp"
#include "program/outline.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Chooses the step, ranks and op spans that a timeline chart shows; it has a lane for each rank.
namespace isoscale::analysis::page {

/// A traced step, with those of its traces that can be used.
struct LaneStep {
  std::uint32_t step = 0;  ///< number among all steps of the point
  /// The trace of each rank; null if there is none. Not owned.
  std::vector<const timeline::StepTrace*> of;
  std::size_t traced = 0;     ///< number of ranks with a trace
  units::Nanoseconds length;  ///< time of the slowest rank
};

/// Returns the traced step of median length among the analysed steps (breakdown::step_counts())
/// with the most traced ranks; absent if no trace can be used.
[[nodiscard]] std::optional<LaneStep> typical_traced_step(const results::PointData& point);

/// Returns the ranks that get a lane, by the rules of lanes() (point_details.hpp) and in the order
/// in which these choose them.
[[nodiscard]] std::vector<int> lane_ranks(const PointReport& point, const LaneStep& step,
                                          const DetailLimits& limits);

/// Classes of ops, for spans that were merged from several kinds of ops. Their numbers follow those
/// of program::OpKind, so that one number stands for either a kind or a class.
enum class LaneOp : std::uint8_t {
  compute = program::op_kind_count,
  copies,
  communication,
  mixed,  ///< several of the classes above
};

/// The span of one op in a lane, or of several ops that were merged.
struct LaneSpan {
  std::uint8_t op = 0;  ///< number of a program::OpKind or a LaneOp
  std::uint8_t stream = 0;
  program::Place place{};
  units::Nanoseconds start, end;
  std::size_t merged = 1;  ///< number of ops in the span
};

/// Says when neighbouring spans of a stream count as alike: if they have the same phase and
/// microbatch and, for `same_kind`, also the same kind of op.
enum class Alike : std::uint8_t { same_kind, any_kind };

/// Returns the ops of a step that overlap `window`, clipped to it and sorted by stream and start.
[[nodiscard]] std::vector<LaneSpan> spans_of(const program::Outline& outline,
                                             const timeline::StepTrace& trace,
                                             const timeline::Interval& window);

/// Merges neighbouring spans that are `alike`, do not overlap and are at most `tolerance` apart. A
/// merged span with ops of several layers has the layer -1, and one with several kinds of ops has a
/// LaneOp. A span that has reached the length `enough` is not merged further.
[[nodiscard]] std::vector<LaneSpan> merged(const std::vector<LaneSpan>& spans, Alike alike,
                                           units::Nanoseconds tolerance, units::Nanoseconds enough);

/// A time in which no computation or copy runs, but communication (`exposed`) or nothing (`gap`).
struct LaneIdle {
  enum class Kind : std::uint8_t { exposed = 0, gap = 1 } kind{};
  units::Nanoseconds start, end;
  static constexpr int stream = 0;  ///< for code that sorts items by stream: idle times have none
};

/// The idle times of one rank in a step, sorted by their begin, and totals of the step. The totals
/// are exact if no span was merged or left out.
struct LaneUse {
  std::vector<LaneIdle> idle{};
  units::Nanoseconds step, exposed;
  units::Nanoseconds gap;  ///< includes the time before the first op and after the last
};
/// Returns the idle times of a rank from its spans and the bounds of its step.
[[nodiscard]] LaneUse use_of(const std::vector<LaneSpan>& spans, const timeline::Interval& step);

}  // namespace isoscale::analysis::page
