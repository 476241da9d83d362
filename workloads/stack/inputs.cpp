// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/inputs.hpp"

#include "workloads/stack/matrix.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Role;
using program::Space;

program::Shard sample_shard(const Geometry& g, int microbatch, std::uint64_t columns,
                            std::uint64_t whole) {
  const std::uint64_t sample = g.sequence * whole;
  program::Shard shard{.extents = {g.sequence, g.microbatch, columns},
                       .local = {g.microbatch * columns, columns, 1},
                       .global = {whole, sample, 1},
                       .base = static_cast<std::uint64_t>(microbatch) * g.microbatch * sample,
                       .steps = {}};
  shard.steps[static_cast<std::size_t>(mesh::Axis::dp)] =
      static_cast<std::uint64_t>(g.microbatches) * g.microbatch * sample;
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
  if (!g_.first_stage()) return;
  builder_.at({.phase = program::Phase::setup});
  for (int microbatch = 0; microbatch < g_.microbatches; ++microbatch) {
    const BufferId source = builder_.allocate(
        {.dtype = type_, .space = space_, .role = Role::input, .count = g_.activation()});
    builder_.emit(0, program::Fill{.dst = builder_.whole(source),
                                   .shard = sample_shard(g_, microbatch, g_.hidden, g_.hidden),
                                   .key = fill_key(request.seed, "input"),
                                   .exponent = fill_exponent(1.0)});
    sources_.push_back(source);
  }
}

BufferId Inputs::take(int microbatch) {
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
                                             .count = g_.activation()});
  const BufferId source = sources_[static_cast<std::size_t>(microbatch)];
  builder_.emit(builder_.stream("input"),
                program::Copy{.rows = static_cast<std::uint32_t>(g_.tokens),
                              .columns = static_cast<std::uint32_t>(g_.hidden),
                              .src = dense(builder_.whole(source), g_.tokens, g_.hidden),
                              .dst = dense(builder_.whole(target), g_.tokens, g_.hidden)});
  copied_[microbatch] = target;
}

void Inputs::give_back(BufferId input) {
  if (space_ != Space::device) builder_.release(input);
}

}  // namespace isoscale::workloads::stack
