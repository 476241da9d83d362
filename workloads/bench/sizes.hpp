// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Lists in the options of micro-benchmarks.
namespace isoscale::workloads {

/// The parts of "a,b,c". Throws base::UsageError that names `key` when one is empty or twice there.
[[nodiscard]] std::vector<std::string> parse_list(std::string_view key, std::string_view text);

/// Sizes in bytes, ascending, each once: "8,64KiB,1..1MiB" where a range doubles, or
/// "8..1GiB*4" where it grows by a factor of at least 2. Throws base::UsageError that names `key`.
[[nodiscard]] std::vector<std::uint64_t> parse_sizes(std::string_view key, std::string_view text);

}  // namespace isoscale::workloads
