// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/run_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/microbench/microbench_report.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "calibration/fit_calibration.hpp"
#include "results/records/point_facts.hpp"
#include "simulate/op_time.hpp"
#include "statistics/estimate.hpp"
#include "workloads/api/toml_files.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis::predict {

namespace {

using program::OpKind;
using results::CalibrationCurve;
using results::PointData;
using results::RunData;

/// Returns the operand types and compute modes of GEMMs in a precision such as "tf32" or "fp8".
std::vector<std::pair<program::DType, program::ComputeMode>> operands_of(std::string_view dtype) {
  using enum program::DType;
  constexpr auto native = program::ComputeMode::native;
  if (dtype == "tf32") return {{f32, program::ComputeMode::tf32}};
  if (dtype == "fp8") return {{e4m3, native}, {e5m2, native}};
  for (const program::DType type : {f64, f32, f16, bf16}) {
    if (program::name(type) == dtype) return {{type, native}};
  }
  return {};
}

std::vector<simulate::TimedGemm> gemms_of(const results::CalibrationData& calibration) {
  std::vector<simulate::TimedGemm> gemms;
  const auto is_cold = [&](const results::GemmRate& of) {
    return std::ranges::any_of(calibration.gemms, [&](const results::GemmRate& at) {
      return at.dtype == of.dtype && at.cache == "cold";
    });
  };
  const auto whole = [](double extent) { return static_cast<std::uint32_t>(extent); };
  for (const results::GemmRate& at : calibration.gemms) {
    if (!(at.rate > 0) || (at.cache != "cold" && is_cold(at))) continue;
    const program::GemmShape shape{
        .m = whole(at.m), .n = whole(at.n), .k = whole(at.k), .batch = whole(at.batch)};
    for (const auto& [type, mode] : operands_of(at.dtype)) {
      gemms.push_back({.type = type,
                       .mode = mode,
                       .shape = shape,
                       .seconds = simulate::flop_of(shape) / at.rate});
    }
  }
  return gemms;
}

/// Returns the kind of op that a calibration curve timed; absent if steps have no op of this kind.
std::optional<OpKind> kind_of(std::string_view op) {
  if (op == "sendrecv" || op == "p2p") return OpKind::exchange;
  const std::optional<OpKind> kind = program::op_kind_of(op);
  return kind && program::communicates(*kind) ? kind : std::nullopt;
}

/// Returns the number of nodes of the group that a calibration curve measured. If it was not
/// recorded, it is computed from the run's ranks per node.
int nodes_of_curve(const results::RunData& run, const CalibrationCurve& curve) {
  if (curve.nodes) return *curve.nodes;
  if (run.nodes <= 1 || run.ranks <= 0) return 1;
  return std::clamp(curve.members * run.nodes / run.ranks, 1, run.nodes);
}

/// Returns the number of groups that used the same node's ports at once while the curve was
/// measured (see GroupPlace::sharing).
int sharing_of(const results::RunData& run, const CalibrationCurve& curve) {
  int sharing = 1;
  for (const results::PointData& point : run.points) {
    if (point.mesh.size() != point.ranks) continue;
    std::set<std::string> axes;
    for (const results::RowData& row : point.rows) {
      const bool is_of_curve = text_of(row, "op") == curve.op &&
                               number_of(row, "members") == curve.members &&
                               text_of(row, "groups") != "one";
      if (is_of_curve) axes.insert(text_of(row, "axis"));
    }
    for (const mesh::Axis axis : mesh::all_axes) {
      if (!axes.contains(std::string{mesh::name(axis)})) continue;
      const simulate::Layout layout = layout_of(run, point);
      for (const simulate::GroupPlace& place : simulate::places_of(point.mesh, layout, axis)) {
        sharing = std::max(sharing, place.sharing);
      }
    }
  }
  return sharing;
}

simulate::TimedCommunication timed(const results::RunData& run, const CalibrationCurve& curve,
                                   OpKind kind) {
  simulate::TimedCommunication result{.kind = kind,
                                      .members = curve.members,
                                      .nodes = nodes_of_curve(run, curve),
                                      .sharing = sharing_of(run, curve)};
  // In a ring each member sends a single message at a time, so other groups do not share its ports.
  if (kind == OpKind::exchange) result.sharing = 1;
  if (curve.latency) result.latency = curve.latency->value;
  if (curve.bandwidth) result.bandwidth = curve.bandwidth->value;
  if (curve.form == "linear") result.between = simulate::Straight::in_bytes;
  for (const results::CurveSample& at : curve.samples) {
    result.samples.push_back({.bytes = at.bytes, .seconds = at.fitted});
  }
  return result;
}

/// Returns the calibration of a run as measured times of a machine. It contains, for each element
/// type, the multiplications with cold caches, or all if none had cold caches; the library's own
/// collectives, with the element type `dtype` if it was measured; and messages in pairs (p2p) or in
/// a ring (sendrecv). Of the curves for one op and group size, only the best is kept (see Merit
/// below).
simulate::Measured calibrated(const results::RunData& run,
                              const results::CalibrationData& calibration,
                              const std::string& dtype) {
  simulate::Measured measured{.gemms = gemms_of(calibration)};
  for (const results::GemmCeiling& at : calibration.ceilings) {
    if (at.rate > 0) measured.gemm_ceilings[at.dtype] = at.rate;
  }
  // NCCL splits every message into parts, while MPI libraries may also move messages as a whole.
  if (run.device == "host") measured.untold = simulate::Moved::whole;
  // One of the curves with the same op, members and nodes is chosen. The first criterion is the
  // element type, then the absence of labels, then the number of sizes.
  using Merit = std::tuple<bool, bool, std::size_t>;
  std::map<std::tuple<OpKind, int, int>, std::pair<Merit, const CalibrationCurve*>> chosen;
  for (const CalibrationCurve& curve : calibration.curves) {
    const auto kind = kind_of(curve.op);
    if (!kind || curve.implementation != "library" || curve.samples.empty()) continue;
    const Merit merit{*kind == OpKind::exchange || curve.dtype == dtype, curve.labels.empty(),
                      curve.samples.size()};
    auto& best = chosen[{*kind, curve.members, nodes_of_curve(run, curve)}];
    if (best.second == nullptr || merit > best.first) best = {merit, &curve};
  }
  for (const auto& [key, best] : chosen) {
    measured.communication.push_back(timed(run, *best.second, std::get<OpKind>(key)));
  }
  simulate::settle_laws(measured);
  return measured;
}

/// Returns the calibration of a run. If the run ended before its calibration was fitted, fits it to
/// the measurements that the run recorded. Throws base::UsageError if there is no calibration, or
/// none of communication.
results::CalibrationData required_calibration(const RunData& run) {
  results::CalibrationData result = calibration::calibration_of(run);
  if (result.empty()) {
    throw base::usage_error(
        "run {} has no calibration: nothing says how long its communication takes on "
        "other ranks; measure again with --workload {},calibrate",
        run.id, run.points.empty() ? "hybrid" : run.points.front().workload);
  }
  if (result.curves.empty()) {
    throw base::usage_error(
        "the calibration of run {} has no communication, as on one rank; measure with "
        "--workload calibrate on two ranks at least",
        run.id);
  }
  return result;
}

/// Adds op times from traced steps, which replace micro-benchmark times of the same shapes.
void add_traced(simulate::Measured& measured, TracedOps traced) {
  const auto is_traced = [&](const simulate::TimedGemm& of) {
    return std::ranges::any_of(traced.gemms, [&](const simulate::TimedGemm& at) {
      return at.type == of.type && at.mode == of.mode && at.shape == of.shape;
    });
  };
  std::erase_if(measured.gemms, is_traced);
  measured.gemms.insert(measured.gemms.end(), traced.gemms.begin(), traced.gemms.end());
  measured.locals = std::move(traced.locals);
}

/// Returns the slowdowns of GEMMs and of communication by each other that the workload `overlap`
/// measured, as medians over all pairs of ops, but at least 1; 1 if it did not run.
simulate::Overlap overlap_of_rows(const RunData& run) {
  std::vector<double> compute, communication;
  for (const PointData& point : run.points) {
    if (point.status != results::PointStatus::ok || point.rows.empty()) continue;
    std::vector<microbench::RowReport> rows;
    for (const results::RowData& row : point.rows) rows.push_back(microbench::report_row(row, {}));
    for (const microbench::OverlapReport& at : microbench::merge_overlaps(rows)) {
      if (at.gemm_slowdown) compute.push_back(*at.gemm_slowdown);
      if (at.communication_slowdown) communication.push_back(*at.communication_slowdown);
    }
  }
  return {.compute = std::max(1.0, statistics::median(compute).value_or(1)),
          .communication = std::max(1.0, statistics::median(communication).value_or(1))};
}

/// Returns the bytes of memory that one rank may use: those of its device or, on the host, its
/// share of the node's memory; the smallest value over ranks. 0 if unknown.
double capacity_of(const RunData& run) {
  std::map<int, int> ranks_on_node;
  for (const results::RankFacts& facts : run.rank_facts) ++ranks_on_node[facts.node];
  double least = 0;
  for (const results::RankFacts& facts : run.rank_facts) {
    double bytes = 0;
    for (const char* key : {"gpu_memory_total", "gpu_memory"}) {
      const auto found = facts.number.find(key);
      if (bytes == 0 && found != facts.number.end()) bytes = found->second;
    }
    const auto node = facts.number.find("memory_total");
    if (bytes == 0 && run.device == "host" && node != facts.number.end()) {
      bytes = node->second / ranks_on_node[facts.node];
    }
    if (bytes > 0 && (least == 0 || bytes < least)) least = bytes;
  }
  return least;
}

/// Returns the highest bytes/s of an op that moves at least 64 KiB; 0 if there is no such op.
double bandwidth_of(const std::vector<simulate::TimedLocal>& locals) {
  constexpr double large = 65536;
  double best = 0;
  for (const simulate::TimedLocal& at : locals) {
    if (at.bytes >= large) best = std::max(best, at.bytes / at.seconds);
  }
  return best;
}

/// Returns the bytes/s that the workload `memory` measured for the largest arrays in the device's
/// memory, of all ranks at once if it measured that; 0 if it did not run.
double bandwidth_of_rows(const RunData& run) {
  std::tuple<bool, double, double> best{};  // all ranks at once, bytes of an array, bytes/s
  for (const PointData& point : run.points) {
    for (const results::RowData& row : point.rows) {
      if (row.status != results::PointStatus::ok || !microbench::is_within_device(row)) continue;
      const std::optional<double> bandwidth = microbench::report_row(row, {}).bandwidth;
      best = std::max(best, {text_of(row, "together") == "all",
                             number_of(row, "array_bytes").value_or(0), bandwidth.value_or(0)});
    }
  }
  return std::get<2>(best);
}

std::string name_of(const RunData& run) {
  const std::string cpu = run.rank_facts.empty() ? "" : text_of(run.rank_facts[0], "cpu_model");
  const std::string what = run.device_detail.empty() ? cpu : run.device_detail;
  return fmt::format("{} on {} of {}{}", base::counted(run.ranks, "rank"),
                     base::counted(run.nodes, "node"), run.device, what.empty() ? "" : ", " + what);
}

int number_in(const results::PointData& point, const std::string& key) {
  const auto found = point.model_shape.find(key);
  const auto number =
      found == point.model_shape.end() ? std::nullopt : base::number_in<int>(found->second);
  if (number) return *number;
  throw base::usage_error(
      "point {} of the run does not say what its model's {} is: its programs cannot be "
      "made again; measure it with this version",
      point.index, key);
}

workloads::Model model_of(const results::PointData& point) {
  const auto gated = point.model_shape.find("gated_mlp");
  workloads::Model model{.name = point.model,
                         .source = "the run file",
                         .gated_mlp = gated != point.model_shape.end() && gated->second == "yes"};
  for (const auto& [key, size] : workloads::model_sizes()) model.*size = number_in(point, key);
  // A run file does not say the following two; they are known for the built-in models.
  for (const workloads::Preset& preset : workloads::model_presets()) {
    if (preset.name != point.model) continue;
    const workloads::Model known = workloads::parse_model(preset.toml, preset.name);
    model.tied_embedding = known.tied_embedding;
    model.learned_positions = known.learned_positions;
  }
  return model;
}

}  // namespace

