// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
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

/// A row of the viewer, given by process and thread.
struct Track {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

/// Collects the arguments of an event in the order of the calls; values are JSON.
class EventArguments {
 public:
  EventArguments& add(std::string_view key, std::string_view text);
  EventArguments& add(std::string_view key, double number);
  EventArguments& add(std::string_view key, std::int64_t number);
  [[nodiscard]] std::string json() const { return "{" + members_ + "}"; }

 private:
  EventArguments& add_json(std::string_view key, const std::string& value);
  std::string members_;
};

/// One interval of a track.
struct TraceEvent {
  Track track;
  std::string_view name;
  std::string_view category;
  units::Nanoseconds start, end;
  EventArguments arguments{};
};

/// The end of an arrow between two events: it starts within the sender's and finishes within the
/// receiver's.
enum class FlowEnd : std::uint8_t { start, finish };

/// Writes one JSON object, event by event; it keeps none of them in memory.
class TraceWriter {
 public:
  /// Begins the object. `out` outlives this writer.
  explicit TraceWriter(std::ostream& out);

  void name_process(std::int64_t process, std::string_view name);
  void name_thread(const Track& track, std::string_view name);
  /// Writes an interval; one that ends before it starts gets length 0.
  void write(const TraceEvent& event);
  void write_flow(FlowEnd end, std::uint64_t id, const Track& track, units::Nanoseconds time);
  /// Ends the JSON object.
  void finish();

  [[nodiscard]] std::uint64_t events() const { return events_; }  ///< intervals so far

 private:
  void begin_line();
  void write_name(std::string_view what, const Track& track, std::string_view name);

  std::ostream& out_;
  bool is_first_ = true;
  std::uint64_t events_ = 0;
};

/// Returns nanoseconds as microseconds, exactly: "12.345".
[[nodiscard]] std::string microseconds(units::Nanoseconds time);

/// The number of events written, and what was left out.
struct TraceExport {
  std::uint64_t events = 0;             ///< steps and ops
  std::vector<std::string> left_out{};  ///< a sentence each
};

/// Writes all traces of `runs` to `out` in Chrome's trace-event format. A process is a rank of a
/// point; with several runs its name begins with the launch (from 1). A thread is a stream of the
/// rank; one more thread has the whole steps. An event is an op, and an arrow leads from the start
/// of each message's send to the end of its receive. The times of a point begin with its first
/// traced step and are those of its rank 0's clock. Traces that cannot be used are left out.
[[nodiscard]] TraceExport export_traces(std::span<const results::RunData> runs, std::ostream& out);

/// Writes the traces to a file, which only appears once it is complete. Throws base::UsageError
/// when it exists and may not be replaced, or cannot be made; base::Error when writing fails.
[[nodiscard]] TraceExport write_trace_file(std::span<const results::RunData> runs,
                                           const std::filesystem::path& path,
                                           settings::IfExists if_exists);

}  // namespace isoscale::analysis::traces
