// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace isoscale::workloads::stack {
namespace {

using Rule = StageLayers::Kind;

/// Returns the number of layers of each stage, as equal as possible. If `stages` does not divide
/// `layers`, the first stages have one more than the others.
std::vector<int> nearest_layers(int layers, int stages) {
  std::vector<int> result(static_cast<std::size_t>(stages), layers / stages);
  for (int s = 0; s < layers % stages; ++s) ++result[static_cast<std::size_t>(s)];
  return result;
}

/// Returns the number of layers of each stage, as equal as possible if the input counts as a layer
/// of the first stage and the vocabulary as a layer of the last one. This is the rule of Megatron's
/// options account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split.
std::vector<int> lighter_ends(int layers, int stages) {
  std::vector<int> result = nearest_layers(layers + 2, stages);
  --result.front();
  --result.back();
  return result;
}

std::vector<int> layers_of_stages(const StageLayers& rule, int layers, int stages) {
  if (stages == 1) return {layers};
  if (rule.kind == Rule::named) return rule.named;
  return rule.kind == Rule::lighter_ends ? lighter_ends(layers, stages)
                                         : nearest_layers(layers, stages);
}

/// Throws base::UsageError if a rank would have no weights: neither a layer in one of its virtual
/// stages, nor the vocabulary.
void require_weights(const Request& request, const Pipeline& pipeline,
                     const TrainingOptions& options) {
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    bool has_weights = options.vocabulary && stage == pipeline.stages - 1;
    for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
      const auto here = static_cast<std::size_t>(pipeline.virtual_stage(stage, chunk));
      has_weights = has_weights || pipeline.layers[here] > 0;
    }
    if (has_weights) continue;
    throw usage_error(
        "stage_layers={} leaves the ranks of stage {} (of 0 to {}) without weights; give them a "
        "layer{}, or use a smaller pp",
        text_of(request, "stage_layers"), stage, pipeline.stages - 1,
        stage == pipeline.stages - 1 ? " or vocabulary=on" : "");
  }
}

void require_layers(const Request& request, const Pipeline& pipeline,
                    const TrainingOptions& options) {
  const int stages = pipeline.virtual_stages(), layers = request.model.layers;
  const std::string what = pipeline.chunks > 1
                               ? fmt::format("pp={} x v={}", pipeline.stages, pipeline.chunks)
                               : fmt::format("pp={}", pipeline.stages);
  const int sum = std::accumulate(pipeline.layers.begin(), pipeline.layers.end(), 0);
  const Rule rule = options.stage_layers.kind;
  if (rule == Rule::named && pipeline.stages > 1) {
    if (static_cast<int>(pipeline.layers.size()) == stages && sum == layers) {
      return require_weights(request, pipeline, options);
    }
    throw usage_error(
        "stage_layers={} names {} stages with {} layers; {} has {} stages, the model {} layers; "
        "use stage_layers={}",
        text_of(request, "stage_layers"), pipeline.layers.size(), sum, what, stages, layers,
        fmt::join(nearest_layers(layers, stages), ","));
  }
  // With `equal` each virtual stage needs a layer, with `nearest` each rank needs one, and with
  // `lighter-ends` each virtual stage but the first and the last.
  const int least = rule == Rule::equal          ? stages
                    : rule == Rule::lighter_ends ? stages - 2
                                                 : pipeline.stages;
  if (layers < least) {
    throw usage_error("{} makes {} stages of {} layers; use {} or fewer", what, stages, layers,
                      pipeline.chunks > 1 && layers >= pipeline.stages
                          ? fmt::format("v={}", layers / pipeline.stages)
                          : fmt::format("pp={}", layers));
  }
  if (rule != Rule::equal) return require_weights(request, pipeline, options);
  if (layers % stages == 0) return;
  if (layers % pipeline.stages != 0) {
    int fits = pipeline.stages;
    while (layers % fits != 0) --fits;
    throw usage_error("pp={} does not divide the {} layers; use pp={}, or stage_layers=nearest",
                      pipeline.stages, layers, fits);
  }
  int v = pipeline.chunks;
  while (layers % (pipeline.stages * v) != 0) --v;  // ends at v = 1, since pp divides the layers
  throw usage_error(
      "v={} does not divide the {} layers of a stage; use v={}, or stage_layers=nearest",
      pipeline.chunks, layers / pipeline.stages, v);
}

