// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/infer/replica.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace isoscale::workloads::infer {

std::uint64_t groups_of(std::uint64_t batch, std::uint64_t stages) {
  std::uint64_t groups = std::min(batch, stages);
  while (batch % groups != 0) --groups;
  return groups;
}

namespace {

using program::BufferId;
using program::Exchange;
using program::Slice;
using stack::dense;

/// Returns a training request from which stack::Geometry computes the sizes of this rank's layers.
/// It has a single microbatch, with all samples for which the replica has memory (Room).
Request as_stack(const Request& request, const Room& room) {
  Request result = request;
  result.model.sequence = static_cast<int>(room.prompt);
  result.options = {{"microbatch", std::to_string(room.samples)}, {"microbatches", "1"}};
  const auto vocabulary = request.options.find("vocabulary");
  result.options["vocabulary"] = vocabulary == request.options.end() ? "on" : vocabulary->second;
  return result;
}

/// Returns the message that sends a slice to the pipeline stage `steps` further on around the ring
/// of stages.
program::Transfer to(std::int32_t steps, const Slice& slice) {
  return program::send_to(mesh::Axis::pp, steps, slice);
}
/// Returns the message that receives what to() sends: from the stage `steps` before this one.
program::Transfer from(std::int32_t steps, const Slice& slice) {
  return program::receive_from(mesh::Axis::pp, -steps, slice);
}

struct Work {
  std::uint64_t group = 0, token = 0;
};

struct Ring {
  std::uint64_t stages = 1, groups = 1, tokens = 1;

  [[nodiscard]] std::uint64_t ticks() const { return (tokens - 1) * stages + groups + stages - 1; }
  [[nodiscard]] std::optional<Work> work(std::uint64_t tick, std::uint64_t stage) const {
    if (tick < stage) return std::nullopt;
    const Work result{.group = (tick - stage) % stages, .token = (tick - stage) / stages};
    if (result.group >= groups || result.token >= tokens) return std::nullopt;
    return result;
  }
};

void require(std::uint64_t asked, std::uint64_t room, const char* what) {
  if (asked >= 1 && asked <= room) return;
  throw base::Error(fmt::format("{} {} where a replica has room for 1 to {}", asked, what, room));
}

}  // namespace

Replica::Replica(program::Builder& builder, const Request& request, const mesh::Coordinates& at,
                 const Room& room)
    : builder_(builder),
      keep_(request.keep),
      room_(room),
      g_(as_stack(request, room), at),
      types_(stack::types_of(request.precision)),
      weights_(builder, g_, request),
      cache_(builder, g_, request, room.samples, room.positions),
      layers_(builder, g_, types_, weights_, cache_) {
  if (!g_.first_stage()) return;
  // Prompts are stored as [group][position][sample] in the groups of a batch of room_.samples, and
  // tokens as [token][sample]. The inputs depend only on seed, sample and position, so they are the
  // same on every mesh.
  prompts_ = builder_.allocate({.dtype = types_.compute,
                                .role = program::Role::input,
                                .count = room_.samples * room_.prompt * g_.hidden});
  tokens_ = builder_.allocate({.dtype = types_.compute,
                               .role = program::Role::input,
                               .count = room_.samples * room_.decoded * g_.hidden});
  const std::uint64_t groups = groups_of(room_.samples, stages());
  const auto fill = [&](BufferId buffer, std::string_view name, std::uint64_t group,
                        std::uint64_t samples, std::uint64_t positions) {
    const std::uint64_t count = samples * positions * g_.hidden;
    const program::Shard shard{.extents = {positions, samples, g_.hidden},
                               .local = {samples * g_.hidden, g_.hidden, 1},
                               .global = {g_.hidden, positions * g_.hidden, 1},
                               .base = group * count,
                               .steps = {.dp = room_.samples * positions * g_.hidden}};
    builder_.emit(0, stack::random_fill({.buffer = buffer, .offset = group * count, .count = count},
                                        shard, stack::fill_key(request.seed, name), 1));
  };
  builder_.at({.phase = program::Phase::setup});
  for (std::uint64_t group = 0; group < groups; ++group) {
    fill(prompts_, "prompt", group, room_.samples / groups, room_.prompt);
  }
  fill(tokens_, "token", 0, room_.samples, room_.decoded);
}

void Replica::prefill(std::uint64_t batch, std::uint64_t prompt) {
  require(batch, room_.samples, "samples");
  require(prompt, std::min(room_.prompt, room_.positions), "tokens of a prompt");
  const std::uint64_t groups = groups_of(batch, stages());
  for (std::uint64_t group = 0; group < groups; ++group) {
    const std::uint64_t samples = batch / groups;
    prefill_group(group, {.samples = samples, .positions = prompt, .first_sample = group * samples},
                  batch);
  }
  if (g_.stages > 1) hand_back(batch);
  answers_.clear();
}

void Replica::prefill_group(std::uint64_t group, const Pass& pass, std::uint64_t batch) {
  builder_.at({.phase = program::Phase::forward, .microbatch = static_cast<std::int32_t>(group)});
  const std::uint64_t count = pass.rows() * g_.hidden;
  Slice input{.buffer = prompts_, .offset = group * count, .count = count};
  if (!g_.first_stage()) {
    input = builder_.whole(layers_.new_buffer(count));
    builder_.emit(builder_.stream("pp_prev"), Exchange{.transfers = {from(1, input)}});
  }
  const BufferId output = layers_.forward(pass, dense(input, pass.rows(), g_.hidden));
  if (g_.last_stage()) {
    answers_.push_back(answer(output, pass, {.name = "prefill", .batch = batch}));
    return;
  }
  builder_.emit(builder_.stream("pp_next"), Exchange{.transfers = {to(1, builder_.whole(output))}});
}

