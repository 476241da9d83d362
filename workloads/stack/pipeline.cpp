// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

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
  // With `equal` each virtual stage has at least one layer, with `nearest` each rank, and with
  // `lighter-ends` each stage but the first and the last.
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

}  // namespace isoscale::workloads::stack