std::vector<int> small_stages(const Request& request) {
  std::vector<int> stages = pipeline_of(request).layers;
  const int most = std::ranges::max(stages);
  int least = most;  // fewest layers of a stage that has any
  for (const int layers : stages) least = layers > 0 ? std::min(least, layers) : least;
  for (int& layers : stages) {
    if (layers > 0) layers = layers == least && least < most ? 1 : std::min(2, most);
  }
  return stages;
}

/// Returns the number of forward passes that a stage runs first. Then forward and backward passes
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
  std::optional<Action> source{};  ///< forward: on the previous stage; backward: on the next one
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
    for (int s = 0; s < p; ++s) actions.push_back(actions_of(pipeline, s));
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
  std::vector<Time> ends_;  ///< end times of all forward passes, then of all backward passes
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

}  // namespace

Pipeline pipeline_of(const Request& request) {
  const TrainingOptions options = options_of(request);
  Pipeline pipeline{.schedule = options.schedule,
                    .stages = request.mesh.pp,
                    .chunks = 1,
                    .microbatches = static_cast<int>(options.microbatches)};
  if (pipeline.schedule == Schedule::interleaved && pipeline.stages > 1) {
    pipeline.chunks = options.v;
  }
  pipeline.layers =
      layers_of_stages(options.stage_layers, request.model.layers, pipeline.virtual_stages());
  return pipeline;
}

std::vector<mesh::Constraint> pipeline_limits(const Request& base) {
  if (options_of(base).stage_layers.kind != Rule::equal) return {};
  return {{mesh::Axis::pp, base.model.layers, "layers", "stage_layers=nearest"}};
}

void require_pipeline(const Request& scaled) {
  const TrainingOptions options = options_of(scaled);
  if (scaled.mesh.pp == 1) return;
  const Pipeline pipeline = pipeline_of(scaled);
  const int p = pipeline.stages, m = pipeline.microbatches;
  if (pipeline.schedule == Schedule::interleaved && m % p != 0) {
    throw usage_error(
        "schedule=interleaved takes microbatches in turns of pp={}; microbatches={} does not "
        "divide by it: use {}",
        p, m, m < p ? fmt::format("{}", p) : fmt::format("{} or {}", m / p * p, (m / p + 1) * p));
  }
  if (pipeline.schedule == Schedule::zb_h1 && m == 1) {
    throw usage_error(
        "schedule=zb-h1 with one microbatch has nothing to fill the bubble with; use "
        "microbatches={} or more, or schedule=1f1b",
        p);
  }
  require_layers(scaled, pipeline, options);
  if (options.handover == HandOverForm::scattered) {
    const long long rows = options.microbatch * (scaled.model.sequence / scaled.mesh.cp);
    if (rows % scaled.mesh.tp != 0) {
      throw usage_error(
          "handover=scattered gives each of tp={} ranks a part of sequence x microbatch = {} rows, "
          "which it does not divide; use microbatch={}, or handover=whole",
          scaled.mesh.tp, rows, scaled.mesh.tp);
    }
  }
}

std::string small_stage_layers(const Request& request) {
  const bool names = options_of(request).stage_layers.kind == Rule::named;
  if (!names || request.mesh.pp == 1) return text_of(request, "stage_layers");
  return fmt::format("{}", fmt::join(small_stages(request), ","));
}

int small_layers(const Request& request) {
  const std::vector<int> stages = small_stages(request);
  return std::accumulate(stages.begin(), stages.end(), 0);
}

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
  for (const int offset : {-1, +1}) {
    for (const Timed& timed : clock.of((stage + p + offset) % p)) {
      const bool forward = timed.action.pass == Pass::forward;
      if (!timed.source || forward != (offset > 0)) continue;
      moments.push_back({timed.start, forward ? stage : (stage + p - 1) % p,
                         HandOver{.offset = offset, .made = timed.source}});
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
      auto& begun = std::get<HandOver>(steps.back());
      if (message->made) begun.made = message->made;
      if (message->awaited) begun.awaited = message->awaited;
    } else {
      steps.push_back(moment.step);
    }
    before = &moment;
  }
  return steps;
}

}  // namespace isoscale::workloads::stack
