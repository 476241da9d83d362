// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/run_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "analysis/calibration/calibrate.hpp"
#include "analysis/predict/calibrated.hpp"
#include "analysis/predict/communication_in_steps.hpp"
#include "analysis/predict/run_noise.hpp"
#include "analysis/predict/traced_ops.hpp"
#include "analysis/rows/overlap.hpp"
#include "analysis/statistics/statistics.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

using results::PointData;
using results::RunData;

/// A run that was ended before its calibration was fitted has the rows for it all the same.
results::CalibrationData required_calibration(const RunData& run) {
  results::CalibrationData result = calibration_of(run);
  if (result.empty()) {
    throw base::UsageError(
        fmt::format("run {} has no calibration: nothing says how long its communication takes on "
                    "other ranks; measure again with --workload {},calibrate",
                    run.id, run.points.empty() ? "hybrid" : run.points.front().workload));
  }
  if (result.curves.empty()) {
    throw base::UsageError(
        fmt::format("the calibration of run {} has no communication, as on one rank; measure with "
                    "--workload calibrate on two ranks at least",
                    run.id));
  }
  return result;
}

/// The point that is closest to what is asked for: of those with steps the one of most ranks.
const PointData* largest(const std::vector<const PointData*>& points) {
  const auto most = std::ranges::max_element(points, {}, &PointData::ranks);
  return most == points.end() ? nullptr : *most;
}

/// Shapes of steps go before those of micro-benchmarks.
void add_traced(simulate::Measured& measured, TracedOps traced) {
  const auto is_traced = [&](const simulate::TimedGemm& of) {
    return std::ranges::any_of(traced.gemms, [&](const simulate::TimedGemm& at) {
      return at.type == of.type && at.mode == of.mode && at.m == of.m && at.n == of.n &&
             at.k == of.k && at.batch == of.batch;
    });
  };
  std::erase_if(measured.gemms, is_traced);
  measured.gemms.insert(measured.gemms.end(), traced.gemms.begin(), traced.gemms.end());
  measured.locals = std::move(traced.locals);
}

/// From rows of the overlap workload; 1 where there are none. Slowdowns of all pairs in the middle.
simulate::Overlap overlap_of_rows(const RunData& run) {
  std::vector<double> compute, communication;
  for (const PointData& point : run.points) {
    if (point.status != results::PointStatus::ok || point.rows.empty()) continue;
    std::vector<RowReport> rows;
    for (const results::RowData& row : point.rows) rows.push_back(report_row(row, {}));
    for (const OverlapReport& at : merge_overlaps(rows)) {
      if (at.gemm_slowdown) compute.push_back(*at.gemm_slowdown);
      if (at.communication_slowdown) communication.push_back(*at.communication_slowdown);
    }
  }
  return {.compute = std::max(1.0, median(compute).value_or(1)),
          .communication = std::max(1.0, median(communication).value_or(1))};
}

/// Bytes that one rank may use: its device's memory, or its part of the node's; 0 = not known.
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

/// Bytes/s that the fastest of the large ops reached.
double bandwidth_of(const std::vector<simulate::TimedLocal>& locals) {
  constexpr double large = 65536;
  double best = 0;
  for (const simulate::TimedLocal& at : locals) {
    if (at.bytes >= large) best = std::max(best, at.bytes / at.seconds);
  }
  return best;
}

std::string name_of(const RunData& run) {
  const std::string cpu = run.rank_facts.empty() || !run.rank_facts[0].text.contains("cpu_model")
                              ? ""
                              : run.rank_facts[0].text.at("cpu_model");
  const std::string what = run.device_detail.empty() ? cpu : run.device_detail;
  return fmt::format("{} on {} of {}{}", base::counted(run.ranks, "rank"),
                     base::counted(run.nodes, "node"), run.device, what.empty() ? "" : ", " + what);
}

}  // namespace

simulate::Machine run_machine(const RunData& run) {
  const results::CalibrationData calibration = required_calibration(run);
  const std::vector<const PointData*> points = stepped_points(run);
  const PointData* const point = largest(points);
  simulate::Machine machine{.name = name_of(run),
                            .source = fmt::format("run {} of {}", run.id, run.created)};
  machine.measured = calibrated(run, calibration, point == nullptr ? "" : point->dtype);
  machine.overlap = overlap_of_rows(run);
  machine.noise.launch = assumed_launch_deviation;
  if (point == nullptr) return machine;

  const TracedOps traced = traced_ops(run);
  machine.folded = point->folded;
  machine.processor.emplace().launch = traced.gap.value_or(0);
  machine.noise = noise_of(*point, layout_of(run, *point), traced.op_noise);
  add_traced(machine.measured, traced);
  const CommunicationInSteps in_steps = communication_in_steps(run, points, machine.measured);
  stretch(machine.measured, in_steps.apart);
  if (machine.folded) {
    machine.overlap = {};  // nothing runs beside anything
  } else if (machine.overlap == simulate::Overlap{}) {
    machine.overlap = {.compute = traced.compute_slowdown, .communication = in_steps.slowdown};
  }
  const double capacity = capacity_of(run), bandwidth = bandwidth_of(machine.measured.locals);
  if (capacity > 0 && bandwidth > 0) {
    machine.memory.emplace();
    machine.memory->capacity = capacity;
    machine.memory->bandwidth = bandwidth;
  }
  return machine;
}

simulate::Machine run_machine(std::span<const RunData* const> runs) {
  simulate::Machine machine = run_machine(*runs.front());
  machine.noise.launch = launch_deviation(runs);
  return machine;
}

}  // namespace isoscale::analysis
