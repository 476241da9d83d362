// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "results/records/run_data.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"

/// Exports the traces of run files in Chrome's trace-event format (the "Trace Event Format"
/// document of Chromium's catapult project), which ui.perfetto.dev and chrome://tracing open.
namespace isoscale::analysis::traces {

/// Returns a time in microseconds, without rounding: "12.345".
[[nodiscard]] std::string microseconds(units::Nanoseconds time);

/// The number of events that were written, and notes on the traces that were left out.
struct TraceExport {
  std::uint64_t events = 0;             ///< steps and ops
  std::vector<std::string> left_out{};  ///< one sentence for each reason
};

/// Writes all traces of `runs` to `out`. Each rank of a point is a process; with several runs its
/// name begins with the number of the launch (from 1). Each stream of the rank is a thread, and one
/// more thread has the whole steps. Each op is an event. An arrow leads from the start of each send
/// to the end of the matching receive, if both ranks have a trace and an aligned clock. Time 0 of a
/// point is the earliest start of a step or op. Traces that cannot be used are left out.
[[nodiscard]] TraceExport export_traces(std::span<const results::RunData> runs, std::ostream& out);

/// Writes the traces to a file by write_output_file().
[[nodiscard]] TraceExport write_trace_file(std::span<const results::RunData> runs,
                                           const std::filesystem::path& path,
                                           settings::IfExists if_exists);

}  // namespace isoscale::analysis::traces
