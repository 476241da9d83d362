// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/options.hpp"

#include <algorithm>
#include <map>
#include <variant>

#include "program/builder.hpp"
#include "workloads/stack/layer.hpp"
#include "workloads/stack/microbatch_inputs.hpp"
#include "workloads/stack/pipeline.hpp"
#include "workloads/stack/weight_and_gradient_ops.hpp"

namespace isoscale::workloads::stack {

namespace {

using program::Transport;

/// True for collectives that can use symmetric memory: sums and gathers over tp, for which there
/// are symmetric kernels.
bool travels(const Collective& collective) {
  const bool has_kernel = collective.kind == CollectiveKind::all_reduce ||
                          collective.kind == CollectiveKind::all_gather ||
                          collective.kind == CollectiveKind::reduce_scatter;
  return has_kernel && collective.axes == mesh::AxisSet{mesh::Axis::tp};
}

/// True for messages that can use symmetric memory: those between stages, or around the ring of tp.
bool travels(const Exchange& exchange) {
  return std::ranges::all_of(exchange.transfers, [](const program::Transfer& transfer) {
    return transfer.axis == mesh::Axis::tp || transfer.axis == mesh::Axis::pp;
  });
}

/// Sets Transport::symmetric for all collectives over tp that have a symmetric kernel and all
/// messages over tp and between stages. Moves the buffers that they touch from Space::device to
/// Space::symmetric. Changes neither the ops nor the data that they send.
void set_symmetric(program::RankProgram& program) {
  const auto move = [&](const Slice& slice) {
    Space& space = program.buffers.at(slice.buffer).space;
    if (space == Space::device) space = Space::symmetric;
  };
  const auto set = [&](program::Program& section) {
    for (program::Op& op : section.ops) {
      if (auto* const collective = std::get_if<Collective>(&op.payload)) {
        if (!travels(*collective)) continue;
        collective->transport = Transport::symmetric;
        move(collective->send);
        move(collective->receive);
      } else if (auto* const exchange = std::get_if<Exchange>(&op.payload)) {
        if (!travels(*exchange)) continue;
        exchange->transport = Transport::symmetric;
        for (const program::Transfer& transfer : exchange->transfers) move(transfer.slice);
      }
    }
  };
  set(program.setup);
  for (program::Program& step : program.steps) set(step);
}

/// Sends activations [shard_tokens, hidden] and their gradients between stages. They are sent as a
/// whole, or each rank of tp sends only its rows, and the receiving ranks gather all rows
/// (Narayanan et al., arXiv 2104.04473, section 4.1).
class HandOvers : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Stores the result of an action until the message that sends it is written.
  void leave(const Action& made, BufferId result) { made_[made] = result; }
  /// Appends the exchange of messages with a neighbouring stage to the program.
  void write(const HandOver& message) {
    const Action& named = message.made ? *message.made : *message.awaited;
    builder_.at({.phase = named.pass == Pass::forward ? Phase::forward : Phase::backward,
                 .layer = -1,
                 .microbatch = named.microbatch});
    const bool scatters = g_.scatters_hand_over();
    const std::uint64_t rows =
        g_.activation() / (scatters ? static_cast<std::uint64_t>(g_.tp) : 1);  // in elements
    Exchange exchange;
    BufferId incoming = no_buffer;
    if (message.made) {
      const Slice mine{.buffer = made_.extract(*message.made).mapped(),
                       .axis = mesh::Axis::tp,
                       .count = rows,
                       .step = scatters ? rows : 0};
      exchange.transfers.push_back(program::send_to(mesh::Axis::pp, message.offset, mine));
    }
    if (message.awaited) {
      incoming = new_buffer(rows, scatters ? std::nullopt : kept_for(*message.awaited));
      exchange.transfers.push_back(
          program::receive_from(mesh::Axis::pp, message.offset, builder_.whole(incoming)));
    }
    builder_.emit(builder_.stream(message.offset > 0 ? "pp_next" : "pp_prev"), std::move(exchange));
    if (!message.awaited) return;
    received_[*message.awaited] = scatters ? gather(incoming, *message.awaited) : incoming;
  }
  /// Returns the input that was received for an action.
  [[nodiscard]] BufferId take(const Action& awaited) { return received_.extract(awaited).mapped(); }

 private:
  /// Gathers the rows of all ranks of tp; `part` has this rank's rows.
  [[nodiscard]] BufferId gather(BufferId part, const Action& awaited) {
    const BufferId whole = new_buffer(g_.activation(), kept_for(awaited));
    communicate(builder_, 0, CollectiveKind::all_gather, mesh::Axis::tp, builder_.whole(part),
                builder_.whole(whole));
    return whole;
  }
  [[nodiscard]] KeptFor kept_for(const Action& awaited) const {
    const int here = g_.pipeline.virtual_stage(g_.stage, awaited.chunk);
    const bool is_last = here + 1 == g_.pipeline.virtual_stages();
    const bool is_read_again = g_.layers_of(awaited.chunk).count > 0 || is_last;
    return awaited.pass == Pass::forward && is_read_again ? KeptFor{awaited.microbatch}
                                                          : std::nullopt;
  }

