// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/gather_point_and_sample_devices.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "results/records/point_fields.hpp"

namespace isoscale::runner::measure {
namespace {

using mesh::Axis;

/// Returns the shape of the part of the mesh whose spans (op times) are kept: at most `most` ranks,
/// with dp shortened first, then ep, cp, tp and pp. Along an axis of extent n, the part has the
/// ranks with the coordinates 0 to n - 1.
mesh::Shape kept(mesh::Shape shape, int most) {
  for (const Axis axis : {Axis::dp, Axis::ep, Axis::cp, Axis::tp, Axis::pp}) {
    const int others = shape.size() / shape[axis];
    shape[axis] = std::clamp(most / others, 1, shape[axis]);
  }
  return shape;
}

void collect_step_times(const comm::Communicator& point, const Record& record,
                        results::PointData& data) {
  const auto parts = gather_values(point, std::span<const double>{record.step_times});
  if (point.rank() != 0) return;
  data.step_times.assign(record.step_times.size(), std::vector<double>(parts.size()));
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    for (std::size_t step = 0; step < data.step_times.size(); ++step) {
      data.step_times[step][rank] = parts[rank].at(step);
    }
  }
}

void collect_traces(const comm::Communicator& point, const Record& record,
                    std::span<const int> traced, const comm::ClockFit& clock,
                    results::PointData& data) {
  std::vector<timeline::StepTrace> mine;
  if (std::ranges::binary_search(traced, point.rank())) mine = record.traces;
  for (timeline::StepTrace& trace : mine) {
    trace.rank = point.rank();
    trace.begin = clock.to_rank_0(trace.begin);
    trace.end = clock.to_rank_0(trace.end);
    for (timeline::Span& span : trace.spans) {
      span.start = clock.to_rank_0(span.start);
      span.end = clock.to_rank_0(span.end);
    }
  }
  auto parts = gather_records(point, mine);
  if (point.rank() != 0) return;
  data.traces.resize(record.traces.size());
  for (std::vector<timeline::StepTrace>& part : parts) {
    for (std::size_t step = 0; step < part.size(); ++step) {
      data.traces.at(step).ranks.push_back(std::move(part[step]));
    }
  }
}

void collect_op_sums(const comm::Communicator& point, const Record& record,
                     results::PointData& data) {
  const auto parts = gather_values(point, std::span<const StepSums>{record.op_sums});
  if (point.rank() != 0) return;
  for (std::size_t row = 0; row < record.op_sums.size(); ++row) {
    results::OpSums& sums = data.op_sums.emplace_back();
    sums.step = record.op_sums[row].step;
    for (const std::vector<StepSums>& part : parts) {
      const StepSums& of_rank = part.at(row);
      sums.gemm.push_back(units::to_seconds(of_rank.gemm).value());
      sums.other_compute.push_back(units::to_seconds(of_rank.other_compute).value());
      sums.copies.push_back(units::to_seconds(of_rank.copies).value());
      sums.communication.push_back(units::to_seconds(of_rank.communication).value());
    }
  }
}

void collect_clocks(const comm::Communicator& point, const comm::ClockFit& clock,
                    results::PointData& data) {
  const std::array<double, 3> mine{units::to_seconds(clock.offset).value(), clock.drift,
                                   units::to_seconds(clock.error).value()};
  for (const std::vector<double>& part : gather_values(point, std::span<const double>{mine})) {
    data.clock_offset.push_back(part.at(0));
    data.clock_drift.push_back(part.at(1));
    data.clock_error.push_back(part.at(2));
  }
}

/// Collective: stores in `data`, for each communicator, how long its slowest rank took to create it
/// and to use it for the first time. All ranks create their communicators in the same order.
void collect_communicators(const comm::Communicator& point,
                           const std::vector<results::CommunicatorTime>& mine,
                           results::PointData& data) {
  for (results::CommunicatorTime made : mine) {
    made.creation = point.all_max(made.creation);
    // A rank that makes no call on a communicator that others use contributes -1 to the maximum.
    const double first_call = point.all_max(made.first_call.value_or(-1));
    if (first_call >= 0) made.first_call = first_call;
    data.communicators.push_back(std::move(made));
  }
}

std::vector<machine::Source> sources_of(const SamplingDuty& duty,
                                        const machine::NvmlLibrary& nvml) {
  std::vector<machine::Source> sources;
  if (!duty.gpu_uuid.empty()) sources = machine::gpu_sources(nvml, duty.gpu_uuid);
  if (duty.node) {
    std::ranges::move(machine::node_sources("/", duty.cpus), std::back_inserter(sources));
  }
  return sources;
}

/// Opens NVML if this rank samples a GPU. Otherwise returns a library without functions.
machine::NvmlLibrary nvml_for(std::string_view gpu_uuid) {
  if (!gpu_uuid.empty()) return machine::NvmlLibrary::open();
  return machine::NvmlLibrary{[](const char*) -> void* { return nullptr; }};
}

}  // namespace

std::vector<int> traced_ranks(const mesh::Shape& shape, int most) {
  const mesh::Shape part = kept(shape, most);
  std::vector<int> ranks;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const mesh::Coordinates at = mesh::coordinates(shape, rank);
    const bool is_kept =
        std::ranges::all_of(mesh::all_axes, [&](Axis axis) { return at[axis] < part[axis]; });
    if (is_kept) ranks.push_back(rank);
  }
  return ranks;
}

