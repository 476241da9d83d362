// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mesh/mesh_request.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {

/// One kind of work on a microbatch. A backward pass is a single action, or is split into
/// input_gradient and weight_gradient.
enum class Pass : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// A pass of one microbatch through one chunk of a stage's layers.
struct Action {
  Pass pass = Pass::forward;
  int microbatch = 0;
  int chunk = 0;
  auto operator<=>(const Action&) const = default;
};

/// A pipeline. Each of its `stages` stages has `chunks` groups of consecutive layers (virtual
/// stages). Chunk c of stage s is virtual stage c * stages + s of the model.
struct Pipeline {
  Schedule schedule = Schedule::one_f_one_b;
  int stages = 1, chunks = 1, microbatches = 1;
  std::vector<int> layers{};  ///< for each virtual stage; 0 = it only passes activations on

  [[nodiscard]] int virtual_stages() const { return stages * chunks; }
  [[nodiscard]] int virtual_stage(int stage, int chunk) const { return chunk * stages + stage; }
};

/// The times of one microbatch in one stage, in any unit, summed over its chunks: forward, and both
/// halves of backward.
struct PassTimes {
  double forward = 0, input_gradient = 0, weight_gradient = 0;
};

/// The names of schedules, in the order of Schedule; they are the values of the option. In the
/// text below, p is the number of stages, s the index of a stage, m the number of microbatches,
/// and v the number of chunks.
/// gpipe: all forward, then all backward (Huang et al., arXiv 1811.06965).
/// 1f1b: min(p - 1 - s, m) forward, then forward and backward alternately, then only backward
/// (Narayanan et al., arXiv 2104.04473, section 2.2.1).
/// interleaved: 1f1b over v chunks, with microbatches in groups of p (section 2.2.2 there).
/// zb-h1: 1f1b whose weight gradients come s microbatches late on stage s, so that input
/// gradients are sent early and the late weight gradients fill the end (Qi et al., arXiv
/// 2401.10241, section 2.1).
inline constexpr std::array<std::string_view, 4> schedule_names{"gpipe", "1f1b", "interleaved",
                                                                "zb-h1"};

/// Returns the actions of a stage, in order. Actions of the same chunk and the same kind of pass
/// take the microbatches in ascending order. Only an interleaved schedule has several chunks.
[[nodiscard]] std::vector<Action> actions_of(const Pipeline& pipeline, int stage);
/// Returns the idle time of each stage in a step, in the unit of `times`. The step lasts from the
/// first start to the last end of any stage. The result assumes that stages have equal work, that
/// messages take no time, and that there are at least as many microbatches as stages.
[[nodiscard]] double idle_time(const Pipeline& pipeline, const PassTimes& times);
/// Returns the largest number of microbatches in flight on a stage: forward has begun there, and
/// backward has not ended. A microbatch counts once for each chunk in which it is in flight.
[[nodiscard]] int most_in_flight(const Pipeline& pipeline, int stage);

/// Returns the ratio of the stages' idle time to their working time. The ratio assumes that each
/// half of backward takes as long as forward.
[[nodiscard]] double ideal_bubble(const Pipeline& pipeline);

/// The messages that a stage exchanges with a neighbour at one moment, in a single op. The result
/// of the action `made` is sent, the input of the action `awaited` is received, or both.
struct HandOver {
  int offset = 1;                ///< +1: next stage (after the last, the first), -1: previous stage
  std::optional<Action> made{};  ///< this stage's action whose result is sent
  std::optional<Action> awaited{};  ///< this stage's action whose input is received
  bool operator==(const HandOver&) const = default;
};

using StageStep = std::variant<Action, HandOver>;

/// Returns the actions and the messages of a stage, in order. A stage receives a message just
/// before the action that reads it. The order on all stages follows from one simulated clock, so
/// that stages never wait for each other in a circle, whether streams run concurrently or one op
/// after another. On this clock a forward pass through n layers takes n units of time, and so does
/// each half of a backward pass. A virtual stage without layers takes 1 unit, so that it sends an
/// activation later than it received it.
[[nodiscard]] std::vector<StageStep> steps_of(const Pipeline& pipeline, int stage);

/// Returns the pipeline of a request. With a single stage it has one chunk and no messages.
[[nodiscard]] Pipeline pipeline_of(const Request& request);

/// Returns the limit "pp divides the layers" if stages must be equal, else an empty list.
[[nodiscard]] std::vector<mesh::Constraint> pipeline_limits(const Request& base);
/// Throws base::UsageError, which has the numbers and says what to use instead, if the schedule
/// does not fit the number of microbatches, if the number of stages does not fit the number of
/// layers, if a rank would have no weights, or if handover=scattered cannot divide the rows of an
/// activation by tp. With one stage nothing is checked.
void require_pipeline(const Request& scaled);

/// small_stage_layers() returns the option stage_layers of a twin (the small version of a request
/// for verification), small_layers() the twin's number of layers. A stage of the twin has at most
/// two layers, and none if the real stage has none. The twin's stages are uneven if the real ones
/// are.
[[nodiscard]] std::string small_stage_layers(const Request& request);
[[nodiscard]] int small_layers(const Request& request);

}  // namespace isoscale::workloads::stack
