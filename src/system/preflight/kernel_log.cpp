// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/kernel_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/handle.hpp"
#include "system/cgroup.hpp"
#include "system/preflight/pci.hpp"
#include "system/sample_files.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_bytes = std::size_t{16} << 20U;
constexpr int most_reads = 1 << 16;

struct DescriptorTraits {
  using type = int;
  static constexpr type null() { return -1; }
  static void free(type descriptor) noexcept { close(descriptor); }
};
using Descriptor = base::Handle<DescriptorTraits>;

Descriptor open_to_read(const fs::path& file) {
  return Descriptor{open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
}

/// What is there now; of the kernel's own device each read gives one message.
std::string read_now(const Descriptor& file) {
  std::array<char, 8192> message{};  // the kernel's longest
  std::string text;
  for (int i = 0; i < most_reads && text.size() < most_bytes; ++i) {
    const ssize_t got = read(file.get(), message.data(), message.size());
    if (got > 0) text.append(message.data(), static_cast<std::size_t>(got));
    const bool overwritten = got < 0 && (errno == EPIPE || errno == EINTR);  // the next is there
    if (got <= 0 && !overwritten) break;
  }
  return text;
}

/// Seconds since 1970 at which the kernel started: "btime 1763754000" of proc/stat.
std::optional<double> boot_time(const fs::path& root) {
  constexpr std::string_view key = "\nbtime ";
  const std::optional<std::string> stat = read_file((root / "proc/stat").string());
  const std::size_t at = stat ? stat->find(key) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return leading_number(std::string_view{*stat}.substr(at + key.size()));
}

/// The log's end, from the last start of the kernel on. A log that was last written before that
/// start holds nothing of this boot.
std::optional<std::string> log_of_this_boot(const fs::path& root) {
  constexpr std::string_view first_message = "Linux version ";
  const Descriptor file = open_to_read(root / "var/log/kern.log");
  const std::optional<double> booted = boot_time(root);
  struct stat about {};
  if (!file || !booted || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<double>(about.st_mtim.tv_sec) < *booted) {
    return std::nullopt;
  }
  if (about.st_size > static_cast<off_t>(most_bytes)) {
    lseek(file.get(), -static_cast<off_t>(most_bytes), SEEK_END);
  }
  std::string text = read_now(file);
  const std::size_t start = text.rfind(first_message);
  if (start != std::string::npos) text.erase(0, start);
  return text.empty() ? std::nullopt : std::optional{std::move(text)};
}

/// "PCI:0000:1b:00" or, of old drivers, "0000:1b:00".
std::string bus_id_in(std::string_view place) {
  constexpr std::string_view bus = "PCI:";
  if (place.starts_with(bus)) place.remove_prefix(bus.size());
  const bool whole = place.find('.') != std::string_view::npos;
  return sysfs_bus_id(whole ? std::string{place} : fmt::format("{}.0", place));
}

}  // namespace

std::optional<std::string> kernel_log(const fs::path& root) {
  if (const Descriptor messages = open_to_read(root / "dev/kmsg")) {
    std::string text = read_now(messages);
    if (!text.empty()) return text;
  }
  return log_of_this_boot(root);
}

std::map<std::string, std::vector<int>> xids_in(std::string_view log) {
  constexpr std::string_view report = "NVRM: Xid (", end_of_place = "): ";
  std::map<std::string, std::vector<int>> xids;
  for (std::size_t at = log.find(report); at != std::string_view::npos; at = log.find(report)) {
    log.remove_prefix(at + report.size());
    const std::string_view line = log.substr(0, log.find('\n'));
    const std::size_t place = line.find(end_of_place);
    if (place == std::string_view::npos) continue;
    const std::string_view rest = line.substr(place + end_of_place.size());
    int code = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), code).ec != std::errc{}) continue;
    std::vector<int>& codes = xids[bus_id_in(line.substr(0, place))];
    if (std::ranges::find(codes, code) == codes.end()) codes.push_back(code);
  }
  return xids;
}

}  // namespace isoscale::system
