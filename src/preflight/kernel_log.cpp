// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// This file reads the kernel's log and the Xids in it.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <map>

#include "base/handle.hpp"
#include "machine/procfs_and_cgroups.hpp"
#include "preflight/collect_facts.hpp"

namespace isoscale::preflight {
namespace {

namespace fs = std::filesystem;
using base::Descriptor;

constexpr std::size_t most_bytes = std::size_t{16} << 20U;  // most bytes that are read from a log
constexpr int most_reads = 1 << 16;                         // most read() calls on a log

Descriptor open_to_read(const fs::path& file) {
  return Descriptor{open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
}

/// Reads what a file contains now, without waiting for more. Each read() of /dev/kmsg returns one
/// message.
std::string read_now(const Descriptor& file) {
  std::array<char, 8192> message{};  // the longest message of the kernel
  std::string text;
  for (int i = 0; i < most_reads && text.size() < most_bytes; ++i) {
    const ssize_t got = ::read(file.get(), message.data(), message.size());
    if (got > 0) text.append(message.data(), static_cast<std::size_t>(got));
    // Messages were overwritten before they were read, or a signal came. The next read may succeed.
    const bool overwritten = got < 0 && (errno == EPIPE || errno == EINTR);
    if (got <= 0 && !overwritten) break;
  }
  return text;
}

/// Returns when the kernel started, in seconds since 1970, from the line "btime 1763754000" of
/// proc/stat.
std::optional<double> boot_time(const fs::path& root) {
  constexpr std::string_view key = "\nbtime ";
  const std::optional<std::string> stat = machine::read_file((root / "proc/stat").string());
  const std::size_t at = stat ? stat->find(key) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return machine::leading_number(std::string_view{*stat}.substr(at + key.size()));
}

/// Returns the messages in var/log/kern.log since the kernel started; "" if the file cannot be
/// read, or was last written before the kernel started.
std::string log_of_this_boot(const fs::path& root) {
  constexpr std::string_view first_message = "Linux version ";
  const Descriptor file = open_to_read(root / "var/log/kern.log");
  const std::optional<double> booted = boot_time(root);
  struct stat about {};
  if (!file || !booted || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<double>(about.st_mtim.tv_sec) < *booted) {
    return {};
  }
  if (about.st_size > static_cast<off_t>(most_bytes)) {
    lseek(file.get(), -static_cast<off_t>(most_bytes), SEEK_END);
  }
  std::string text = read_now(file);
  const std::size_t start = text.rfind(first_message);
  if (start != std::string::npos) text.erase(0, start);
  return text;
}

/// Converts the address of a GPU in an Xid message, "PCI:0000:1b:00" or, from old drivers,
/// "0000:1b:00", to a bus id: "0000:1b:00.0".
std::string bus_id_in(std::string_view place) {
  constexpr std::string_view bus = "PCI:";
  if (place.starts_with(bus)) place.remove_prefix(bus.size());
  place = place.substr(0, place.find(' '));  // a MIG instance follows: "PCI:0000:1b:00 GPU-I:05"
  const bool whole = place.find('.') != std::string_view::npos;
  return machine::sysfs_bus_id(whole ? std::string{place} : fmt::format("{}.0", place));
}

/// Returns the kernel's messages since the kernel started, as far as they are still kept. They are
/// read from dev/kmsg or, if that is impossible, from var/log/kern.log. The function never waits
/// for messages, and reads at most 16 MiB. "" if neither file can be read, or neither has messages
/// of this boot.
std::string kernel_log(const fs::path& root) {
  std::string text;
  if (const Descriptor messages = open_to_read(root / "dev/kmsg")) text = read_now(messages);
  return text.empty() ? log_of_this_boot(root) : text;
}

/// Returns the Xids (error codes of NVIDIA's driver) in a kernel log, by PCI bus id
/// ("0000:1b:00.0"). Each code is listed once, in the order of first appearance. A message looks
/// like "NVRM: Xid (PCI:0000:1b:00): 79, ..." (NVIDIA, XID Errors).
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

}  // namespace

void add_xids(std::vector<GpuFacts>& gpus, const fs::path& root) {
  if (gpus.empty()) return;
  const std::string log = kernel_log(root);
  if (log.empty()) return;
  std::map<std::string, std::vector<int>> xids = xids_in(log);
  for (GpuFacts& gpu : gpus) {
    if (!gpu.pci_bus_id.empty()) gpu.xids = xids[gpu.pci_bus_id];  // the log names GPUs by bus id
  }
}

}  // namespace isoscale::preflight
