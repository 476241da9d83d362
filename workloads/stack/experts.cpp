// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/experts.hpp"

#include <algorithm>

#include "workloads/options.hpp"
#include "workloads/stack/extent.hpp"
#include "workloads/stack/matrix.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::no_buffer;
using program::Role;
using program::Slice;
using program::Transpose;

ExpertWriter::ExpertWriter(program::Builder& builder, const Geometry& geometry, const Types& types,
                           const Parameters& parameters, const Request& request,
                           GradientDone gradient_done)
    : builder_(builder),
      g_(geometry),
      types_(types),
      parameters_(parameters),
      gradient_done_(std::move(gradient_done)),
      routing_(routing_of(request)) {
  const OptionReader options{option_table(), request.options};
  if (options.is("expert_batch", "padded")) batch_ = ExpertBatch::padded;
}

BufferId ExpertWriter::allocate(std::uint64_t count, Role role, int microbatch) {
  return builder_.allocate({.dtype = types_.compute,
                            .role = role,
                            .microbatch = role == Role::activation ? microbatch : -1,
                            .count = count});
}

ExpertWriter::Weights ExpertWriter::weights(int layer, Tensor tensor) const {
  Weights result{.of_expert = {},
                 .rows = tensor == Tensor::up ? g_.hidden : g_.ffn,
                 .columns = tensor == Tensor::up ? up_columns() : g_.hidden};
  for (int e = 0; e < g_.local_experts; ++e) {
    result.of_expert.push_back(parameters_.expert_weight(layer, tensor, e));
  }
  return result;
}

ExpertWriter::Weights ExpertWriter::gradients(int layer, Tensor tensor) const {
  Weights result = weights(layer, tensor);
  for (int e = 0; e < g_.local_experts; ++e) {
    result.of_expert[static_cast<std::size_t>(e)] = parameters_.expert_gradient(layer, tensor, e);
  }
  return result;
}

BufferId ExpertWriter::forward(int layer, int microbatch, BufferId input, Role output_role) {
  State state{.dispatch = dispatch(routing_, g_, batch_, g_.global_layer(layer), microbatch)};
  const Dispatch& way = state.dispatch;
  BufferId out = no_buffer;
  state.input = bring(way, input, 1, Role::activation, microbatch);
  if (state.input != no_buffer) {
    const std::uint64_t rows = way.expert_rows();
    const bool gated = g_.up_parts > 1;
    const BufferId up =
        allocate(rows * up_columns(), gated ? Role::workspace : Role::activation, microbatch);
    multiply(way, weights(layer, Tensor::up), Transpose::no, 1, state.input, up);
    state.inner = inner_forward(way, up, microbatch);
    out = allocate(rows * g_.hidden, Role::workspace, -1);
    multiply(way, weights(layer, Tensor::down), Transpose::no, g_.residual_gain, state.inner, out);
  }
  const BufferId output = take_back(way, out, 1.0 / routing_.topk, output_role, microbatch);
  add_residual(output, input);
  kept_[{layer, microbatch}] = std::move(state);
  return output;
}

BufferId ExpertWriter::backward(int layer, int microbatch, BufferId gradient, const Later& later) {
  const State& state = kept_.at({layer, microbatch});
  const Dispatch& way = state.dispatch;
  const BufferId d_out = bring(way, gradient, 1.0 / routing_.topk, Role::workspace, -1);
  BufferId d_up = no_buffer, d_in = no_buffer;
  if (d_out != no_buffer) {
    const std::uint64_t rows = way.expert_rows();
    const BufferId d_inner = allocate(rows * g_.ffn, Role::workspace, -1);
    multiply(way, weights(layer, Tensor::down), Transpose::yes, g_.residual_gain, d_out, d_inner);
    d_up = inner_backward(way, d_inner);
    d_in = allocate(rows * g_.hidden, Role::workspace, -1);
    multiply(way, weights(layer, Tensor::up), Transpose::yes, 1, d_up, d_in);
  }
  const BufferId d_input = take_back(way, d_in, 1, Role::workspace, -1);
  add_residual(d_input, gradient);
  later([=, this] {
    const auto kept = kept_.extract({layer, microbatch});
    const State& old = kept.mapped();
    accumulate(old.dispatch, layer, Tensor::down, microbatch, g_.residual_gain, old.inner, d_out);
    accumulate(old.dispatch, layer, Tensor::up, microbatch, 1, old.input, d_up);
    for (const BufferId buffer : {old.inner, d_out, old.input, d_up}) {
      if (buffer != no_buffer) builder_.release(buffer);
    }
  });
  return d_input;
}

void ExpertWriter::add_residual(BufferId dst, BufferId residual) {
  const program::Matrix all = dense(builder_.whole(dst), g_.tokens, g_.hidden);
  builder_.emit(0, program::Add{.rows = extent(g_.tokens),
                                .columns = extent(g_.hidden),
                                .a = all,
                                .b = dense(builder_.whole(residual), g_.tokens, g_.hidden),
                                .dst = all,
                                .scale = 1.0 / g_.tp});
  if (g_.tp == 1) return;
  builder_.emit(0, program::Collective{.kind = program::CollectiveKind::all_reduce,
                                       .axes = mesh::Axis::tp,
                                       .send = builder_.whole(dst),
                                       .receive = builder_.whole(dst)});
}

BufferId ExpertWriter::inner_forward(const Dispatch& way, BufferId up, int microbatch) {
  if (g_.up_parts == 1) return up;
  // inner = gate + up, as in the dense MLP.
  const std::uint64_t rows = way.expert_rows();
  const BufferId inner = allocate(rows * g_.ffn, Role::activation, microbatch);
  const auto part = [&](std::uint64_t p) {
    return matrix(
        builder_.whole(up),
        {.rows = rows, .columns = g_.ffn, .row_stride = up_columns(), .offset = p * g_.ffn});
  };
  builder_.emit(0, program::Add{.rows = extent(rows),
                                .columns = extent(g_.ffn),
                                .a = part(0),
                                .b = part(1),
                                .dst = dense(builder_.whole(inner), rows, g_.ffn)});
  builder_.release(up);
  return inner;
}

BufferId ExpertWriter::inner_backward(const Dispatch& way, BufferId d_inner) {
  if (g_.up_parts == 1) return d_inner;
  const std::uint64_t rows = way.expert_rows();
  const BufferId d_up = allocate(rows * up_columns(), Role::workspace, -1);
  builder_.emit(0, program::Copy{.rows = extent(rows),
                                 .columns = extent(g_.ffn),
                                 .batch = extent(g_.up_parts),
                                 .src = dense(builder_.whole(d_inner), rows, g_.ffn),
                                 .dst = matrix(builder_.whole(d_up), {.rows = rows,
                                                                      .columns = g_.ffn,
                                                                      .row_stride = up_columns(),
                                                                      .batch = g_.up_parts,
                                                                      .batch_stride = g_.ffn})});
  builder_.release(d_inner);
  return d_up;
}

void ExpertWriter::clear(const Slice& gradient) {
  builder_.emit(0, program::Fill{.dst = gradient,
                                 .shard = {.extents = {1, 1, gradient.count}, .local = {0, 0, 1}},
                                 .source = program::FillSource::constant,
                                 .value = 0});
}

}  // namespace isoscale::workloads::stack
