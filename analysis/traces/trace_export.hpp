// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"

/// Exports the traces of run files in Chrome's trace-event format (the "Trace Event Format"
/// document of Chromium's catapult project), which ui.perfetto.dev and chrome://tracing open.
namespace isoscale::analysis::traces {

/// A row of the trace viewer, identified by process and thread.
struct Track {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

/// One interval on a track.
struct TraceEvent {
  Track track;
  std::string_view name;
  std::string_view category;
  units::Nanoseconds start, end;
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
};

/// The two ends of an arrow between events: the arrow starts within the sender's event and finishes
/// within the receiver's.
enum class FlowEnd : std::uint8_t { start, finish };

/// Writes the events of a trace as one JSON object. It does not keep events in memory.
class TraceWriter {
 public:
  /// Writes the beginning of the JSON object. `out` must outlive this writer.
  explicit TraceWriter(std::ostream& out);

  void name_process(std::int64_t process, std::string_view name);
  void name_thread(const Track& track, std::string_view name);
  /// Writes an interval. An interval that ends before it starts gets the length 0.
  void write(const TraceEvent& event);
  void write_flow(FlowEnd end, std::uint64_t id, const Track& track, units::Nanoseconds time);
  /// Writes the end of the JSON object.
  void finish();

  [[nodiscard]] std::uint64_t events() const { return events_; }  ///< intervals written so far

 private:
  void begin_line();
  /// Names a process or a thread, and says at which place a viewer shows it.
  void write_name(std::string_view kind, const Track& track, std::string_view name,
                  std::int64_t place);

  std::ostream& out_;
  bool is_first_ = true;
  std::uint64_t events_ = 0;
};

/// Returns a time in microseconds, without rounding: "12.345".
[[nodiscard]] std::string microseconds(units::Nanoseconds time);

/// The number of events that were written, and notes on the traces that were left out.
struct TraceExport {
  std::uint64_t events = 0;             ///< steps and ops
  std::vector<std::string> left_out{};  ///< one sentence for each reason
};

/// Writes all traces of `runs` to `out` in Chrome's trace-event format. Each rank of a point is a
/// process; with several runs its name begins with the number of the launch (from 1). Each stream
/// of the rank is a thread, and one more thread has the whole steps. Each op is an event. An arrow
/// leads from the start of each send to the end of the matching receive. Time 0 of a point is the
/// start of its first traced step, and all times are in terms of the clock of its rank 0. Traces
/// that cannot be used are left out.
[[nodiscard]] TraceExport export_traces(std::span<const results::RunData> runs, std::ostream& out);

/// Writes the traces to a file, which only appears once it is complete. Throws base::UsageError if
/// the file exists and may not be replaced, or cannot be created; throws base::Error if writing
/// fails.
[[nodiscard]] TraceExport write_trace_file(std::span<const results::RunData> runs,
                                           const std::filesystem::path& path,
                                           settings::IfExists if_exists);

}  // namespace isoscale::analysis::traces
