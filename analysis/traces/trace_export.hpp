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

#include "config/run_config.hpp"
#include "program/outline.hpp"
#include "results/run_data.hpp"
#include "units/quantity.hpp"

/// Exports the traces of run files in Chrome's trace-event format (the "Trace Event Format"
/// document of Chromium's catapult project), which ui.perfetto.dev and chrome://tracing open.
namespace isoscale::analysis {

/// A row of the viewer: processes and their threads.
struct Track {
  std::int64_t process = 0;
  std::int64_t thread = 0;
};

/// Arguments stand beside an event in this order; values are JSON.
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

/// Which end of an arrow between two events: it starts within the sender's and finishes within the
/// receiver's.
enum class FlowEnd : std::uint8_t { start, finish };

/// Writes one JSON object, event by event, as they come: nothing is kept.
class TraceWriter {
 public:
  /// `out` outlives this object. Begins the object.
  explicit TraceWriter(std::ostream& out);

  void name_process(std::int64_t process, std::string_view name);
  void name_thread(const Track& track, std::string_view name);
  /// An interval that ends before it starts is written as one of no length.
  void write(const TraceEvent& event);
  void write_flow(FlowEnd end, std::uint64_t id, const Track& track, units::Nanoseconds time);
  /// Ends the object.
  void finish();

  [[nodiscard]] std::uint64_t events() const { return events_; }  ///< intervals so far

 private:
  void begin_line();
  void write_name(std::string_view what, const Track& track, std::string_view name);

  std::ostream& out_;
  bool is_first_ = true;
  std::uint64_t events_ = 0;
};

/// "12.345": nanoseconds as microseconds, exactly.
[[nodiscard]] std::string microseconds(units::Nanoseconds time);

/// The extent of what was written, and what was not.
struct TraceExport {
  std::uint64_t events = 0;             ///< steps and ops
  std::vector<std::string> left_out{};  ///< a sentence each
};

/// Writes all traces of `runs` to `out` in Chrome's trace-event format. A process is a rank of a
/// point, named with its launch (from 1) where `runs` are several, a thread a stream of it, beside
/// one for whole steps; an event is an op, an arrow leads from the begin of each message's send to
/// the end of its receive. The times of a point begin with its first traced step and are those of
/// its rank 0's clock. Writes what it can.
[[nodiscard]] TraceExport export_traces(std::span<const results::RunData> runs, std::ostream& out);

/// The same to a file, which is complete whenever it is there. Throws base::UsageError when it
/// exists and may not be replaced, or cannot be made; base::Error when writing fails.
[[nodiscard]] TraceExport write_trace_file(std::span<const results::RunData> runs,
                                           const std::filesystem::path& path,
                                           config::IfExists if_exists);

}  // namespace isoscale::analysis
