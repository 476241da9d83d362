// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/solo.hpp"

#include <array>
#include <cstddef>

#include "program/order.hpp"

namespace isoscale::program {
namespace {

bool is_kept(const Op& op) { return !communicates(kind_of(op.payload)); }

/// By stream: how many of its first ops are kept; entry i of the first i + 1.
using Kept = std::array<std::vector<std::uint32_t>, max_streams>;

Kept count_kept(const Program& step) {
  Kept kept;
  for (const Op& op : step.ops) {
    auto& counts = kept[op.stream];
    counts.push_back((counts.empty() ? 0 : counts.back()) + (is_kept(op) ? 1 : 0));
  }
  return kept;
}

}  // namespace

std::vector<std::uint32_t> solo_ops(const Program& step) {
  std::vector<std::uint32_t> ops;
  for (std::uint32_t op = 0; op < step.ops.size(); ++op) {
    if (is_kept(step.ops[op])) ops.push_back(op);
  }
  return ops;
}

Program without_communication(const Program& step) {
  const std::vector<Clock> before = clocks_before(step);
  const Kept kept = count_kept(step);
  Program solo;
  std::array<Clock, max_streams> known;  // what the last op of a stream came after
  std::array<std::vector<std::uint32_t>, max_streams> ops_of_stream;
  for (const std::uint32_t index : solo_ops(step)) {
    Op op = step.ops[index];
    op.awaited = false;
    op.wait_begin = static_cast<std::uint32_t>(solo.waits.size());
    Clock& mine = known[op.stream];
    for (std::size_t stream = 0; stream < max_streams; ++stream) {
      const std::uint32_t done = before[index].done[stream];
      const std::uint32_t count = done == 0 ? 0 : kept[stream][done - 1];
      if (stream == op.stream || count <= mine.done[stream]) continue;
      solo.waits.push_back({.stream = static_cast<StreamId>(stream), .count = count});
      solo.ops[ops_of_stream[stream][count - 1]].awaited = true;
      mine.done[stream] = count;
    }
    op.wait_count = static_cast<std::uint8_t>(solo.waits.size() - op.wait_begin);
    ops_of_stream[op.stream].push_back(static_cast<std::uint32_t>(solo.ops.size()));
    solo.ops.push_back(std::move(op));
  }
  return solo;
}

Section add_solo_step(ProgramSet& set) {
  for (RankProgram& program : set.programs) {
    program.steps.push_back(without_communication(program.step()));
  }
  return step_section(set.programs.front().steps.size() - 1);
}

}  // namespace isoscale::program