  std::map<Action, BufferId> made_, received_;
};

/// Trains replicas like torch.nn.DataParallel (see its documentation; Li et al., arXiv 2006.15704,
/// compare with it). The first replica gathers all outputs and scatters their gradients. After
/// backward it sums the weight gradients of all replicas, updates the weights, and broadcasts them.
/// All ops are on the compute stream, so nothing overlaps. Ranks communicate only with ranks of
/// other replicas that have the same coordinates along tp and pp. The inputs are scattered by the
/// class Inputs.
class Funnel : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Gathers the outputs of all replicas for a microbatch on the first replica.
  void gather_output(int microbatch, BufferId output) {
    builder_.at({.phase = Phase::forward, .layer = -1, .microbatch = microbatch});
    count_ = builder_.buffer(output).count;
    if (is_root()) {
      of_all_[microbatch] =
          new_buffer(count_ * static_cast<std::uint64_t>(g_.replicas), microbatch);
    }
    communicate(builder_, 0, CollectiveKind::gather, mesh::Axis::dp, builder_.whole(output),
                is_root() ? builder_.whole(of_all_[microbatch]) : Slice{});
  }
  /// Returns a new buffer with this replica's part of the gradient of the outputs, which the first
  /// replica scatters. The gradient equals the outputs, since loss = 1/2 |Y|^2.
  [[nodiscard]] BufferId loss_gradient(int microbatch) {
    builder_.at({.phase = Phase::backward, .layer = -1, .microbatch = microbatch});
    const BufferId mine = new_buffer(count_, microbatch);
    communicate(builder_, 0, CollectiveKind::scatter, mesh::Axis::dp,
                is_root() ? builder_.whole(of_all_.at(microbatch)) : Slice{}, builder_.whole(mine));
    return mine;
  }
  /// Sums gradients over replicas on the first one, bucket by bucket. Does nothing unless
  /// funnels() is true.
  void reduce(const Parameters& parameters) {
    if (!funnels(g_)) return;
    builder_.at({.phase = Phase::gradient_reduction});
    for (const Bucket& bucket : parameters.buckets()) {
      const Slice slice = parameters.gradient(bucket);
      communicate(builder_, 0, CollectiveKind::reduce, mesh::Axis::dp, slice, slice);
    }
  }
  /// Broadcasts the first replica's weights to all replicas. Does nothing unless funnels() is true.
  void broadcast(const Parameters& parameters) {
    if (!funnels(g_)) return;
    builder_.at({.phase = Phase::optimizer});
    for (const Bucket& bucket : parameters.buckets()) {
      const Slice slice = parameters.weight(bucket);
      communicate(builder_, 0, CollectiveKind::broadcast, mesh::Axis::dp, slice, slice);
    }
  }

 private:
  [[nodiscard]] bool is_root() const { return g_.at.dp == 0; }

  std::uint64_t count_ = 0;           ///< elements of the output of one replica
  std::map<int, BufferId> of_all_{};  ///< first replica: outputs of all replicas, by microbatch
};

/// Writes the program of one stage: its actions in the order of the schedule, the messages between
/// them, the reduction of gradients over replicas, and the update.
class StageWriter {
 public:
  StageWriter(const Request& request, const mesh::Coordinates& at)
      : request_(request),
        g_(request, at),
        types_(types_of(request.precision, g_.options.fp8_accumulate)),
        builder_(request.mesh),
        parameters_(builder_, g_, request),
        weights_(builder_, g_, parameters_),
        gradients_(builder_, g_, parameters_, request),
        updates_(builder_, parameters_),
        funnel_(builder_, g_, types_),
        inputs_(builder_, g_, types_, request),
        layers_(builder_, g_, types_, parameters_, weights_, gradients_, request),
        hand_overs_(builder_, g_, types_) {}

  [[nodiscard]] program::RankProgram write() {
    builder_.begin(program::Section::step);
    updates_.begin();
    for (const StageStep& step : steps_of(g_.pipeline, g_.stage)) {
      if (const auto* action = std::get_if<Action>(&step)) {
        act(*action);
      } else {
        hand_overs_.write(std::get<HandOver>(step));
      }
    }
    gradients_.finish();
    funnel_.reduce(parameters_);
    if (!follows(g_)) updates_.write();
    funnel_.broadcast(parameters_);
    if (request_.keep == Keep::observables) parameters_.observe(builder_);
    if (options_of(request_).transport == Transport::symmetric) set_symmetric(builder_.draft());
    return builder_.finish();
  }

