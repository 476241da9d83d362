// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/procfs_and_cgroups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace isoscale::machine {
namespace {

namespace fs = std::filesystem;

/// Reads a whole number at the beginning of the text; a blank and more text may follow.
std::optional<std::int64_t> number(std::string_view text) {
  text = base::trimmed(text);
  return base::number_in<std::int64_t>(text.substr(0, text.find_first_of(" \n")));
}

/// Returns the folders of a control group and of all groups above it, the mount point last. In a
/// container the mount point may be the only one of them that exists. `name` is its name in
/// /sys/fs/cgroup; "" = /sys/fs/cgroup itself.
std::vector<std::string> ancestry(std::string_view name, std::string_view group) {
  const std::string mount = fmt::format("/sys/fs/cgroup{}{}", name.empty() ? "" : "/", name);
  std::vector<std::string> folders;
  std::string path{group};
  while (path.size() > 1) {
    folders.push_back(mount + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

/// Returns the folders of this process's control groups, innermost first, for a version-1
/// controller such as "cpu", or for version 2 ("").
std::vector<std::string> group_folders(const ReadFile& read, std::string_view controller) {
  const std::optional<std::string> groups = read("/proc/self/cgroup");
  std::vector<std::string> folders;
  if (!groups) return folders;
  for (const std::string_view line : base::split(*groups, '\n')) {
    const std::vector<std::string_view> parts = base::split(line, ':');
    if (parts.size() < 3) continue;
    const std::string_view path = line.substr(parts[0].size() + parts[1].size() + 2);
    const std::vector<std::string_view> controllers = base::split(parts[1], ',');
    if (std::ranges::find(controllers, controller) == controllers.end()) continue;
    // Version 2, whose list of controllers is empty, is mounted in "unified" beside version 1, or
    // in /sys/fs/cgroup itself; a mount of version 1 is named after one of its controllers or all
    // of them.
    for (const std::string_view mount : {controller.empty() ? "unified" : controller, parts[1]}) {
      for (std::string& folder : ancestry(mount, path)) folders.push_back(std::move(folder));
    }
  }
  return folders;
}

std::optional<std::int64_t> read_number(const ReadFile& read, const std::string& path) {
  const std::optional<std::string> text = read(path);
  return text ? number(*text) : std::nullopt;
}

template <class T>
void lower(std::optional<T>& least, std::optional<T> value) {
  if (value && (!least || *value < *least)) least = value;
}

std::optional<double> ratio(std::optional<std::int64_t> quota, std::optional<std::int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

/// Returns the value in a line "name value" of memory.stat; 0 if there is none.
std::int64_t statistic(const std::optional<std::string>& text, std::string_view name) {
  if (!text) return 0;
  for (const std::string_view line : base::split(*text, '\n')) {
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ') {
      return number(line.substr(name.size())).value_or(0);
    }
  }
  return 0;
}

/// For one version of control groups, the files with the limit and the use of memory, and the entry
/// of memory.stat with the page cache that can be dropped.
struct MemoryFiles {
  std::string_view controller;
  const char *limit, *used;
  std::string_view droppable;
};
constexpr std::array memory_files{
    MemoryFiles{"", "/memory.max", "/memory.current", "inactive_file"},
    MemoryFiles{"memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                "total_inactive_file"}};

/// Returns the memory that the limits of the control groups leave to the process.
std::optional<units::Bytes> memory_left(const ReadFile& read) {
  // With cgroup v1, the kernel shows the limit "none" as a number near 2^63.
  constexpr std::int64_t unlimited = std::int64_t{1} << 60;
  std::optional<units::Bytes> least;
  for (const MemoryFiles& files : memory_files) {
    for (const std::string& folder : group_folders(read, files.controller)) {
      const auto limit = read_number(read, folder + files.limit);
      if (!limit || *limit >= unlimited) continue;
      const std::int64_t used = read_number(read, folder + files.used).value_or(0);
      const std::int64_t held = used - statistic(read(folder + "/memory.stat"), files.droppable);
      const std::int64_t left = std::max<std::int64_t>(*limit - std::max<std::int64_t>(held, 0), 0);
      lower(least, std::optional{units::Bytes{static_cast<std::uint64_t>(left)}});
    }
  }
  return least;
}

}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return file.bad() ? std::nullopt : std::optional{text.str()};
}

std::optional<double> leading_number(std::string_view text) {
  text = base::trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional{value} : std::nullopt;
}

std::optional<double> number_in(const fs::path& file) {
  const std::optional<std::string> text = read_file(file.string());
  return text ? leading_number(*text) : std::nullopt;
}

std::optional<std::string> line_in(const fs::path& file) {
  const std::optional<std::string> text = read_file(file.string());
  if (!text) return std::nullopt;
  return std::string{base::trimmed(base::split(*text, '\n').front())};
}

std::optional<std::string> field_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : base::split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || base::trimmed(line.substr(0, colon)) != key) continue;
    const std::string_view value = base::trimmed(line.substr(colon + 1));
    if (!value.empty()) return std::string{value};
  }
  return std::nullopt;
}

std::optional<units::Bytes> meminfo_field(std::string_view text, std::string_view key) {
  const std::optional<std::string> value = field_of(text, key);
  if (!value || !value->ends_with(" kB")) return std::nullopt;
  const std::optional<std::int64_t> count = number(*value);
  if (!count || *count < 0) return std::nullopt;
  return units::Bytes{static_cast<std::uint64_t>(*count) * 1024};  // the kernel's kB are KiB
}

std::optional<double> cpu_limit(const ReadFile& read) {
  std::optional<double> least;
  for (const std::string& folder : group_folders(read, "")) {
    // The file holds quota and period in microseconds: "max 100000" or "200000 100000".
    const std::optional<std::string> text = read(folder + "/cpu.max");
    if (!text) continue;
    const std::vector<std::string_view> fields = base::split(base::trimmed(*text), ' ');
    if (fields.size() == 2) lower(least, ratio(number(fields[0]), number(fields[1])));
  }
  for (const std::string& folder : group_folders(read, "cpu")) {
    lower(least, ratio(read_number(read, folder + "/cpu.cfs_quota_us"),
                       read_number(read, folder + "/cpu.cfs_period_us")));
  }
  return least;
}

std::optional<units::Bytes> memory_available(const ReadFile& read) {
  // A scheduler's or container's limit stops the process before the machine's memory is full.
  std::optional<units::Bytes> least = memory_left(read);
  if (const auto meminfo = read("/proc/meminfo")) {
    lower(least, meminfo_field(*meminfo, "MemAvailable"));
  }
  return least;
}

}  // namespace isoscale::machine
