// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight/collect_facts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <set>
#include <system_error>
#include <utility>

#include "base/folder_entries.hpp"
#include "base/handle.hpp"
#include "base/text.hpp"
#include "machine/kernel_files.hpp"

namespace isoscale::preflight {
namespace {

namespace fs = std::filesystem;
using base::Descriptor;
using machine::leading_number;
using machine::line_in;
using machine::number_in;
using machine::read_file;

/// True for the sysfs folder of a CPU, such as "cpu3", but not for other names such as "cpufreq".
bool is_cpu(const fs::path& folder) {
  constexpr std::string_view prefix = "cpu";
  const std::string name = folder.filename().string();
  return name.starts_with(prefix) && base::number_in<unsigned>(name.substr(prefix.size()));
}

bool is_folder(const fs::path& path) {
  std::error_code failure;
  return fs::is_directory(path, failure);
}

/// Returns the types ("DMA", "DMA-FQ", "identity", ...) of the IOMMU groups that `functions`
/// (folders of PCI functions) belong to, or of all groups if none of them belongs to a group.
std::vector<std::string> group_types(const fs::path& root, const std::vector<fs::path>& functions) {
  std::vector<std::string> types;
  for (const fs::path& function : functions) {
    if (auto type = line_in(function / "iommu_group/type")) types.push_back(*std::move(type));
  }
  if (!types.empty()) return types;
  for (const fs::path& group : base::entries_of(root / "sys/kernel/iommu_groups")) {
    if (auto type = line_in(group / "type")) types.push_back(*std::move(type));
  }
  return types;
}

/// True if the kernel was started with an option for IOMMU passthrough (addresses are not
/// translated).
bool passthrough_asked(const fs::path& root) {
  const std::string line = fmt::format(" {} ", line_in(root / "proc/cmdline").value_or(""));
  return line.find(" iommu=pt ") != std::string::npos ||
         line.find(" iommu.passthrough=1 ") != std::string::npos;
}

constexpr std::string_view adapters_folder = "sys/class/infiniband";

/// Returns the state in a port's file `state` or `phys_state`: "ACTIVE" for "4: ACTIVE".
std::optional<std::string> state_in(const fs::path& file) {
  std::optional<std::string> line = line_in(file);
  if (!line) return std::nullopt;
  const std::size_t colon = line->find(": ");
  if (colon != std::string::npos) line->erase(0, colon + 2);
  return line;
}

/// Returns the rate in a port's file `rate`, in bit/s: 400e9 for "400 Gb/sec (4X NDR)".
std::optional<double> rate_in(const fs::path& file) {
  constexpr double giga = 1e9;
  const std::optional<std::string> line = line_in(file);
  if (!line || line->find(" Gb/sec") == std::string::npos) return std::nullopt;
  const std::optional<double> rate = leading_number(*line);
  return rate ? std::optional{*rate * giga} : std::nullopt;
}

std::optional<std::int64_t> count_in(const fs::path& file) {
  const std::optional<double> count = number_in(file);
  return count ? std::optional{static_cast<std::int64_t>(*count)} : std::nullopt;
}

CheckedPort read_port(std::string device, const fs::path& folder, const machine::PciFacts& pci) {
  CheckedPort port;
  static_cast<machine::PciFacts&>(port) = pci;
  port.device = std::move(device);
  port.link_layer = line_in(folder / "link_layer");
  port.state = state_in(folder / "state");
  port.physical_state = state_in(folder / "phys_state");
  port.rate = rate_in(folder / "rate");
  port.link_downed = count_in(folder / "counters/link_downed");
  port.symbol_errors = count_in(folder / "counters/symbol_error");
  return port;
}

bool is_plugin(std::string_view name) {
  constexpr std::array<std::string_view, 5> prefixes{"libnccl-net", "libnccl-tuner",
                                                     "libnccl-profiler", "libnccl-env", "libsharp"};
  return name.find(".so") != std::string_view::npos &&
         std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

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
  const std::optional<std::string> stat = read_file((root / "proc/stat").string());
  const std::size_t at = stat ? stat->find(key) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return leading_number(std::string_view{*stat}.substr(at + key.size()));
}

/// Returns the messages in var/log/kern.log since the kernel started; nullopt if the file cannot be
/// read, or was last written before the kernel started.
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

/// Converts the place of a GPU in an Xid message, "PCI:0000:1b:00" or, from old drivers,
/// "0000:1b:00", to a bus id: "0000:1b:00.0".
std::string bus_id_in(std::string_view place) {
  constexpr std::string_view bus = "PCI:";
  if (place.starts_with(bus)) place.remove_prefix(bus.size());
  const bool whole = place.find('.') != std::string_view::npos;
  return sysfs_bus_id(whole ? std::string{place} : fmt::format("{}.0", place));
}

}  // namespace

std::optional<std::map<std::string, int>> cpus_by(const fs::path& root, const char* file) {
  std::map<std::string, int> cpus;
  for (const fs::path& cpu : base::entries_of(root / "sys/devices/system/cpu", "cpu")) {
    if (!is_cpu(cpu)) continue;
    if (const auto value = line_in(cpu / file)) ++cpus[*value];
  }
  return cpus.empty() ? std::nullopt : std::optional{std::move(cpus)};
}

std::optional<bool> iommu_translates(const fs::path& root, const std::vector<fs::path>& functions) {
  const std::vector<std::string> types = group_types(root, functions);
  if (!types.empty()) {
    return std::ranges::any_of(types,
                               [](const std::string& type) { return type.starts_with("DMA"); });
  }
  // Kernels before 5.11 do not show the type of an IOMMU group. Then only two things prove that no
  // addresses are translated: that there is no IOMMU, or that passthrough was asked for.
  const fs::path units = root / "sys/class/iommu";
  const bool none = is_folder(units) && base::entries_of(units).empty();
  return none || passthrough_asked(root) ? std::optional{false} : std::nullopt;
}

std::optional<bool> has_module(const fs::path& root,
                               std::initializer_list<std::string_view> names) {
  const fs::path modules = root / "sys/module";
  if (!is_folder(modules)) return std::nullopt;
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return is_folder(modules / name); });
}