void collect_gemm_choices(const comm::Communicator& point,
                          const std::vector<results::GemmChoice>& mine, results::PointData& data) {
  std::map<std::string, results::GemmChoice> by_shape;
  for (const results::GemmChoice& choice : data.gemm_choices) by_shape[choice.shape] = choice;
  for (const auto& part : gather_records(point, mine)) {
    for (const results::GemmChoice& choice : part) by_shape.try_emplace(choice.shape, choice);
  }
  data.gemm_choices.clear();
  for (auto& [shape, choice] : by_shape) data.gemm_choices.push_back(std::move(choice));
}

void collect_solo(const comm::Communicator& point, const std::vector<units::Nanoseconds>& mine,
                  std::span<const int> traced, results::PointData& data) {
  std::span<const units::Nanoseconds> part{mine};
  if (!std::ranges::binary_search(traced, point.rank())) part = {};
  const auto parts = gather_values(point, part);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].empty()) continue;
    data.solo_times.push_back({.rank = static_cast<int>(rank), .op = parts[rank]});
  }
}

void collect_session(const comm::Communicator& point, const executor::SessionFacts& session,
                     results::PointData& data) {
  const std::array<double, 2> memory{static_cast<double>(session.memory.value()),
                                     static_cast<double>(session.host_memory.value())};
  data.memory_of_rank.clear();
  data.host_memory_of_rank.clear();
  for (const std::vector<double>& part : gather_values(point, std::span<const double>{memory})) {
    data.memory_of_rank.push_back(part.at(0));
    data.host_memory_of_rank.push_back(part.at(1));
  }
  data.communicator_creation = point.all_max(session.communicator_creation.value());
  collect_communicators(point, session.communicators, data);
  collect_gemm_choices(point, session.gemm_choices, data);
  data.folded = session.folded;
  data.folded_reason = session.folded_reason;
  data.graph = session.graph ? "on" : "off";
}

void collect(const comm::Communicator& point, const Record& record, const comm::ClockFit& clock,
             const executor::SessionFacts& session, std::span<const int> traced,
             results::PointData& data) {
  collect_session(point, session, data);
  collect_clocks(point, clock, data);
  collect_step_times(point, record, data);
  collect_traces(point, record, traced, clock, data);
  collect_op_sums(point, record, data);
  data.warm_up_steps = static_cast<std::int64_t>(record.warm_up_steps);
  data.traced = record.traced;
  data.dropped = record.dropped;
  data.stopped_because = record.stopped_because;
  data.warm_up_rule = record.warm_up_rule;
  data.looks = record.looks;
}

SamplingDuty sampling_duty(int rank, std::span<const int> world_ranks,
                           std::span<const int> node_of_rank,
                           std::span<const machine::MachineFacts> facts,
                           std::string_view gpu_uuid) {
  constexpr std::size_t most = 600, fewest = 60, of_all_ranks = 76'800;
  const auto node_of = [&](std::size_t position) {
    return node_of_rank[static_cast<std::size_t>(world_ranks[position])];
  };
  const auto me = static_cast<std::size_t>(rank);
  SamplingDuty duty{.node = true, .gpu_uuid = std::string{gpu_uuid}};
  duty.most_samples =
      std::clamp(of_all_ranks / std::max<std::size_t>(1, world_ranks.size()), fewest, most);
  std::set<int> cpus;
  bool known = true;
  for (std::size_t other = 0; other < world_ranks.size(); ++other) {
    if (node_of(other) != node_of(me)) continue;
    if (other < me) duty.node = false;
    const auto world_rank = static_cast<std::size_t>(world_ranks[other]);
    const bool bound = world_rank < facts.size() && !facts[world_rank].bound_cpus.empty();
    known = known && bound;
    if (bound) {
      cpus.insert(facts[world_rank].bound_cpus.begin(), facts[world_rank].bound_cpus.end());
    }
  }
  if (duty.node && known) duty.cpus.assign(cpus.begin(), cpus.end());
  return duty;
}

PointSampler::PointSampler(const SamplingDuty& duty)
    : nvml_(nvml_for(duty.gpu_uuid)),
      sampler_(sources_of(duty, nvml_), {.most_samples = duty.most_samples}) {}

GpuWatch::GpuWatch(const std::string& uuid) : nvml_(nvml_for(uuid)) {
  constexpr std::array<std::string_view, 2> wanted{"sm_clock", "throttle_reasons"};
  if (!uuid.empty()) sources_ = machine::gpu_sources(nvml_, uuid, wanted);
}

void collect_device_series(const comm::Communicator& point, const Record& record,
                           const std::vector<results::DeviceSeries>& mine,
                           results::PointData& data) {
  auto parts = gather_records(point, mine);
  if (point.rank() != 0) return;
  const double origin = units::to_seconds(record.begin).value();
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const double offset = rank < data.clock_offset.size() ? data.clock_offset[rank] : 0;
    for (results::DeviceSeries& series : parts[rank]) {
      series.rank = static_cast<int>(rank);
      for (double& time : series.time) time = time - offset - origin;
      data.device_series.push_back(std::move(series));
    }
  }
  data.measured_seconds = units::to_seconds(record.end - record.begin).value();
}

}  // namespace isoscale::runner::measure
