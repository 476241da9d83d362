// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/options.hpp"

#include <algorithm>
#include <numeric>
#include <variant>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/gradients.hpp"
#include "workloads/stack/layer.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/stack/pipeline.hpp"
#include "workloads/stack/stage_io.hpp"

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
  return std::ranges::all_of(exchange.transfers, [](const Transfer& transfer) {
    return transfer.axis == mesh::Axis::tp || transfer.axis == mesh::Axis::pp;
  });
}

/// Makes all communication that can use symmetric memory use it. Returns the buffers that this
/// communication reads and writes, sorted.
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
  /// replaces it by its gradient, which equals it.
  std::map<int, BufferId> outputs_;
  std::map<int, BufferId> head_inputs_;  ///< input of the output projection, by microbatch
};

}  // namespace

mesh::AxisSet program_axes(const Request& request) {
  const TrainingOptions options = options_of(request);
  // On a ring every rank multiplies its own rows first, so the rows of the logits, which
  // verification reads, are in a different order on each rank.
  const bool reads_rotated =
      options.ring && options.vocabulary && request.keep == Keep::observables;
  if (options.experts > 0) {  // routing depends on the samples
    return {mesh::Axis::cp, mesh::Axis::ep, mesh::Axis::dp, mesh::Axis::pp};
  }
  const bool replicas_differ =
      options.strategy == Strategy::funnel || options.partition.kind != Partition::Kind::equal;
  mesh::AxisSet axes = mesh::Axis::pp;
  if (reads_rotated) axes |= mesh::Axis::tp;
  if (replicas_differ) axes |= mesh::Axis::dp;
  return axes;
}

std::vector<int> replica_programs(const Request& request) {
  const TrainingOptions options = options_of(request);
  std::vector<int> result(static_cast<std::size_t>(request.mesh.dp), 1);
  if (options.experts == 0 && options.strategy == Strategy::funnel) {
    result.front() = 0;
    return result;
  }
  std::iota(result.begin(), result.end(), 0);
  if (options.experts > 0) return result;
  const Distribution distribution = distribution_of(request);
  for (int& replica : result) replica = distribution.alike(replica);
  return result;
}

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
