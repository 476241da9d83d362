// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/bench/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <stdexcept>

#include "base/error.hpp"
#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::workloads {
namespace {

std::uint64_t parse_size(std::string_view key, std::string_view text) {
  try {
    const std::uint64_t bytes = units::parse_bytes(text).value();
    if (bytes > 0) return bytes;
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(fmt::format("option {}: {}", key, error.what()));
  }
  throw base::UsageError(fmt::format("option {}: a message of 0 bytes measures nothing", key));
}

std::uint64_t parse_factor(std::string_view key, std::string_view text) {
  constexpr std::uint64_t largest = 1024;
  std::uint64_t factor = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, factor);
  if (error == std::errc{} && stop == end && factor >= 2 && factor <= largest) return factor;
  throw base::UsageError(
      fmt::format("option {}: {} must be a whole number from 2 to {}, the factor between sizes",
                  key, base::quoted(text), largest));
}

void add_range(std::string_view key, std::string_view text, std::size_t dots,
               std::set<std::uint64_t>& sizes) {
  const std::size_t star = text.find('*');
  const std::uint64_t factor =
      star == std::string_view::npos ? 2 : parse_factor(key, text.substr(star + 1));
  const std::uint64_t first = parse_size(key, text.substr(0, dots));
  const std::uint64_t last = parse_size(
      key, text.substr(dots + 2, star == std::string_view::npos ? star : star - dots - 2));
  if (first > last) {
    throw base::UsageError(
        fmt::format("option {}: {} goes from large to small", key, base::quoted(text)));
  }
  for (std::uint64_t size = first;; size *= factor) {
    sizes.insert(size);
    if (size > last / factor) break;
  }
}

}  // namespace

std::vector<std::string> parse_list(std::string_view key, std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part{text.substr(begin, end - begin)};
    if (part.empty() || std::ranges::find(parts, part) != parts.end()) {
      throw base::UsageError(fmt::format("option {} = {}: {}", key, base::quoted(text),
                                         part.empty() ? "an empty part" : "a part twice"));
    }
    parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

std::vector<std::uint64_t> parse_sizes(std::string_view key, std::string_view text) {
  std::set<std::uint64_t> sizes;
  for (const std::string& part : parse_list(key, text)) {
    const std::size_t dots = part.find("..");
    if (dots == std::string::npos) {
      sizes.insert(parse_size(key, part));
    } else {
      add_range(key, part, dots, sizes);
    }
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace isoscale::workloads
