// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/measure_steps.hpp"

#include <algorithm>
#include <stdexcept>

#include "program/checksum_replay_and_solo_sections.hpp"
#include "program/op.hpp"

namespace isoscale::runner::measure {
namespace {

units::Nanoseconds& sum_for(program::OpKind kind, StepSums& sums) {
  if (kind == program::OpKind::gemm) return sums.gemm;
  if (program::communicates(kind)) return sums.communication;
  return program::computes(kind) ? sums.other_compute : sums.copies;
}

// The least number of steps of a traced block whose traces are kept, if the block has as many steps
// that count. thin_to() may remove some of the traces later.
constexpr std::size_t least_kept = 2;

}  // namespace

StepSums sum_up(std::uint32_t step, std::span<const timeline::Span> spans,
                const program::Program& program) {
  StepSums sums{.step = step};
  for (const timeline::Span& span : spans) {
    sum_for(program::kind_of(program.ops[span.op].payload), sums) += span.end - span.start;
  }
  return sums;
}

Record measure(executor::Session& session, const program::Program& step,
               const comm::Communicator& active, Share share, const plan::Effort& effort,
               const OnBlock& on_block) {
  const auto most_traces = static_cast<std::size_t>(effort.trace_steps);
  const std::size_t kept =
      std::max(least_kept, (most_traces + plan::least_pairs - 1) / plan::least_pairs);
  const units::Nanoseconds begin = comm::now();
  plan::StepLoop loop{effort};
  Record record;
  while (loop.end().empty()) {
    const plan::Block block = loop.next();
    const bool is_traced = block.kind == plan::Block::Kind::traced;
    const bool is_warm_up = block.kind == plan::Block::Kind::warm_up;
    const auto trace = is_traced ? executor::Trace::on : executor::Trace::off;
    std::vector<double> times;
    for (std::size_t i = 0; i < block.steps; ++i) {
      const executor::PlayTime time =
          session.play({.section = program::Section::step, .trace = trace});
      times.push_back(units::to_seconds(time.end - time.begin).value());
      if (record.traced.empty()) record.begin = time.begin;
      record.end = time.end;
      record.traced.push_back(is_traced ? 1 : 0);
      // The first step of a block does not count. Warm-up steps never count, so they need no flag.
      record.dropped.push_back(i == 0 && !is_warm_up ? 1 : 0);
      if (!is_traced || i == 0) continue;
      const auto number = static_cast<std::uint32_t>(record.step_times.size() + i);
      const auto spans = session.spans();
      record.op_sums.push_back(sum_up(number, spans, step));
      if (i + kept < block.steps) continue;
      record.traces.push_back({.rank = 0,
                               .step = number,
                               .begin = time.begin,
                               .end = time.end,
                               .spans = {spans.begin(), spans.end()}});
      thin_to(record.traces, most_traces);
    }
    thin_to(record.op_sums, most_op_sums);
    record.step_times.insert(record.step_times.end(), times.begin(), times.end());

    // All ranks learn the time that each step took on its slowest rank, and how long the loop has
    // lasted. With the same numbers, StepLoop gives all of them the same next block.
    if (share == Share::replica) std::fill(times.begin(), times.end(), 0.0);
    times.push_back(units::to_seconds(comm::now() - begin).value());
    active.all_max(times);
    const units::Seconds elapsed{times.back()};
    times.pop_back();
    loop.played(block, times, elapsed);
    if (is_warm_up && loop.warm_up_end()) {
      record.warm_up_rule = *loop.warm_up_end();
      record.warm_up_steps = record.step_times.size();
    }
    if (loop.warm_up_end() && loop.steps() > record.warm_up_steps) on_block(loop);
  }
  record.stopped_because = loop.end();
  record.looks = loop.looks();
  return record;
}

std::vector<units::Nanoseconds> measure_solo(executor::Session& session,
                                             const program::RankProgram& program,
                                             program::Section solo,
                                             const comm::Communicator& active, int plays) {
  const std::vector<std::uint32_t> ops = program::solo_ops(program.step());
  std::vector<std::vector<units::Nanoseconds>> times(ops.size());
  active.barrier();
  for (int play = 0; play < plays; ++play) {
    session.play({.section = solo, .trace = executor::Trace::on});
    if (play == 0) continue;
    const auto spans = session.spans();
    if (spans.size() != ops.size()) throw std::logic_error("the solo step has other ops");
    for (std::size_t i = 0; i < ops.size(); ++i) {
      times[i].push_back(spans[i].end - spans[i].start);
    }
  }
  std::vector<units::Nanoseconds> medians(program.step().ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) medians[ops[i]] = timeline::median(times[i]);
  return medians;
}

}  // namespace isoscale::runner::measure
