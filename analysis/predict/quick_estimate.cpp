// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/quick_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/predict/forecast.hpp"
#include "base/parallel.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "simulate/op_time.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/partitioning.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis::predict {
namespace {

using workloads::Request;
using workloads::stack::Pipeline;
using workloads::stack::Schedule;

int layers_of(const Pipeline& pipeline, int stage) {
  int layers = 0;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    layers += pipeline.layers[simulate::at(pipeline.virtual_stage(stage, chunk))];
  }
  return layers;
}

/// Returns the peak bytes of a stage's activations. A layer holds `one` bytes for each microbatch
/// in flight. In the schedule zb-h1, where weight gradients are computed later than input
/// gradients, it holds `late` bytes for a microbatch that is between the two.
double activation_bytes(const Pipeline& pipeline, int stage, double one, double late) {
  const double layers = layers_of(pipeline, stage);
  if (pipeline.stages == 1) return one * layers;
  if (pipeline.schedule != Schedule::zb_h1) {
    const int in_flight = workloads::stack::most_in_flight(pipeline, stage);
    return in_flight * one * layers / pipeline.chunks;
  }
  // The peak occurs while a stage computes the input gradients of some microbatch i. Up to `ahead`
  // later microbatches are then between their forward pass and input gradients, and up to `stage`
  // earlier ones between input and weight gradients. The layers of microbatch i change one by one
  // from `one` to `late` bytes, the last layer first.
  const int others = pipeline.microbatches - 1, ahead = pipeline.stages - 1 - stage;
  double most = 0;
  for (const int i : {0, std::min(stage, others), std::max(0, others - ahead), others}) {
    const double held = std::min(ahead, others - i) * one + std::min(stage, i) * late;
    most = std::max(most, held * layers);
  }
  return most + one + (layers - 1) * std::max(one, late);
}

/// Adds to `known` the values that requests need and that it lacks. Requests with equal keys have
/// the same value, so each is computed once.
template <class Value, class Needs, class Learn>
void learn_all(std::span<const Request> requests, std::map<std::string, Value>& known,
               std::string (*key_of)(const Request&), const Needs& needs, const Learn& learn) {
  std::vector<std::pair<const Request*, Value*>> items;
  for (const Request& request : requests) {
    if (!needs(request)) continue;
    const auto [entry, is_new] = known.try_emplace(key_of(request));
    if (is_new) items.emplace_back(&request, &entry->second);
  }
  base::parallel_for(items.size(),
                     [&](std::size_t i) { *items[i].second = learn(*items[i].first); });
}

/// Returns the extents of the axes and the values of the options as one text.
std::string key_of(const Request& request, mesh::AxisSet axes,
                   std::initializer_list<std::string_view> options) {
  std::string key;
  for (const mesh::Axis axis : mesh::all_axes) {
    if (axes.contains(axis)) key += fmt::format("{} ", request.mesh[axis]);
  }
  for (const std::string_view option : options) {
    const auto found = request.options.find(option);
    key.append(found == request.options.end() ? "" : found->second) += ' ';
  }
  return key;
}

using mesh::Axis;

/// Requests with equal keys have the same StageLaw.
std::string stage_key(const Request& request) {
  return key_of(request, {Axis::tp, Axis::cp, Axis::ep, Axis::dp},
                {"microbatch", "zero", "recompute", "sequence_parallel"});
}
/// Requests with equal keys have the same head_numbers(). The key lacks `recompute`, since the
/// output projection is never recomputed.
std::string head_key(const Request& request) {
  return key_of(request, {Axis::tp, Axis::cp, Axis::ep, Axis::dp},
                {"microbatch", "zero", "sequence_parallel"});
}
/// Requests with equal keys send messages of the same size.
std::string size_key(const Request& request) {
  return key_of(request, {Axis::tp, Axis::cp, Axis::ep}, {"microbatch", "sequence_parallel"});
}
/// Requests with equal keys send messages that take the same time.
std::string message_key(const Request& request) {
  return key_of(request, mesh::every_axis, {"microbatch", "sequence_parallel"});
}

