// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "units/quantity.hpp"

/// The kernel tells of the machine and of this process in small files: sysfs, procfs, and control
/// groups (versions 1 and 2, man 7 cgroups), by which containers and schedulers set limits. What
/// cannot be read is absent.
namespace isoscale::machine {

/// Content of a file; nullopt when it cannot be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

/// The number that a text begins with, blanks aside.
[[nodiscard]] std::optional<double> leading_number(std::string_view text);
[[nodiscard]] std::optional<double> number_in(const std::filesystem::path& file);
/// The first line, trimmed.
[[nodiscard]] std::optional<std::string> line_in(const std::filesystem::path& file);

/// The value of "key: value" on the first line with that key, as in /proc/cpuinfo, trimmed.
[[nodiscard]] std::optional<std::string> field_of(std::string_view text, std::string_view key);
/// A field of /proc/meminfo, "MemTotal:  16384 kB", in bytes.
[[nodiscard]] std::optional<units::Bytes> meminfo_field(std::string_view text,
                                                        std::string_view key);

/// CPUs' worth of time that the process may use, the tightest limit of its groups; nullopt = none.
[[nodiscard]] std::optional<double> cpu_limit(const ReadFile& read);

/// Memory that the process may still take before a limit of its groups stops it: the least of limit
/// minus what is in use, page cache that can be dropped aside. nullopt = no limit.
[[nodiscard]] std::optional<units::Bytes> memory_left(const ReadFile& read);
/// Memory that processes of this node may still take: the least of what the kernel calls available
/// and of memory_left. nullopt = neither is told.
[[nodiscard]] std::optional<units::Bytes> memory_available(const ReadFile& read);
/// The tightest memory limit itself.
[[nodiscard]] std::optional<units::Bytes> memory_limit(const ReadFile& read);

}  // namespace isoscale::machine
