// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace isoscale::workloads::stack {
namespace {

/// `ahead` forward passes, then one backward and one forward in turn, then the rest backward; pass
/// number i is forward(i), backward(i).
template <class Forward, class Backward>
void in_turn(int ahead, int total, const Forward& forward, const Backward& backward) {
  for (int i = 0; i < ahead; ++i) forward(i);
  for (int i = 0; i < total; ++i) {
    if (ahead + i < total) forward(ahead + i);
    backward(i);
  }
}

std::vector<Action> gpipe(const Pipeline& pipeline, int /*stage*/) {
  std::vector<Action> actions;
  in_turn(
      pipeline.microbatches, pipeline.microbatches,
      [&](int i) {
        actions.push_back({Pass::forward, i});
      },
      [&](int i) {
        actions.push_back({Pass::backward, i});
      });
  return actions;
}

int ahead_of(const Pipeline& pipeline, int stage) {
  return std::min(pipeline.stages - 1 - stage, pipeline.microbatches);
}

std::vector<Action> one_f_one_b(const Pipeline& pipeline, int stage) {
  std::vector<Action> actions;
  in_turn(
      ahead_of(pipeline, stage), pipeline.microbatches,
      [&](int i) {
        actions.push_back({Pass::forward, i});
      },
      [&](int i) {
        actions.push_back({Pass::backward, i});
      });
  return actions;
}

/// Forward passes before the first backward one.
int interleaved_ahead(const Pipeline& pipeline, int stage) {
  const int ahead = 2 * (pipeline.stages - 1 - stage) + (pipeline.chunks - 1) * pipeline.stages;
  return std::min(ahead, pipeline.chunks * pipeline.microbatches);
}

std::vector<Action> interleaved(const Pipeline& pipeline, int stage) {
  const int p = pipeline.stages, v = pipeline.chunks;
  // Pass i: p microbatches through the first chunk, the same through the next, ..., then p more.
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

}  // namespace

std::span<const ScheduleRow> schedule_table() { return table; }

const ScheduleRow& row_of(Schedule schedule) { return table[static_cast<std::size_t>(schedule)]; }

double ideal_bubble(const Pipeline& pipeline) {
  constexpr PassTimes unit{.forward = 1, .input_gradient = 1, .weight_gradient = 1};
  return row_of(pipeline.schedule).bubble(pipeline, unit) / (3.0 * pipeline.microbatches);
}

}  // namespace isoscale::workloads::stack
