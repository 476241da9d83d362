// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/collect.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace isoscale::runner {
namespace {

/// Plain values one after another; both ends are this program on one kind of machine.
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

/// Slowest rank of each; a rank's communicators are made in one order on all.
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

}  // namespace

void collect_gemm_choices(const comm::Communicator& point,
                          const std::vector<executor::GemmChoice>& mine, results::PointData& data) {
  nlohmann::json rows = nlohmann::json::array();
  for (const executor::GemmChoice& choice : mine) {
    rows.push_back({choice.shape, choice.algorithm, choice.workspace.value(), choice.time.value(),
                    choice.candidates, choice.arithmetic});
  }
  std::map<std::string, results::GemmChoice> by_shape;
  for (const results::GemmChoice& choice : data.gemm_choices) by_shape[choice.shape] = choice;
  for (const std::string& text : point.gather(rows.dump())) {
    for (const auto& row : nlohmann::json::parse(text)) {
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

}  // namespace isoscale::runner
