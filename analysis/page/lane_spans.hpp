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

/// Chooses the step and the ranks that a timeline shows, one lane for each rank, and the spans of
/// each lane.
namespace isoscale::analysis::page {

/// A traced step with the traces that can be used.
struct LaneStep {
  std::uint32_t step = 0;                      ///< number among all steps of the point
  std::vector<const timeline::StepTrace*> of;  ///< by rank; null without a trace; not owned
  units::Nanoseconds length;                   ///< the slowest rank's

  [[nodiscard]] std::size_t traced() const;
};

/// Returns the traced step whose length is nearest to the median of the steps that count. Only the
/// steps with the largest number of traced ranks are considered. The result is absent if no trace
/// can be used.
[[nodiscard]] std::optional<LaneStep> typical_traced_step(const results::PointData& point);

/// Returns the ranks that get a lane (see lanes()), the most important ones first.
[[nodiscard]] std::vector<int> lane_ranks(const PointReport& point, const LaneStep& step,
                                          const DetailLimits& limits);

/// Classes of several kinds of ops. Their numbers follow those of program::OpKind, so that one
/// number stands for either a kind or a class.
enum class LaneOp : std::uint8_t {
  compute = program::op_kind_count,
  copies,
  communication,
  mixed,  ///< several of these classes
};

/// One op of a lane, or several merged ones.
struct LaneSpan {
  std::uint8_t op = 0;  ///< program::OpKind or LaneOp
  std::uint8_t stream = 0;
  program::Place place{};
  units::Nanoseconds start, end;
  units::Nanoseconds busy;  ///< the sum of the lengths of its ops
  std::size_t merged = 1;   ///< number of ops that it consists of

  [[nodiscard]] units::Nanoseconds gaps() const { return end - start - busy; }
};

/// Says which neighbours on a stream are alike: they have the same phase and microbatch and, for
/// `same_kind`, the same kind of op.
enum class Alike : std::uint8_t { same_kind, any_kind };

/// Returns the ops of a step within `window`, sorted by stream and start, without those of length
/// 0.
[[nodiscard]] std::vector<LaneSpan> spans_of(const program::Outline& outline,
                                             const timeline::StepTrace& trace,
                                             const timeline::Interval& window);

/// Merges alike neighbours that are at most `tolerance` apart. A merged span of several layers has
/// the layer -1, and one of several kinds has a LaneOp. A span that has reached the length `enough`
/// is not merged further.
[[nodiscard]] std::vector<LaneSpan> merged(const std::vector<LaneSpan>& spans, Alike alike,
                                           units::Nanoseconds tolerance, units::Nanoseconds enough);

/// A time in which a rank neither computes nor copies: exposed communication if communication runs,
/// whether it transfers or waits, and a gap if nothing runs.
struct LaneIdle {
  enum class Kind : std::uint8_t { exposed = 0, gap = 1 } kind{};
  timeline::Interval time{};
};

/// The time of a rank's step by activity. A moment with several activities counts only for the
/// first one in the order compute, copies, communication.
struct LaneTotals {
  units::Nanoseconds step, compute, copies;
  units::Nanoseconds exposed;  ///< only communication runs
  units::Nanoseconds gap;      ///< nothing runs, also before the first op and after the last
};
/// The idle times of a rank's step, by begin, and its totals. The totals are exact if no span was
/// merged or left out.
struct LaneUse {
  std::vector<LaneIdle> idle{};
  LaneTotals totals{};
};
/// Returns how a lane uses its step.
[[nodiscard]] LaneUse use_of(const std::vector<LaneSpan>& spans, const timeline::Interval& step);

}  // namespace isoscale::analysis::page
