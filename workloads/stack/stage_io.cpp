// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/stage_io.hpp"

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
  const std::uint64_t samples =
      static_cast<std::uint64_t>(g.microbatch_step) * g.microbatch * sample;
  return {
      .extents = {positions.count, g.microbatch, columns},
      .local = {g.microbatch * columns, columns, 1},
      .global = {whole, sample, 1},
      .base = static_cast<std::uint64_t>(g.microbatch_base + microbatch) * g.microbatch * sample +
              positions.first * whole,
      .steps = {.tp = whole > columns ? columns : 0,
                .cp = g.sequence * whole,
                .ep = samples,
                .dp = static_cast<std::uint64_t>(g.ep) * samples}};
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
    fill(microbatch, source, fill_key(request.seed, "input"));
    sources_.push_back(source);
  }
}

std::uint64_t Inputs::source_count() const {
  return static_cast<std::uint64_t>(parts_) * g_.activation();
}

void Inputs::fill(int microbatch, BufferId source, std::uint64_t key) {
  Shard shard = sample_shard(g_, microbatch, g_.hidden, g_.hidden);
  const std::uint64_t next = shard.steps.dp;
  for (std::uint64_t part = 0; part < static_cast<std::uint64_t>(parts_); ++part) {
    builder_.emit(
        0, random_fill(flat(source, part * g_.activation(), g_.activation()), shard, key, 1));
    shard.base += next;
  }
}

BufferId Inputs::take(int microbatch) {
  return funnels(g_) ? scatter(microbatch) : source_of(microbatch);
}

BufferId Inputs::scatter(int microbatch) {
  const BufferId whole = parts_ > 0 ? source_of(microbatch) : no_buffer;
  builder_.at({.phase = Phase::input, .layer = -1, .microbatch = microbatch});
  const BufferId mine = new_buffer(g_.activation(), microbatch);
  communicate(builder_, 0, CollectiveKind::scatter, mesh::Axis::dp,
              parts_ > 0 ? builder_.whole(whole) : Slice{}, builder_.whole(mine));
  if (parts_ > 0 && g_.options.input != Space::device) builder_.release(whole);
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

bool Inputs::keeps() const { return !funnels(g_) && g_.options.input == Space::device; }

void Inputs::give_back(BufferId input) {
  if (!keeps()) builder_.release(input);
}

BufferId HandOvers::take(const Action& awaited) { return received_.extract(awaited).mapped(); }

KeptFor HandOvers::kept_for(const Action& awaited) const {
  const int here = g_.pipeline.virtual_stage(g_.stage, awaited.chunk);
  const bool is_last = here + 1 == g_.pipeline.virtual_stages();
  const bool is_read_again = g_.layers_of(awaited.chunk).count > 0 || is_last;
  return awaited.pass == Pass::forward && is_read_again ? KeptFor{awaited.microbatch}
                                                        : std::nullopt;
}

void HandOvers::write(const HandOver& message) {
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
  if (message.made && outgoing.ownership == Ownership::released) builder_.release(outgoing.buffer);
  if (!message.awaited) return;
  received_[*message.awaited] = scatters ? gather(incoming, *message.awaited) : incoming;
}

BufferId HandOvers::gather(BufferId part, const Action& awaited) {
  const BufferId whole = new_buffer(g_.activation(), kept_for(awaited));
  communicate(builder_, 0, CollectiveKind::all_gather, mesh::Axis::tp, builder_.whole(part),
              builder_.whole(whole));
  builder_.release(part);
  return whole;
}

void Funnel::emit(CollectiveKind kind, const Slice& send, const Slice& receive) {
  communicate(builder_, 0, kind, mesh::Axis::dp, send, receive);
}

void Funnel::gather_output(int microbatch, BufferId output) {
  builder_.at({.phase = Phase::forward, .layer = -1, .microbatch = microbatch});
  count_ = builder_.buffer(output).count;
  if (is_root()) {
    of_all_[microbatch] = new_buffer(count_ * static_cast<std::uint64_t>(g_.replicas), microbatch);
  }
  emit(CollectiveKind::gather, builder_.whole(output),
       is_root() ? builder_.whole(of_all_[microbatch]) : Slice{});
}

BufferId Funnel::loss_gradient(int microbatch) {
  builder_.at({.phase = Phase::backward, .layer = -1, .microbatch = microbatch});
  const BufferId mine = new_buffer(count_, microbatch);
  emit(CollectiveKind::scatter, is_root() ? builder_.whole(of_all_.at(microbatch)) : Slice{},
       builder_.whole(mine));
  if (is_root()) builder_.release(of_all_.at(microbatch));
  return mine;
}

void Funnel::reduce(const Parameters& parameters) {
  if (!funnels(g_)) return;
  builder_.at({.phase = Phase::gradient_reduction});
  for (const Bucket& bucket : parameters.buckets()) {
    const Slice slice = parameters.gradient(bucket);
    emit(CollectiveKind::reduce, slice, slice);
  }
}

void Funnel::broadcast(const Parameters& parameters) {
  if (!funnels(g_)) return;
  builder_.at({.phase = Phase::optimizer});
  for (const Bucket& bucket : parameters.buckets()) {
    const Slice slice = parameters.weight(bucket);
    emit(CollectiveKind::broadcast, slice, slice);
  }
}

}  // namespace isoscale::workloads::stack
