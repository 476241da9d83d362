// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/require_experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.hpp"
#include "workloads/options.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/routing.hpp"

namespace isoscale::workloads::stack {
namespace {

/// Indices of the rows that the programs of all ranks move, at most: some 4 GiB of plan.
constexpr double most_indices = 1e9;

void require_numbers(const Request& scaled, const OptionReader& options, const Routing& routing) {
  const int ep = scaled.mesh.ep;
  const int experts = static_cast<int>(routing.experts);
  if (experts % ep != 0) {
    const int below = std::max(1, experts / ep) * ep, above = (experts / ep + 1) * ep;
    throw base::UsageError(fmt::format(
        "ep={} does not divide experts={}; the nearest that it does are {}", ep, experts,
        below == above ? fmt::format("{}", below) : fmt::format("{} and {}", below, above)));
  }
  if (routing.topk > routing.experts) {
    throw base::UsageError(
        fmt::format("topk={} of experts={}: a token goes to different ones; use "
                    "topk={} or fewer",
                    routing.topk, experts, experts));
  }
  if (options.is("expert_batch", "padded") && routing.capacity == 0) {
    throw base::UsageError(
        "expert_batch=padded pads to the capacity, and there is none: use capacity=1.25, or "
        "expert_batch=exact");
  }
}

void require_alone(const Request& scaled, const OptionReader& options) {
  if (types_of(scaled.precision).casts_operands()) {
    throw base::UsageError(
        "experts exclude --dtype fp8, whose GEMMs want rows in multiples of 16; use --dtype bf16");
  }
  if (options.is("elementwise", "on")) {
    throw base::UsageError("experts exclude elementwise=on: their MLPs are GEMMs alone; use off");
  }
  if (!options.is("recompute", "none")) {
    throw base::UsageError(
        fmt::format("experts exclude recompute={}: rows would travel again; use recompute=none",
                    options.text("recompute")));
  }
  struct Alone {
    const char *key, *value, *why;
  };
  for (const Alone& alone :
       {Alone{"zero", "0", "their parameters are resident"},
        Alone{"offload", "none", "their parameters are resident"},
        Alone{"strategy", "ddp", "rank 0 would have to hold them all"},
        Alone{"compression", "none", "their gradients have other replicas"},
        Alone{"partition", "equal", "ranks along ep meet in every microbatch"}}) {
    if (options.is(alone.key, alone.value)) continue;
    throw base::UsageError(fmt::format("experts exclude {}={}: {}; use {}={}", alone.key,
                                       options.text(alone.key), alone.why, alone.key, alone.value));
  }
  if (scaled.mesh.tp == 1) return;
  const auto refuse = [](std::string_view option, std::string_view instead) {
    throw base::UsageError(
        fmt::format("experts exclude {}: rows are routed whole; use {}", option, instead));
  };
  if (options.is("tp_output", "gather")) refuse("tp_output=gather", "tp_output=reduce");
  if (options.is("sequence_parallel", "on"))
    refuse("sequence_parallel=on", "sequence_parallel=off");
  if (options.integer("chunks") > 1) {
    refuse(fmt::format("chunks={}", options.integer("chunks")), "chunks=1");
  }
}

/// Every rank has a program of its own, with the rows that it sends, receives and moves.
void require_size(const Request& scaled, const OptionReader& options, const Routing& routing) {
  constexpr double moves = 6;
  const double samples = static_cast<double>(options.integer("batch"));
  const double indices =
      moves * samples * static_cast<double>(routing.sequence) * routing.topk * scaled.model.layers;
  if (indices <= most_indices) return;
  const double fits = samples * most_indices / indices;
  throw base::UsageError(fmt::format(
      "routing batch={} x sequence={} x topk={} through {} layers makes a plan of {:.1e} row "
      "numbers, {:.0e} are allowed; use {}",
      options.integer("batch"), routing.sequence, routing.topk, scaled.model.layers, indices,
      most_indices,
      fits >= 1 ? fmt::format("batch={:.0f} or fewer", std::floor(fits))
                : "a model with fewer layers or a shorter sequence"));
}

}  // namespace

void require_experts(const Request& scaled) {
  const OptionReader options{option_table(), scaled.options};
  const Routing routing = routing_of(scaled);
  if (!routing.has_experts()) {
    if (scaled.mesh.ep == 1) return;
    throw base::UsageError(fmt::format("ep={} has no experts to share out; use experts={}, or ep=1",
                                       scaled.mesh.ep, scaled.mesh.ep));
  }
  require_numbers(scaled, options, routing);
  require_alone(scaled, options);
  require_size(scaled, options, routing);
}

int small_experts(const Request& request) {
  const Routing routing = routing_of(request);
  const int ep = request.mesh.ep, experts = static_cast<int>(routing.experts);
  const int needed = (static_cast<int>(routing.topk) + ep - 1) / ep;
  return ep * std::min(experts / ep, std::max(2, needed));
}

}  // namespace isoscale::workloads::stack
