// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <tuple>

#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::stack {

namespace {

/// Calls the functions for the passes of a schedule in order: `ahead` forward passes, then one
/// forward and one backward pass in turn, then the remaining backward passes. forward(i) and
/// backward(i) are pass number i.
template <class Forward, class Backward>
void in_turn(int ahead, int total, const Forward& forward, const Backward& backward) {
  for (int i = 0; i < ahead; ++i) forward(i);
  for (int i = 0; i < total; ++i) {
    if (ahead + i < total) forward(ahead + i);
    backward(i);
  }
}

std::vector<Action> whole_passes(int ahead, int microbatches) {
  std::vector<Action> actions;
  const auto add = [&](Pass pass) {
    return [&actions, pass](int i) { actions.push_back({pass, i}); };
  };
  in_turn(ahead, microbatches, add(Pass::forward), add(Pass::backward));
  return actions;
}

std::vector<Action> gpipe(const Pipeline& pipeline, int /*stage*/) {
  return whole_passes(pipeline.microbatches, pipeline.microbatches);
}

int ahead_of(const Pipeline& pipeline, int stage) {
  return std::min(pipeline.stages - 1 - stage, pipeline.microbatches);
}

std::vector<Action> one_f_one_b(const Pipeline& pipeline, int stage) {
  return whole_passes(ahead_of(pipeline, stage), pipeline.microbatches);
}

/// Returns the number of forward passes before the first backward pass.
int interleaved_ahead(const Pipeline& pipeline, int stage) {
  const int ahead = 2 * (pipeline.stages - 1 - stage) + (pipeline.chunks - 1) * pipeline.stages;
  return std::min(ahead, pipeline.chunks * pipeline.microbatches);
}

std::vector<Action> interleaved(const Pipeline& pipeline, int stage) {
  const int p = pipeline.stages, v = pipeline.chunks;
  // Pass number i: the first p microbatches go through the first chunk, then through the next one,
  // and so on; then the next p microbatches go the same way.
  const auto place = [&](int i) {
    return Action{Pass::forward, i / (p * v) * p + i % p, i % (p * v) / p};
  };
  std::vector<Action> actions;
  in_turn(
      interleaved_ahead(pipeline, stage), v * pipeline.microbatches,
      [&](int i) { actions.push_back(place(i)); },
      [&](int i) {
        const Action forward = place(i);
        actions.push_back({Pass::backward, forward.microbatch, v - 1 - forward.chunk});
      });
  return actions;
}

std::vector<Action> zb_h1(const Pipeline& pipeline, int stage) {
  const int m = pipeline.microbatches, late = std::min(stage, m);
  std::vector<Action> actions;
  in_turn(
      ahead_of(pipeline, stage), m,
      [&](int i) {
        actions.push_back({Pass::forward, i});
      },
      [&](int i) {
        actions.push_back({Pass::input_gradient, i});
        if (i >= late) actions.push_back({Pass::weight_gradient, i - late});
      });
  for (int i = m - late; i < m; ++i) actions.push_back({Pass::weight_gradient, i});
  return actions;
}

double plain_bubble(const Pipeline& pipeline, const PassTimes& times) {
  return (pipeline.stages - 1) * (times.forward + times.input_gradient + times.weight_gradient);
}

double interleaved_bubble(const Pipeline& pipeline, const PassTimes& times) {
  return plain_bubble(pipeline, times) / pipeline.chunks;
}

double zb_h1_bubble(const Pipeline& pipeline, const PassTimes& times) {
  return (pipeline.stages - 1) * (times.forward + times.input_gradient - times.weight_gradient);
}

int all_in_flight(const Pipeline& pipeline, int /*stage*/) { return pipeline.microbatches; }

int one_f_one_b_in_flight(const Pipeline& pipeline, int stage) {
  return std::min(pipeline.stages - stage, pipeline.microbatches);
}

int interleaved_in_flight(const Pipeline& pipeline, int stage) {
  return std::min(interleaved_ahead(pipeline, stage) + 1, pipeline.chunks * pipeline.microbatches);
}

int zb_h1_in_flight(const Pipeline& pipeline, int /*stage*/) {
  return std::min(pipeline.stages, pipeline.microbatches);
}

constexpr std::array table{
    ScheduleRow{Schedule::gpipe, "gpipe", gpipe, plain_bubble, all_in_flight},
    ScheduleRow{Schedule::one_f_one_b, "1f1b", one_f_one_b, plain_bubble, one_f_one_b_in_flight},
    ScheduleRow{Schedule::interleaved, "interleaved", interleaved, interleaved_bubble,
                interleaved_in_flight},
    ScheduleRow{Schedule::zb_h1, "zb-h1", zb_h1, zb_h1_bubble, zb_h1_in_flight},
};

using Time = std::int64_t;

/// An action with its start on the clock, and the action on another stage whose result it needs.
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
      actions.push_back(row_of(pipeline.schedule).actions(pipeline, s));
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
    const Time layers = pipeline_.layers[count(here)];
    free = timed.start + (action.pass == Pass::backward ? 2 : 1) * layers;
    if (action.pass != Pass::weight_gradient) end_of(forward, here, action.microbatch) = free;
    if (is_kept_[stage]) stages_[stage].push_back(timed);
    return true;
  }

  const Pipeline& pipeline_;
  std::vector<Time> ends_;  ///< of all forward actions, then of all backward actions
  std::vector<std::vector<Timed>> stages_;
  std::vector<bool> is_kept_;
};

/// An action or a message of a stage, with its time. If times are equal, messages come before
/// actions. Messages are ordered by the pair of stages, so that the order is the same on both
/// sides.
struct Moment {
  Time time = 0;
  int link = 0;  ///< message: the stage before its link; action: the number of stages
  StageStep step;
};

void merge(HandOver& into, const HandOver& other) {
  if (other.made) into.made = other.made;
  if (other.awaited) into.awaited = other.awaited;
}

}  // namespace

std::span<const ScheduleRow> schedule_table() { return table; }

const ScheduleRow& row_of(Schedule schedule) { return table[static_cast<std::size_t>(schedule)]; }

double ideal_bubble(const Pipeline& pipeline) {
  constexpr PassTimes unit{.forward = 1, .input_gradient = 1, .weight_gradient = 1};
  return row_of(pipeline.schedule).bubble(pipeline, unit) / (3.0 * pipeline.microbatches);
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
  // This loop adds the messages that this stage sends to its neighbours.
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
