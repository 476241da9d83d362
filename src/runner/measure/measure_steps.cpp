// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/measure_steps.hpp"

#include <array>
#include <stdexcept>

#include "program/added_sections.hpp"
#include "program/op.hpp"

namespace isoscale::runner::measure {
namespace {

OpClass class_of(program::OpKind kind) {
  if (kind == program::OpKind::gemm) return OpClass::gemm;
  if (program::communicates(kind)) return OpClass::communication;
  if (kind == program::OpKind::copy || kind == program::OpKind::advise) return OpClass::copies;
  return OpClass::other_compute;
}

constexpr std::size_t least_kept = 2;  // at least so many last steps of a traced block are kept

/// Plays the blocks of the loop on one rank. After each block all ranks have the same elapsed time
/// and the same step times, those of the slowest rank, so StepLoop gives them the same next block.
class StepPlayer {
 public:
  StepPlayer(executor::Session& session, const program::Program& step,
             const comm::Communicator& active, Share share, const plan::Effort& effort)
      : session_(session),
        classes_(op_classes(step)),
        active_(active),
        share_(share),
        most_traces_(static_cast<std::size_t>(effort.trace_steps)),
        begin_(comm::now()),
        loop_(effort) {}

  Record run(const OnBlock& on_block) {
    while (loop_.end().empty()) {
      play(loop_.next());
      if (loop_.warm_up_end() && loop_.steps() > record_.warm_up_steps) on_block(loop_);
    }
    record_.stopped_because = loop_.end();
    record_.looks = loop_.looks();
    return std::move(record_);
  }

 private:
  void play(const plan::Block& block) {
    const bool is_traced = block.kind == plan::Block::Kind::traced;
    const bool is_warm_up = block.kind == plan::Block::Kind::warm_up;
    const auto trace = is_traced ? executor::Trace::on : executor::Trace::off;
    const std::size_t kept =
        std::max(least_kept, (most_traces_ + plan::least_pairs - 1) / plan::least_pairs);
    std::vector<double> times;
    for (std::size_t i = 0; i < block.steps; ++i) {
      const executor::PlayTime time = session_.play(program::Section::step, trace);
      times.push_back(units::to_seconds(time.end - time.begin).value());
      if (record_.traced.empty()) record_.begin = time.begin;
      record_.end = time.end;
      record_.traced.push_back(is_traced ? 1 : 0);
      record_.dropped.push_back(i == 0 && !is_warm_up ? 1 : 0);  // warm-up steps never count anyway
      if (!is_traced || i == 0) continue;
      const auto number = static_cast<std::uint32_t>(record_.step_times.size() + i);
      record_.op_sums.push_back(sum_up(number, session_.spans(), classes_));
      if (i + kept >= block.steps) keep(number, time);
    }
    thin_to(record_.op_sums, most_op_sums);
    record_.step_times.insert(record_.step_times.end(), times.begin(), times.end());

    // All ranks learn the time of each step on its slowest rank, and how long the loop has lasted.
    if (share_ == Share::replica) std::fill(times.begin(), times.end(), 0.0);
    times.push_back(units::to_seconds(comm::now() - begin_).value());
    active_.all_max(times);
    const units::Seconds elapsed{times.back()};
    times.pop_back();
    loop_.played(block, times, elapsed);
    if (is_warm_up && loop_.warm_up_end()) {
      record_.warm_up_rule = *loop_.warm_up_end();
      record_.warm_up_steps = record_.step_times.size();
    }
  }

  /// Keeps the spans of the step that was just played. If this makes too many kept steps, drops
  /// some of them.
  void keep(std::uint32_t number, const executor::PlayTime& time) {
    const auto spans = session_.spans();
    record_.traces.push_back({.rank = 0,
                              .step = number,
                              .begin = time.begin,
                              .end = time.end,
                              .spans = {spans.begin(), spans.end()}});
    thin_to(record_.traces, most_traces_);
  }

  executor::Session& session_;
  std::vector<OpClass> classes_;
  const comm::Communicator& active_;
  Share share_;
  std::size_t most_traces_;
  units::Nanoseconds begin_;
  plan::StepLoop loop_;
  Record record_;
};

}  // namespace

std::vector<OpClass> op_classes(const program::Program& program) {
  std::vector<OpClass> classes;
  classes.reserve(program.ops.size());
  for (const program::Op& op : program.ops) {
    classes.push_back(class_of(program::kind_of(op.payload)));
  }
  return classes;
}

StepSums sum_up(std::uint32_t step, std::span<const timeline::Span> spans,
                std::span<const OpClass> classes) {
  std::array<units::Nanoseconds, 4> sums{};
  for (const timeline::Span& span : spans) {
    sums[static_cast<std::size_t>(classes[span.op])] += span.end - span.start;
  }
  const auto seconds = [&](OpClass which) {
    return units::to_seconds(sums[static_cast<std::size_t>(which)]).value();
  };
  return {.step = step,
          .gemm = seconds(OpClass::gemm),
          .other_compute = seconds(OpClass::other_compute),
          .copies = seconds(OpClass::copies),
          .communication = seconds(OpClass::communication)};
}

Record measure(executor::Session& session, const program::Program& step,
               const comm::Communicator& active, Share share, const plan::Effort& effort,
               const OnBlock& on_block) {
  return StepPlayer{session, step, active, share, effort}.run(on_block);
}

std::vector<units::Nanoseconds> measure_solo(executor::Session& session,
                                             const program::RankProgram& program,
                                             program::Section solo,
                                             const comm::Communicator& active, int plays) {
  const std::vector<std::uint32_t> ops = program::solo_ops(program.step());
  std::vector<std::vector<units::Nanoseconds>> times(ops.size());
  active.barrier();
  for (int play = 0; play < plays; ++play) {
    session.play(solo, executor::Trace::on);
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
