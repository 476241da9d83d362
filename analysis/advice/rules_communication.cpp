// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/advice/rules.hpp"
#include "analysis/experiment_and_machine_identity.hpp"
#include "results/records/point_facts.hpp"

/// Implements the rules about collectives and their overlap, and advice against exposed transfers.
namespace isoscale::analysis::advice {
namespace {

using program::OpKind;
using results::PointData;
using Clauses = std::vector<std::string>;

constexpr int most_clauses = 3;

/// True if the groups of an axis are known to span nodes.
bool leaves_nodes(const PointReport& point, mesh::Axis axis) {
  if (!point.nodes) return false;
  const auto at = point.nodes->axes.find(axis);
  return at != point.nodes->axes.end() &&
         (at->second == mesh::Reach::inter_node || at->second == mesh::Reach::mixed);
}

/// Returns the advice to make the groups of an axis smaller, so that they can use faster links.
std::string smaller_groups(const PointReport& point, mesh::Axis axis) {
  const std::string_view name = mesh::name(axis);
  return leaves_nodes(point, axis)
             ? fmt::format("keep {} groups inside a node with a smaller {}: --mesh", name, name)
             : fmt::format("use less {} and more dp: --mesh", name);
}

bool is_on(const PointData& point, const char* option) { return option_of(point, option) == "on"; }

bool has_experts(const PointData& point) {
  return results::count_in(point.options, "experts").value_or(0) > 0;
}

/// Returns advice for an axis of a grid of image tiles. Neighbouring tiles exchange halos; the
/// larger the tiles, the smaller the share of the image that halos are.
Clauses for_halos(const PointData& point) {
  Clauses clauses;
  if (option_of(point, "overlap") == "off") clauses.emplace_back("--set overlap=on");
  clauses.emplace_back("use larger tiles: --set image, or fewer per image and more dp: --mesh");
  return clauses;
}

/// Returns advice for tp, which communicates activations in every layer.
Clauses for_tp(const PointReport& report) {
  const PointData& point = *report.data;
  Clauses clauses;
  const bool has_pairs = !option_of(point, "sequence_parallel").empty();
  const bool splits =
      is_on(point, "ring") || results::count_in(point.options, "chunks").value_or(1) > 1;
  // Workloads do not split tensors into chunks if the type is fp8 (its cast needs the maximum of
  // the whole tensor) or if the model has experts (they take whole tensors).
  const bool may_split = point.dtype != "fp8" && !has_experts(point);
  if (option_of(point, "tp_output") == "gather") {
    clauses.emplace_back("--set tp_output=reduce, which can overlap with GEMMs");
  } else if (has_pairs && !splits && may_split) {
    clauses.push_back(
        fmt::format("overlap tp communication with GEMMs: --set {}ring=on, or --set chunks=4",
                    is_on(point, "sequence_parallel") ? "" : "sequence_parallel=on and "));
  }
  const bool has_weight_gradients_later =
      option_of(point, "schedule") == "zb-h1" && point.mesh.pp > 1;
  if (option_of(point, "async_reduce") == "off" && !is_on(point, "sequence_parallel") &&
      !has_weight_gradients_later) {
    clauses.emplace_back(
        "overlap the all-reduces of the backward pass with weight gradients: "
        "--set async_reduce=on");
  }
  clauses.push_back(smaller_groups(report, mesh::Axis::tp));
  return clauses;
}

/// Returns advice for cp, which sends keys and values around a ring. Long sequences help: the
/// compute that can hide this grows with the square of a rank's part of the sequence.
Clauses for_cp(const PointReport& report) {
  return {smaller_groups(report, mesh::Axis::cp),
          "use a model with a longer sequence: its compute hides more of the ring"};
}

/// Returns advice for ep, which sends tokens to their experts and back.
Clauses for_ep(const PointReport& report) {
  const PointData& point = *report.data;
  Clauses clauses;
  if (leaves_nodes(report, mesh::Axis::ep) && option_of(point, "expert_placement") == "spread") {
    clauses.emplace_back("--set expert_placement=packed");
  }
  if (option_of(point, "capacity") == "none" && results::count_in(point.options, "skew")) {
    clauses.emplace_back("limit the fullest expert, for which all ranks wait: --set capacity=1.25");
  }
  clauses.push_back(smaller_groups(report, mesh::Axis::ep));
  return clauses;
}

/// Returns advice for dp, which reduces gradients once per step. With zero=2 and zero=3 it reduces
/// them for every microbatch, and with zero=3 it also gathers weights.
Clauses for_dp(const PointReport& report) {
  const PointData& point = *report.data;
  Clauses clauses;
  if (option_of(point, "strategy") == "funnel") clauses.emplace_back("--set strategy=ddp");
  if (option_of(point, "overlap") == "off") clauses.emplace_back("--set overlap=on");
  const std::string zero = option_of(point, "zero");
  if (zero == "2" || zero == "3") {
    clauses.push_back(fmt::format(
        "zero={} communicates for every microbatch: use fewer, larger ones (--set microbatch), or "
        "zero=1 if memory allows it",
        zero));
  } else if (!option_of(point, "microbatch").empty()) {
    clauses.emplace_back("use more microbatches per step: --set microbatches (and batch)");
  } else {
    clauses.emplace_back("use a larger batch: --set batch");
  }
  if (option_of(point, "grad_dtype") == "same" && point.dtype != "f64") {
    clauses.emplace_back("halve the bytes of gradients: --set grad_dtype=bf16");
  }
  return clauses;
}

/// Returns advice for ep if the model has no experts. The ranks along ep then hold replicas of the
/// model, as those along dp do, and the option `zero` shards the training state among them.
Clauses for_shards(const PointReport& report) {
  Clauses clauses = for_dp(report);
  if (leaves_nodes(report, mesh::Axis::ep)) {
    clauses.insert(clauses.begin(), smaller_groups(report, mesh::Axis::ep));
  }
  return clauses;
}

/// Returns advice for pp, which sends activations of microbatches from stage to stage.
Clauses for_pp(const PointReport& report) {
  const PointData& point = *report.data;
  Clauses clauses;
  if (option_of(point, "handover") == "whole" && point.mesh.tp > 1) {
    clauses.emplace_back("send only 1/tp of the bytes: --set handover=scattered");
  }
  if (option_of(point, "schedule") == "interleaved") {
    clauses.emplace_back(
        "use fewer virtual stages, since each adds a message: --set v, or schedule=1f1b");
  }
  clauses.emplace_back("use fewer stages: --mesh (see the timeline: report --trace FILE.json)");
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
      return has_experts(*point.data) ? for_ep(point) : for_shards(point);
    case mesh::Axis::pp:
      return for_pp(point);
    case mesh::Axis::dp:
      break;
  }
  return for_dp(point);
}

constexpr int parts_of_bucket = 4;  ///< number of smaller buckets that the advice suggests

/// Returns the time of the traced step, in seconds by category, that communication along an axis
/// takes. A collective along several axes counts if this axis is one of them.
breakdown::Breakdown communication_along(const breakdown::BreakdownResult& breakdown,
                                         mesh::Axis axis) {
  breakdown::Breakdown sum;
  for (const auto& [axes, parts] : breakdown.by_axes) {
    if (axes.contains(axis)) sum += parts;
  }
  return sum;
}

/// Returns the share of the traced step in which transfer along dp is exposed.
double exposed_along_dp(const breakdown::BreakdownResult& breakdown) {
  return communication_along(breakdown, mesh::Axis::dp).transfer / breakdown.mean->step;
}

/// Returns the axis with the most transfer and wait time; absent if there is none.
std::optional<mesh::Axis> busiest_axis(const breakdown::BreakdownResult& breakdown) {
  std::optional<mesh::Axis> busiest;
  double most = 0;
  for (const mesh::Axis axis : mesh::all_axes) {
    const breakdown::Breakdown parts = communication_along(breakdown, axis);
    const double exposed = parts.transfer + parts.wait;
    if (exposed <= most) continue;
    most = exposed;
    busiest = axis;
  }
  return busiest;
}

/// The gradient reductions of a rank.
struct Buckets {
  std::size_t count = 0;
  double bytes = 0;    ///< sum over all buckets
  double largest = 0;  ///< bytes
  OpKind op = OpKind::all_reduce;
};

/// Returns the gradient reductions of the rank that reduces the most bytes. Ranks of different
/// pipeline stages may reduce different gradients.
Buckets buckets_of(const PointData& point) {
  Buckets most;
  for (const program::Outline& outline : point.outline.outlines) {
    Buckets here;
    for (const program::OutlineOp& op : outline.ops) {
      const bool reduces = op.place.phase == program::Phase::gradient_reduction &&
                           program::communicates(op.kind) && op.axes.contains(mesh::Axis::dp);
      if (!reduces) continue;
      ++here.count;
      here.bytes += static_cast<double>(op.bytes);
      here.largest = std::max(here.largest, static_cast<double>(op.bytes));
      here.op = op.kind;
    }
    if (here.bytes > most.bytes) most = here;
  }
  return most;
}

/// Returns the calibration curve of the communication library's own implementation of `op` among as
/// many ranks as dp has, preferably over as many nodes as the point uses, then preferably with its
/// element type. Only curves with a latency and a bandwidth are considered. Null if there is none.
const results::CalibrationCurve* curve_for(const PointSubject& subject, OpKind op) {
  const std::string dtype = results::stored_dtype(*subject.point.data);
  const results::CalibrationCurve* best = nullptr;
  std::pair<bool, bool> best_match;
  for (const results::CalibrationCurve& at : subject.calibration.curves) {
    const bool fits = at.op == program::name(op) && at.implementation == "library" &&
                      at.members == subject.point.data->mesh.dp && at.latency && at.bandwidth &&
                      at.latency->value > 0 && at.bandwidth->value > 0;
    if (!fits) continue;
    const std::pair match{at.nodes == subject.point.data->nodes, at.dtype == dtype};
    if (best != nullptr && match <= best_match) continue;
    best = &at;
    best_match = match;
  }
  return best;
}

std::string bytes_text(double bytes) { return value_text({.unit = Unit::bytes, .value = bytes}); }

/// Returns "64MiB", the form that --set takes: whole MiB or KiB, rounded up.
std::string size_option(double bytes) {
  constexpr double kib = 0x1p10, mib = 0x1p20;
  if (bytes >= mib) return fmt::format("{:.0f}MiB", std::ceil(bytes / mib));
  return fmt::format("{:.0f}KiB", std::max(1.0, std::ceil(bytes / kib)));
}

/// True if, on some rank, collectives along these axes run on a stream without compute ops. Axes of
/// extent 1 are ignored.
bool has_own_stream(const PointData& point, mesh::AxisSet axes) {
  for (const program::Outline& outline : point.outline.outlines) {
    std::set<program::StreamId> computing, reducing;
    for (const program::OutlineOp& op : outline.ops) {
      if (program::computes(op.kind)) computing.insert(op.stream);
      const bool collective = program::communicates(op.kind) && op.kind != OpKind::exchange;
      if (collective && mesh::varying(point.mesh, op.axes) == axes) reducing.insert(op.stream);
    }
    const bool own = std::ranges::any_of(
        reducing, [&](program::StreamId stream) { return !computing.contains(stream); });
    if (own && !computing.empty()) return true;
  }
  return false;
}

Said communication_ratio(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  if (!point.breakdown.mean || !point.communication_ratio) return std::nullopt;
  const breakdown::Breakdown& mean = *point.breakdown.mean;
  const double transfer = mean.transfer / mean.step, wait = mean.wait / mean.step;
  const double exposed = transfer + wait;
  const bool is_much = *point.communication_ratio > rule.limit("communication");
  if (!is_much || !(exposed > rule.limit("exposed"))) return std::nullopt;
  const auto axis = busiest_axis(point.breakdown);
  Finding said{.severity = exposed};
  const double hidden = mean.hidden_communication / mean.step;
  const std::string how = hidden > rule.limit("exposed")
                              ? percent(hidden) + " hidden behind computation"
                              : "hardly any hidden";
  said.sentence = fmt::format("communication takes {} of the step, {}",
                              percent(*point.communication_ratio), how);
  said.add("exposed transfer", transfer);
  said.add("waiting for late partners", wait);
  if (axis) said.add("most along", std::string{mesh::name(*axis)});
  const bool waits = point.breakdown.wait_known && wait > transfer;
  said.next_step = "see the timeline: isoscale report FILE.h5 --trace trace.json";
  if (axis) said.next_step = advice_along(point, *axis);
  if (waits) said.next_step = "most of it is waiting for late ranks: see report --detail waterfall";
  return said;
}

Said missing_overlap(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  if (!point.breakdown.mean) return std::nullopt;
  double hidden = 0, transfer = 0;
  for (const auto& [axes, parts] : point.breakdown.by_axes) {
    if (!has_own_stream(*point.data, axes)) continue;
    hidden += parts.hidden_communication;
    transfer += parts.transfer;
  }
  const double step = point.breakdown.mean->step, share = transfer / step;
  if (!(share > rule.limit("exposed")) || hidden > rule.limit("hidden") * (hidden + transfer)) {
    return std::nullopt;
  }
  Finding said{.severity = share};
  said.add("hidden communication", hidden / step);
  said.add("exposed transfer", share);
  if (point.data->folded) {
    said.sentence = fmt::format("no overlap: all streams ran as one, so {} of the step is exposed",
                                percent(share));
    said.add("streams", point.data->folded_reason);
    said.next_step = "give ranks two cores each: mpirun --map-by slot:PE=2, srun --cpus-per-task=2";
    return said;
  }
  said.sentence = fmt::format(
      "overlap is on, but hides only {} of what it could hide: {} of the step is exposed",
      percent(hidden / (hidden + transfer)), percent(share));
  said.next_step = "see how streams overlap: isoscale report FILE.h5 --trace trace.json";
  for (const auto& [key, given] : subject.run.environment) {
    if (key != "CUDA_DEVICE_MAX_CONNECTIONS" || given.empty()) continue;
    said.add(key, given);  // this setting can prevent overlap
    if (given == "1") said.next_step = "unset CUDA_DEVICE_MAX_CONNECTIONS=1 and measure again";
  }
  return said;
}

Said small_buckets(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  const Buckets buckets = buckets_of(*point.data);
  if (!point.breakdown.mean || option_of(*point.data, "bucket").empty() ||
      static_cast<double>(buckets.count) < rule.limit("buckets")) {
    return std::nullopt;
  }
  const double exposed = exposed_along_dp(point.breakdown);
  if (!(exposed > rule.limit("exposed"))) return std::nullopt;
  const double bytes = buckets.bytes / static_cast<double>(buckets.count);
  Finding said;
  said.add("buckets", static_cast<double>(buckets.count), Unit::count);
  said.add("bytes per bucket", bytes, Unit::bytes);
  said.add("exposed dp transfer", exposed);
  const auto* const curve = curve_for(subject, buckets.op);
  double enough = rule.limit("bucket");
  if (curve != nullptr) {
    const double transferred = bytes / curve->bandwidth->value;
    const double latency = curve->latency->value / (curve->latency->value + transferred);
    if (!(latency > rule.limit("latency of a call"))) return std::nullopt;
    said.severity = exposed * latency;
    said.add("latency of a call", latency);
    enough = curve->latency->value * curve->bandwidth->value;
  } else if (subject.run.device != "cuda" || bytes >= enough) {
    return std::nullopt;
  }
  said.sentence = fmt::format("{} gradient buckets of {} each {} bound by latency", buckets.count,
                              bytes_text(bytes), curve != nullptr ? "are" : "may be");
  said.next_step =
      fmt::format("use larger buckets: --set bucket={} or more", size_option(4 * enough));
  return said;
}

Said single_bucket(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  const Buckets buckets = buckets_of(*point.data);
  if (!point.breakdown.mean || option_of(*point.data, "overlap") != "on" ||
      option_of(*point.data, "bucket").empty() || buckets.count != 1 || point.data->folded) {
    return std::nullopt;
  }
  const double exposed = exposed_along_dp(point.breakdown);
  const auto* const curve = curve_for(subject, buckets.op);
  // Each smaller bucket must be so large that its latency does not exceed its transfer time.
  const double least = curve != nullptr
                           ? parts_of_bucket * curve->latency->value * curve->bandwidth->value
                           : rule.limit("bucket");
  if (!(exposed > rule.limit("exposed")) || buckets.bytes < least) return std::nullopt;
  Finding said{.severity = exposed * (parts_of_bucket - 1) / parts_of_bucket};
  said.sentence =
      fmt::format("all gradients are in one bucket of {}, which the backward pass cannot hide",
                  bytes_text(buckets.bytes));
  said.add("bytes of the bucket", buckets.bytes, Unit::bytes);
  said.add("exposed dp transfer", exposed);
  said.next_step = fmt::format("use smaller buckets: --set bucket={}",
                               size_option(buckets.bytes / parts_of_bucket));
  return said;
}

constexpr Rule communication_table[] = {
    {.name = "communication-ratio",
     .source = "POP CoE metrics: efficiencies above 0.8 are acceptable",
     .thresholds = {{{"communication", 0.20}, {"exposed", 0.05}}},
     .judge_point = communication_ratio},
    {.name = "missing-overlap",
     .source = "docs/breakdown.md; Megatron-LM issue 827, PyTorch issue 143890",
     .thresholds = {{{"hidden", 0.10}, {"exposed", 0.02}}},
     .judge_point = missing_overlap},
    {.name = "small-buckets",
     .source = "PyTorch Distributed, VLDB 2020 (arXiv 2006.15704); NVIDIA dgxc-benchmarking, "
               "all_reduce on 8 H100: latency up to 1 MiB",
     .thresholds = {{{"latency of a call", 0.5},
                     {"bucket", 0x1p20, Unit::bytes},
                     {"buckets", 4, Unit::count},
                     {"exposed", 0.02}}},
     .judge_point = small_buckets},
    {.name = "single-bucket",
     .source = "PyTorch Distributed, VLDB 2020 (arXiv 2006.15704)",
     .thresholds = {{{"bucket", 0x1p22, Unit::bytes}, {"exposed", 0.02}}},
     .instead_of = "missing-overlap",
     .judge_point = single_bucket},
};

}  // namespace

std::string advice_along(const PointReport& point, mesh::Axis axis) {
  Clauses clauses = clauses_of(point, axis);
  if (clauses.size() > most_clauses) clauses.resize(most_clauses);
  if (clauses.size() > 1) clauses.back().insert(0, "or ");
  return fmt::format("{}", fmt::join(clauses, "; "));
}

std::span<const Rule> communication_rules() { return communication_table; }

}  // namespace isoscale::analysis::advice
