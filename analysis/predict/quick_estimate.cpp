// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/quick_estimate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/predict/step_estimate.hpp"
#include "base/parallel.hpp"
#include "simulate/classes.hpp"
#include "simulate/op_time.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis::predict {
namespace {

using workloads::Request;
using workloads::stack::Action;
using workloads::stack::HandOver;
using workloads::stack::Pass;
using workloads::stack::Pipeline;
using workloads::stack::Schedule;

int layers_of(const Pipeline& pipeline, int stage) {
  int layers = 0;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    layers += pipeline.layers[simulate::at(pipeline.virtual_stage(stage, chunk))];
  }
  return layers;
}

/// Computes the values that requests need and that are not yet in `known`. Requests with equal keys
/// have the same value.
template <class Key, class Value, class KeyOf, class Needs, class Learn>
void learn_all(std::span<const Request> requests, std::map<Key, Value>& known, const KeyOf& key_of,
               const Needs& needs, const Learn& learn) {
  std::vector<std::pair<const Request*, Value*>> items;
  for (const Request& request : requests) {
    if (!needs(request)) continue;
    const auto [entry, is_new] = known.try_emplace(key_of(request));
    if (is_new) items.emplace_back(&request, &entry->second);
  }
  base::parallel_for(items.size(),
                     [&](std::size_t i) { *items[i].second = learn(*items[i].first); });
}

StageKey head_key(const Request& request) {
  StageKey key = stage_key(request);
  key.recompute.clear();  // the output projection is never recomputed
  return key;
}

/// Returns a request with one layer per stage and messages of the same number of rows as in
/// `request`.
Request stages_of_one_layer(const workloads::Workload& workload, const Request& request, int stages,
                            int microbatches, const char* schedule) {
  Request result = request;
  result.model.layers = stages;
  const int replicas = request.mesh.ep;
  result.options["batch"] =
      std::to_string(workloads::stack::options_of(request).microbatch * microbatches * replicas);
  result.options.erase("microbatches");
  result.options["schedule"] = schedule;
  result.options["vocabulary"] = "off";
  result.options["zero"] = "0";
  for (const char* const key : {"gather", "v", "stage_layers"}) result.options.erase(key);
  mesh::Shape shape = request.mesh;
  shape.pp = stages;
  shape.dp = 1;
  return workload.scale(result, shape, workloads::Scaling::strong);
}

// The following types simulate the pipeline that a CoarsePipeline describes.

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
  std::vector<Channel> channels_;  ///< channels_[s] joins stage s and the next one
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

bool QuickEstimate::knows(const workloads::Workload& workload) {
  const std::span<const workloads::OptionSpec> stack = workloads::stack::option_table();
  return std::ranges::all_of(stack, [&](const workloads::OptionSpec& spec) {
    return std::ranges::find(workload.options, spec.key, &workloads::OptionSpec::key) !=
           workload.options.end();
  });
}

QuickEstimate::Rows QuickEstimate::rows_of(const Request& request) {
  const StageKey key = stage_key(request);
  return {key.tp, key.cp, key.ep, key.microbatch, key.sequence_parallel};
}

void QuickEstimate::learn(std::span<const Request> requests) {
  const auto always = [](const Request&) { return true; };
  const auto has_stages = [](const Request& request) { return request.mesh.pp > 1; };
  const auto is_late = [&](const Request& request) {
    return has_stages(request) &&
           workloads::stack::pipeline_of(request).schedule == Schedule::zb_h1;
  };
  learn_all(requests, laws_, stage_key, always, [&](const Request& request) {
    return stage_law(workload_, request, machine_, node_ranks_);
  });
  learn_all(requests, heads_, head_key, always, [&](const Request& request) {
    return head_numbers(workload_, request, machine_, node_ranks_);
  });
  learn_all(requests, hand_overs_, rows_of, has_stages,
            [&](const Request& request) { return hand_over(request); });
  learn_all(requests, late_bytes_, rows_of, is_late,
            [&](const Request& request) { return late_bytes(request); });
}

QuickEstimate::HandOverNumbers QuickEstimate::hand_over(const Request& request) const {
  const Request small = stages_of_one_layer(workload_, request, 2, 2, "1f1b");
  const program::ProgramSet set = workload_.build(small);
  const simulate::Layout layout = simulate::packed(small.mesh.size(), node_ranks_);
  const int receiver = small.mesh.size() / 2;
  const program::Outline outline =
      program::outline(set.of(receiver), program::Section::step, small.mesh);
  simulate::Places places{small.mesh, layout};
  const std::vector<units::Nanoseconds> times =
      simulate::op_times(machine_, set.of(receiver), places, receiver);
  HandOverNumbers result;
  for (std::size_t i = 0; i < outline.ops.size(); ++i) {
    const program::OutlineOp& op = outline.ops[i];
    for (const program::OutlineTransfer& transfer : outline.transfers_of(op)) {
      if (transfer.axis != mesh::Axis::pp) continue;
      result.bytes = std::max(result.bytes, static_cast<double>(transfer.bytes));
    }
    const bool gathers = op.kind == program::OpKind::all_gather && op.place.layer == -1 &&
                         op.place.phase == program::Phase::forward;
    if (gathers) result.arrival = static_cast<double>(times[i].value()) * 1e-9;
  }
  return result;
}

StageNumbers QuickEstimate::stage(const Request& request, const Pipeline& pipeline,
                                  int stage) const {
  StageNumbers numbers = laws_.at(stage_key(request)).at(layers_of(pipeline, stage));
  if (stage == pipeline.stages - 1) numbers.add_head(heads_.at(head_key(request)));
  return numbers;
}

