// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure/gather_point.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "machine/device_sampler.hpp"

namespace isoscale::runner {
namespace {

using mesh::Axis;
using nlohmann::json;

/// The extent of each axis within the part of the mesh whose spans are kept, by Axis.
using Extents = std::array<int, mesh::axis_count>;

int& extent(Extents& extents, Axis axis) { return extents[static_cast<std::size_t>(axis)]; }

Extents kept(const mesh::Shape& shape, int most) {
  Extents extents{};
  for (const Axis axis : mesh::all_axes) extent(extents, axis) = shape[axis];
  int size = shape.size();
  for (const Axis axis : {Axis::dp, Axis::ep, Axis::cp, Axis::tp, Axis::pp}) {
    int& mine = extent(extents, axis);
    const int others = size / mine;
    mine = std::clamp(most / others, 1, mine);
    size = others * mine;
  }
  return extents;
}

/// Packs plain values one after another into bytes. Sender and receiver run the same program on the
/// same kind of machine, so no byte order is converted.
class Packer {
 public:
  template <class Value>
  void put(std::span<const Value> values) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const auto raw = std::as_bytes(values);
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  template <class Value>
  void put(const Value& value) {
    put(std::span<const Value>{&value, 1});
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class Value>
  std::vector<Value> get(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<Value>);
    std::vector<Value> values(count);
    std::memcpy(values.data(), rest_.data(), count * sizeof(Value));
    rest_ = rest_.subspan(count * sizeof(Value));
    return values;
  }
  template <class Value>
  Value get() {
    return get<Value>(1).front();
  }
  [[nodiscard]] bool done() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

struct TraceHeader {
  std::uint32_t step = 0;
  units::Nanoseconds begin, end;
  std::uint64_t spans = 0;
};

void collect_step_times(const comm::Communicator& point, const Record& record,
                        results::PointData& data) {
  const auto parts = point.gather(std::as_bytes(std::span{record.step_times}));
  if (point.rank() != 0) return;
  data.step_times.assign(record.step_times.size(), std::vector<double>(parts.size()));
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    Unpacker part{parts[rank]};
    for (auto& step : data.step_times) step[rank] = part.get<double>();
  }
}

void collect_traces(const comm::Communicator& point, const Record& record,
                    std::span<const int> traced, const comm::ClockFit& clock,
                    results::PointData& data) {
  Packer packer;
  if (std::ranges::binary_search(traced, point.rank())) {
    for (const timeline::StepTrace& trace : record.traces) {
      packer.put(TraceHeader{.step = trace.step,
                             .begin = clock.to_rank_0(trace.begin),
                             .end = clock.to_rank_0(trace.end),
                             .spans = trace.spans.size()});
      for (timeline::Span span : trace.spans) {
        span.start = clock.to_rank_0(span.start);
        span.end = clock.to_rank_0(span.end);
        packer.put(span);
      }
    }
  }
  const auto parts = point.gather(packer.bytes());
  if (point.rank() != 0) return;
  data.traces.resize(record.traces.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    Unpacker part{parts[rank]};
    for (std::size_t i = 0; !part.done(); ++i) {
      const auto header = part.get<TraceHeader>();
      data.traces[i].ranks.push_back({.rank = static_cast<int>(rank),
                                      .step = header.step,
                                      .begin = header.begin,
                                      .end = header.end,
                                      .spans = part.get<timeline::Span>(header.spans)});
    }
  }
}

void collect_op_sums(const comm::Communicator& point, const Record& record,
                     results::PointData& data) {
  const auto parts = point.gather(std::as_bytes(std::span{record.op_sums}));
  if (point.rank() != 0) return;
  for (const StepSums& mine : record.op_sums) data.op_sums.push_back({.step = mine.step});
  for (const auto& bytes : parts) {
    Unpacker part{bytes};
    for (results::OpSums& sums : data.op_sums) {
      const auto of_rank = part.get<StepSums>();
      sums.gemm.push_back(of_rank.gemm);
      sums.other_compute.push_back(of_rank.other_compute);
      sums.copies.push_back(of_rank.copies);
      sums.communication.push_back(of_rank.communication);
    }
  }
}

void collect_clocks(const comm::Communicator& point, const comm::ClockFit& clock,
                    results::PointData& data) {
  const std::array<double, 3> mine{units::to_seconds(clock.offset).value(), clock.drift,
                                   units::to_seconds(clock.error).value()};
  for (const auto& part : point.gather(std::as_bytes(std::span{mine}))) {
    Unpacker values{part};
    data.clock_offset.push_back(values.get<double>());
    data.clock_drift.push_back(values.get<double>());
    data.clock_error.push_back(values.get<double>());
  }
}

/// Collective: stores in `data` how long each communicator took to create and to use for the first
/// time, on its slowest rank. All ranks create their communicators in the same order.
void collect_communicators(const comm::Communicator& point,
                           const std::vector<executor::CommunicatorFacts>& mine,
                           results::PointData& data) {
  for (const executor::CommunicatorFacts& facts : mine) {
    results::CommunicatorTime made{.name = facts.name,
                                   .ranks = facts.ranks,
                                   .creation = point.all_max(facts.creation.value())};
    if (facts.first_call) made.first_call = point.all_max(facts.first_call->value());
    data.communicators.push_back(made);
  }
}

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

/// Opens NVML if the rank samples a GPU; otherwise returns an empty library.
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

std::vector<int> traced_ranks(const mesh::Shape& shape, int most) {
  Extents extents = kept(shape, most);
  std::vector<int> ranks;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const mesh::Coordinates at = mesh::coordinates(shape, rank);
    const bool is_kept = std::ranges::all_of(
        mesh::all_axes, [&](Axis axis) { return at[axis] < extent(extents, axis); });
    if (is_kept) ranks.push_back(rank);
  }
  return ranks;
}

void collect_gemm_choices(const comm::Communicator& point,
                          const std::vector<executor::GemmChoice>& mine, results::PointData& data) {
  json rows = json::array();
  for (const executor::GemmChoice& choice : mine) {
    rows.push_back({choice.shape, choice.algorithm, choice.workspace.value(), choice.time.value(),
                    choice.candidates, choice.arithmetic});
  }
  std::map<std::string, results::GemmChoice> by_shape;
  for (const results::GemmChoice& choice : data.gemm_choices) by_shape[choice.shape] = choice;
  for (const std::string& text : point.gather(rows.dump())) {
    for (const auto& row : json::parse(text)) {
      const auto shape = row.at(0).get<std::string>();
      const int candidates = row.at(4).get<int>();
      results::GemmChoice choice{.shape = shape,
                                 .algorithm = row.at(1).get<std::string>(),
                                 .workspace = row.at(2).get<std::int64_t>(),
                                 .candidates = candidates,
                                 .arithmetic = row.at(5).get<std::string>()};
      if (candidates > 0) choice.time = row.at(3).get<double>();
      by_shape.try_emplace(shape, choice);
    }
  }
  data.gemm_choices.clear();
  for (auto& [shape, choice] : by_shape) data.gemm_choices.push_back(std::move(choice));
}

void collect_solo(const comm::Communicator& point, const std::vector<units::Nanoseconds>& mine,
                  std::span<const int> traced, results::PointData& data) {
  std::span<const units::Nanoseconds> part{mine};
  if (!std::ranges::binary_search(traced, point.rank())) part = {};
  const auto parts = point.gather(std::as_bytes(part));
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (parts[rank].empty()) continue;
    results::SoloTimes& solo = data.solo_times.emplace_back();
    solo.rank = static_cast<int>(rank);
    solo.op.resize(parts[rank].size() / sizeof(units::Nanoseconds));
    std::memcpy(solo.op.data(), parts[rank].data(), parts[rank].size());
  }
}

void collect_session(const comm::Communicator& point, const executor::SessionFacts& session,
                     results::PointData& data) {
  const std::array<double, 2> memory{static_cast<double>(session.memory.value()),
                                     static_cast<double>(session.host_memory.value())};
  data.memory_of_rank.clear();
  data.host_memory_of_rank.clear();
  for (const auto& part : point.gather(std::as_bytes(std::span{memory}))) {
    Unpacker of_rank{part};
    data.memory_of_rank.push_back(of_rank.get<double>());
    data.host_memory_of_rank.push_back(of_rank.get<double>());
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
