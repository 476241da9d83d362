// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <tuple>

#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::stack {

namespace {

/// Returns the number of forward passes with which a stage starts. Then forward and backward passes
/// alternate, beginning with a forward pass, until no forward pass is left.
int ahead_of(const Pipeline& pipeline, int stage) {
  const int m = pipeline.microbatches, later = pipeline.stages - 1 - stage;
  if (pipeline.schedule == Schedule::gpipe) return m;
  if (pipeline.schedule != Schedule::interleaved) return std::min(later, m);
  return std::min(2 * later + (pipeline.chunks - 1) * pipeline.stages, pipeline.chunks * m);
}

using Time = std::int64_t;

/// An action with its start on the simulated clock, and the action on another stage whose result it
/// needs.
struct Timed {
  Action action;
  Time start = 0;
  std::optional<Action> source{};  ///< on the previous stage; in backward on the next stage
};

/// Simulates the actions of all stages on one clock, and keeps those of one stage and its
/// neighbours.
class Clock {
 public:
  Clock(const Pipeline& pipeline, int stage)
      : pipeline_(pipeline), ends_(2 * passes(), unknown), stages_(count(pipeline.stages)) {
    const int p = pipeline.stages;
    is_kept_.resize(stages_.size());
    for (const int other : {stage, (stage + 1) % p, (stage + p - 1) % p}) {
      is_kept_[count(other)] = true;
    }
    std::vector<std::vector<Action>> actions;
    for (int s = 0; s < pipeline.stages; ++s) {
      actions.push_back(actions_of(pipeline, s));
    }
    std::vector<std::size_t> next(actions.size(), 0);
    std::vector<Time> free(actions.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < actions.size(); ++s) {
        while (next[s] < actions[s].size() && play(s, actions[s][next[s]], free[s])) {
          ++next[s];
          moved = true;
        }
      }
    }
    for (std::size_t s = 0; s < actions.size(); ++s) {
      if (next[s] < actions[s].size()) throw std::logic_error("a schedule waits for itself");
    }
  }

  [[nodiscard]] const std::vector<Timed>& of(int stage) const { return stages_[count(stage)]; }

 private:
  static constexpr Time unknown = -1;
  static std::size_t count(int number) { return static_cast<std::size_t>(number); }
  [[nodiscard]] std::size_t passes() const {
    return count(pipeline_.virtual_stages()) * count(pipeline_.microbatches);
  }
  [[nodiscard]] Time& end_of(bool forward, int virtual_stage, int microbatch) {
    const std::size_t pass =
        count(virtual_stage) * count(pipeline_.microbatches) + count(microbatch);
    return ends_[pass + (forward ? 0 : passes())];
  }

  /// Simulates an action. Returns false if its input is not available yet.
  bool play(std::size_t stage, const Action& action, Time& free) {
    const int here = pipeline_.virtual_stage(static_cast<int>(stage), action.chunk);
    const bool forward = action.pass == Pass::forward;
    Timed timed{.action = action, .start = free};
    const int from = forward ? here - 1 : here + 1;
    if (action.pass != Pass::weight_gradient && from >= 0 && from < pipeline_.virtual_stages()) {
      const Time made = end_of(forward, from, action.microbatch);
      if (made == unknown) return false;
      timed.start = std::max(free, made);
      if (pipeline_.stages > 1) {
        const Pass pass = forward                                 ? Pass::forward
                          : pipeline_.schedule == Schedule::zb_h1 ? Pass::input_gradient
                                                                  : Pass::backward;
        timed.source = Action{pass, action.microbatch, from / pipeline_.stages};
      }
    }
    const Time layers = std::max(1, pipeline_.layers[count(here)]);
    free = timed.start + (action.pass == Pass::backward ? 2 : 1) * layers;
    if (action.pass != Pass::weight_gradient) end_of(forward, here, action.microbatch) = free;
    if (is_kept_[stage]) stages_[stage].push_back(timed);
    return true;
  }

  const Pipeline& pipeline_;
  std::vector<Time> ends_;  ///< ends of all forward passes, then of all backward passes
  std::vector<std::vector<Timed>> stages_;
  std::vector<bool> is_kept_;
};