/// Returns the difference in bytes between the last stages of pipelines with 4 and 3 stages. In
/// zb-h1 the last of s + 1 stages holds s microbatches between their input and weight gradients
/// while it makes the input gradients of another one, so one more stage adds the bytes of one such
/// microbatch.
double QuickEstimate::late_bytes(const Request& request) const {
  const auto bytes = [&](int stages) {
    const Request small = stages_of_one_layer(workload_, request, stages, stages, "zb-h1");
    return stage_device_bytes(small, stages - 1);
  };
  return std::max(0.0, bytes(4) - bytes(3));
}

double QuickEstimate::activation_bytes(const Request& request, const Pipeline& pipeline,
                                       int stage) const {
  const double one = laws_.at(stage_key(request)).each.activation;
  const double layers = layers_of(pipeline, stage);
  if (pipeline.stages == 1) return one * layers;
  if (pipeline.schedule != Schedule::zb_h1) {
    const int in_flight = workloads::stack::most_in_flight(pipeline, stage);
    return in_flight * one * layers / pipeline.chunks;
  }
  // Memory peaks while a stage makes the input gradients of some microbatch i. Up to `ahead` later
  // microbatches are then between their forward pass and input gradients (`one` bytes for each
  // layer), and up to `stage` earlier ones between input and weight gradients (`late` bytes). The
  // layers of microbatch i go from `one` to `late` bytes, the last layer first.
  const double late = late_bytes_.at(rows_of(request));
  const int others = pipeline.microbatches - 1, ahead = pipeline.stages - 1 - stage;
  double most = 0;
  for (const int i : {0, std::min(stage, others), std::max(0, others - ahead), others}) {
    const double held = std::min(ahead, others - i) * one + std::min(stage, i) * late;
    most = std::max(most, held * layers);
  }
  return most + one + (layers - 1) * std::max(one, late);
}

StageBytes QuickEstimate::largest_stage(const Request& request) const {
  const Pipeline pipeline = workloads::stack::pipeline_of(request);
  const bool others_wait =
      pipeline.schedule == Schedule::gpipe || pipeline.schedule == Schedule::zb_h1;
  StageBytes largest;
  for (int s = 0; s < pipeline.stages; ++s) {
    const StageNumbers numbers = stage(request, pipeline, s);
    const int in_flight =
        pipeline.stages == 1
            ? 1
            : (workloads::stack::most_in_flight(pipeline, s) + pipeline.chunks - 1) /
                  pipeline.chunks;
    double need = numbers.states + numbers.workspace + activation_bytes(request, pipeline, s);
    double under_way = numbers.recomputed;
    if (s == 0 && request.trainer == workloads::Trainer::none) {
      need += std::max(0, pipeline.microbatches - in_flight) * numbers.input;
    }
    // An embedding has as many elements as the output projection.
    const bool has_embedding = workloads::stack::Geometry{request, {.pp = s}}.embedding > 0;
    if (has_embedding) need += heads_.at(head_key(request)).states;
    if (s == pipeline.stages - 1) {
      const StageNumbers& head = heads_.at(head_key(request));
      const int outputs = others_wait ? in_flight : 1;
      need += outputs * numbers.output + (outputs - 1) * head.activation;
      under_way = std::max(under_way, head.activation + head.workspace);
    }
    if (pipeline.stages > 1) need += 2 * numbers.output;
    need += under_way;
    if (s == 0 || need > largest.bytes) largest = {.stage = s, .bytes = need};
  }
  return largest;
}

double QuickEstimate::bound(const Request& request) const {
  const Pipeline pipeline = workloads::stack::pipeline_of(request);
  const StageNumbers first = stage(request, pipeline, 0),
                     last = stage(request, pipeline, pipeline.stages - 1);
  const StageNumbers& slowest =
      last.forward + last.backward > first.forward + first.backward ? last : first;
  const workloads::stack::PassTimes times{.forward = first.forward,
                                          .input_gradient = first.backward - first.weight_gradient,
                                          .weight_gradient = first.weight_gradient};
  return pipeline.microbatches * (slowest.forward + slowest.backward) +
         workloads::stack::idle_time(pipeline, times) + first.first_forward + first.last_backward +
         first.tail;
}

CoarsePipeline QuickEstimate::coarse(const Request& request) const {
  CoarsePipeline result{.pipeline = workloads::stack::pipeline_of(request)};
  const Pipeline& pipeline = result.pipeline;
  const StageLaw& law = laws_.at(stage_key(request));
  const StageNumbers& head = heads_.at(head_key(request));
  for (int s = 0; s < pipeline.stages; ++s) result.tail.push_back(stage(request, pipeline, s).tail);
  for (int i = 0; i < pipeline.virtual_stages(); ++i) {
    StageNumbers one = law.at(pipeline.layers[simulate::at(i)]);
    if (i == pipeline.virtual_stages() - 1) one.add_head(head);
    result.chunks.push_back(one);
  }
  if (pipeline.stages == 1) return result;
  const HandOverNumbers& rows = hand_overs_.at(rows_of(request));
  const simulate::Layout layout = simulate::packed(request.mesh.size(), node_ranks_);
  const std::vector<simulate::GroupPlace> places =
      simulate::places_of_messages(request.mesh, layout, mesh::Axis::pp, 1);
  const auto apart = static_cast<std::size_t>(mesh::stride(request.mesh, mesh::Axis::pp));
  for (std::size_t rank = 0; rank < places.size(); rank += apart) {
    result.message =
        std::max(result.message, simulate::message_seconds(machine_, rows.bytes, places[rank]));
  }
  result.arrival = rows.arrival;
  return result;
}

double QuickEstimate::seconds(const Request& request) const {
  return play_extended(coarse(request));
}

}  // namespace isoscale::analysis::predict
