// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Tokens one after the other on a ring of stages: at tick k stage s has token (k - s - g) / pp of
// group g = (k - s) mod pp, if there is such a group. No more groups than stages, so that a stage
// has one at most; as many, and it always has one but while the first fill the ring and the last
// leave it.
#include <optional>
#include <utility>

#include "workloads/infer/replica.hpp"
#include "workloads/infer/setting.hpp"
#include "workloads/stack/buffers.hpp"

namespace isoscale::workloads::infer {
namespace {

using program::BufferId;
using program::Slice;

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

}  // namespace

void Replica::decode(std::uint64_t batch, std::uint64_t position, std::uint64_t tokens) {
  require(batch, room_.samples, "samples");
  require(tokens, room_.decoded, "tokens at once");
  require(position + tokens, room_.positions, "positions of the cache");
  const Ring ring{.stages = stages(), .groups = groups_of(batch, stages()), .tokens = tokens};
  const std::uint64_t samples = batch / ring.groups;
  const auto stage = static_cast<std::uint64_t>(g_.stage);
  const std::uint64_t previous = (stage + ring.stages - 1) % ring.stages;
  for (std::uint64_t tick = 0; tick < ring.ticks(); ++tick) {
    std::optional<Product> made;
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
    if (made) drop(*made);
  }
}

Replica::Product Replica::decode_group(const Pass& pass, const Step& step) {
  const std::uint64_t count = pass.samples * g_.hidden;
  const Slice input =
      g_.first_stage()
          ? Slice{.buffer = tokens_,
                  .offset = (step.token * room_.samples + pass.first_sample) * g_.hidden,
                  .count = count}
          : builder_.whole(held_);
  const BufferId output = layers_.forward(pass, stack::dense(input, pass.samples, g_.hidden));
  if (!g_.first_stage()) builder_.release(std::exchange(held_, program::no_buffer));
  if (g_.last_stage()) return answer(output, pass, step);
  return {.buffer = output, .sent = builder_.whole(output)};
}

void Replica::shift(const std::optional<Product>& made,
                    std::optional<std::uint64_t> samples_to_come) {
  program::Exchange exchange;
  const auto add = [&](program::Direction direction, std::int32_t offset, const Slice& slice) {
    exchange.transfers.push_back(
        {.direction = direction, .axis = mesh::Axis::pp, .offset = offset, .slice = slice});
  };
  // The next stage, counted the other way round: messages of prefill, on other streams, are counted
  // forwards, and neither must take the other's place.
  const std::int32_t to_next = 1 - g_.stages;
  if (made) add(program::Direction::send, to_next, made->sent);
  if (samples_to_come) {
    // Tokens to the first stage, activations to the others.
    held_ = layers_.new_buffer(*samples_to_come * (g_.first_stage() ? 1 : g_.hidden));
    add(program::Direction::receive, -to_next, builder_.whole(held_));
  }
  if (exchange.transfers.empty()) return;
  builder_.emit(0, std::move(exchange));
  if (samples_to_come && g_.first_stage()) {
    builder_.release(std::exchange(held_, program::no_buffer));
  }
}

}  // namespace isoscale::workloads::infer
