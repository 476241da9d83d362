// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "results/run_data.hpp"

/// The traces of run files for a viewer of timelines.
namespace isoscale::analysis {

/// What was written, and what was not.
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
