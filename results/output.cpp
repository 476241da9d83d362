// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "results/files.hpp"

namespace isoscale::results {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view extension = ".h5";

/// "run" for "run.h5"; other names are kept whole.
std::string stem_of(const fs::path& run_file) {
  std::string name = run_file.filename().string();
  if (name.size() > extension.size() && name.ends_with(extension)) {
    name.resize(name.size() - extension.size());
  }
  return name;
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The prefix, four digits or more, perhaps "-2" and the like, the extension.
bool is_part_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(extension)) return false;
  name.remove_prefix(prefix.size());
  if (name.size() < extension.size() + 4) return false;
  name.remove_suffix(extension.size());
  const std::string_view index = name.substr(0, name.find('-'));
  name.remove_prefix(index.size());
  return index.size() >= 4 && is_number(index) && (name.empty() || is_number(name.substr(1)));
}

void check_directory(const fs::path& path, const fs::path& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (!fs::exists(status)) {
    throw base::UsageError(fmt::format(
        "cannot write {}: the directory {} does not exist; create it or name another file with "
        "--output",
        path.string(), directory.string()));
  }
  if (!fs::is_directory(status)) {
    throw base::UsageError(
        fmt::format("cannot write {}: {} is not a directory; name another file with --output",
                    path.string(), directory.string()));
  }
}

/// In a directory with the sticky bit (as /tmp has) only its owner may replace a file.
bool may_replace(const fs::path& path, const fs::path& directory) {
  struct stat file {};
  struct stat parent {};
  if (stat(path.c_str(), &file) != 0 || stat(directory.c_str(), &parent) != 0) return true;
  const uid_t self = geteuid();
  return (parent.st_mode & S_ISVTX) == 0 || self == 0 || self == file.st_uid ||
         self == parent.st_uid;
}

void check_existing(const fs::path& path, const fs::path& target, config::IfExists if_exists) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw base::UsageError(fmt::format("cannot write {}: it is {}; name another file with --output",
                                       path.string(),
                                       fs::is_directory(status) ? "a directory"
                                       : fs::is_symlink(status) ? "a link that leads nowhere"
                                                                : "not a regular file"));
  }
  if (if_exists == config::IfExists::overwrite) {
    if (fs::exists(status) && !may_replace(target, target.parent_path())) {
      throw base::UsageError(fmt::format(
          "cannot replace {}: it belongs to somebody else; name another file with --output",
          path.string()));
    }
    return;
  }
  if (fs::exists(status)) {
    throw base::UsageError(fmt::format(
        "{} exists already; name another file with --output, or add --force to replace it",
        path.string()));
  }
  if (const auto parts = existing_parts(target); !parts.empty()) {
    throw base::UsageError(fmt::format(
        "{} has the name of a part of {}; name another file with --output, or add --force to "
        "leave it there and continue",
        parts.front().string(), path.string()));
  }
}

}  // namespace

fs::path part_path(const fs::path& run_file, int index) {
  return run_file.parent_path() /
         fmt::format("{}.part{:04}{}", stem_of(run_file), index, extension);
}

std::vector<fs::path> existing_parts(const fs::path& run_file) {
  const std::string prefix = stem_of(run_file) + ".part";
  std::vector<fs::path> parts = base::entries_of(run_file.parent_path(), prefix);
  std::erase_if(
      parts, [&](const fs::path& entry) { return !is_part_of(entry.filename().string(), prefix); });
  return parts;
}

fs::path resolved_output(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (!error) return real;
  fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute;
}

void check_output(const fs::path& path, config::IfExists if_exists) {
  if (path.filename().empty()) {
    throw base::UsageError(
        fmt::format("cannot write '{}': it names no file; name one with --output", path.string()));
  }
  const fs::path target = resolved_output(path);
  check_directory(path, target.parent_path());
  check_existing(path, target, if_exists);
  sweep_temporary_files(target.parent_path());
  try {
    const TemporaryFile trial{target.parent_path()};
  } catch (const base::Error& error) {
    throw base::UsageError(fmt::format("cannot write {}: {}; name another file with --output",
                                       path.string(), error.what()));
  }
  constexpr std::size_t longest_name = 255 - std::string_view{".part0000-00"}.size();
  if (target.filename().string().size() > longest_name) {
    throw base::UsageError(
        fmt::format("cannot write {}: a file name has at most {} characters; "
                    "name another file with --output",
                    path.string(), longest_name));
  }
}

}  // namespace isoscale::results
