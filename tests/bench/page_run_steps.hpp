// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "simulate/simulate.hpp"

/// This code makes, from simulated steps, what a cluster of eight GPUs a node could have measured:
/// it serves to look at pages, and says nothing about machines.
namespace isoscale::page_run {

inline constexpr int per_node = 8;
inline constexpr int slow_rank = 21;  ///< of the world; its GPU gets too hot halfway through a loop
inline constexpr double slow_factor = 1.22;
inline constexpr int warm_up = 12, untraced = 20, traced = 4, blocks = 8;
inline constexpr std::size_t kept_traces = 3;

/// Returns whether a group along `axes` has members on several nodes, with ranks packed.
inline bool leaves_node(const mesh::Shape& shape, mesh::AxisSet axes) {
  return std::ranges::any_of(mesh::all_axes, [&](mesh::Axis axis) {
    return axes.contains(axis) && mesh::stride(shape, axis) * shape[axis] > per_node;
  });
}

/// Seconds of one op; of communication from the last arrival on.
inline double cost(const program::OutlineOp& op, const mesh::Shape& shape, double slowness) {
  const auto bytes = static_cast<double>(op.bytes);
  if (op.kind == program::OpKind::gemm) {
    constexpr double peak = 620e12, half_rate_at = 4e9;  // FLOP/s, FLOP
    return 4e-6 + (op.flop + half_rate_at) / peak * slowness;
  }
  if (!program::communicates(op.kind)) return 3e-6 + bytes / 2.4e12 * slowness;
  const int members = mesh::group_size(shape, op.axes);
  if (members < 2) return 1e-6;
  const bool far = leaves_node(shape, op.axes);
  const double moved = op.kind == program::OpKind::all_reduce ? 2.0 * (members - 1) / members : 1.0;
  return (far ? 24e-6 : 9e-6) * std::log2(members + 1) + bytes * moved / (far ? 46e9 : 360e9);
}

enum class Heat : std::uint8_t { cool, hot };

/// One step in the steady state, its begin on rank 0's clock at `begin`.
inline timeline::Timeline simulated(const results::PointData& point, Heat heat,
                                    units::Nanoseconds begin, std::mt19937_64& random) {
  std::exponential_distribution<double> noise{1 / 0.015};
  simulate::Costs costs;
  for (int rank = 0; rank < point.ranks; ++rank) {
    const bool is_slow =
        heat == Heat::hot && point.world_rank[static_cast<std::size_t>(rank)] == slow_rank;
    const double slowness = (is_slow ? slow_factor : 1) * (1 + 0.002 * (rank % 5));
    costs.table_of_rank.push_back(static_cast<std::uint32_t>(rank));
    auto& table = costs.tables.emplace_back();
    for (const program::OutlineOp& op : point.outline.of(rank).ops) {
      const double seconds = cost(op, point.mesh, slowness) * (1 + noise(random));
      table.push_back(units::to_nanoseconds(units::Seconds{seconds}));
    }
  }
  timeline::Timeline step =
      std::move(simulate::simulate(point.outline, costs, {.plays = 2}).back());
  const units::Nanoseconds shift = begin - step.ranks.front().begin;
  for (timeline::StepTrace& rank : step.ranks) {
    rank.begin += shift;
    rank.end += shift;
    for (timeline::Span& span : rank.spans) {
      span.start += shift;
      span.end += shift;
    }
  }
  return step;
}

inline std::vector<double> lengths(const timeline::Timeline& step) {
  std::vector<double> seconds;
  for (const timeline::StepTrace& rank : step.ranks) {
    seconds.push_back(units::to_seconds(rank.end - rank.begin).value());
  }
  return seconds;
}

/// Steps around those of two simulated ones: warm-up, then blocks of untraced and traced steps; the
/// slow rank is hot from the middle on. The last traced steps keep their spans.
inline void add_steps(results::PointData& point, std::mt19937_64& random) {
  std::normal_distribution<double> noise{0, 0.004};
  std::uniform_int_distribution<int> one_in{0, 79};
  const std::vector<double> cool = lengths(simulated(point, Heat::cool, {}, random));
  const std::vector<double> hot = lengths(simulated(point, Heat::hot, {}, random));
  const int steps = warm_up + blocks * (untraced + traced);
  for (int i = 0; i < steps; ++i) {
    const int in_block = (i - warm_up) % (untraced + traced);
    const bool is_traced = i >= warm_up && in_block >= untraced;
    double factor = 1 + noise(random) + (is_traced ? 0.006 : 0);
    if (i < warm_up) factor += 0.8 / (1 + i);
    if (one_in(random) == 0) factor += 0.15;  // somebody else's traffic
    std::vector<double> times = i < steps / 2 ? cool : hot;
    for (double& time : times) time *= factor * (1 + 0.1 * noise(random));
    point.step_times.push_back(std::move(times));
    point.traced.push_back(is_traced ? 1 : 0);
    point.dropped.push_back(i >= warm_up && (in_block == 0 || in_block == untraced) ? 1 : 0);
  }
  point.warm_up_steps = warm_up;
  units::Nanoseconds begin{1'000'000'000};
  for (std::size_t i = point.step_times.size() - kept_traces; i < point.step_times.size(); ++i) {
    timeline::Timeline step = simulated(point, Heat::hot, begin, random);
    begin = step.ranks.front().end;
    for (timeline::StepTrace& rank : step.ranks) rank.step = static_cast<std::uint32_t>(i);
    point.step_times[i] = lengths(step);
    point.traces.push_back(std::move(step));
  }
  double seconds = 0;
  for (const auto& times : point.step_times) seconds += *std::ranges::max_element(times);
  point.measured_seconds = seconds;
}

/// Clock, power, temperature, utilisation and reasons to slow down of every rank's GPU.
inline void add_devices(results::PointData& point, std::mt19937_64& random) {
  constexpr int samples = 300;
  constexpr double thermal_slowdown = 64;  // nvmlClocksEventReasonHwThermalSlowdown
  std::normal_distribution<double> noise{0, 1};
  for (int rank = 0; rank < point.ranks; ++rank) {
    const int world = point.world_rank[static_cast<std::size_t>(rank)];
    const auto series = [&](const char* quantity, const char* unit) {
      return results::DeviceSeries{.rank = rank,
                                   .device = "gpu " + std::to_string(world % per_node),
                                   .quantity = quantity,
                                   .unit = unit};
    };
    auto clock = series("sm_clock", "Hz"), power = series("power", "W");
    auto temperature = series("temperature", "K"), busy = series("utilisation", "1");
    auto reasons = series("throttle_reasons", "1");
    for (int i = 0; i < samples; ++i) {
      const double at = i / (samples - 1.0);
      const bool is_hot = world == slow_rank && at > 0.5;
      const auto add = [&](results::DeviceSeries& to, double value) {
        to.time.push_back(at * *point.measured_seconds);
        to.value.push_back(value);
      };
      add(clock, is_hot ? 1.56e9 + 15e6 * std::round(2 * noise(random)) : 1.98e9);
      add(power, (is_hot ? 560 : 660) + 12 * noise(random) - 200 * std::exp(-40 * at));
      add(temperature,
          273.15 + std::round(45 + (world == slow_rank ? 44 : 21) * (1 - std::exp(-8 * at)) +
                              world % 4));
      add(busy, std::min(1.0, 0.97 + 0.02 * noise(random)));
      add(reasons, is_hot ? thermal_slowdown : 0);
    }
    for (auto* const made : {&clock, &power, &temperature, &busy, &reasons}) {
      point.device_series.push_back(std::move(*made));
    }
  }
}

}  // namespace isoscale::page_run
