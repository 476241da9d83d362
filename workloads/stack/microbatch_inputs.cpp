// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/microbatch_inputs.hpp"

namespace isoscale::workloads::stack {

Shard sample_shard(const Geometry& g, int microbatch, std::uint64_t columns, std::uint64_t whole) {
  const std::uint64_t positions = g.shard_tokens / g.microbatch;
  Shard shard = position_shard(g, microbatch, columns, whole, {.first = 0, .count = positions});
  if (g.sequence_parallel) shard.steps.tp = positions * whole;
  return shard;
}

Shard position_shard(const Geometry& g, int microbatch, std::uint64_t columns, std::uint64_t whole,
                     const Positions& positions) {
  const std::uint64_t sample = g.whole_sequence * whole;
  const std::uint64_t elements = g.microbatch * sample;  // in a microbatch
  const auto wide = [](int count) { return static_cast<std::uint64_t>(count); };
  return {.extents = {positions.count, g.microbatch, columns},
          .local = {g.microbatch * columns, columns, 1},
          .global = {whole, sample, 1},
          .base = (wide(g.microbatch_base) * wide(g.ep) + wide(microbatch)) * elements +
                  positions.first * whole,
          .steps = {.tp = whole > columns ? columns : 0,
                    .cp = g.sequence * whole,
                    .ep = wide(g.microbatches) * elements,
                    .dp = wide(g.microbatch_step) * wide(g.ep) * elements}};
}

Inputs::Inputs(Builder& builder, const Geometry& geometry, const Types& types,
               const Request& request)
    : OpWriter(builder, geometry, types) {
  if (funnels(g_)) parts_ = g_.at.dp == 0 ? g_.replicas : 0;
  if (!g_.first_stage() || parts_ == 0) return;
  builder_.at({.phase = Phase::setup});
  const int chunks = g_.pipeline.chunks;
  const int in_flight = (most_in_flight(g_.pipeline, 0) + chunks - 1) / chunks;
  for (int microbatch = 0; microbatch < g_.microbatches; ++microbatch) {
    program::Buffer buffer{.dtype = types_.compute,
                           .space = g_.options.input,
                           .role = Role::input,
                           .count = source_count()};
    // Training software keeps only the ids of all tokens (i64), and makes rows of `hidden` elements
    // from them when a microbatch begins. So only microbatches in flight have rows.
    const bool has_rows = buffer.space == Space::device && microbatch < in_flight;
    if (g_.trainer != Trainer::none && !has_rows) {
      buffer.modelled_bytes = buffer.count / g_.hidden * program::element_size(DType::i64);
    }
    const BufferId source = builder_.allocate(buffer);
    Shard shard = sample_shard(g_, microbatch, g_.hidden, g_.hidden);
    const std::uint64_t count = g_.activation(), next = shard.steps.dp;
    for (std::uint64_t part = 0; part < static_cast<std::uint64_t>(parts_); ++part) {
      const Slice samples = flat(source, part * count, count);
      builder_.emit(0, random_fill(samples, shard, fill_key(request.seed, "input"), 1));
      shard.base += next;
    }
    sources_.push_back(source);
  }
}

BufferId Inputs::scatter(int microbatch) {
  const BufferId whole = parts_ > 0 ? source_of(microbatch) : no_buffer;
  builder_.at({.phase = Phase::input, .layer = -1, .microbatch = microbatch});
  const BufferId mine = new_buffer(g_.activation(), microbatch);
  communicate(builder_, 0, CollectiveKind::scatter, mesh::Axis::dp,
              parts_ > 0 ? builder_.whole(whole) : Slice{}, builder_.whole(mine));
  return mine;
}

BufferId Inputs::source_of(int microbatch) {
  if (g_.options.input == Space::device) return sources_[static_cast<std::size_t>(microbatch)];
  if (!copied_.contains(microbatch)) copy(microbatch);
  if (microbatch + 1 < g_.microbatches) copy(microbatch + 1);
  return copied_.extract(microbatch).mapped();
}

void Inputs::copy(int microbatch) {
  builder_.at({.phase = Phase::input, .layer = -1, .microbatch = microbatch});
  const BufferId target = new_buffer(source_count(), microbatch);
  const std::uint64_t rows = static_cast<std::uint64_t>(parts_) * g_.shard_tokens;
  const BufferId source = sources_[static_cast<std::size_t>(microbatch)];
  stack::copy(builder_, builder_.stream("input"), rows, g_.hidden, dense(source, rows, g_.hidden),
              dense(target, rows, g_.hidden));
  copied_[microbatch] = target;
}

}  // namespace isoscale::workloads::stack
