// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/hybrid/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "workloads/options.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/linear.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::hybrid {
namespace {

constexpr long long default_microbatch = 4;
constexpr long long default_microbatches = 16;
/// Layers x microbatches of a stage, at most: some 20 ops each, so a program of a few GB.
constexpr long long most_layer_passes = 250'000;

/// At the base mesh: batch = microbatch * microbatches.
struct BatchPlan {
  long long microbatch = 0, microbatches = 0;
  [[nodiscard]] long long batch() const { return microbatch * microbatches; }
};

long long divide_batch(long long batch, long long by, std::string_view what) {
  if (batch % by == 0) return batch / by;
  throw base::UsageError(
      fmt::format("batch={} does not divide by {}={}; the nearest batches that do are {} and {}",
                  batch, what, by, std::max(by, batch / by * by), (batch / by + 1) * by));
}

BatchPlan base_batch(const Request& base) {
  const OptionReader options{stack::option_table(), base.options};
  const bool batch = options.has("batch"), one = options.has("microbatch"),
             many = options.has("microbatches");
  if (batch && one && many &&
      options.integer("batch") != options.integer("microbatch") * options.integer("microbatches")) {
    throw base::UsageError(fmt::format(
        "batch={} is not microbatch={} x microbatches={} = {}; give any two of the three",
        options.integer("batch"), options.integer("microbatch"), options.integer("microbatches"),
        options.integer("microbatch") * options.integer("microbatches")));
  }
  if (!batch) {
    return {.microbatch = one ? options.integer("microbatch") : default_microbatch,
            .microbatches = many ? options.integer("microbatches") : default_microbatches};
  }
  const long long total = options.integer("batch");
  if (many) {
    const long long microbatches = options.integer("microbatches");
    return {.microbatch = divide_batch(total, microbatches, "microbatches"),
            .microbatches = microbatches};
  }
  const long long microbatch =
      one ? options.integer("microbatch") : std::min(total, default_microbatch);
  return {.microbatch = microbatch, .microbatches = divide_batch(total, microbatch, "microbatch")};
}

/// The same batch over dp replicas: fewer microbatches each, and smaller ones only when one is
/// left.
BatchPlan deal_out(const BatchPlan& plan, int dp) {
  const long long each = divide_batch(plan.batch(), dp, "dp");
  if (each <= plan.microbatch) return {.microbatch = each, .microbatches = 1};
  if (each % plan.microbatch != 0) {
    throw base::UsageError(fmt::format(
        "batch={} over dp={} leaves {} samples a replica, which microbatch={} does not divide; use "
        "batch={} or another microbatch",
        plan.batch(), dp, each, plan.microbatch,
        (each / plan.microbatch + 1) * plan.microbatch * dp));
  }
  return {.microbatch = plan.microbatch, .microbatches = each / plan.microbatch};
}

/// With fp8 a rank's share of a width is a multiple of 16 too: what tp divides is so many times
/// smaller. A width that is none on one rank either is refused by its numbers, in scale.
mesh::Constraint aligned(mesh::Constraint limit, int columns_of_each) {
  const int unit = stack::fp8_multiple / std::gcd(stack::fp8_multiple, columns_of_each);
  if (unit == 1 || limit.number % unit != 0) return limit;
  return {limit.axis, limit.number / unit, fmt::format("{} / {}", limit.what, unit)};
}

std::vector<mesh::Constraint> aligned(std::vector<mesh::Constraint> limits, const Model& model) {
  const int grouped = model.heads / model.kv_heads;
  for (mesh::Constraint& limit : limits) {
    if (limit.axis != mesh::Axis::tp || limit.what == "vocabulary") continue;
    const bool heads = limit.what == "kv_heads";
    limit = aligned(limit, heads ? std::gcd(grouped, 2) * model.head_size : 1);
  }
  return limits;
}

}  // namespace

std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling) {
  const OptionReader options{stack::option_table(), base.options};
  const Model& model = base.model;
  // Under weak scaling all but the hidden size grows with tp, and the layers with pp.
  const bool gathers = options.is("tp_output", "gather");
  if (scaling == Scaling::weak && !gathers) return {};
  const mesh::Constraint hidden{mesh::Axis::tp, model.hidden, "hidden"};
  const bool fp8 = stack::types_of(base.precision).casts_operands();
  if (scaling == Scaling::weak) {
    return fp8 ? aligned({hidden}, model) : std::vector<mesh::Constraint>{hidden};
  }
  std::vector<mesh::Constraint> result{
      {mesh::Axis::tp, model.kv_heads, "kv_heads"},
      {mesh::Axis::tp, model.ffn, "ffn"},
      {mesh::Axis::pp, model.layers, "layers"},
  };
  if (gathers) result.push_back(hidden);
  if (options.is("vocabulary", "on")) {
    result.push_back({mesh::Axis::tp, model.vocabulary, "vocabulary"});
  }
  return fp8 ? aligned(std::move(result), model) : result;
}

Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling) {
  Request result = base;
  result.mesh = mesh;
  BatchPlan plan = base_batch(base);
  if (scaling == Scaling::weak) {
    Model& model = result.model;
    model.heads *= mesh.tp;
    model.kv_heads *= mesh.tp;
    model.ffn *= mesh.tp;
    model.vocabulary *= mesh.tp;
    model.layers *= mesh.pp;
    result.growth = mesh.tp * mesh.pp;
  } else {
    plan = deal_out(plan, mesh.dp);
  }
  const long long stage_layers = std::max(1, result.model.layers / mesh.pp);
  if (plan.microbatches > most_layer_passes / stage_layers) {
    throw base::UsageError(fmt::format(
        "microbatches={} x {} layers a stage makes a program of more than {} layer passes; use "
        "microbatches={} or fewer (a larger microbatch, or a smaller batch)",
        plan.microbatches, stage_layers, most_layer_passes, most_layer_passes / stage_layers));
  }
  result.options["batch"] = std::to_string(plan.batch() * mesh.dp);
  result.options["microbatch"] = std::to_string(plan.microbatch);
  result.options["microbatches"] = std::to_string(plan.microbatches);
  if (stack::types_of(base.precision).casts_operands()) {
    stack::require_fp8_extents({result, mesh.pp - 1});
  }
  return result;
}

double work_per_step(const Request& request) {
  const OptionReader options{stack::option_table(), request.options};
  return static_cast<double>(options.integer("batch")) * request.model.sequence * request.growth;
}

mesh::Request balanced_mesh(int ranks) {
  constexpr std::array turn{mesh::Axis::dp, mesh::Axis::tp, mesh::Axis::pp};
  mesh::Request result{{mesh::Axis::dp, 1}, {mesh::Axis::tp, 1}, {mesh::Axis::pp, 1}};
  std::size_t next = 0;
  while (ranks % 2 == 0) {
    result[turn[next]] *= 2;
    next = (next + 1) % turn.size();
    ranks /= 2;
  }
  result[mesh::Axis::dp] *= ranks;
  return result;
}

}  // namespace isoscale::workloads::hybrid
