// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "simulate/simulate.hpp"
#include "workloads/api/workload.hpp"

/// Points as a run stores them, without a machine: real programs, simulated timelines, and what is
/// sampled and summed up beside them.
namespace isoscale::bench {

/// A caller states here what is to be made of a workload at one mesh.
struct Wanted {
  std::string workload, model;
  mesh::Shape mesh{};
  workloads::Scaling scaling = workloads::Scaling::strong;
  std::map<std::string, std::string> options{};
  int steps = 200;        ///< warm-up included
  int traced_steps = 4;   ///< at the end; one more is dropped
  int traced_ranks = 64;  ///< those of the lowest coordinates along dp
  int ranks_per_node = 8;
  double slow = 1;           ///< factor of all times
  std::size_t samples = 60;  ///< of each quantity of a device
};

/// Time of an op at 100 TFLOP/s, 1 TB/s and, of communication, 10 us and 50 GB/s.
inline units::Nanoseconds cost_of(const program::OutlineOp& op) {
  const double seconds =
      program::communicates(op.kind)
          ? 10e-6 + static_cast<double>(op.bytes) / 50e9
          : 3e-6 + std::max(op.flop / 100e12, static_cast<double>(op.bytes) / 1e12);
  return units::Nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
}

/// Every op takes up to 5% longer, by chance. One timeline of all ranks.
inline timeline::Timeline play(const program::OutlineSet& set, double slow, std::mt19937_64& random,
                               simulate::Record record) {
  simulate::Costs costs;
  for (std::size_t rank = 0; rank < set.outline_of_rank.size(); ++rank) {
    costs.table_of_rank.push_back(static_cast<std::uint32_t>(rank));
    auto& table = costs.tables.emplace_back();
    for (const program::OutlineOp& op : set.of(static_cast<int>(rank)).ops) {
      const double factor = slow * (1 + 0.05 * static_cast<double>(random() % 1000) / 1000);
      table.emplace_back(
          static_cast<std::int64_t>(static_cast<double>(cost_of(op).value()) * factor));
    }
  }
  return std::move(simulate::simulate(set, costs, {.plays = 1, .record = record}).front());
}

inline results::PointData described(int index, const Wanted& wanted,
                                    const workloads::Workload& workload,
                                    const workloads::Request& request) {
  results::PointData point;
  point.index = index;
  point.workload = wanted.workload;
  point.model = wanted.model;
  point.dtype = "f32";
  point.mesh = wanted.mesh;
  point.ranks = wanted.mesh.size();
  point.nodes = (point.ranks + wanted.ranks_per_node - 1) / wanted.ranks_per_node;
  point.scaling = workloads::name(wanted.scaling);
  point.placement = "packed";
  const workloads::OptionReader options{workload.options, request.options};
  for (const workloads::OptionSpec& spec : workload.options) {
    if (options.has(spec.key)) point.options[std::string{spec.key}] = options.text(spec.key);
  }
  const workloads::Model& model = request.model;
  for (const auto& [name, number] : {std::pair{"hidden", model.hidden},
                                     {"ffn", model.ffn},
                                     {"heads", model.heads},
                                     {"kv_heads", model.kv_heads},
                                     {"head_size", model.head_size},
                                     {"layers", model.layers},
                                     {"sequence", model.sequence},
                                     {"vocabulary", model.vocabulary}}) {
    point.model_shape[name] = std::to_string(number);
  }
  point.model_shape["gated_mlp"] = model.gated_mlp ? "yes" : "no";
  point.seed = request.seed;
  point.verified = true;
  point.verification = "outputs, gradients and weights of the twin within 3.1e-7 of one rank";
  point.throughput_unit = workload.throughput_unit;
  point.work_per_step = workload.work_per_step(request);
  point.stopped_because = "precision";
  point.warm_up_rule = "no change in the last 5 steps";
  point.looks = {.planned = 12, .made = 5, .growth = 1.5};
  point.started = "2026-01-02T03:04:05Z";
  point.ended = "2026-01-02T03:04:35Z";
  return point;
}

/// Sums by kind of op of a traced step on all ranks, as the runner adds them up.
inline results::OpSums sums_of(const program::OutlineSet& set, const timeline::Timeline& step,
                               std::uint32_t number) {
  results::OpSums sums{.step = number};
  for (const timeline::StepTrace& trace : step.ranks) {
    std::map<std::string_view, double> of_rank;
    for (const timeline::Span& span : trace.spans) {
      const program::OpKind kind = set.of(trace.rank).ops[span.op].kind;
      const char* name = program::communicates(kind)     ? "communication"
                         : kind == program::OpKind::gemm ? "gemm"
                         : kind == program::OpKind::copy ? "copies"
                                                         : "other";
      of_rank[name] += static_cast<double>((span.end - span.start).value()) * 1e-9;
    }
    sums.gemm.push_back(of_rank["gemm"]);
    sums.other_compute.push_back(of_rank["other"]);
    sums.copies.push_back(of_rank["copies"]);
    sums.communication.push_back(of_rank["communication"]);
  }
  return sums;
}

/// Traced steps at the end of the point, and what is kept of each.
inline void add_traces(results::PointData& point, const Wanted& wanted, std::mt19937_64& random) {
  const int per_dp = std::max(1, point.ranks / point.mesh.dp);
  const int most_dp = std::clamp(wanted.traced_ranks / per_dp, 1, point.mesh.dp);
  for (int i = 0; i <= wanted.traced_steps; ++i) {
    const auto number = static_cast<std::uint32_t>(point.step_times.size());
    timeline::Timeline step = play(point.outline, wanted.slow, random, simulate::Record::spans);
    auto& times = point.step_times.emplace_back(static_cast<std::size_t>(point.ranks));
    for (timeline::StepTrace& trace : step.ranks) {
      trace.step = number;
      times[static_cast<std::size_t>(trace.rank)] =
          static_cast<double>((trace.end - trace.begin).value()) * 1e-9;
    }
    point.traced.push_back(1);
    point.dropped.push_back(i == 0 ? 1 : 0);
    if (i == 0) continue;
    point.op_sums.push_back(sums_of(point.outline, step, number));
    std::erase_if(step.ranks, [&](const timeline::StepTrace& trace) {
      return mesh::coordinates(point.mesh, trace.rank).dp >= most_dp;
    });
    point.traces.push_back(std::move(step));
  }
  if (point.traces.empty()) return;
  for (const timeline::StepTrace& trace : point.traces.front().ranks) {
    auto& solo = point.solo_times.emplace_back(results::SoloTimes{.rank = trace.rank});
    for (const program::OutlineOp& op : point.outline.of(trace.rank).ops) {
      solo.op.push_back(program::communicates(op.kind) ? units::Nanoseconds{} : cost_of(op));
    }
  }
}

inline void add_untraced(results::PointData& point, const Wanted& wanted, std::mt19937_64& random) {
  const timeline::Timeline step = play(point.outline, wanted.slow, random, simulate::Record::steps);
  const int count = wanted.steps - wanted.traced_steps - 1;
  for (int i = 0; i < count; ++i) {
    auto& times = point.step_times.emplace_back();
    for (const timeline::StepTrace& trace : step.ranks) {
      const double factor = 1 + 0.02 * static_cast<double>(random() % 1000) / 1000;
      times.push_back(static_cast<double>((trace.end - trace.begin).value()) * 1e-9 * factor);
    }
    point.traced.push_back(0);
    point.dropped.push_back(0);
  }
  point.warm_up_steps = std::min(5, count);
}

/// Adds the samples of a GPU beside each rank.
inline void add_series(results::PointData& point, std::size_t samples, std::mt19937_64& random) {
  struct Quantity {
    const char *name, *unit;
    double base, slope;  ///< by sample
  };
  constexpr Quantity quantities[] = {{"sm_clock", "Hz", 1.98e9, 0},
                                     {"memory_clock", "Hz", 2.6e9, 0},
                                     {"power", "W", 600, 0},
                                     {"energy", "J", 1e5, 300},
                                     {"temperature", "K", 330, 0},
                                     {"utilisation", "1", 1, 0},
                                     {"throttle_reasons", "1", 0, 0},
                                     {"ecc_corrected", "1", 0, 0},
                                     {"ecc_uncorrected", "1", 0, 0},
                                     {"nvlink_sent_bytes", "B", 0, 1e9},
                                     {"nvlink_received_bytes", "B", 0, 1e9}};
  for (int rank = 0; rank < point.ranks; ++rank) {
    for (const Quantity& quantity : quantities) {
      auto& series = point.device_series.emplace_back(
          results::DeviceSeries{.rank = rank,
                                .device = fmt::format("gpu {}", rank % 8),
                                .quantity = quantity.name,
                                .unit = quantity.unit});
      for (std::size_t i = 0; i < samples; ++i) {
        const double factor = 1 + 0.01 * static_cast<double>(random() % 1000) / 1000;
        series.time.push_back(0.5 * static_cast<double>(i));
        series.value.push_back(quantity.slope > 0
                                   ? quantity.base + quantity.slope * static_cast<double>(i)
                                   : quantity.base * factor);
      }
    }
  }
  point.measured_seconds = 0.5 * static_cast<double>(samples);
}

/// A whole point.
inline results::PointData make_point(int index, const Wanted& wanted) {
  const workloads::Workload& workload = workloads::find_workload(wanted.workload);
  workloads::Request base{.model = workloads::load_model(wanted.model)};
  base.options.insert(wanted.options.begin(), wanted.options.end());
  const workloads::Request request = workload.scale(base, wanted.mesh, wanted.scaling);
  const program::ProgramSet set = workload.build(request);
  results::PointData point = described(index, wanted, workload, request);
  point.outline = program::outline(set, program::Section::step);
  const auto ranks = static_cast<std::size_t>(point.ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    double flop = 0;
    for (const program::OutlineOp& op : point.outline.of(static_cast<int>(rank)).ops) {
      flop += op.flop;
    }
    point.flop_of_rank.push_back(flop);
    point.world_rank.push_back(static_cast<int>(rank));
  }
  point.memory_of_rank.assign(ranks, 4e9);
  point.peak_live_microbatches.assign(ranks, 1);
  point.clock_offset.assign(ranks, 0);
  point.clock_error.assign(ranks, 2e-7);
  point.clock_drift.assign(ranks, 1e-9);
  point.communicators = {{.name = "dp", .ranks = 2, .creation = 0.5, .first_call = 0.25}};
  std::mt19937_64 random{static_cast<std::uint64_t>(index) + 1};
  add_untraced(point, wanted, random);
  add_traces(point, wanted, random);
  add_series(point, wanted.samples, random);
  return point;
}

}  // namespace isoscale::bench
