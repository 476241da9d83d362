// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/require_states.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "workloads/options.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/state_plan.hpp"

namespace isoscale::workloads::stack {
namespace {

/// The value given for a key, when it is another than `neutral`.
std::string departure(const Request& request, std::string_view key, std::string_view neutral) {
  const auto given = request.options.find(key);
  return given == request.options.end() || given->second == neutral ? "" : given->second;
}

void require_other_strategies(const Request& scaled, const StatePlan& plan) {
  const auto exclude = [&](std::string_view key, std::string_view neutral, std::string_view why) {
    const std::string given = departure(scaled, key, neutral);
    if (given.empty()) return;
    throw base::UsageError(fmt::format("zero={} excludes {}={}: {}; use {}={}, or zero=0",
                                       plan.zero, key, given, why, key, neutral));
  };
  exclude("strategy", "ddp", "one rank alone has all states there");
  exclude("grad_dtype", "same", "parts of gradients are summed in the type they accumulate in");
  exclude("compression", "none", "replicas send each other gradients of whole tensors there");
  if (plan.shards_gradients()) {
    exclude("partition", "equal", "every replica takes part in a reduction after each microbatch");
  }
}

void require_zero(const Request& scaled, const StatePlan& plan) {
  if (plan.zero == 0) return;
  require_other_strategies(scaled, plan);
  const bool offloads_weights = plan.offload == Offload::weights;
  if (plan.shards_weights() && offloads_weights) {
    throw base::UsageError(fmt::format(
        "zero=3 excludes offload=weights: with dp={} a rank keeps 1/{} of the weights already; use "
        "zero=2, or offload=none",
        scaled.mesh.dp, scaled.mesh.dp));
  }
  if (offloads_weights && plan.is_managed()) {
    throw base::UsageError(
        fmt::format("zero={} excludes offload=weights with offload_memory=managed: replicas gather "
                    "weights in device memory; use offload_memory=pinned, or zero=0",
                    plan.zero));
  }
  if (plan.shards_weights()) {
    const std::string reduce = departure(scaled, "reduce_bucket", "");
    if (!reduce.empty()) {
      throw base::UsageError(fmt::format(
          "zero=3 has no reduce_bucket={}: a rank updates the part of a bucket that it keeps, so "
          "gradients are reduced in the buckets in which weights are gathered; use "
          "gather_bucket={}",
          reduce, reduce));
    }
  }
}

}  // namespace

void require_states(const Request& scaled) {
  const StatePlan plan = state_plan_of(scaled);
  const Types types = types_of(scaled.precision);
  require_zero(scaled, plan);
  const bool weights_move = plan.shards_weights() || plan.offload == Offload::weights;
  if (weights_move && types.casts_operands()) {
    const std::string_view what = plan.shards_weights() ? "zero=3" : "offload=weights";
    throw base::UsageError(fmt::format(
        "{} excludes --dtype fp8, which keeps two fp8 copies of every weight on the device for the "
        "whole step; use {}, or --dtype bf16",
        what, plan.shards_weights() ? "zero=2" : "offload=none"));
  }
  const OptionReader options{option_table(), scaled.options};
  if (plan.offload == Offload::optimizer && options.is("optimizer", "sgd") && !types.has_master()) {
    throw base::UsageError(fmt::format(
        "offload=optimizer has nothing to offload: optimizer=sgd has no moments, and --dtype {} no "
        "masters; use optimizer=adam, or offload=none",
        name(scaled.precision)));
  }
}

}  // namespace isoscale::workloads::stack
