// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/describe_point.hpp"

#include <map>
#include <string>

namespace isoscale::runner {
namespace {

using results::PointData;

std::map<std::string, std::string> shape_of(const workloads::Model& model) {
  return {{"hidden", std::to_string(model.hidden)},
          {"ffn", std::to_string(model.ffn)},
          {"heads", std::to_string(model.heads)},
          {"kv_heads", std::to_string(model.kv_heads)},
          {"head_size", std::to_string(model.head_size)},
          {"layers", std::to_string(model.layers)},
          {"sequence", std::to_string(model.sequence)},
          {"vocabulary", std::to_string(model.vocabulary)},
          {"gated_mlp", model.gated_mlp ? "yes" : "no"}};
}

}  // namespace

PointData describe_point(const PlannedPoint& point) {
  const workloads::Request& request = point.request;
  PointData data;
  data.index = point.index;
  data.workload = point.workload->name;
  data.model = uses_model(point) ? request.model.name : "none";
  data.dtype = workloads::name(request.precision);
  data.mesh = request.mesh;
  data.ranks = point.ranks;
  data.nodes = point.nodes.value();  // what is measured has been started
  data.scaling = workloads::name(point.experiment->scaling);
  data.placement = mesh::name(point.experiment->placement);
  const workloads::OptionReader options{point.workload->options, request.options};
  for (const workloads::OptionSpec& spec : point.workload->options) {
    if (options.has(spec.key)) data.options[std::string{spec.key}] = options.text(spec.key);
  }
  // What no model shapes has none of its numbers: weak scaling would tell its points apart by them.
  if (point.workload->is_bench() || uses_model(point)) data.model_shape = shape_of(request.model);
  data.seed = request.seed;
  data.throughput_unit = point.workload->throughput_unit;
  data.world_rank = point.world_ranks;
  if (!point.skip_reason.empty()) {
    data.status = results::PointStatus::skipped;
    data.reason = point.skip_reason;
    data.mesh = {};
    return data;
  }
  if (!point.workload->is_bench()) data.work_per_step = point.workload->work_per_step(request);
  return data;
}

}  // namespace isoscale::runner