 private:
  void act(const Action& action) {
    switch (action.pass) {
      case Pass::forward:
        return forward(action);
      case Pass::backward:
      case Pass::input_gradient:
        return backward(action);
      case Pass::weight_gradient:
        return weight_gradients(action);
    }
  }
  void forward(const Action& action) {
    const int microbatch = action.microbatch;
    const LayerRange layers = g_.layers_of(action.chunk);
    const bool sends = !is_last(action);
    BufferId activation = is_first(action) ? inputs_.take(microbatch) : hand_overs_.take(action);
    for (int layer = layers.first; layer < layers.end(); ++layer) {
      const bool is_last_layer = layer + 1 == layers.end();
      const bool is_kept = is_last_layer ? !sends : layers_.keeps_inputs();
      weights_.before(layer);
      activation = layers_.forward(layer, microbatch, activation,
                                   is_kept ? KeptFor{microbatch} : std::nullopt);
      weights_.after();
    }
    if (sends) return hand_overs_.leave(action, activation);
    if (g_.vocabulary > 0) {
      head_inputs_[microbatch] = activation;
      weights_.before(Parameters::vocabulary);
      activation = layers_.vocabulary_forward(microbatch, activation);
      weights_.after();
    }
    outputs_[microbatch] = activation;
    if (request_.keep == Keep::observables) observe_output(microbatch, activation);
    if (funnels(g_)) funnel_.gather_output(microbatch, activation);
  }
  /// Writes a whole backward pass, or only the part that computes input gradients.
  void backward(const Action& action) {
    const int microbatch = action.microbatch;
    const LayerRange layers = g_.layers_of(action.chunk);
    layers_.put_off_weight_gradients(action.pass == Pass::input_gradient);
    BufferId gradient = no_buffer;
    if (is_last(action) && funnels(g_)) {
      outputs_[microbatch] = funnel_.loss_gradient(microbatch);
    }
    if (!is_last(action)) {
      gradient = hand_overs_.take(action);
    } else if (g_.vocabulary > 0) {
      const BufferId head_input = head_inputs_.at(microbatch), logits = outputs_.at(microbatch);
      weights_.before(Parameters::vocabulary);
      gradient = layers_.vocabulary_backward(microbatch, head_input, logits);
      weights_.after();
    } else {
      gradient = outputs_.at(microbatch);  // loss = 1/2 |Y|^2, so dY is Y
    }
    for (int layer = layers.end(); layer-- > layers.first;) {
      const bool sends_late = layer == layers.first && !g_.async_reduce;
      const InputGradient order = sends_late ? InputGradient::last : InputGradient::first;
      weights_.before(layer);
      gradient = layers_.backward(layer, microbatch, gradient, order);
      weights_.after();
    }
    if (!is_first(action)) return hand_overs_.leave(action, gradient);
    // In a real model, the gradient would be passed on to an embedding. No weight gradient depends
    // on it, so verification compares it directly.
    if (request_.keep == Keep::observables) {
      builder_.observe("input.gradient", builder_.whole(gradient),
                       sample_shard(g_, microbatch, g_.hidden, g_.hidden));
    }
  }
  void weight_gradients(const Action& action) {
    if (is_last(action) && g_.vocabulary > 0) {
      layers_.weight_gradients(Parameters::vocabulary, action.microbatch);
    }
    const LayerRange layers = g_.layers_of(action.chunk);
    for (int layer = layers.end(); layer-- > layers.first;) {
      layers_.weight_gradients(layer, action.microbatch);
    }
  }
  /// True if the action is in the first of the model's virtual stages.
  [[nodiscard]] bool is_first(const Action& action) const {
    return g_.pipeline.virtual_stage(g_.stage, action.chunk) == 0;
  }
  [[nodiscard]] bool is_last(const Action& action) const {
    return g_.pipeline.virtual_stage(g_.stage, action.chunk) + 1 == g_.pipeline.virtual_stages();
  }
  void observe_output(int microbatch, BufferId output) {
    // For verification, the outputs of all ranks form one global tensor [sample][position][column].
    // See sample_shard() for the numbering of samples.
    if (g_.vocabulary == 0) {
      builder_.observe("output", builder_.whole(output),
                       sample_shard(g_, microbatch, g_.hidden, g_.hidden));
      return;
    }
    const std::uint64_t columns = g_.vocabulary, row = g_.microbatch * columns;
    std::uint64_t done = 0;
    for (const Positions& positions : inner_positions(g_)) {
      builder_.observe("logits",
                       {.buffer = output, .offset = done * row, .count = positions.count * row},
                       position_shard(g_, microbatch, columns,
                                      columns * static_cast<std::uint64_t>(g_.tp), positions));
      done += positions.count;
    }
  }

  const Request& request_;
  Geometry g_;
  Types types_;
  Builder builder_;
  Parameters parameters_;
  Weights weights_;
  Gradients gradients_;
  Updates updates_;
  Funnel funnel_;
  Inputs inputs_;
  LayerWriter layers_;
  HandOvers hand_overs_;
  /// The output of the last layer, or the logits, by microbatch. With strategy=funnel, backward
  /// replaces it by the output's gradient, which has the same values.
  std::map<int, BufferId> outputs_;
  std::map<int, BufferId> head_inputs_;  ///< input of the output projection, by microbatch
};

}  // namespace

program::RankProgram build_stage(const Request& request, const mesh::Coordinates& at) {
  if (types_of(request.precision).casts_operands()) require_fp8_extents({request, at});
  return StageWriter{request, at}.write();
}

}  // namespace isoscale::workloads::stack