std::optional<bool> has_dmabuf(const fs::path& root) {
  constexpr std::pair first_kernel{5.0, 12.0};
  const std::optional<std::string> driver = line_in(root / "proc/driver/nvidia/version");
  const std::optional<std::string> release = line_in(root / "proc/sys/kernel/osrelease");
  if (!driver || !release) return std::nullopt;
  const std::vector<std::string_view> parts = base::split(*release, '.');
  if (parts.size() < 2) return std::nullopt;
  const std::optional<double> major = leading_number(parts[0]), minor = leading_number(parts[1]);
  if (!major || !minor) return std::nullopt;
  return std::pair{*major, *minor} >= first_kernel &&
         driver->find("Open Kernel Module") != std::string::npos;
}

fs::path below(const fs::path& root, const fs::path& file) {
  return file.is_absolute() ? root / file.relative_path() : file;
}

std::optional<std::vector<CheckedPort>> find_ports(const fs::path& root) {
  // Without the folder sys/class nothing is known about ports. If this folder exists but has no
  // folder of adapters, the kernel does not support such adapters, so the node has no port.
  if (!is_folder(root / "sys/class")) return std::nullopt;
  std::vector<CheckedPort> ports;
  for (const fs::path& adapter : base::entries_of(root / adapters_folder)) {
    const machine::PciFacts pci = pci_facts(adapter / "device");
    for (const fs::path& folder : base::entries_of(adapter / "ports")) {
      const auto number = base::number_in<int>(folder.filename().string());
      if (!number) continue;
      ports.push_back(read_port(adapter.filename().string(), folder, pci));
      ports.back().port = *number;
    }
  }
  std::ranges::stable_sort(ports, [](const CheckedPort& a, const CheckedPort& b) {
    return std::pair{a.device, a.port} < std::pair{b.device, b.port};
  });
  return ports;
}

std::vector<fs::path> adapter_functions(const fs::path& root) {
  std::vector<fs::path> functions;
  for (const fs::path& adapter : base::entries_of(root / adapters_folder)) {
    functions.push_back(adapter / "device");
  }
  return functions;
}

std::optional<std::vector<std::string>> nccl_plugins(const fs::path& root,
                                                     const machine::Lookup& environment) {
  std::set<std::string> names;
  bool searched = false;
  const std::string folders = environment("LD_LIBRARY_PATH").value_or("");
  for (const std::string_view folder : base::split(folders, ':')) {
    if (folder.empty() || !is_folder(below(root, folder))) continue;
    searched = true;
    for (const fs::path& file : base::entries_of(below(root, folder), "lib")) {
      if (is_plugin(file.filename().string())) names.insert(file.filename().string());
    }
  }
  // The cache holds names and paths of libraries, each ended by a zero byte (ldconfig(8)).
  if (const auto cache = read_file((root / "etc/ld.so.cache").string())) {
    searched = true;
    for (const std::string_view text : base::split(*cache, '\0')) {
      const std::size_t slash = text.rfind('/');
      if (slash == std::string_view::npos) continue;
      if (is_plugin(text.substr(slash + 1))) names.emplace(text.substr(slash + 1));
    }
  }
  if (!searched) return std::nullopt;
  return std::vector<std::string>(names.begin(), names.end());
}

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

}  // namespace isoscale::preflight
