// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/stage.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/inputs.hpp"
#include "workloads/stack/layer.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/stack/schedule.hpp"

namespace isoscale::workloads::stack {
namespace {

using program::BufferId;
using program::Direction;
using program::Phase;
using program::Role;
using program::Slice;

/// Writes the program of one stage: its actions in schedule order, the messages between them, the
/// reduction of gradient buckets over dp, and the update.
class StageWriter {
 public:
  StageWriter(const Request& request, int stage);
  [[nodiscard]] program::RankProgram write();

 private:
  void forward(int microbatch);
  void backward(int microbatch);
  /// The messages that the action before needs sent and the one after needs received, grouped by
  /// the peer: one exchange with the previous stage, one with the next.
  void exchange(std::optional<Action> before, std::optional<Action> after);
  void exchange_with(int offset, std::optional<BufferId> outgoing,
                     std::optional<BufferId> incoming);
  [[nodiscard]] BufferId receive_buffer(const Action& action);
  void gradient_done(const Slice& gradient);
  void reduce_gradients(const Bucket& bucket);
  void observe_output(int microbatch, BufferId output);
  void release_unless_kept(BufferId buffer);
  /// Of a layer, once nothing reads it again.
  void release_input(int layer, int microbatch);

  const Request& request_;
  Geometry g_;
  Types types_;
  OptionReader options_;
  program::Builder builder_;
  bool overlap_;
  program::StreamId reduction_stream_ = 0;
  Parameters parameters_;
  Inputs inputs_;
  LayerWriter layers_;
  std::map<int, BufferId> stage_inputs_;     ///< by microbatch: received, copied or resident
  std::map<int, BufferId> stage_outputs_;    ///< by microbatch: what the last layer or logits gave
  std::map<int, BufferId> head_inputs_;      ///< by microbatch: input of the output projection
  std::map<int, BufferId> stage_gradients_;  ///< by microbatch: received gradient of the output
  std::optional<BufferId> outgoing_;         ///< what the last action left to be sent
};

StageWriter::StageWriter(const Request& request, int stage)
    : request_(request),
      g_(request, stage),
      types_(types_of(request.precision)),
      options_(option_table(), request.options),
      builder_(request.mesh),
      overlap_(options_.is("overlap", "on")),
      parameters_(builder_, g_, request),
      inputs_(builder_, g_, types_, request),
      layers_(builder_, g_, types_, parameters_,
              [this](const Slice& gradient) { gradient_done(gradient); }) {
  if (overlap_ && request.mesh.dp > 1) reduction_stream_ = builder_.stream("dp");
}

program::RankProgram StageWriter::write() {
  builder_.begin(program::Section::step);
  const Schedule schedule =
      options_.is("schedule", "gpipe") ? Schedule::gpipe : Schedule::one_f_one_b;
  const std::vector<Action> actions = actions_of(schedule, g_.stage, g_.stages, g_.microbatches);
  exchange(std::nullopt, actions.front());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].pass == Pass::forward) {
      forward(actions[i].microbatch);
    } else {
      backward(actions[i].microbatch);
    }
    exchange(actions[i], i + 1 < actions.size() ? std::optional{actions[i + 1]} : std::nullopt);
  }
  if (request_.mesh.dp > 1 && !overlap_) {
    for (const Bucket& bucket : parameters_.buckets()) reduce_gradients(bucket);
  }
  const double tokens = static_cast<double>(g_.tokens) * g_.microbatches * request_.mesh.dp;
  parameters_.emit_updates(builder_, tokens);
  if (request_.keep == Keep::observables) parameters_.observe(builder_);
  return builder_.finish();
}

void StageWriter::forward(int microbatch) {
  if (g_.first_stage()) stage_inputs_[microbatch] = inputs_.take(microbatch);
  BufferId activation = stage_inputs_.at(microbatch);
  const bool sends = !g_.last_stage();
  for (int layer = 0; layer < g_.layers; ++layer) {
    const bool is_last = layer + 1 == g_.layers;
    const bool is_kept = is_last ? !sends : layers_.keeps_inputs();
    const BufferId input = activation;
    activation =
        layers_.forward(layer, microbatch, input, is_kept ? Role::activation : Role::workspace);
    if (!layers_.keeps_inputs()) release_input(layer, microbatch);
  }
  if (sends) {
    outgoing_ = activation;
    return;
  }
  if (g_.vocabulary > 0) {
    head_inputs_[microbatch] = activation;
    activation = layers_.vocabulary_forward(microbatch, activation);
  }
  stage_outputs_[microbatch] = activation;
  if (request_.keep == Keep::observables) observe_output(microbatch, activation);
}

