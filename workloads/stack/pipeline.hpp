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

/// The work on one microbatch. Backward is one pass, or its two halves one by one.
enum class Pass : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// One microbatch through one chunk of a stage's layers.
struct Action {
  Pass pass = Pass::forward;
  int microbatch = 0;
  int chunk = 0;
  bool operator==(const Action&) const = default;
};

enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zb_h1 };

/// A pipeline: each of `stages` ranks holds `chunks` runs of layers (virtual stages). Run c of
/// stage s is number c * stages + s in the model.
struct Pipeline {
  Schedule schedule = Schedule::one_f_one_b;
  int stages = 1, chunks = 1, microbatches = 1;
  std::vector<int> layers{};  ///< of each virtual stage

  [[nodiscard]] int virtual_stages() const { return stages * chunks; }
  [[nodiscard]] int virtual_stage(int stage, int chunk) const { return chunk * stages + stage; }
};

/// The times of one microbatch in one stage, over all its chunks: forward, and the two halves of
/// backward.
struct PassTimes {
  double forward = 0, input_gradient = 0, weight_gradient = 0;
};

/// One row of the table of schedules.
struct ScheduleRow {
  Schedule schedule;
  std::string_view name;  ///< as in the option
  /// Returns the actions of a stage, in order. Each chunk's passes keep the order of microbatches.
  std::vector<Action> (*actions)(const Pipeline& pipeline, int stage);
  /// Returns the idle time of each stage in a step, from the first stage's start to the last one's
  /// end, if stages have equal work and messages take no time. It requires m >= p.
  double (*bubble)(const Pipeline& pipeline, const PassTimes& times);
  /// Returns the most microbatches in flight on a stage, each counted once for each chunk that it
  /// is in.
  int (*in_flight)(const Pipeline& pipeline, int stage);
};

/// Returns the table of schedules:
/// gpipe: all forward, then all backward (Huang et al., arXiv 1811.06965).
/// 1f1b: min(p - 1 - s, m) forward, then one of each in turn, then the rest backward (Narayanan et
/// al., arXiv 2104.04473, section 2.2.1).
/// interleaved: the same over v chunks, microbatches in turns of p (section 2.2.2 there).
/// zb-h1: 1f1b whose weight gradients come s microbatches late on stage s, so that input gradients
/// are sent early and the late weight gradients fill the end (Qi et al., arXiv 2401.10241, section
/// 2.3).
[[nodiscard]] std::span<const ScheduleRow> schedule_table();
[[nodiscard]] const ScheduleRow& row_of(Schedule schedule);

/// Returns the idle time over the working time of stages, for a pipeline whose backward takes twice
/// as long as its forward, half of it for either gradient.
[[nodiscard]] double ideal_bubble(const Pipeline& pipeline);

/// The messages between two neighbouring stages at one moment: the result of an action here is
/// sent, and the input of the next action here is received. They are one exchange on both sides.
struct HandOver {
  int offset = 1;  ///< +1: with the next stage (round to the first), -1: the one before
  std::optional<Action> made{};     ///< of this stage
  std::optional<Action> awaited{};  ///< of this stage
  bool operator==(const HandOver&) const = default;
};

using StageStep = std::variant<Action, HandOver>;

/// Returns the actions and messages of a stage, in order. A message is handed over when the stage
/// that reads it is free to. The order of all stages follows one clock, so that ranks do not wait
/// for each other in a circle, whether streams run at the same time or all in program order. On
/// that clock a forward pass of n layers takes n, and so does each half of a backward pass.
[[nodiscard]] std::vector<StageStep> steps_of(const Pipeline& pipeline, int stage);

/// Returns the pipeline of a request. A mesh without stages has one chunk, and nothing is handed
/// over.
[[nodiscard]] Pipeline pipeline_of(const Request& request);

/// Returns the numbers that pp must divide.
[[nodiscard]] std::vector<mesh::Constraint> pipeline_limits(const Request& base);
/// Throws base::UsageError, with the numbers and the nearest that works, if the schedule does not
/// fit the microbatches, or the stages the layers.
void require_pipeline(const Request& scaled);

/// Return the option stage_layers of a twin, with at most two layers in a stage and uneven if the
/// real ones are, and the number of layers that goes with it.
[[nodiscard]] std::string small_stage_layers(const Request& request);
[[nodiscard]] int small_layers(const Request& request);

}  // namespace isoscale::workloads::stack
