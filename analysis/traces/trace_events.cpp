// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/traces/trace_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace isoscale::analysis::traces {
namespace {

/// Returns a value as JSON, in which bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string microseconds(units::Nanoseconds time) {
  constexpr std::uint64_t per_microsecond = 1000;
  const bool is_negative = time.value() < 0;
  const auto magnitude = static_cast<std::uint64_t>(is_negative ? -time.value() : time.value());
  return fmt::format("{}{}.{:03}", is_negative ? "-" : "", magnitude / per_microsecond,
                     magnitude % per_microsecond);
}

TraceWriter::TraceWriter(std::ostream& out) : out_(out) {
  out_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
}

void TraceWriter::begin_line() {
  out_ << (is_first_ ? "\n" : ",\n");
  is_first_ = false;
}

void TraceWriter::write_name(std::string_view kind, const Track& track, std::string_view name,
                             std::int64_t place) {
  begin_line();
  out_ << fmt::format(R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                      kind, track.process, track.thread, json_text(name));
  begin_line();
  out_ << fmt::format(
      R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", kind,
      track.process, track.thread, place);
}

void TraceWriter::name_process(std::int64_t process, std::string_view name) {
  write_name("process", {.process = process}, name, process);
}

void TraceWriter::name_thread(const Track& track, std::string_view name) {
  write_name("thread", track, name, track.thread);
}

void TraceWriter::write(const TraceEvent& event) {
  begin_line();
  const units::Nanoseconds length = std::max(event.end - event.start, units::Nanoseconds{0});
  out_ << fmt::format(
      R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{}}})",
      json_text(event.name), json_text(event.category), event.track.process, event.track.thread,
      microseconds(event.start), microseconds(length), json_text(event.arguments));
  ++events_;
}

void TraceWriter::write_flow(FlowEnd end, std::uint64_t id, const Track& track,
                             units::Nanoseconds time) {
  begin_line();
  // The entry "bp":"e" makes the arrow end at the interval that contains the time, not at the next.
  out_ << fmt::format(
      R"({{"ph":"{}","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}{}}})",
      end == FlowEnd::start ? "s" : "f", id, track.process, track.thread, microseconds(time),
      end == FlowEnd::start ? "" : R"(,"bp":"e")");
}

void TraceWriter::finish() { out_ << "\n]}\n"; }

}  // namespace isoscale::analysis::traces
