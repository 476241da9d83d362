// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/output_file.hpp"
#include "analysis/traces/trace_export.hpp"

namespace isoscale::analysis {

TraceExport write_trace_file(std::span<const results::RunData> runs,
                             const std::filesystem::path& path, config::IfExists if_exists) {
  TraceExport result;
  write_output_file("--trace", path, if_exists,
                    [&](std::ostream& out) { result = export_traces(runs, out); });
  return result;
}

}  // namespace isoscale::analysis
