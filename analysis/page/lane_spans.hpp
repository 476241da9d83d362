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

/// The lanes of a timeline: which step and ranks have one, and the spans of each.
namespace isoscale::analysis {

/// A traced step, as far as its traces are of use.
struct LaneStep {
  std::uint32_t step = 0;                      ///< number among all steps of the point
  std::vector<const timeline::StepTrace*> of;  ///< by rank of the point; null without. Not owned.
  units::Nanoseconds length;                   ///< of the slowest rank

  [[nodiscard]] std::size_t traced() const;
};

/// The step that counts whose length is nearest the median; of steps that differ in how many ranks
/// were traced only those with most. Absent without usable traces.
[[nodiscard]] std::optional<LaneStep> typical_traced_step(const results::PointData& point);

/// The ranks that get a lane (see lanes()), those first that matter most.
[[nodiscard]] std::vector<int> lane_ranks(const PointReport& point, const LaneStep& step,
                                          const DetailLimits& limits);

/// A kind of op, or what several kinds have in common: kinds as in program::OpKind, then these.
enum class LaneOp : std::uint8_t {
  compute = program::op_kind_count,
  copies,
  communication,
  mixed,  ///< of several of these
};

/// An op of a lane, or several.
struct LaneSpan {
  std::uint8_t op = 0;  ///< program::OpKind or LaneOp
  std::uint8_t stream = 0;
  program::Place place{};
  units::Nanoseconds start, end;
  units::Nanoseconds busy;  ///< the lengths of its ops
  std::size_t merged = 1;   ///< ops that it is made of

  [[nodiscard]] units::Nanoseconds gaps() const { return end - start - busy; }
};

/// The things that two neighbours of a stream need to have in common, beside the phase, to become
/// one: the kind of op or what it is about (computing, copying, communicating), and the microbatch.
enum class Alike : std::uint8_t {
  kind_and_microbatch,
  class_and_microbatch,
  class_alone,
  microbatch
};

/// The ops of a step by stream and start, without those that take no time, within `window`.
[[nodiscard]] std::vector<LaneSpan> spans_of(const program::Outline& outline,
                                             const timeline::StepTrace& trace,
                                             const timeline::Interval& window);

/// Puts neighbours together that are alike and no further apart than `tolerance`. What they do not
/// share becomes none: layer and microbatch -1, the kind a LaneOp. What has reached `enough` by
/// that takes no more.
[[nodiscard]] std::vector<LaneSpan> merged(const std::vector<LaneSpan>& spans, Alike alike,
                                           units::Nanoseconds tolerance, units::Nanoseconds enough);

/// Time of a rank's step in which it neither computes nor copies: communication is exposed while
/// it runs, whether it transfers or waits; in a gap nothing runs.
struct LaneIdle {
  enum class Kind : std::uint8_t { exposed = 0, gap = 1 } kind{};
  timeline::Interval time{};
};
[[nodiscard]] std::vector<LaneIdle> idle_of(const std::vector<LaneSpan>& spans,
                                            const timeline::Interval& step);

/// A rank's step, divided: what runs counts once, in the order compute, copies, communication.
struct LaneTotals {
  units::Nanoseconds step, compute, copies;
  units::Nanoseconds exposed;  ///< only communication runs
  units::Nanoseconds gap;      ///< nothing runs, also before the first op and after the last
};
/// Exact for spans of which none was merged or left out.
[[nodiscard]] LaneTotals totals_of(const std::vector<LaneSpan>& spans,
                                   const timeline::Interval& step);

}  // namespace isoscale::analysis
