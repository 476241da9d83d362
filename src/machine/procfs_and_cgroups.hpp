// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "units/quantity.hpp"

/// Reads small files in which the kernel describes the machine and this process: sysfs, procfs, and
/// control groups (versions 1 and 2, man 7 cgroups), by which containers and schedulers set limits.
/// A value that cannot be read is absent.
namespace isoscale::machine {

/// A function that returns the content of a file; nullopt if it cannot be read. read_file() reads
/// real files; tests pass other functions.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

/// Returns the number that a text begins with after any blanks.
[[nodiscard]] std::optional<double> leading_number(std::string_view text);
[[nodiscard]] std::optional<double> number_in(const std::filesystem::path& file);
/// Returns the first line of a file, trimmed.
[[nodiscard]] std::optional<std::string> line_in(const std::filesystem::path& file);

/// Returns the value of "key: value", trimmed, from the first line that has this key and a value,
/// as in /proc/cpuinfo.
[[nodiscard]] std::optional<std::string> field_of(std::string_view text, std::string_view key);
/// Returns a field of /proc/meminfo, "MemTotal:  16384 kB", in bytes.
[[nodiscard]] std::optional<units::Bytes> meminfo_field(std::string_view text,
                                                        std::string_view key);

/// Returns the number of CPUs, possibly fractional, that the CPU quotas of the process allow: the
/// lowest ratio of quota to period among its control groups; nullopt if there is no quota.
[[nodiscard]] std::optional<double> cpu_limit(const ReadFile& read);

/// Returns the memory that the process may still take: MemAvailable of /proc/meminfo, or less if a
/// limit of its control groups leaves less. A group leaves the difference between its limit and its
/// use, where page cache that can be dropped does not count as used. nullopt if neither is known.
[[nodiscard]] std::optional<units::Bytes> memory_available(const ReadFile& read);

}  // namespace isoscale::machine
