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

/// Sets Transport::symmetric for all communication that can use symmetric memory. Returns the
/// buffers that this communication reads and writes, sorted.
std::vector<BufferId> set_symmetric(program::RankProgram& program) {
  std::vector<BufferId> touched;
  const auto set = [&](program::Program& section) {
    for (program::Op& op : section.ops) {
      if (auto* const collective = std::get_if<Collective>(&op.payload)) {
        if (!travels(*collective)) continue;
        collective->transport = Transport::symmetric;
        touched.push_back(collective->send.buffer);
        touched.push_back(collective->receive.buffer);
      } else if (auto* const exchange = std::get_if<Exchange>(&op.payload)) {
        if (!travels(*exchange)) continue;
        exchange->transport = Transport::symmetric;
        for (const auto& transfer : exchange->transfers) touched.push_back(transfer.slice.buffer);
      }
    }
  };
  set(program.setup);
  for (program::Program& step : program.steps) set(step);
  std::ranges::sort(touched);
  touched.erase(std::ranges::unique(touched).begin(), touched.end());
  return touched;
}

/// Sends activations [shard_tokens, hidden] and their gradients between stages. They are sent as a
/// whole, or each rank of tp sends only its rows, and the receiving ranks gather all rows
/// (Narayanan et al., arXiv 2104.04473, section 4.1).
class HandOvers : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Stores the result of an action until the message that sends it is written. It is released
  /// after the message, unless its ownership is `kept`: a stage without layers may send an input
  /// that stays on the device, or an output that verification reads.
  void leave(const Action& made, const Passed& result) { made_[made] = result; }
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
    Passed outgoing;
    BufferId incoming = no_buffer;
    if (message.made) {
      outgoing = made_.extract(*message.made).mapped();
      const Slice mine{.buffer = outgoing.buffer,
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
    release_if(outgoing.ownership == Ownership::released, outgoing.buffer);
    if (!message.awaited) return;
    received_[*message.awaited] = scatters ? gather(incoming, *message.awaited) : incoming;
  }
  /// Returns the input that was received for an action. The caller must release it.
  [[nodiscard]] BufferId take(const Action& awaited) { return received_.extract(awaited).mapped(); }

 private:
  /// Gathers the rows of all ranks of tp; `part` has this rank's rows.
  [[nodiscard]] BufferId gather(BufferId part, const Action& awaited) {
    const BufferId whole = new_buffer(g_.activation(), kept_for(awaited));
    communicate(builder_, 0, CollectiveKind::all_gather, mesh::Axis::tp, builder_.whole(part),
                builder_.whole(whole));
    builder_.release(part);
    return whole;
  }
  [[nodiscard]] KeptFor kept_for(const Action& awaited) const {
    const int here = g_.pipeline.virtual_stage(g_.stage, awaited.chunk);
    const bool is_last = here + 1 == g_.pipeline.virtual_stages();
    const bool is_read_again = g_.layers_of(awaited.chunk).count > 0 || is_last;
    return awaited.pass == Pass::forward && is_read_again ? KeptFor{awaited.microbatch}
                                                          : std::nullopt;
  }

  std::map<Action, Passed> made_;
  std::map<Action, BufferId> received_;
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
    if (is_root()) builder_.release(of_all_.at(microbatch));
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
/// them, the reduction of gradients over replicas, and the update. The buffers in `symmetric`
/// (sorted) are allocated in symmetric memory.
class StageWriter {
 public:
  StageWriter(const Request& request, const mesh::Coordinates& at,
              const std::vector<BufferId>& symmetric)
      : request_(request),
        g_(request, at),
        types_(types_of(request.precision, g_.options.fp8_accumulate)),
        builder_(request.mesh, symmetric),
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
    weights_.finish();
    gradients_.finish();
    funnel_.reduce(parameters_);
    if (!follows(g_)) updates_.write();
    funnel_.broadcast(parameters_);
    if (request_.keep == Keep::observables) parameters_.observe(builder_);
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
      const BufferId input = activation;
      weights_.before(layer);
      activation =
          layers_.forward(layer, microbatch, input, is_kept ? KeptFor{microbatch} : std::nullopt);
      weights_.after();
      if (!layers_.keeps_inputs()) release_input(layer, microbatch);
    }
    if (sends) {
      const bool is_kept_input = layers.count == 0 && is_first(action) && inputs_.keeps();
      return hand_overs_.leave(action,
                               {activation, is_kept_input ? Ownership::kept : Ownership::released});
    }
    if (g_.vocabulary > 0) {
      head_inputs_[microbatch] = activation;
      weights_.before(Parameters::vocabulary);
      activation = layers_.vocabulary_forward(microbatch, activation);
      weights_.after();
    }
    outputs_[microbatch] = activation;
    if (request_.keep == Keep::observables) observe_output(microbatch, activation);
    if (!funnels(g_)) return;
    funnel_.gather_output(microbatch, activation);
    release_unless_kept(activation);
  }
  /// Writes a whole backward pass, or only the part that computes input gradients.
  void backward(const Action& action) {
    const int microbatch = action.microbatch;
    const LayerRange layers = g_.layers_of(action.chunk);
    layers_.put_off_weight_gradients(action.pass == Pass::input_gradient);
    Passed gradient{.ownership = Ownership::released};
    if (is_last(action) && funnels(g_)) {
      outputs_[microbatch] = funnel_.loss_gradient(microbatch);
    }
    if (!is_last(action)) {
      gradient.buffer = hand_overs_.take(action);
    } else if (g_.vocabulary > 0) {
      const BufferId head_input = head_inputs_.at(microbatch), logits = outputs_.at(microbatch);
      weights_.before(Parameters::vocabulary);
      gradient.buffer = layers_.vocabulary_backward(microbatch, head_input, logits);
      weights_.after();
      layers_.after_weight_gradients(Parameters::vocabulary, microbatch, [=, this] {
        release_unless_kept(logits);
        builder_.release(head_input);
      });
    } else {
      gradient.buffer = outputs_.at(microbatch);  // loss = 1/2 |Y|^2, so dY is Y
      if (request_.keep == Keep::observables) gradient.ownership = Ownership::kept;
    }
    for (int layer = layers.end(); layer-- > layers.first;) {
      const bool sends_late = layer == layers.first && !g_.async_reduce;
      const InputGradient order = sends_late ? InputGradient::last : InputGradient::first;
      weights_.before(layer);
      gradient = {layers_.backward(layer, microbatch, gradient, order), Ownership::released};
      weights_.after();
      layers_.after_weight_gradients(layer, microbatch, [=, this] {
        if (layers_.keeps_inputs()) release_input(layer, microbatch);
        layers_.forget(layer, microbatch);
      });
    }
    if (!is_first(action)) {
      // A last virtual stage with neither layers nor the vocabulary sends the model's output itself
      // as the gradient. The output is kept if verification reads it.
      return hand_overs_.leave(action, gradient);
    }
    // In a real model, the gradient would be passed on to an embedding. No weight gradient depends
    // on it, so verification compares it directly.
    if (request_.keep == Keep::observables) {
      builder_.observe("input.gradient", builder_.whole(gradient.buffer),
                       sample_shard(g_, microbatch, g_.hidden, g_.hidden));
    }
    release_unless_kept(gradient.buffer);
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
  void release_unless_kept(BufferId buffer) {
    if (request_.keep == Keep::nothing) builder_.release(buffer);
  }
  /// Releases the input of a layer, or returns it to Inputs if it is an input of the model.
  void release_input(int layer, int microbatch) {
    const BufferId input = layers_.input_of(layer, microbatch);
    if (layer == 0 && g_.first_stage() && g_.layers_of(0).count > 0) {
      inputs_.give_back(input);
    } else {
      builder_.release(input);
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
  program::RankProgram program = StageWriter{request, at, {}}.write();
  if (options_of(request).transport != Transport::symmetric) return program;
  // With transport=symmetric, collectives over tp that have a symmetric kernel and messages over tp
  // and between stages use Transport::symmetric, and every buffer that they touch is in
  // Space::symmetric. The option changes neither the ops nor the data that they send. The memory of
  // a buffer is chosen when it is allocated, but the ops that send it are known only when the
  // program is complete. So the program is written twice.
  const std::vector<BufferId> touched = set_symmetric(program);
  if (touched.empty()) return program;
  program = StageWriter{request, at, touched}.write();
  static_cast<void>(set_symmetric(program));
  return program;
}

}  // namespace isoscale::workloads::stack
