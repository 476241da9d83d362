// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// What of a machine can be looked at again and again beside a measurement.
namespace isoscale::system {

/// One quantity of one device. Counters grow: only differences of their values mean anything.
struct Channel {
  std::string device;    ///< "cpu", "package 0", "mlx5_0 port 1", "gpu 0"
  std::string quantity;  ///< "clock", "energy", "temperature", "sent_bytes", ...
  std::string unit;      ///< "Hz", "W", "J", "K", "B", "s", "1"

  bool operator==(const Channel&) const = default;
};

/// Channels that are read together, by one thread at a time.
struct Source {
  std::vector<Channel> channels;
  /// One value for each channel; NaN = it cannot be read now.
  std::function<void(std::span<double> values)> read;
};

/// Where a system's files are found; tests have a tree of their own.
struct FileTree {
  std::filesystem::path sys = "/sys", proc = "/proc";
};

// What the kernel gives. Where it gives nothing there is no source: a container may see no sysfs,
// a virtual machine has no energy counters, and those of real ones are root's on many systems.

/// "clock" and "clock_min" in Hz: mean and least over `cpus`, of scaling_cur_freq, or of "cpu MHz"
/// in /proc/cpuinfo where there is no cpufreq. Of more than 16 CPUs every n-th is looked at. No
/// `cpus` = all.
[[nodiscard]] std::vector<Source> cpu_clock_sources(const FileTree& tree,
                                                    const std::vector<int>& cpus);
/// "throttle_count", a counter: how often those cores were slowed down for their temperature, as
/// their CPUs' core_throttle_count say (Intel).
[[nodiscard]] std::vector<Source> cpu_throttle_sources(const FileTree& tree,
                                                       const std::vector<int>& cpus);
/// "busy_time", a counter in seconds: what `cpus` spent outside idle, waiting for input and stolen,
/// mean over them, out of /proc/stat. No `cpus` = all.
[[nodiscard]] std::vector<Source> cpu_busy_sources(const FileTree& tree,
                                                   const std::vector<int>& cpus);
/// "energy", a counter in joules since the first reading, of packages and of memory that is not
/// part of one (RAPL: powercap/intel-rapl:*; AMD's has the same name). It goes on where the
/// register wraps around.
[[nodiscard]] std::vector<Source> energy_sources(const FileTree& tree);
/// "temperature" in kelvin of CPU packages: hwmon's coretemp, k10temp and zenpower, else thermal
/// zones of packages.
[[nodiscard]] std::vector<Source> temperature_sources(const FileTree& tree);
/// Counters of active InfiniBand and RoCE ports ("sent_bytes", "received_bytes", "symbol_errors",
/// "link_downed") and of Ethernet devices that are real and up ("sent_bytes", "received_bytes",
/// "send_errors", "receive_errors").
[[nodiscard]] std::vector<Source> network_sources(const FileTree& tree);

}  // namespace isoscale::system