/// Returns the request changed to the schedule zb-h1 with `stages` stages, and with one layer and
/// one microbatch per stage. To keep it small it has no vocabulary, no sharded states and as few
/// replicas as possible.
Request stages_of_one_layer(const workloads::Workload& workload, const Request& request,
                            int stages) {
  Request result = request;
  result.model.layers = stages;
  mesh::Shape shape = request.mesh;
  shape.pp = stages;
  shape.dp = 1;
  // Without experts, ep only shards states, and this request shards none.
  if (workloads::stack::options_of(request).experts == 0) shape.ep = 1;
  result.options["batch"] =
      std::to_string(workloads::stack::options_of(request).microbatch * stages * shape.ep);
  result.options.erase("microbatches");
  result.options["schedule"] = "zb-h1";
  result.options["vocabulary"] = "off";
  result.options["zero"] = "0";
  for (const char* const key : {"gather", "v", "stage_layers"}) result.options.erase(key);
  return workload.scale(result, shape, workloads::Scaling::strong);
}

}  // namespace

double pipeline_seconds(const Pipeline& pipeline, const StagePasses& stage, const StagePasses& last,
                        double message) {
  const double m = pipeline.microbatches, p = pipeline.stages, v = pipeline.chunks;
  // Times from fitted lines may be slightly below 0; they are taken as 0.
  const double forward = std::max(0.0, stage.forward), backward = std::max(0.0, stage.backward);
  const double of_last = m * (std::max(0.0, last.forward) + std::max(0.0, last.backward));
  if (pipeline.stages == 1) return of_last;
  // Messages that no pass hides: those of the first microbatch on its way forward and of the last
  // one on its way back.
  double exposed = 2 * (p - 1), exposed_last = exposed;
  double early = 0;  // weight gradients of the last stage that overlap with passes of other stages
  double late = 0;   // weight gradients that fill no bubble
  switch (pipeline.schedule) {
    case Schedule::gpipe:
      break;
    case Schedule::one_f_one_b:
      exposed = p == 2 ? m + 1 : 2 * m + 2 * p - 5;
      exposed_last = m + 2 * p - 3;
      break;
    case Schedule::interleaved:
      exposed = p == 2 ? v * (m + 2) - 1 : (2 * v - 1) * m + 2 * p - 3;
      exposed_last = exposed;
      break;
    case Schedule::zb_h1:
      exposed = m + 3 * p - 5;
      exposed_last = 3 * (p - 1);
      early = p * (last.weight_gradient - stage.weight_gradient);
      late = std::max(0.0, p - m) * stage.weight_gradient;
      break;
  }
  const workloads::stack::PassTimes times{.forward = forward,
                                          .input_gradient = backward - stage.weight_gradient,
                                          .weight_gradient = stage.weight_gradient};
  return workloads::stack::idle_time(pipeline, times) + late +
         std::max(m * (forward + backward) + exposed * message,
                  of_last - early + exposed_last * message);
}

void QuickEstimate::learn(std::span<const Request> requests) {
  const auto always = [](const Request&) { return true; };
  const auto has_stages = [](const Request& request) { return request.mesh.pp > 1; };
  const auto is_late = [&](const Request& request) {
    return has_stages(request) &&
           workloads::stack::pipeline_of(request).schedule == Schedule::zb_h1;
  };
  learn_all(requests, laws_, stage_key, always,
            [&](const Request& request) { return stage_law(question_, request); });
  learn_all(requests, heads_, head_key, always,
            [&](const Request& request) { return head_numbers(question_, request); });
  learn_all(requests, messages_, message_key, has_stages,
            [&](const Request& request) { return message(request); });
  learn_all(requests, late_bytes_, size_key, is_late,
            [&](const Request& request) { return late_bytes(request); });
}

