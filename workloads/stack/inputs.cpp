// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/inputs.hpp"

#include "workloads/stack/flat.hpp"
#include "workloads/stack/funnel.hpp"
#include "workloads/stack/matrix.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Role;
using program::Space;

program::Shard sample_shard(const Geometry& g, int microbatch, std::uint64_t columns,
                            std::uint64_t whole) {
  const std::uint64_t positions = g.shard_tokens / g.microbatch;
  program::Shard shard =
      position_shard(g, microbatch, columns, whole, {.first = 0, .count = positions});
  if (g.sequence_parallel) {
    shard.steps[static_cast<std::size_t>(mesh::Axis::tp)] = positions * whole;
  }
  return shard;
}

program::Shard position_shard(const Geometry& g, int microbatch, std::uint64_t columns,
                              std::uint64_t whole, const Positions& positions) {
  const std::uint64_t sample = g.whole_sequence * whole;
  program::Shard shard{
      .extents = {positions.count, g.microbatch, columns},
      .local = {g.microbatch * columns, columns, 1},
      .global = {whole, sample, 1},
      .base = static_cast<std::uint64_t>(g.microbatch_base + microbatch) * g.microbatch * sample +
              positions.first * whole,
      .steps = {}};
  const std::uint64_t samples =
      static_cast<std::uint64_t>(g.microbatch_step) * g.microbatch * sample;
  shard.steps[static_cast<std::size_t>(mesh::Axis::ep)] = samples;
  shard.steps[static_cast<std::size_t>(mesh::Axis::dp)] =
      static_cast<std::uint64_t>(g.ep) * samples;
  shard.steps[static_cast<std::size_t>(mesh::Axis::cp)] = g.sequence * whole;
  if (whole > columns) shard.steps[static_cast<std::size_t>(mesh::Axis::tp)] = columns;
  return shard;
}

Inputs::Inputs(program::Builder& builder, const Geometry& geometry, const Types& types,
               const Request& request)
    : builder_(builder), g_(geometry), type_(types.compute) {
  const OptionReader options{option_table(), request.options};
  space_ = options.is("input", "pinned")     ? Space::pinned
           : options.is("input", "pageable") ? Space::pageable
                                             : Space::device;
  scatters_ = funnels(g_, request);
  if (scatters_) parts_ = g_.at.dp == 0 ? g_.replicas : 0;
  if (!g_.first_stage() || parts_ == 0) return;
  builder_.at({.phase = program::Phase::setup});
  for (int microbatch = 0; microbatch < g_.microbatches; ++microbatch) {
    const BufferId source = builder_.allocate(
        {.dtype = type_, .space = space_, .role = Role::input, .count = source_count()});
    fill(microbatch, source, fill_key(request.seed, "input"));
    sources_.push_back(source);
  }
}

std::uint64_t Inputs::source_count() const {
  return static_cast<std::uint64_t>(parts_) * g_.activation();
}

void Inputs::fill(int microbatch, BufferId source, std::uint64_t key) {
  program::Shard shard = sample_shard(g_, microbatch, g_.hidden, g_.hidden);
  const std::uint64_t next = shard.steps[static_cast<std::size_t>(mesh::Axis::dp)];
  for (std::uint64_t part = 0; part < static_cast<std::uint64_t>(parts_); ++part) {
    builder_.emit(
        0, random_fill(flat(source, part * g_.activation(), g_.activation()), shard, key, 1));
    shard.base += next;
  }
}

BufferId Inputs::take(int microbatch) {
  return scatters_ ? scatter(microbatch) : source_of(microbatch);
}

BufferId Inputs::scatter(int microbatch) {
  const BufferId whole = parts_ > 0 ? source_of(microbatch) : program::no_buffer;
  builder_.at({.phase = program::Phase::input, .layer = -1, .microbatch = microbatch});
  const BufferId mine = builder_.allocate({.dtype = type_,
                                           .role = Role::activation,
                                           .microbatch = microbatch,
                                           .count = g_.activation()});
  builder_.emit(0,
                program::Collective{.kind = program::CollectiveKind::scatter,
                                    .axes = mesh::Axis::dp,
                                    .send = parts_ > 0 ? builder_.whole(whole) : program::Slice{},
                                    .receive = builder_.whole(mine)});
  if (parts_ > 0 && space_ != Space::device) builder_.release(whole);
  return mine;
}

BufferId Inputs::source_of(int microbatch) {
  if (space_ == Space::device) return sources_[static_cast<std::size_t>(microbatch)];
  if (!copied_.contains(microbatch)) copy(microbatch);
  if (microbatch + 1 < g_.microbatches) copy(microbatch + 1);
  const BufferId ready = copied_.at(microbatch);
  copied_.erase(microbatch);
  return ready;
}

void Inputs::copy(int microbatch) {
  builder_.at({.phase = program::Phase::input, .layer = -1, .microbatch = microbatch});
  const BufferId target = builder_.allocate({.dtype = type_,
                                             .role = Role::activation,
                                             .microbatch = microbatch,
                                             .count = source_count()});
  const std::uint64_t rows = static_cast<std::uint64_t>(parts_) * g_.shard_tokens;
  const BufferId source = sources_[static_cast<std::size_t>(microbatch)];
  builder_.emit(builder_.stream("input"),
                program::Copy{.rows = static_cast<std::uint32_t>(rows),
                              .columns = static_cast<std::uint32_t>(g_.hidden),
                              .src = dense(builder_.whole(source), rows, g_.hidden),
                              .dst = dense(builder_.whole(target), rows, g_.hidden)});
  copied_[microbatch] = target;
}

void Inputs::give_back(BufferId input) {
  if (scatters_ || space_ != Space::device) builder_.release(input);
}

}  // namespace isoscale::workloads::stack
