// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run_file.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "results/reader.hpp"
#include "results/run_files.hpp"

namespace isoscale::runner {
namespace fs = std::filesystem;
namespace {

/// The name in the fallback, or with a number where something has it.
fs::path free_name(const fs::path& directory, const fs::path& name) {
  fs::path path = directory / name;
  std::error_code error;
  for (int number = 2; fs::exists(fs::symlink_status(path, error)); ++number) {
    path =
        directory / fmt::format("{}-{}{}", name.stem().string(), number, name.extension().string());
  }
  return path;
}

/// The points of the run that can be read there.
std::vector<results::PointData> points_of(const fs::path& path, const std::string& id) {
  try {
    results::RunData run = results::read_run(path);
    if (run.id == id) return std::move(run.points);
  } catch (const base::Error&) {  // what cannot be read is not taken along
  }
  return {};
}

}  // namespace

fs::path default_fallback() {
  const char* const directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

RunFile::RunFile(results::RunWriter writer, fs::path path, results::RunData header,
                 fs::path fallback)
    : writer_(std::move(writer)),
      path_(std::move(path)),
      header_(std::move(header)),
      fallback_(std::move(fallback)) {
  header_.points.clear();
}

void RunFile::commit(const results::PointData& point) {
  change([&] { writer_.commit(point); });
}

void RunFile::finish(const results::RunData& last) {
  change([&] {
    results::RunData told = last;
    if (!moved_.empty()) told.warnings.push_back(moved_);
    writer_.finish(told);
  });
}

void RunFile::change(const std::function<void()>& work) {
  try {
    return work();
  } catch (const base::Error& error) {
    if (!moved_.empty()) throw;
    try {
      move_to_fallback(error.what());
      return work();
    } catch (const base::Error& also) {
      throw base::Error(fmt::format("{}; the fallback {} cannot be written either: {}",
                                    error.what(), fallback_.string(), also.what()));
    }
  }
}

std::vector<results::PointData> RunFile::points_left() const {
  std::vector<results::PointData> points = points_of(path_, header_.id);
  if (!points.empty()) return points;
  // The name is gone or somebody else's, and the file itself is open; or one of its parts is gone.
  const auto copy = writer_.copy_published(fallback_);
  return copy ? results::readable_points(copy->path(), header_.id,
                                         results::resolved_output(path_).parent_path())
              : points;
}

void RunFile::move_to_fallback(const std::string& why) {
  const fs::path next = free_name(fallback_, path_.filename());
  const std::vector<results::PointData> points = points_left();
  results::RunWriter writer{next, header_, config::IfExists::refuse};
  for (const results::PointData& point : points) writer.commit(point);
  moved_ = fmt::format(
      "{} cannot be written any more ({}): the run continues in {}, which has {} of its points",
      path_.string(), why, next.string(), points.size());
  base::warn("isoscale: " + moved_);
  writer_ = std::move(writer);
  path_ = next;
}

}  // namespace isoscale::runner
