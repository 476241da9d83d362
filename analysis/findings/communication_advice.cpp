// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/findings/communication_advice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/point_facts.hpp"

namespace isoscale::analysis {
namespace {

using results::PointData;
using Clauses = std::vector<std::string>;

constexpr int most_clauses = 3;

/// Whether the groups of an axis leave their nodes, as far as it is known.
bool leaves_nodes(const PointReport& point, mesh::Axis axis) {
  if (!point.nodes) return false;
  const auto at = point.nodes->axes.find(axis);
  return at != point.nodes->axes.end() &&
         (at->second == mesh::Reach::inter_node || at->second == mesh::Reach::mixed);
}

/// Of axes whose traffic is that of every layer: it belongs on the fastest links.
std::string smaller_groups(const PointReport& point, mesh::Axis axis) {
  const std::string_view name = mesh::name(axis);
  return leaves_nodes(point, axis)
             ? fmt::format("{} groups that stay inside a node: a smaller {}, --mesh", name, name)
             : fmt::format("less {} and more dp: --mesh", name);
}

bool is_on(const PointData& point, const char* option) { return option_of(point, option) == "on"; }

/// The axes of a grid of tiles carry halos, whose share falls with the tile.
Clauses for_halos(const PointData& point) {
  Clauses clauses;
  if (option_of(point, "overlap") == "off") clauses.emplace_back("--set overlap=on");
  clauses.emplace_back("larger tiles: --set image, or fewer tiles an image and more dp: --mesh");
  return clauses;
}

/// Activations, in every layer.
Clauses for_tp(const PointReport& report) {
  const PointData& point = *report.data;
  Clauses clauses;
  const bool has_pairs = !option_of(point, "sequence_parallel").empty();
  const bool splits = is_on(point, "ring") || count_option(point, "chunks").value_or(1) > 1;
  // A cast to fp8 measures whole tensors, experts take them whole: parts are refused there.
  const bool may_split = point.dtype != "fp8" && count_option(point, "experts").value_or(0) < 1;
  if (option_of(point, "tp_output") == "gather") {
    clauses.emplace_back("--set tp_output=reduce, which can travel in parts");
  } else if (has_pairs && !splits && may_split) {
    clauses.emplace_back(is_on(point, "sequence_parallel")
                             ? "parts that hide under GEMMs: --set ring=on, or chunks=4"
                             : "parts that hide under GEMMs: --set sequence_parallel=on and "
                               "ring=on, or chunks=4");
  }
  clauses.push_back(smaller_groups(report, mesh::Axis::tp));
  return clauses;
}

/// Keys and values, hidden under scores whose work grows with the square of a part's length.
Clauses for_cp(const PointReport& report) {
  return {smaller_groups(report, mesh::Axis::cp),
          "longer parts of the sequence hide the ring: a model with a longer sequence"};
}

/// Tokens to their experts and back.
Clauses for_ep(const PointReport& report) {
  const PointData& point = *report.data;
  Clauses clauses;
  if (leaves_nodes(report, mesh::Axis::ep) && option_of(point, "expert_placement") == "spread") {
    clauses.emplace_back("--set expert_placement=packed");
  }
  if (option_of(point, "capacity") == "none" && count_option(point, "skew")) {
    clauses.emplace_back("uneven routing waits for the fullest expert: --set capacity=1.25");
  }
  clauses.push_back(smaller_groups(report, mesh::Axis::ep));
  return clauses;
}

/// Gradients, once a step; with zero=2 once a microbatch, with zero=3 weights as well.
Clauses for_dp(const PointReport& report) {
  const PointData& point = *report.data;
  Clauses clauses;
  if (option_of(point, "strategy") == "funnel") clauses.emplace_back("--set strategy=ddp");
  if (option_of(point, "overlap") == "off") clauses.emplace_back("--set overlap=on");
  const std::string zero = option_of(point, "zero");
  if (zero == "2" || zero == "3") {
    clauses.push_back(fmt::format(
        "zero={} communicates for every microbatch: fewer and larger ones, --set microbatch; or "
        "zero=1 where memory allows it",
        zero));
  } else if (!option_of(point, "microbatch").empty()) {
    clauses.emplace_back("more microbatches a step: --set microbatches (and batch)");
  } else {
    clauses.emplace_back("a larger batch: --set batch");
  }
  if (option_of(point, "grad_dtype") == "same" && point.dtype == "f32") {
    clauses.emplace_back("half the bytes: --set grad_dtype=bf16");
  }
  return clauses;
}

/// Activations of microbatches, from stage to stage.
Clauses for_pp(const PointReport& report) {
  const PointData& point = *report.data;
  Clauses clauses;
  if (option_of(point, "handover") == "whole" && point.mesh.tp > 1) {
    clauses.emplace_back("1/tp of the bytes: --set handover=scattered");
  }
  if (option_of(point, "schedule") == "interleaved") {
    clauses.emplace_back(
        "each virtual stage hands over once more: fewer, --set v, or schedule=1f1b");
  }
  clauses.emplace_back("fewer stages: --mesh; the timeline: report --trace FILE.json");
  return clauses;
}

Clauses clauses_of(const PointReport& point, mesh::Axis axis) {
  const bool is_grid = point.data->workload == "tiles";
  switch (axis) {
    case mesh::Axis::tp:
      return is_grid ? for_halos(*point.data) : for_tp(point);
    case mesh::Axis::cp:
      return is_grid ? for_halos(*point.data) : for_cp(point);
    case mesh::Axis::ep:
      return for_ep(point);
    case mesh::Axis::pp:
      return for_pp(point);
    case mesh::Axis::dp:
      break;
  }
  return for_dp(point);
}

}  // namespace

std::string advice_along(const PointReport& point, mesh::Axis axis) {
  Clauses clauses = clauses_of(point, axis);
  if (clauses.size() > most_clauses) clauses.resize(most_clauses);
  return fmt::format("{}", fmt::join(clauses, "; "));
}

}  // namespace isoscale::analysis
