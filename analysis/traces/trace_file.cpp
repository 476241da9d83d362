// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>

#include "analysis/traces/trace_export.hpp"
#include "base/error.hpp"
#include "results/files.hpp"
#include "results/output.hpp"

namespace isoscale::analysis {

TraceExport write_trace_file(std::span<const results::RunData> runs,
                             const std::filesystem::path& path, config::IfExists if_exists) {
  namespace fs = std::filesystem;
  const bool replaces = if_exists == config::IfExists::overwrite;
  const fs::path target = results::resolved_output(path);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw base::UsageError(
        fmt::format("--trace: {} is not a regular file; name another", path.string()));
  }
  if (fs::exists(status) && !replaces) {
    throw base::UsageError(
        fmt::format("--trace: {} exists already; name another file, or add --force to replace it",
                    path.string()));
  }
  std::optional<results::TemporaryFile> file;
  try {
    file.emplace(target.parent_path());
  } catch (const base::Error& failure) {
    throw base::UsageError(
        fmt::format("--trace: cannot write {}: {}", path.string(), failure.what()));
  }
  std::ofstream out{file->path(), std::ios::binary};
  TraceExport result = export_traces(runs, out);
  out.close();
  if (!out) {
    throw base::Error(
        fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
  }
  static_cast<void>(
      file->publish(target, replaces ? results::Publish::replace : results::Publish::only_new));
  return result;
}

}  // namespace isoscale::analysis