/// An action or a message of a stage, with its time on the clock. A link joins a stage to the next
/// one (the last stage to the first). At equal times messages come before actions, and messages are
/// ordered by `link`, so that both stages of a link exchange their messages in the same order.
struct Moment {
  Time time = 0;
  int link = 0;  ///< message: the link's earlier stage; action: the number of stages
  StageStep step;
};

void merge(HandOver& into, const HandOver& other) {
  if (other.made) into.made = other.made;
  if (other.awaited) into.awaited = other.awaited;
}

}  // namespace

std::vector<Action> actions_of(const Pipeline& pipeline, int stage) {
  const int p = pipeline.stages, v = pipeline.chunks, m = pipeline.microbatches;
  const bool splits = pipeline.schedule == Schedule::zb_h1;
  const int ahead = ahead_of(pipeline, stage), passes = v * m;
  const int late = std::min(stage, m);  // microbatches by which split weight gradients are late
  std::vector<Action> actions;
  // Adds the stage's pass number i. Passes are numbered in this order: the first p microbatches go
  // through one chunk, then through the next chunk, and so on through all chunks; then the next p
  // microbatches do the same. Backward passes take the chunks from the last to the first.
  const auto add = [&](Pass pass, int i) {
    const int chunk = i % (p * v) / p;
    actions.push_back(
        {pass, i / (p * v) * p + i % p, pass == Pass::forward ? chunk : v - 1 - chunk});
  };
  for (int i = 0; i < ahead; ++i) add(Pass::forward, i);
  for (int i = 0; i < passes; ++i) {
    if (ahead + i < passes) add(Pass::forward, ahead + i);
    add(splits ? Pass::input_gradient : Pass::backward, i);
    if (splits && i >= late) add(Pass::weight_gradient, i - late);
  }
  for (int i = m - late; splits && i < m; ++i) add(Pass::weight_gradient, i);
  return actions;
}

double idle_time(const Pipeline& pipeline, const PassTimes& times) {
  const bool fills = pipeline.schedule == Schedule::zb_h1;
  const double weights = fills ? -times.weight_gradient : times.weight_gradient;
  return (pipeline.stages - 1) * (times.forward + times.input_gradient + weights) / pipeline.chunks;
}

int most_in_flight(const Pipeline& pipeline, int stage) {
  const int m = pipeline.microbatches;
  if (pipeline.schedule == Schedule::zb_h1) return std::min(pipeline.stages, m);
  return std::min(ahead_of(pipeline, stage) + 1, pipeline.chunks * m);
}

double ideal_bubble(const Pipeline& pipeline) {
  constexpr PassTimes unit{.forward = 1, .input_gradient = 1, .weight_gradient = 1};
  return idle_time(pipeline, unit) / (3.0 * pipeline.microbatches);
}

std::vector<StageStep> steps_of(const Pipeline& pipeline, int stage) {
  const Clock clock{pipeline, stage};
  const int p = pipeline.stages;
  std::vector<Moment> moments;
  for (const Timed& timed : clock.of(stage)) {
    moments.push_back({timed.start, p, timed.action});
    if (!timed.source) continue;
    const bool forward = timed.action.pass == Pass::forward;
    const int offset = forward ? -1 : +1;
    moments.push_back({timed.start, forward ? (stage + p - 1) % p : stage,
                       HandOver{.offset = offset, .awaited = timed.action}});
  }
  // The loop above added the messages that this stage receives; this one adds those that it sends.
  if (p > 1) {
    for (const int offset : {-1, +1}) {
      for (const Timed& timed : clock.of((stage + p + offset) % p)) {
        const bool forward = timed.action.pass == Pass::forward;
        if (!timed.source || forward != (offset > 0)) continue;
        moments.push_back({timed.start, forward ? stage : (stage + p - 1) % p,
                           HandOver{.offset = offset, .made = timed.source}});
      }
    }
  }
  std::ranges::stable_sort(moments, {}, [](const Moment& moment) {
    return std::tuple{moment.time, moment.link};
  });
  std::vector<StageStep> steps;
  const Moment* before = nullptr;
  for (const Moment& moment : moments) {
    const auto* message = std::get_if<HandOver>(&moment.step);
    const bool joins = message != nullptr && before != nullptr && before->time == moment.time &&
                       before->link == moment.link;
    if (joins) {
      merge(std::get<HandOver>(steps.back()), *message);
    } else {
      steps.push_back(moment.step);
    }
    before = &moment;
  }
  return steps;
}

}  // namespace isoscale::workloads::stack
