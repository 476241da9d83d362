// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/device_sampling.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "machine/device_sampler.hpp"

namespace isoscale::runner {
namespace {

using nlohmann::json;

std::vector<machine::Source> sources_of(const SamplingDuty& duty,
                                        const machine::NvmlLibrary& nvml) {
  std::vector<machine::Source> sources;
  const auto add = [&sources](std::vector<machine::Source> more) {
    std::ranges::move(more, std::back_inserter(sources));
  };
  if (!duty.gpu_uuid.empty()) add(machine::gpu_sources(nvml, duty.gpu_uuid));
  if (duty.node) {
    const machine::FileTree tree;
    add(machine::cpu_clock_sources(tree, duty.cpus));
    add(machine::cpu_throttle_sources(tree, duty.cpus));
    add(machine::cpu_busy_sources(tree, duty.cpus));
    add(machine::energy_sources(tree));
    add(machine::temperature_sources(tree));
    add(machine::network_sources(tree));
  }
  return sources;
}

/// Only who has a GPU starts its library.
machine::NvmlLibrary nvml_for(const SamplingDuty& duty) {
  if (!duty.gpu_uuid.empty()) return machine::NvmlLibrary::open();
  return machine::NvmlLibrary{[](const char*) -> void* { return nullptr; }};
}

json to_json(const std::vector<machine::SampledSeries>& all) {
  json rows = json::array();
  for (const machine::SampledSeries& series : all) {
    std::vector<std::int64_t> time;
    for (const units::Nanoseconds at : series.time) time.push_back(at.value());
    rows.push_back({series.channel.device, series.channel.quantity, series.channel.unit,
                    std::move(time), series.value});
  }
  return rows;
}

}  // namespace

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
    : nvml_(nvml_for(duty)),
      sampler_(sources_of(duty, nvml_), {.most_samples = duty.most_samples}) {}

GpuWatch::GpuWatch(const std::string& uuid) : nvml_(nvml_for({.gpu_uuid = uuid})) {
  constexpr std::array<std::string_view, 2> wanted{"sm_clock", "throttle_reasons"};
  if (!uuid.empty()) sources_ = machine::gpu_sources(nvml_, uuid, wanted);
}

void collect_device_series(const comm::Communicator& point, const Record& record,
                           const std::vector<machine::SampledSeries>& mine,
                           results::PointData& data) {
  const std::vector<std::uint8_t> packed = json::to_cbor(to_json(mine));
  const auto parts = point.gather(std::as_bytes(std::span{packed}));
  if (point.rank() != 0) return;
  const double origin = units::to_seconds(record.begin).value();
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    const double offset = rank < data.clock_offset.size() ? data.clock_offset[rank] : 0;
    for (const json& row : json::from_cbor(parts[rank])) {
      results::DeviceSeries series{.rank = static_cast<int>(rank),
                                   .device = row.at(0).get<std::string>(),
                                   .quantity = row.at(1).get<std::string>(),
                                   .unit = row.at(2).get<std::string>(),
                                   .value = row.at(4).get<std::vector<double>>()};
      for (const json& time : row.at(3)) {
        const units::Nanoseconds at{time.get<std::int64_t>()};
        series.time.push_back(units::to_seconds(at).value() - offset - origin);
      }
      data.device_series.push_back(std::move(series));
    }
  }
  data.measured_seconds = units::to_seconds(record.end - record.begin).value();
}

}  // namespace isoscale::runner