void Replica::hand_back(std::uint64_t batch) {
  builder_.at({.phase = program::Phase::forward});
  Exchange exchange;
  if (g_.last_stage()) {
    for (const Slice& token : answers_) exchange.transfers.push_back(to(1, token));
    builder_.emit(builder_.stream("pp_next"), std::move(exchange));
  } else if (g_.first_stage()) {
    const BufferId tokens = layers_.new_buffer(batch);
    const std::uint64_t groups = groups_of(batch, stages()), samples = batch / groups;
    for (std::uint64_t group = 0; group < groups; ++group) {
      exchange.transfers.push_back(
          from(1, {.buffer = tokens, .offset = group * samples, .count = samples}));
    }
    builder_.emit(builder_.stream("pp_prev"), std::move(exchange));
  }
}

Slice Replica::answer(BufferId output, const Pass& pass, const Step& step) {
  // This slice has the rows of the last position, which are all rows if there is a single position.
  Slice token{.buffer = output,
              .offset = (pass.rows() - pass.samples) * g_.hidden,
              .count = pass.samples * g_.hidden};
  const bool is_split = g_.vocabulary > 0;
  if (is_split) {
    token = {.buffer = layers_.logits(dense(token, pass.samples, g_.hidden), pass.samples)};
  }
  token.count = pass.samples;
  if (keep_ == Keep::nothing) return token;
  // For verification, the answers of all samples and tokens form one global tensor
  // [sample][token][row][column]. The shard says which elements of it this answer has.
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const std::uint64_t rows_of_sample = is_split ? 1 : pass.positions;
  const std::uint64_t columns = is_split ? g_.vocabulary : g_.hidden;
  const std::uint64_t whole = is_split ? columns * tp : columns;
  const std::uint64_t of_sample = step.tokens * rows_of_sample * whole;
  const program::Shard shard{
      .extents = {rows_of_sample, pass.samples, columns},
      .local = {pass.samples * columns, columns, 1},
      .global = {whole, of_sample, 1},
      .base = pass.first_sample * of_sample + step.token * rows_of_sample * whole,
      .steps = {.tp = is_split ? columns : 0, .dp = step.batch * of_sample}};
  builder_.observe(fmt::format("{}.{}", step.name, is_split ? "logits" : "output"),
                   builder_.whole(token.buffer), shard);
  return token;
}

// Tokens are decoded one after another on a ring of stages. At tick k, stage s computes token (k -
// s - g) / pp of group g = (k - s) mod pp, if they exist. There are at most as many groups as
// stages, so a stage never works on more than one at a time. If there are as many groups as stages,
// a stage always has work, except while the first groups enter the ring and the last ones leave it.

void Replica::decode(std::uint64_t batch, std::uint64_t position, std::uint64_t tokens) {
  require(batch, room_.samples, "samples");
  require(tokens, room_.decoded, "tokens at once");
  require(position + tokens, room_.positions, "positions of the cache");
  const Ring ring{.stages = stages(), .groups = groups_of(batch, stages()), .tokens = tokens};
  const std::uint64_t samples = batch / ring.groups;
  const auto stage = static_cast<std::uint64_t>(g_.stage);
  const std::uint64_t previous = (stage + ring.stages - 1) % ring.stages;
  for (std::uint64_t tick = 0; tick < ring.ticks(); ++tick) {
    std::optional<Slice> made;
    if (const std::optional<Work> work = ring.work(tick, stage)) {
      builder_.at(
          {.phase = program::Phase::forward, .microbatch = static_cast<std::int32_t>(work->group)});
      made =
          decode_group({.samples = samples,
                        .positions = 1,
                        .first_sample = work->group * samples,
                        .position = position + work->token},
                       {.name = "decode", .batch = batch, .token = work->token, .tokens = tokens});
    }
    const bool receives = ring.work(tick, previous).has_value();
    if (ring.stages > 1) shift(made, receives ? std::optional{samples} : std::nullopt);
  }
}

Slice Replica::decode_group(const Pass& pass, const Step& step) {
  const std::uint64_t count = pass.samples * g_.hidden;
  const Slice input =
      g_.first_stage()
          ? Slice{.buffer = tokens_,
                  .offset = (step.token * room_.samples + pass.first_sample) * g_.hidden,
                  .count = count}
          : builder_.whole(held_);
  const BufferId output = layers_.forward(pass, stack::dense(input, pass.samples, g_.hidden));
  if (g_.last_stage()) return answer(output, pass, step);
  return builder_.whole(output);
}

void Replica::shift(const std::optional<Slice>& made,
                    std::optional<std::uint64_t> samples_to_come) {
  Exchange exchange;
  // Offsets go around the ring, so 1 - stages and 1 both lead to the next stage. Messages are
  // matched by their offset. Decode uses the first offset and prefill, on other streams, the
  // second, so that their messages cannot be confused.
  const std::int32_t steps = 1 - g_.stages;
  if (made) exchange.transfers.push_back(to(steps, *made));
  if (samples_to_come) {
    // The first stage receives tokens; the other stages receive activations.
    held_ = layers_.new_buffer(*samples_to_come * (g_.first_stage() ? 1 : g_.hidden));
    exchange.transfers.push_back(from(steps, builder_.whole(held_)));
  }
  if (!exchange.transfers.empty()) builder_.emit(0, std::move(exchange));
}

}  // namespace isoscale::workloads::infer
