// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mesh/request.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {

/// The work on one microbatch: a whole backward pass, or its two halves one by one.
enum class Pass : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// One microbatch through one chunk of a stage's layers.
struct Action {
  Pass pass = Pass::forward;
  int microbatch = 0;
  int chunk = 0;
  bool operator==(const Action&) const = default;
};

enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zb_h1 };

/// A pipeline: each of `stages` ranks holds `chunks` runs of layers (virtual stages); run c of
/// stage s is number c * stages + s of the model.
struct Pipeline {
  Schedule schedule = Schedule::one_f_one_b;
  int stages = 1, chunks = 1, microbatches = 1;
  std::vector<int> layers{};  ///< of each virtual stage

  [[nodiscard]] int virtual_stages() const { return stages * chunks; }
  [[nodiscard]] int virtual_stage(int stage, int chunk) const { return chunk * stages + stage; }
};

/// Times of one microbatch in one stage, all its chunks: forward, and the two halves of backward.
struct PassTimes {
  double forward = 0, input_gradient = 0, weight_gradient = 0;
};

/// One row of the table of schedules.
struct ScheduleRow {
  Schedule schedule;
  std::string_view name;  ///< as in the option
  /// The actions of a stage, in order. Each chunk's passes keep microbatch order.
  std::vector<Action> (*actions)(const Pipeline& pipeline, int stage);
  /// Idle time of each stage in a step whose stages are alike and whose messages take no time, from
  /// the first stage's start to the last one's end. With m >= p.
  double (*bubble)(const Pipeline& pipeline, const PassTimes& times);
  /// Microbatches in flight on a stage, at most, each counted by the chunks that it is in.
  int (*in_flight)(const Pipeline& pipeline, int stage);
};

/// gpipe: all forward, then all backward (Huang et al., arXiv 1811.06965).
/// 1f1b: min(p - 1 - s, m) forward, then one of each in turn, then the rest backward (Narayanan et
/// al., arXiv 2104.04473, section 2.2.1).
/// interleaved: the same over v chunks, microbatches in turns of p (section 2.2.2 there).
/// zb-h1: 1f1b whose weight gradients come s microbatches late on stage s, so that input gradients
/// travel early and the late ones fill the end (Qi et al., arXiv 2401.10241, section 2.3).
[[nodiscard]] std::span<const ScheduleRow> schedule_table();
[[nodiscard]] const ScheduleRow& row_of(Schedule schedule);

/// Idle time over the time that stages work, of a pipeline whose backward takes twice as long as
/// its forward, half of it for either gradient.
[[nodiscard]] double ideal_bubble(const Pipeline& pipeline);

/// The messages that pass between two neighbouring stages at one moment: what an action here has
/// made goes out, what the next action here reads comes in. They are one exchange on both sides.
struct HandOver {
  int offset = 1;  ///< +1: with the next stage (round to the first), -1: the one before
  std::optional<Action> made{};     ///< of this stage
  std::optional<Action> awaited{};  ///< of this stage
  bool operator==(const HandOver&) const = default;
};

using StageStep = std::variant<Action, HandOver>;

/// The actions and messages of a stage, in order. A message is handed over when the stage that
/// reads it is free to: the order of all stages is that of one clock, so no rank waits in a circle,
/// whether streams run side by side or all in program order. On that clock a forward pass of n
/// layers takes n, each half of a backward pass too.
[[nodiscard]] std::vector<StageStep> steps_of(const Pipeline& pipeline, int stage);

/// The pipeline that a request asks for. A mesh without stages has one chunk: nothing is passed on.
[[nodiscard]] Pipeline pipeline_of(const Request& request);

/// The numbers that pp must divide.
[[nodiscard]] std::vector<mesh::Constraint> pipeline_limits(const Request& base);
/// Throws base::UsageError, with the numbers and the nearest that works, when the schedule does not
/// go with the microbatches, or the stages with the layers.
void require_pipeline(const Request& scaled);

/// The option stage_layers of a twin: at most two layers in a stage and uneven where the real ones
/// are, and the layers of the model that go with it.
[[nodiscard]] std::string small_stage_layers(const Request& request);
[[nodiscard]] int small_layers(const Request& request);

}  // namespace isoscale::workloads::stack
