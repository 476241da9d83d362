// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/predict/quick_estimate.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis::predict {

namespace {

using workloads::stack::Action;
using workloads::stack::HandOver;
using workloads::stack::Pass;
using workloads::stack::Schedule;

/// The ordered exchanges between a stage and the next stage (the first stage follows the last).
struct Channel {
  /// For each exchange, the time at which each side could begin it: [0] the stage, [1] the next
  /// stage.
  std::array<std::vector<double>, 2> ready;
  std::vector<double> ends;
};

using Key = std::tuple<Pass, int, int>;
Key key(const Action& action) { return {action.pass, action.microbatch, action.chunk}; }

struct Stage {
  std::vector<workloads::stack::StageStep> steps;
  std::size_t next = 0;        ///< number of steps that are done
  double begin = 0, free = 0;  ///< when this step began; when the compute stream is free
  std::map<Key, double> made;  ///< end of each action of this step
  /// The channel and the number of the exchange that brings the input of an action.
  std::map<Key, std::pair<std::size_t, std::size_t>> brought;
};

/// Simulates steps of a pipeline one after the other. All times follow from the order of each
/// stage's passes and exchanges, so stages can be advanced in any order.
class Play {
 public:
  explicit Play(const CoarsePipeline& coarse)
      : coarse_(coarse), stages_(coarse.tail.size()), channels_(coarse.tail.size()) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].steps = workloads::stack::steps_of(coarse.pipeline, static_cast<int>(s));
    }
  }

  /// Simulates one more step, and returns the time at which its last stage ends.
  double step() {
    for (Channel& channel : channels_) channel = {};
    for (Stage& stage : stages_) {
      stage.next = 0;
      stage.made.clear();
      stage.brought.clear();
    }
    for (bool is_complete = false; !is_complete;) {
      is_complete = true;
      bool has_progress = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        while (advance(s)) has_progress = true;
        is_complete = is_complete && stages_[s].next == stages_[s].steps.size();
      }
      if (!is_complete && !has_progress) throw std::logic_error("a schedule deadlocks");
    }
    double last = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      double end = stages_[s].free + std::max(0.0, coarse_.tail[s]);
      for (const std::size_t side : {before(s), s}) {
        if (!channels_[side].ends.empty()) end = std::max(end, channels_[side].ends.back());
      }
      stages_[s].begin = stages_[s].free = end;
      last = std::max(last, end);
    }
    return last;
  }

 private:
  [[nodiscard]] std::size_t before(std::size_t stage) const {
    return (stage + stages_.size() - 1) % stages_.size();
  }

  /// Simulates the next step of a stage; returns false if there is none or its input has not
  /// arrived.
  bool advance(std::size_t s) {
    Stage& stage = stages_[s];
    if (stage.next == stage.steps.size()) return false;
    const auto& step = stage.steps[stage.next];
    if (const auto* const message = std::get_if<HandOver>(&step)) {
      hand_over(s, *message);
    } else {
      const auto& action = std::get<Action>(step);
      double start = stage.free, takes = time_of(s, action);
      const auto input = stage.brought.find(key(action));
      if (input != stage.brought.end()) {
        const auto& [channel, number] = input->second;
        if (channels_[channel].ends.size() <= number) return false;
        start = std::max(start, channels_[channel].ends[number]);
        takes += coarse_.arrival;
      }
      // The times are from fitted lines, which can give a small time below 0.
      stage.free = stage.made[key(action)] = start + std::max(0.0, takes);
    }
    ++stage.next;
    return true;
  }

  void hand_over(std::size_t s, const HandOver& message) {
    Stage& stage = stages_[s];
    const std::size_t number = message.offset > 0 ? s : before(s);
    auto& [ready, ends] = channels_[number];
    auto& mine = ready[message.offset > 0 ? 0 : 1];
    if (message.awaited) stage.brought[key(*message.awaited)] = {number, mine.size()};
    mine.push_back(message.made ? stage.made.at(key(*message.made)) : stage.begin);
    while (ends.size() < std::min(ready[0].size(), ready[1].size())) {
      const double both = std::max(ready[0][ends.size()], ready[1][ends.size()]);
      ends.push_back((ends.empty() ? both : std::max(both, ends.back())) + coarse_.message);
    }
  }

  [[nodiscard]] double time_of(std::size_t s, const Action& action) const {
    const int place = coarse_.pipeline.virtual_stage(static_cast<int>(s), action.chunk);
    const StagePasses& passes = coarse_.chunks[static_cast<std::size_t>(place)];
    const bool ends = action.microbatch == coarse_.pipeline.microbatches - 1;
    switch (action.pass) {
      case Pass::forward:
        return passes.forward + (action.microbatch == 0 ? passes.first_forward : 0);
      case Pass::backward:
        return passes.backward + (ends ? passes.last_backward : 0);
      case Pass::input_gradient:
        return passes.backward - passes.weight_gradient;
      case Pass::weight_gradient:
        return passes.weight_gradient + (ends ? passes.last_backward : 0);
    }
    return 0;
  }

  const CoarsePipeline& coarse_;
  std::vector<Stage> stages_;
  std::vector<Channel> channels_;  ///< by the earlier one of their stages
};

}  // namespace

double play(const CoarsePipeline& coarse) {
  Play play{coarse};
  play.step();
  const double before = play.step();
  return play.step() - before;
}

double play_extended(const CoarsePipeline& coarse) {
  // A turn has as many microbatches as stages (at least two), since the interleaved schedule needs
  // multiples of the stages. In two turns all stages reach their largest number of microbatches in
  // flight.
  constexpr int least_turn = 2;
  const int p = coarse.pipeline.stages, wanted = coarse.pipeline.microbatches;
  const int turn = (least_turn + p - 1) / p * p, few = 2 * turn, more = 3 * turn;
  const bool divides = coarse.pipeline.schedule != Schedule::interleaved || wanted % p == 0;
  if (wanted <= more || !divides) return play(coarse);
  const auto seconds = [&](int microbatches) {
    CoarsePipeline shorter = coarse;
    shorter.pipeline.microbatches = microbatches;
    return play(shorter);
  };
  const double of_few = seconds(few), of_more = seconds(more);
  return of_more + (of_more - of_few) / (more - few) * (wanted - more);
}

}  // namespace isoscale::analysis::predict
