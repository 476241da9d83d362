// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/work_and_memory.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "program/operands.hpp"

namespace isoscale::program {
namespace {

constexpr std::uint32_t never = ~std::uint32_t{0};

/// The first and the last op of a step at which a buffer is live. `first` is `never` for a buffer
/// that the step does not need; `last` is the number of ops for a buffer that stays live after the
/// step.
struct Life {
  std::uint32_t first = never, last = 0;
};

/// Returns, for each buffer, true if both setup and a step use it; such a buffer is live throughout
/// each step.
std::vector<bool> kept_by_setup(const RankProgram& program) {
  std::vector<bool> in_setup(program.buffers.size()), kept(program.buffers.size());
  for (const Op& op : program.setup.ops) {
    for_each_slice(op.payload, [&](const Slice& slice, Mode) { in_setup[slice.buffer] = true; });
  }
  for (const Program& step : program.steps) {
    for (const Op& op : step.ops) {
      for_each_slice(op.payload, [&](const Slice& slice, Mode) {
        kept[slice.buffer] = in_setup[slice.buffer];
      });
    }
  }
  return kept;
}

std::vector<Life> lives(const Program& step, const std::vector<bool>& kept) {
  const auto ops = static_cast<std::uint32_t>(step.ops.size());
  std::vector<Life> result(kept.size());
  for (std::size_t id = 0; id < kept.size(); ++id) {
    if (kept[id]) result[id] = {.first = 0, .last = ops};
  }
  for (std::uint32_t i = 0; i < ops; ++i) {
    for_each_slice(step.ops[i].payload, [&](const Slice& slice, Mode) {
      Life& life = result[slice.buffer];
      life.first = std::min(life.first, i);
      life.last = std::max(life.last, i);
    });
  }
  return result;
}

/// Raises the peaks in `result` to the peaks of this step, if those are higher: the most bytes and
/// microbatches that are live at one time when the step is run in program order.
void account_memory(const RankProgram& program, const Program& step, const std::vector<bool>& kept,
                    Facts& result) {
  const std::vector<Life> life = lives(step, kept);
  const std::size_t ops = step.ops.size();
  std::vector<std::vector<BufferId>> born(ops + 1), dead(ops + 2);
  for (BufferId id = 0; id < life.size(); ++id) {
    if (life[id].first == never) continue;
    born[life[id].first].push_back(id);
    dead[std::min<std::size_t>(life[id].last, ops) + 1].push_back(id);
  }
  std::array<std::uint64_t, role_count> live{};
  std::array<std::uint64_t, space_count> live_space{};
  std::map<std::int32_t, int> activations;  // live activation buffers per microbatch
  for (std::size_t i = 0; i <= ops; ++i) {
    const auto count = [&](BufferId id, bool birth) {
      const Buffer& buffer = program.buffers[id];
      // Unsigned numbers wrap, so adding the negated size subtracts it.
      const std::uint64_t change = birth ? buffer_bytes(buffer) : -buffer_bytes(buffer);
      live[static_cast<std::size_t>(buffer.role)] += change;
      live_space[static_cast<std::size_t>(buffer.space)] += change;
      if (buffer.role != Role::activation) return;
      int& buffers = activations[buffer.microbatch];
      buffers += birth ? 1 : -1;
      if (buffers == 0) activations.erase(buffer.microbatch);
    };
    for (const BufferId id : dead[i]) count(id, false);
    for (const BufferId id : born[i]) count(id, true);
    for (std::size_t r = 0; r < role_count; ++r) {
      result.peak_of_role[r] = std::max(result.peak_of_role[r], units::Bytes{live[r]});
    }
    for (std::size_t s = 0; s < space_count; ++s) {
      result.peak_live[s] = std::max(result.peak_live[s], units::Bytes{live_space[s]});
    }
    result.peak_live_microbatches =
        std::max(result.peak_live_microbatches, static_cast<int>(activations.size()));
  }
}

/// Returns the ratio of Traffic::sent to OutlineOp::bytes for one collective.
double sent_share(OpKind kind, int group) {
  const double members = group, others = members - 1;
  switch (kind) {
    case OpKind::all_reduce:
      return 2 * others / members;
    case OpKind::gather:
    case OpKind::scatter:
      return others / (members * members);
    case OpKind::barrier:
      return 0;
    default:
      return others / members;
  }
}

units::Bytes sent_by(const Outline& step, const OutlineOp& op, const mesh::Shape& mesh) {
  if (op.kind == OpKind::exchange) {
    units::Bytes sum{0};
    for (const OutlineTransfer& transfer : step.transfers_of(op)) {
      if (transfer.direction == Direction::send) sum += units::Bytes{transfer.bytes};
    }
    return sum;
  }
  const double share = sent_share(op.kind, mesh::group_size(mesh, op.axes));
  return units::Bytes{
      static_cast<std::uint64_t>(std::llround(static_cast<double>(op.bytes) * share))};
}

}  // namespace

Facts facts(const RankProgram& program, const mesh::Shape& mesh) {
  Facts result{};
  const std::vector<bool> kept = kept_by_setup(program);
  std::map<std::pair<std::uint8_t, OpKind>, Traffic> traffic;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Outline step = outline(program, step_section(i), mesh);
    for (const OutlineOp& op : step.ops) {
      result.flop += units::Flops{op.flop};
      if (!communicates(op.kind)) continue;
      Traffic& entry = traffic[{op.axes.bits(), op.kind}];
      entry.axes = op.axes;
      entry.kind = op.kind;
      ++entry.calls;
      entry.bytes += units::Bytes{op.bytes};
      entry.sent += sent_by(step, op, mesh);
    }
    account_memory(program, program.steps[i], kept, result);
  }
  for (const auto& [key, entry] : traffic) result.traffic.push_back(entry);
  return result;
}

}  // namespace isoscale::program
