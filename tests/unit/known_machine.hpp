// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <random>

#include "bench_samples.hpp"
#include "calibration/fit_calibration.hpp"
#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "simulate/simulate.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

/// A run of a machine whose every number is known: programs as they are, times by formula.
namespace isoscale::samples {

struct KnownMachine {
  double gemm_rate = 20e9;  ///< FLOP/s
  double memory = 5e9;      ///< bytes/s of what neither multiplies nor communicates
  double hop = 4e-6;        ///< seconds of one step of a ring
  double wire = 2e9;        ///< bytes/s
  double gap = 3e-6;        ///< seconds from when an op could begin until it does
  double noise = 0.01;      ///< of a rank's compute in one step, normal
};

/// Ring all_reduce: 2 (n-1) hops, 2 (n-1)/n of the bytes.
inline double all_reduce_seconds(const KnownMachine& machine, int members, double bytes) {
  const double steps = 2.0 * (members - 1);
  return steps * machine.hop + steps / members * bytes / machine.wire;
}

inline double op_seconds(const KnownMachine& machine, const program::OutlineOp& op,
                         const mesh::Shape& mesh) {
  const auto bytes = static_cast<double>(op.bytes);
  if (program::communicates(op.kind)) {
    return all_reduce_seconds(machine, mesh::group_size(mesh, op.axes), bytes);
  }
  return op.kind == program::OpKind::gemm ? op.flop / machine.gemm_rate : bytes / machine.memory;
}

inline workloads::Request known_request(int dp) {
  workloads::Request base{.model = workloads::load_model("tiny")};
  base.options = {{"microbatch", "4"}, {"microbatches", "2"}};
  return workloads::find_workload("dp").scale(base, {.dp = dp}, workloads::Scaling::weak);
}

/// One step of all ranks: each by its own noise, every op after the gap.
inline timeline::Timeline play_known(const KnownMachine& machine, const program::OutlineSet& set,
                                     std::mt19937_64& random) {
  std::normal_distribution<double> noise{0, machine.noise};
  simulate::Costs costs;
  const auto nanoseconds = [](double seconds) {
    return units::Nanoseconds{static_cast<std::int64_t>(std::llround(seconds * 1e9))};
  };
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    const double factor = 1 + noise(random);
    costs.table_of_rank.push_back(static_cast<std::uint32_t>(rank));
    auto& table = costs.tables.emplace_back();
    for (const program::OutlineOp& op : set.of(rank).ops) {
      const double time = op_seconds(machine, op, set.mesh);
      table.push_back(
          nanoseconds((program::communicates(op.kind) ? time : time * factor) + machine.gap));
    }
  }
  timeline::Timeline step = std::move(simulate::simulate(set, costs).front());
  for (timeline::StepTrace& trace : step.ranks) {
    for (timeline::Span& span : trace.spans) span.start += nanoseconds(machine.gap);
  }
  return step;
}

/// Seconds of a step, the slowest rank's; mean over `steps`.
inline double known_step(const KnownMachine& machine, int dp, int steps) {
  const program::OutlineSet set = program::outline(
      workloads::find_workload("dp").build(known_request(dp)), program::Section::step);
  std::mt19937_64 random{99};
  double sum = 0;
  for (int i = 0; i < steps; ++i) {
    units::Nanoseconds longest{0};
    for (const timeline::StepTrace& trace : play_known(machine, set, random).ranks) {
      longest = std::max(longest, trace.end - trace.begin);
    }
    sum += units::to_seconds(longest).value();
  }
  return sum / steps;
}

inline results::PointData known_point(const KnownMachine& machine, int index, int dp) {
  constexpr int untraced_steps = 40, traced_steps = 6, summed_steps = 2000;
  const workloads::Workload& workload = workloads::find_workload("dp");
  const workloads::Request request = known_request(dp);
  results::PointData point = bench_point(index, "dp", dp);
  point.model = "tiny";
  point.nodes = dp;
  point.scaling = "weak";
  point.options = workloads::all_options(workload.options, request.options);
  for (const auto& [key, size] : workloads::model_sizes()) {
    point.model_shape[key] = std::to_string(request.model.*size);
  }
  point.model_shape["gated_mlp"] = "no";
  point.seed = request.seed;
  point.work_per_step = workload.work_per_step(request);
  point.throughput_unit = "tokens/s";
  point.outline = program::outline(workload.build(request), program::Section::step);
  const auto ranks = static_cast<std::size_t>(dp);
  point.clock_offset.assign(ranks, 0);
  point.clock_error.assign(ranks, 0);
  std::mt19937_64 random{static_cast<std::uint64_t>(7 + index)};
  for (int i = 0; i < untraced_steps + traced_steps; ++i) {
    timeline::Timeline step = play_known(machine, point.outline, random);
    auto& times = point.step_times.emplace_back();
    for (timeline::StepTrace& trace : step.ranks) {
      trace.step = static_cast<std::uint32_t>(i);
      times.push_back(units::to_seconds(trace.end - trace.begin).value());
    }
    point.traced.push_back(i >= untraced_steps ? 1 : 0);
    point.dropped.push_back(0);
    if (i >= untraced_steps) point.traces.push_back(std::move(step));
  }
  // The sums are kept of every traced step, and there are more of these than steps with spans.
  std::normal_distribution<double> noise{0, machine.noise};
  double gemm = 0, other = 0;
  for (const program::OutlineOp& op : point.outline.of(0).ops) {
    if (program::communicates(op.kind)) continue;
    (op.kind == program::OpKind::gemm ? gemm : other) += op_seconds(machine, op, point.mesh);
  }
  for (int i = 0; i < summed_steps; ++i) {
    results::OpSums& sums = point.op_sums.emplace_back();
    sums.step = static_cast<std::uint32_t>(untraced_steps + i % traced_steps);
    for (int rank = 0; rank < dp; ++rank) {
      const double factor = 1 + noise(random);
      sums.gemm.push_back(gemm * factor);
      sums.other_compute.push_back(other * factor);
      sums.copies.push_back(0);
      sums.communication.push_back(0);
    }
  }
  return point;
}

/// Points of 1, 2, 4 and 8 ranks, one on a node, and the calibration of groups of 2, 4 and 8.
inline results::RunData known_run(const KnownMachine& machine) {
  results::RunData run;
  run.id = "known";
  run.created = "2026-01-02T03:04:05Z";
  run.device = "host";
  run.ranks = run.nodes = 8;
  for (int rank = 0; rank < run.ranks; ++rank) {
    run.rank_facts.push_back({.rank = rank, .host = "h" + std::to_string(rank), .node = rank});
  }
  int index = 0;
  for (const int dp : {1, 2, 4, 8}) run.points.push_back(known_point(machine, index++, dp));
  for (const int members : {2, 4, 8}) {
    results::PointData point = bench_point(index++, "calibrate", members);
    point.nodes = members;
    for (double bytes = 8; bytes <= 16 * mib; bytes *= 4) {
      point.rows.push_back(
          collective("all_reduce", bytes, all_reduce_seconds(machine, members, bytes), members));
    }
    for (const double extent : {128.0, 256.0, 1024.0}) {
      point.rows.push_back(gemm("f32", "cold", extent, machine.gemm_rate, members));
    }
    run.points.push_back(std::move(point));
  }
  run.calibration = calibration::calibrate(run);
  return run;
}

}  // namespace isoscale::samples
