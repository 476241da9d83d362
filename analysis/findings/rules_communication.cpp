// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>

#include "analysis/findings/communication_advice.hpp"
#include "analysis/findings/judges.hpp"
#include "analysis/findings/point_facts.hpp"
#include "units/text.hpp"

/// Rules about collectives and what hides them.
namespace isoscale::analysis::judges {
namespace {

using program::OpKind;
using results::PointData;

constexpr int parts_of_bucket = 4;  ///< that one bucket is to be cut into

/// The axis along which most is transferred or waited for; absent where no time was.
std::optional<mesh::Axis> busiest_axis(const BreakdownResult& breakdown) {
  std::optional<mesh::Axis> busiest;
  double most = 0;
  for (const mesh::Axis axis : mesh::all_axes) {
    const Breakdown parts = communication_along(breakdown, axis);
    const double exposed = parts.transfer + parts.wait;
    if (exposed <= most) continue;
    most = exposed;
    busiest = axis;
  }
  return busiest;
}

/// What the gradient reductions of a rank look like.
struct Buckets {
  std::size_t count = 0;
  double bytes = 0;    ///< of all
  double largest = 0;  ///< bytes
  OpKind op = OpKind::all_reduce;
};

/// Of the rank that has most; the stages of a pipeline differ.
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

/// The curve of the library for that op among so many members with a latency and a bandwidth, of
/// the point's nodes where there is one; null without. Not owned.
const results::CalibrationCurve* curve_for(const PointSubject& subject, OpKind op) {
  const results::CalibrationCurve* best = nullptr;
  for (const results::CalibrationCurve& at : subject.calibration.curves) {
    const bool fits = at.op == program::name(op) && at.implementation == "library" &&
                      at.members == subject.point.data->mesh.dp && at.latency && at.bandwidth &&
                      at.latency->value > 0 && at.bandwidth->value > 0;
    if (!fits) continue;
    if (best == nullptr || at.nodes == subject.point.data->nodes) best = &at;
  }
  return best;
}

std::string bytes_text(double bytes) { return value_text({.unit = Unit::bytes, .value = bytes}); }

/// "64MiB", as --set takes it: whole MiB or KiB, rounded up.
std::string size_option(double bytes) {
  constexpr double kib = 0x1p10, mib = 0x1p20;
  if (bytes >= mib) return fmt::format("{:.0f}MiB", std::ceil(bytes / mib));
  return fmt::format("{:.0f}KiB", std::max(1.0, std::ceil(bytes / kib)));
}

/// Whether collectives have a stream on which nothing computes, along these axes of more than one.
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

/// What a run says of how it was played that can remove overlap.
std::string connections_of(const results::RunData& run) {
  for (const auto& [key, value] : run.environment) {
    if (key == "CUDA_DEVICE_MAX_CONNECTIONS") return value;
  }
  return "";
}

}  // namespace

Said communication_ratio(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  if (!point.breakdown.mean || !point.communication_ratio) return std::nullopt;
  const Breakdown& mean = *point.breakdown.mean;
  const double transfer = mean.transfer / mean.step, wait = mean.wait / mean.step;
  const double exposed = transfer + wait;
  if (!(*point.communication_ratio > threshold_of(rule, "communication")) ||
      !(exposed > threshold_of(rule, "exposed"))) {
    return std::nullopt;
  }
  const auto axis = busiest_axis(point.breakdown);
  Judgement said{.severity = exposed};
  const double hidden = mean.hidden_communication / mean.step;
  const std::string how = hidden > threshold_of(rule, "exposed")
                              ? units::format_percent(hidden) + " hidden behind computation"
                              : "hardly any hidden";
  said.sentence = fmt::format("communication takes {} of the step, {}",
                              units::format_percent(*point.communication_ratio), how);
  said.evidence = {{.what = "exposed transfer", .value = transfer},
                   {.what = "waiting for late partners", .value = wait}};
  if (axis) {
    said.evidence.push_back(
        {.what = "most along", .unit = Unit::text, .text = std::string{mesh::name(*axis)}});
  }
  const bool waits = point.breakdown.wait_known && wait > transfer;
  said.next_step = waits  ? "most of it waits for late ranks: see causes below the curve first"
                   : axis ? advice_along(point, *axis)
                          : "see the timeline: isoscale report FILE.h5 --trace trace.json";
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
  if (!(share > threshold_of(rule, "exposed")) ||
      hidden > threshold_of(rule, "hidden") * (hidden + transfer)) {
    return std::nullopt;
  }
  Judgement said{.severity = share};
  said.evidence = {{.what = "hidden communication", .value = hidden / step},
                   {.what = "exposed transfer", .value = share}};
  if (point.data->folded) {
    said.sentence = fmt::format("no overlap: streams were played as one, {} of the step is exposed",
                                units::format_percent(share));
    said.evidence.push_back(
        {.what = "streams", .unit = Unit::text, .text = point.data->folded_reason});
    said.next_step = "two cores or more a rank: mpirun --map-by slot:PE=2, srun --cpus-per-task=2";
    return said;
  }
  said.sentence = fmt::format(
      "overlap was asked for, yet {} of what could hide does, {} of the step is exposed",
      units::format_percent(hidden / (hidden + transfer)), units::format_percent(share));
  said.next_step = "see the streams: isoscale report FILE.h5 --trace trace.json";
  if (const std::string given = connections_of(subject.run); !given.empty()) {
    said.evidence.push_back(
        {.what = "CUDA_DEVICE_MAX_CONNECTIONS", .unit = Unit::text, .text = given});
    if (given == "1") said.next_step = "unset CUDA_DEVICE_MAX_CONNECTIONS=1 and measure again";
  }
  return said;
}

Said small_buckets(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  const Buckets buckets = buckets_of(*point.data);
  if (!point.breakdown.mean || option_of(*point.data, "bucket").empty() ||
      static_cast<double>(buckets.count) < threshold_of(rule, "buckets")) {
    return std::nullopt;
  }
  const double exposed =
      communication_along(point.breakdown, mesh::Axis::dp).transfer / point.breakdown.mean->step;
  if (!(exposed > threshold_of(rule, "exposed"))) return std::nullopt;
  const double bytes = buckets.bytes / static_cast<double>(buckets.count);
  Judgement said;
  said.evidence = {
      {.what = "buckets", .unit = Unit::count, .value = static_cast<double>(buckets.count)},
      {.what = "bytes of one", .unit = Unit::bytes, .value = bytes},
      {.what = "exposed dp transfer", .value = exposed}};
  const auto* const curve = curve_for(subject, buckets.op);
  double enough = threshold_of(rule, "bucket");
  if (curve != nullptr) {
    const double transferred = bytes / curve->bandwidth->value;
    const double latency = curve->latency->value / (curve->latency->value + transferred);
    if (!(latency > threshold_of(rule, "latency of a call"))) return std::nullopt;
    said.severity = exposed * latency;
    said.evidence.push_back({.what = "latency of a call", .value = latency});
    enough = curve->latency->value * curve->bandwidth->value;
  } else if (subject.run.device != "cuda" || bytes >= enough) {
    return std::nullopt;
  }
  said.sentence = fmt::format("{} gradient buckets of {} each {} bound by latency", buckets.count,
                              bytes_text(bytes), curve != nullptr ? "are" : "may be");
  said.next_step = fmt::format("larger buckets: --set bucket={} or more", size_option(4 * enough));
  return said;
}

Said single_bucket(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  const Buckets buckets = buckets_of(*point.data);
  if (!point.breakdown.mean || option_of(*point.data, "overlap") != "on" ||
      option_of(*point.data, "bucket").empty() || buckets.count != 1 || point.data->folded) {
    return std::nullopt;
  }
  const double exposed =
      communication_along(point.breakdown, mesh::Axis::dp).transfer / point.breakdown.mean->step;
  const auto* const curve = curve_for(subject, buckets.op);
  // Each part is to be no more latency than transfer.
  const double least = curve != nullptr
                           ? parts_of_bucket * curve->latency->value * curve->bandwidth->value
                           : threshold_of(rule, "bucket");
  if (!(exposed > threshold_of(rule, "exposed")) || buckets.bytes < least) return std::nullopt;
  Judgement said{.severity = exposed * (parts_of_bucket - 1) / parts_of_bucket};
  said.sentence =
      fmt::format("all gradients travel in one bucket of {}, which backward cannot hide",
                  bytes_text(buckets.bytes));
  said.evidence = {{.what = "bytes of the bucket", .unit = Unit::bytes, .value = buckets.bytes},
                   {.what = "exposed dp transfer", .value = exposed}};
  said.next_step =
      fmt::format("smaller buckets: --set bucket={}", size_option(buckets.bytes / parts_of_bucket));
  return said;
}

}  // namespace isoscale::analysis::judges
