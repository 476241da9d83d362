// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/calibrated.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/predict/run_machine.hpp"
#include "simulate/measured_time.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;
using results::CalibrationCurve;

/// Types that operands of a precision have.
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
  for (const results::GemmRate& at : calibration.gemms) {
    if (!(at.rate > 0) || (at.cache != "cold" && is_cold(at))) continue;
    for (const auto& [type, mode] : operands_of(at.dtype)) {
      gemms.push_back({.type = type,
                       .mode = mode,
                       .m = at.m,
                       .n = at.n,
                       .k = at.k,
                       .batch = at.batch,
                       .seconds = 2 * at.m * at.n * at.k * at.batch / at.rate});
    }
  }
  return gemms;
}

/// What a curve is of; nothing for what no program of steps does.
std::optional<OpKind> kind_of(std::string_view op) {
  if (op == "sendrecv" || op == "p2p") return OpKind::exchange;
  for (std::size_t i = 0; i < program::op_kind_count; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (program::name(kind) == op && program::communicates(kind)) return kind;
  }
  return std::nullopt;
}

/// Nodes that the group of a curve was on. Where no rank says, as many as ranks of the run need.
int nodes_of_curve(const results::RunData& run, const CalibrationCurve& curve) {
  if (curve.nodes > 0) return curve.nodes;
  if (run.nodes <= 1 || run.ranks <= 0) return 1;
  return std::clamp(curve.members * run.nodes / run.ranks, 1, run.nodes);
}

/// Groups of like ranks on one node, at most, that ran at once with a row's.
int groups_on_node(const results::RunData& run, const results::PointData& point,
                   const std::string& axis) {
  const simulate::Layout layout = layout_of(run, point);
  for (const mesh::Axis at : mesh::all_axes) {
    if (axis != mesh::name(at)) continue;
    std::map<int, std::set<int>> groups;
    for (int rank = 0; rank < point.ranks; ++rank) {
      groups[layout.node_of_rank[static_cast<std::size_t>(rank)]].insert(
          mesh::group_colour(point.mesh, rank, at));
    }
    std::size_t most = 1;
    for (const auto& [node, colours] : groups) most = std::max(most, colours.size());
    return static_cast<int>(most);
  }
  return 1;
}

/// How many groups shared a node's ports while the curve was measured.
int sharing_of(const results::RunData& run, const CalibrationCurve& curve) {
  int sharing = 1;
  for (const results::PointData& point : run.points) {
    std::set<std::string> axes;
    for (const results::RowData& row : point.rows) {
      const bool is_of_curve = text_of(row, "op") == curve.op &&
                               number_of(row, "members") == curve.members &&
                               text_of(row, "groups") != "one";
      if (is_of_curve) axes.insert(text_of(row, "axis"));
    }
    for (const std::string& axis : axes) {
      sharing = std::max(sharing, groups_on_node(run, point, axis));
    }
  }
  return sharing;
}

simulate::TimedCommunication timed(const results::RunData& run, const CalibrationCurve& curve,
                                   OpKind kind) {
  simulate::TimedCommunication result{.kind = kind,
                                      .members = curve.members,
                                      .nodes = nodes_of_curve(run, curve),
                                      .sharing = sharing_of(run, curve),
                                      .error = curve.error.value_or(0)};
  // A ring of messages is one for each of its members.
  if (kind == OpKind::exchange) result.sharing = 1;
  if (curve.latency) result.latency = curve.latency->value;
  if (curve.bandwidth) result.bandwidth = curve.bandwidth->value;
  if (curve.form == "linear") result.between = simulate::Straight::in_bytes;
  for (const results::CurveSample& at : curve.samples) {
    result.samples.push_back({.bytes = at.bytes, .seconds = at.fitted});
  }
  return result;
}

}  // namespace

simulate::Measured calibrated(const results::RunData& run,
                              const results::CalibrationData& calibration,
                              const std::string& dtype) {
  simulate::Measured measured{.gemms = gemms_of(calibration)};
  // MPI libraries move whole messages too, NCCL deals them out in parts.
  if (run.device == "host") measured.untold = simulate::Moved::whole;
  // Of curves that differ in their element type or link alone: the type that is asked for, the
  // unlabelled, the one of more sizes.
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

}  // namespace isoscale::analysis