void StageWriter::backward(int microbatch) {
  BufferId gradient = program::no_buffer;
  LayerWriter::Ownership ownership = LayerWriter::Ownership::released;
  if (!g_.last_stage()) {
    gradient = stage_gradients_.at(microbatch);
  } else if (g_.vocabulary > 0) {
    const BufferId head_input = head_inputs_.at(microbatch);
    gradient = layers_.vocabulary_backward(microbatch, head_input, stage_outputs_.at(microbatch));
    release_unless_kept(stage_outputs_.at(microbatch));
    builder_.release(head_input);
  } else {
    gradient = stage_outputs_.at(microbatch);  // loss = 1/2 |Y|^2, so dY is Y
    if (request_.keep == Keep::observables) ownership = LayerWriter::Ownership::kept;
  }
  for (int layer = g_.layers; layer-- > 0;) {
    const InputGradient order = layer == 0 ? InputGradient::last : InputGradient::first;
    gradient = layers_.backward(layer, microbatch, gradient, ownership, order);
    ownership = LayerWriter::Ownership::released;
    if (layers_.keeps_inputs()) release_input(layer, microbatch);
    layers_.forget(layer, microbatch);
  }
  if (g_.first_stage()) {
    // Would go on into an embedding; no weight gradient depends on it, so it is compared itself.
    if (request_.keep == Keep::observables) {
      builder_.observe("input.gradient", builder_.whole(gradient),
                       sample_shard(g_, microbatch, g_.hidden, g_.hidden));
    }
    release_unless_kept(gradient);
  } else {
    outgoing_ = gradient;
  }
}

void StageWriter::release_input(int layer, int microbatch) {
  const BufferId input = layers_.input_of(layer, microbatch);
  if (layer == 0 && g_.first_stage()) {
    inputs_.give_back(input);
  } else {
    builder_.release(input);
  }
}

void StageWriter::exchange(std::optional<Action> before, std::optional<Action> after) {
  std::optional<BufferId> to_previous, to_next, from_previous, from_next;
  if (before && outgoing_) {
    (before->pass == Pass::forward ? to_next : to_previous) = outgoing_;
    outgoing_.reset();
  }
  if (after && after->pass == Pass::forward && !g_.first_stage()) {
    from_previous = receive_buffer(*after);
  }
  if (after && after->pass == Pass::backward && !g_.last_stage()) {
    from_next = receive_buffer(*after);
  }
  // What is sent goes first: played inline, the pipeline then resolves from its last stage back.
  const program::Place at{
      .phase = before ? (before->pass == Pass::forward ? Phase::forward : Phase::backward)
                      : Phase::forward,
      .layer = -1,
      .microbatch = before ? before->microbatch : after->microbatch};
  builder_.at(at);
  if (to_next) {
    exchange_with(+1, to_next, from_next);
    exchange_with(-1, std::nullopt, from_previous);
  } else if (to_previous) {
    exchange_with(-1, to_previous, from_previous);
    exchange_with(+1, std::nullopt, from_next);
  } else {
    exchange_with(-1, std::nullopt, from_previous);
    exchange_with(+1, std::nullopt, from_next);
  }
}

void StageWriter::exchange_with(int offset, std::optional<BufferId> outgoing,
                                std::optional<BufferId> incoming) {
  program::Exchange exchange;
  const auto add = [&](Direction direction, std::optional<BufferId> buffer) {
    if (!buffer) return;
    exchange.transfers.push_back({.direction = direction,
                                  .axis = mesh::Axis::pp,
                                  .offset = offset,
                                  .slice = builder_.whole(*buffer)});
  };
  add(Direction::send, outgoing);
  add(Direction::receive, incoming);
  if (exchange.transfers.empty()) return;
  builder_.emit(builder_.stream(offset > 0 ? "pp_next" : "pp_prev"), std::move(exchange));
  if (outgoing) builder_.release(*outgoing);
}

BufferId StageWriter::receive_buffer(const Action& action) {
  const bool forward = action.pass == Pass::forward;
  const BufferId buffer = layers_.new_buffer(
      g_.activation(), forward ? Role::activation : Role::workspace, action.microbatch);
  (forward ? stage_inputs_ : stage_gradients_)[action.microbatch] = buffer;
  return buffer;
}

void StageWriter::gradient_done(const Slice& gradient) {
  if (request_.mesh.dp == 1 || !overlap_) return;
  if (const Bucket* bucket = parameters_.completed_by(gradient)) reduce_gradients(*bucket);
}

void StageWriter::reduce_gradients(const Bucket& bucket) {
  const program::Place place = builder_.place();
  builder_.at({.phase = Phase::gradient_reduction, .layer = place.layer, .microbatch = -1});
  const Slice slice = parameters_.gradient(bucket);
  builder_.emit(reduction_stream_,
                program::Collective{.kind = program::CollectiveKind::all_reduce,
                                    .axes = {mesh::Axis::cp, mesh::Axis::ep, mesh::Axis::dp},
                                    .send = slice,
                                    .receive = slice});
  builder_.at(place);
}

void StageWriter::observe_output(int microbatch, BufferId output) {
  // Global element (sample, position, column); samples are numbered [dp][microbatch][in
  // microbatch].
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const std::uint64_t columns = g_.vocabulary > 0 ? g_.vocabulary : g_.hidden;
  const std::uint64_t whole = g_.vocabulary > 0 ? columns * tp : columns;
  builder_.observe(g_.vocabulary > 0 ? "logits" : "output", builder_.whole(output),
                   sample_shard(g_, microbatch, columns, whole));
}

void StageWriter::release_unless_kept(BufferId buffer) {
  if (request_.keep == Keep::nothing) builder_.release(buffer);
}

}  // namespace

program::RankProgram build_stage(const Request& request, int stage) {
  if (types_of(request.precision).casts_operands()) require_fp8_extents({request, stage});
  return StageWriter{request, stage}.write();
}

}  // namespace isoscale::workloads::stack