QuickEstimate::Message QuickEstimate::message(const Request& request) const {
  const workloads::stack::Geometry geometry{request, {}};
  const auto element = program::element_size(workloads::stack::types_of(request.precision).compute);
  const auto whole = static_cast<double>(geometry.activation() * element);
  const bool is_scattered = geometry.scatters_hand_over();
  const double sent = is_scattered ? whole / geometry.tp : whole;
  const simulate::Layout layout = layout_of(request, question_.node_ranks);
  const std::vector<simulate::GroupPlace> places =
      simulate::places_of_messages(request.mesh, layout, mesh::Axis::pp, 1);
  const auto apart = static_cast<std::size_t>(mesh::stride(request.mesh, mesh::Axis::pp));
  Message result;
  const auto stages = static_cast<std::size_t>(request.mesh.pp);
  for (std::size_t rank = 0; rank < places.size(); rank += apart) {
    if (rank / apart % stages + 1 == stages) continue;  // the last stage has no next one
    result.seconds =
        std::max(result.seconds, simulate::message_seconds(question_.machine, sent, places[rank]));
  }
  if (is_scattered) {
    const auto groups = simulate::places_of(request.mesh, layout, mesh::Axis::tp);
    result.arrival = simulate::collective_seconds(question_.machine, program::OpKind::all_gather,
                                                  whole, groups.front());
  }
  return result;
}

/// Returns the difference in bytes between the last stages of pipelines with 4 and 3 stages. In
/// zb-h1 the last of s + 1 stages holds s microbatches between their input and weight gradients
/// while it computes the input gradients of another one. One more stage thus adds the bytes of one
/// such microbatch.
double QuickEstimate::late_bytes(const Request& request) const {
  const auto bytes = [&](int stages) {
    return stage_device_bytes(stages_of_one_layer(*question_.workload, request, stages),
                              stages - 1);
  };
  return std::max(0.0, bytes(4) - bytes(3));
}

StageBytes QuickEstimate::largest_stage(const Request& request) const {
  const Pipeline pipeline = workloads::stack::pipeline_of(request);
  const StageLaw& law = laws_.at(stage_key(request));
  const StageNumbers& head = heads_.at(head_key(request));
  const bool is_split = pipeline.stages > 1 && pipeline.schedule == Schedule::zb_h1;
  const double late = is_split ? late_bytes_.at(size_key(request)) : 0;
  StageBytes largest;
  for (int s = 0; s < pipeline.stages; ++s) {
    StageNumbers numbers = law.at(layers_of(pipeline, s));
    const bool is_last = s == pipeline.stages - 1;
    if (is_last) numbers.add_head(head);
    const int in_flight =
        pipeline.stages == 1
            ? 1
            : (workloads::stack::most_in_flight(pipeline, s) + pipeline.chunks - 1) /
                  pipeline.chunks;
    double need = numbers.states + numbers.workspace +
                  activation_bytes(pipeline, s, law.each.activation, late);
    double under_way = numbers.recomputed;
    if (s == 0 && request.trainer == workloads::Trainer::none) {
      need += std::max(0, pipeline.microbatches - in_flight) * numbers.input;
    }
    // The embedding, which only the first stage may have, is as large as the output projection.
    if (s == 0 && workloads::stack::Geometry{request, {.pp = s}}.embedding > 0) need += head.states;
    if (is_last) {
      const bool others_wait = is_split || pipeline.schedule == Schedule::gpipe;
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

double QuickEstimate::seconds(const Request& request) const {
  const Pipeline pipeline = workloads::stack::pipeline_of(request);
  const StageLaw& law = laws_.at(stage_key(request));
  StageNumbers last = law.at(layers_of(pipeline, pipeline.stages - 1));
  last.add_head(heads_.at(head_key(request)));
  StageNumbers others = last;
  Message message;
  if (pipeline.stages > 1) {
    int most = 0;
    for (int s = 0; s + 1 < pipeline.stages; ++s) most = std::max(most, layers_of(pipeline, s));
    others = law.at(most);
    message = messages_.at(message_key(request));
    for (StageNumbers* const stage : {&others, &last}) {
      stage->forward += pipeline.chunks * message.arrival;
      stage->backward += pipeline.chunks * message.arrival;
    }
    // The model's first chunk receives no input, and its last one no gradient. `others` stands for
    // all stages but the last, so it is the first stage only if there are two.
    if (pipeline.stages == 2) others.forward -= message.arrival;
    last.backward -= message.arrival;
  }
  return pipeline_seconds(pipeline, others, last, message.seconds) + others.ends;
}

}  // namespace isoscale::analysis::predict
