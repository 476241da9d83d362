// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/output_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "results/hdf5/publish_and_lock_files.hpp"
#include "results/reader/reader.hpp"

namespace isoscale::analysis {

void write_output_file(std::string_view option, const std::filesystem::path& path,
                       settings::IfExists if_exists,
                       const std::function<void(std::ostream&)>& write) {
  namespace fs = std::filesystem;
  if (results::may_be_run_file(path)) {
    throw base::usage_error("{}: {} holds a run; name another file", option, path.string());
  }
  const bool replaces = if_exists == settings::IfExists::overwrite;
  const fs::path target = results::resolved_output(path);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw base::usage_error("{}: {} is not a regular file; name another", option, path.string());
  }
  if (fs::exists(status) && !replaces) {
    throw base::usage_error(
        "{}: {} exists already; name another file, or add --force to replace it", option,
        path.string());
  }
  std::optional<results::TemporaryFile> file;
  try {
    file.emplace(target.parent_path());
  } catch (const base::Error& failure) {
    throw base::usage_error("{}: cannot write {}: {}", option, path.string(), failure.what());
  }
  std::ofstream out{file->path(), std::ios::binary};
  write(out);
  out.close();
  if (!out) {
    throw base::Error(
        fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
  }
  static_cast<void>(
      file->publish(target, replaces ? results::Publish::replace : results::Publish::only_new));
}

}  // namespace isoscale::analysis