simulate::Machine run_machine(const RunData& run) {
  const results::CalibrationData calibration = required_calibration(run);
  // The point with the most ranks is nearest to the rank counts that are predicted.
  const std::vector<const PointData*> points = stepped_points(run);
  const auto largest = std::ranges::max_element(points, {}, &PointData::ranks);
  const PointData* const point = largest == points.end() ? nullptr : *largest;
  simulate::Machine machine{.name = name_of(run),
                            .source = fmt::format("run {} of {}", run.id, run.created)};
  machine.measured =
      calibrated(run, calibration, point == nullptr ? "" : results::stored_dtype(*point));
  machine.overlap = overlap_of_rows(run);
  machine.noise.launch = assumed_launch_deviation;
  if (point == nullptr) return machine;

  const TracedOps traced = traced_ops(run);
  machine.folded = point->folded;
  machine.processor.emplace().launch = traced.gap.value_or(0);
  machine.noise = noise_of(*point, layout_of(run, *point), traced.op_noise);
  add_traced(machine.measured, traced);
  const double slowdown = stretch_as_in_steps(run, points, machine.measured);
  if (machine.folded) {
    machine.overlap = {};  // no ops overlap
  } else if (machine.overlap == simulate::Overlap{}) {
    machine.overlap = {.compute = traced.compute_slowdown, .communication = slowdown};
  }
  // Without traced steps no op tells how fast the memory is.
  const double of_ops = bandwidth_of(machine.measured.locals);
  const double bandwidth = of_ops > 0 ? of_ops : bandwidth_of_rows(run);
  if (bandwidth > 0) machine.memory = {.capacity = capacity_of(run), .bandwidth = bandwidth};
  return machine;
}

workloads::Request request_of(const results::PointData& point) {
  const workloads::Workload& workload = workloads::find_workload(point.workload);
  workloads::Request request{.model = {},
                             .mesh = point.mesh,
                             .precision = program::parse_precision(point.dtype),
                             .options = {point.options.begin(), point.options.end()},
                             .seed = point.seed};
  workloads::validate(point.workload, workload.options, request.options);
  if (!point.model_shape.empty()) request.model = model_of(point);
  if (workload.work_per_step != nullptr && point.work_per_step > 0) {
    // The factor by which the work per token grows with the mesh is not stored, so it is computed
    // from the work per step.
    const double plain = workload.work_per_step(request);
    if (plain > 0) request.growth = point.work_per_step / plain;
  }
  return request;
}

simulate::Layout layout_of(const results::RunData& run, const results::PointData& point) {
  simulate::Layout layout;
  layout.node_of_rank.reserve(static_cast<std::size_t>(point.ranks));
  for (int rank = 0; rank < point.ranks; ++rank) {
    const results::RankFacts* const known = facts_of(run.rank_facts, point, rank);
    layout.node_of_rank.push_back(known == nullptr ? 0 : known->node);
  }
  return layout;
}

}  // namespace isoscale::analysis::predict
