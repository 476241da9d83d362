// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "analysis/predict/quick_estimate.hpp"
#include "simulate/simulate.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis {

namespace {

using workloads::stack::Action;
using workloads::stack::HandOver;
using workloads::stack::Pass;
using workloads::stack::Pipeline;

std::size_t as_index(int number) { return static_cast<std::size_t>(number); }

units::Nanoseconds nanoseconds(double seconds) {
  return units::Nanoseconds{static_cast<std::int64_t>(std::llround(std::max(0.0, seconds) * 1e9))};
}

/// The streams of a stage, the same as in real programs.
enum Stream : program::StreamId { compute, next_stage, stage_before };

program::OutlineOp op_of(program::OpKind kind, program::StreamId stream) {
  program::OutlineOp op;
  op.kind = kind;
  op.stream = stream;
  return op;
}

/// Writes the outline of one stage and the times of its ops.
class StageOutline {
 public:
  StageOutline(const CoarsePipeline& coarse, int stage) : coarse_(coarse), stage_(stage) {
    outline_.streams = {"compute", "pp_next", "pp_prev"};
    for (const auto& step : workloads::stack::steps_of(coarse.pipeline, stage)) {
      if (const auto* action = std::get_if<Action>(&step)) {
        act(*action);
      } else {
        hand_over(std::get<HandOver>(step));
      }
    }
    emit(op_of(program::OpKind::update, compute), coarse.tail[as_index(stage)], {});
  }

  program::Outline outline_;
  std::vector<units::Nanoseconds> costs_;

 private:
  using Key = std::tuple<Pass, int, int>;
  static Key key(const Action& action) { return {action.pass, action.microbatch, action.chunk}; }

  void emit(program::OutlineOp op, double seconds, std::optional<program::Wait> wait) {
    op.wait_begin = static_cast<std::uint32_t>(outline_.waits.size());
    if (wait && wait->count > 0) {
      outline_.waits.push_back(*wait);
      op.wait_count = 1;
    }
    ++issued_[op.stream];
    outline_.ops.push_back(op);
    costs_.push_back(nanoseconds(seconds));
  }

  [[nodiscard]] double time_of(const Action& action) const {
    const CoarsePipeline::Chunk& chunk =
        coarse_.chunks[as_index(coarse_.pipeline.virtual_stage(stage_, action.chunk))];
    const bool ends = action.microbatch == coarse_.pipeline.microbatches - 1;
    switch (action.pass) {
      case Pass::forward:
        return chunk.forward + (action.microbatch == 0 ? chunk.first_forward : 0);
      case Pass::backward:
        return chunk.backward + (ends ? chunk.last_backward : 0);
      case Pass::input_gradient:
        return chunk.backward - chunk.weight_gradient;
      case Pass::weight_gradient:
        return chunk.weight_gradient + (ends ? chunk.last_backward : 0);
    }
    return 0;
  }

  void act(const Action& action) {
    const auto arrived = arrived_.find(key(action));
    const bool received = arrived != arrived_.end();
    emit(op_of(program::OpKind::gemm, compute), time_of(action) + (received ? coarse_.arrival : 0),
         received ? std::optional{arrived->second} : std::nullopt);
    made_[key(action)] = {.stream = compute, .count = issued_[compute]};
  }

  void hand_over(const HandOver& message) {
    const program::StreamId stream = message.offset > 0 ? next_stage : stage_before;
    program::OutlineOp op = op_of(program::OpKind::exchange, stream);
    op.bytes = 1;
    op.axes = mesh::Axis::pp;
    op.transfer_begin = static_cast<std::uint32_t>(outline_.transfers.size());
    const auto add = [&](program::Direction direction) {
      outline_.transfers.push_back(
          {.direction = direction, .axis = mesh::Axis::pp, .offset = message.offset, .bytes = 1});
      ++op.transfer_count;
    };
    if (message.made) add(program::Direction::send);
    if (message.awaited) add(program::Direction::receive);
    emit(op, coarse_.message,
         message.made ? std::optional{made_.at(key(*message.made))} : std::nullopt);
    if (message.awaited) {
      arrived_[key(*message.awaited)] = {.stream = stream, .count = issued_[stream]};
    }
  }

  const CoarsePipeline& coarse_;
  int stage_;
  std::array<std::uint32_t, 3> issued_{};
  std::map<Key, program::Wait> made_, arrived_;
};

/// Returns the time from one step to the next in the steady state.
double period(const std::vector<timeline::Timeline>& plays) {
  const auto end = [](const timeline::Timeline& play) {
    std::int64_t latest = 0;
    for (const timeline::StepTrace& trace : play.ranks)
      latest = std::max(latest, trace.end.value());
    return latest;
  };
  return static_cast<double>(end(plays.back()) - end(plays[plays.size() - 2])) * 1e-9;
}

/// The microbatches of two steps that are both long enough for a steady state. A step of many
/// microbatches consists of a beginning, a repeated part and an end, so its length follows from two
/// shorter steps.
struct StepLengths {
  int few = 0, more = 0;
};

/// Returns the lengths of two shorter steps for a pipeline: 2 and 3 turns, where a turn has as many
/// microbatches as there are stages (at least two), as the interleaved schedule requires. In such
/// steps all stages reach their largest number of microbatches in flight. nullopt when the step
/// itself is no longer than that.
std::optional<StepLengths> shorter_steps(const Pipeline& pipeline) {
  constexpr int least_turn = 2;
  const int p = pipeline.stages;
  const int turn = (least_turn + p - 1) / p * p;
  const StepLengths lengths{.few = 2 * turn, .more = 3 * turn};
  const int wanted = pipeline.microbatches;
  const bool divides =
      pipeline.schedule != workloads::stack::Schedule::interleaved || wanted % p == 0;
  if (wanted <= lengths.more || !divides) return std::nullopt;
  return lengths;
}

/// Returns the time of a step of `wanted` microbatches by a straight line through the times `few`
/// and `more` of the two shorter steps.
double extended(double few, double more, const StepLengths& lengths, int wanted) {
  const double each = (more - few) / (lengths.more - lengths.few);
  return more + each * (wanted - lengths.more);
}

}  // namespace

double play(const CoarsePipeline& coarse) {
  program::OutlineSet set{
      .mesh = {.pp = coarse.pipeline.stages}, .outlines = {}, .outline_of_rank = {}};
  simulate::Costs costs;
  for (int stage = 0; stage < coarse.pipeline.stages; ++stage) {
    StageOutline written{coarse, stage};
    set.outlines.push_back(std::move(written.outline_));
    set.outline_of_rank.push_back(static_cast<std::uint32_t>(stage));
    costs.tables.push_back(std::move(written.costs_));
    costs.table_of_rank.push_back(static_cast<std::uint32_t>(stage));
  }
  constexpr int plays = 3;
  return period(
      simulate::simulate(set, costs, {.plays = plays, .record = simulate::Record::steps}));
}

double play_extended(const CoarsePipeline& coarse) {
  const int wanted = coarse.pipeline.microbatches;
  const std::optional<StepLengths> lengths = shorter_steps(coarse.pipeline);
  if (!lengths) return play(coarse);
  const auto of = [&](int microbatches) {
    CoarsePipeline shorter = coarse;
    shorter.pipeline.microbatches = microbatches;
    return play(shorter);
  };
  const double few = of(lengths->few), more = of(lengths->more);
  return extended(few, more, *lengths, wanted);
}

}  // namespace isoscale::analysis
