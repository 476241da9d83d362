// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>

#include "base/error.hpp"
#include "units/text.hpp"

namespace isoscale::executor::host {
namespace {

namespace fs = std::filesystem;

/// The number after `key` at the start of a line: "MemAvailable:  123 kB", "inactive_file 456".
std::optional<std::uint64_t> number_after(const fs::path& file, std::string_view key) {
  std::ifstream in{file};
  std::string word;
  std::uint64_t number = 0;
  for (std::string rest; in >> word; std::getline(in, rest)) {
    if (word == key && in >> number) return number;
    in.clear();
  }
  return std::nullopt;
}

/// A file that holds one number; "max", as for no limit, is none.
std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in{file};
  std::uint64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

void lower(std::optional<std::uint64_t>& least, std::optional<std::uint64_t> value) {
  if (value) least = std::min(least.value_or(*value), *value);
}

/// Room below the limit of one control group. File cache that the kernel would drop is not used.
std::optional<std::uint64_t> room(const fs::path& group, const char* limit_file,
                                  const char* usage_file, std::string_view cache_key) {
  const auto limit = number_in(group / limit_file);
  const auto usage = number_in(group / usage_file);
  if (!limit || !usage) return std::nullopt;
  const std::uint64_t cache = number_after(group / "memory.stat", cache_key).value_or(0);
  const std::uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

/// Follows the groups of /proc/self/cgroup ("0::/a/b" or "5:memory:/a/b") up to the root; inside a
/// container the path may not exist, and the root is the container's own group.
void lower_by_control_groups(std::optional<std::uint64_t>& least, const fs::path& root) {
  std::ifstream groups{root / "proc/self/cgroup"};
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    const fs::path mount = root / (unified ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    for (fs::path group = fs::path{line.substr(second + 1)}.relative_path();;
         group = group.parent_path()) {
      lower(least, unified ? room(mount / group, "memory.max", "memory.current", "inactive_file")
                           : room(mount / group, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"));
      if (group.empty()) break;
    }
  }
}

[[noreturn]] void refuse(units::Bytes bytes, int code) {
  const auto left = free_memory();
  throw base::Error(
      fmt::format("cannot allocate {} of memory for this rank ({}); {} free on its node: use a "
                  "smaller model or "
                  "batch, or fewer ranks per node",
                  units::format(bytes), std::generic_category().message(code),
                  left ? units::format(*left) : "unknown"));
}

}  // namespace

void MappingTraits::free(type mapping) noexcept { munmap(mapping.address, mapping.bytes); }

Storage allocate(units::Bytes bytes) {
  if (bytes.value() == 0) return {};
  void* const address =
      mmap(nullptr, bytes.value(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) refuse(bytes, errno);
  Storage storage{{.address = static_cast<std::byte*>(address), .bytes = bytes.value()}};
  // Large pages where the kernel has them: a hint, so its failure is no failure.
  madvise(address, bytes.value(), MADV_HUGEPAGE);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < bytes.value(); i += page) {
    *static_cast<volatile std::byte*>(storage.get().address + i) = std::byte{0};
  }
  return storage;
}

std::optional<units::Bytes> free_memory(const fs::path& root) {
  std::optional<std::uint64_t> least;
  constexpr std::uint64_t unit = 1024;  // /proc/meminfo counts in KiB, which it calls kB
  if (const auto available = number_after(root / "proc/meminfo", "MemAvailable:")) {
    least = *available * unit;
  }
  lower_by_control_groups(least, root);
  if (!least) return std::nullopt;
  return units::Bytes{*least};
}

}  // namespace isoscale::executor::host
