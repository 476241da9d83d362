// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "analysis/index/index.hpp"

namespace isoscale::analysis {
namespace {

/// Names that differ in the number at their end only, of as many digits.
struct Family {
  std::string prefix;
  std::size_t digits = 0;  ///< 0 = a name without a number
  auto operator<=>(const Family&) const = default;
};

std::pair<Family, std::uint64_t> split(const std::string& host) {
  constexpr std::size_t most_digits = 9;
  const std::string name = host.substr(0, host.find('.'));
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::string number = name.substr(last == name.npos ? 0 : last + 1);
  if (number.empty() || number.size() > most_digits) return {{.prefix = name}, 0};
  return {{.prefix = name.substr(0, name.size() - number.size()), .digits = number.size()},
          std::stoull(number)};
}

/// A name, or all numbers of a family, as far as there is room for ranges.
std::string text_of(const Family& family, const std::set<std::uint64_t>& numbers) {
  if (family.digits == 0) return family.prefix;
  if (numbers.size() == 1) {
    return fmt::format("{}{:0{}}", family.prefix, *numbers.begin(), family.digits);
  }
  constexpr std::size_t most_ranges = 4;
  std::vector<std::string> ranges;
  std::size_t left = numbers.size();
  for (auto at = numbers.begin(); at != numbers.end() && ranges.size() < most_ranges;) {
    const std::uint64_t begin = *at;
    std::uint64_t end = begin;
    for (; at != numbers.end() && *at <= end + 1; ++at) {
      end = *at;
      --left;
    }
    ranges.push_back(begin == end
                         ? fmt::format("{:0{}}", begin, family.digits)
                         : fmt::format("{:0{}}-{:0{}}", begin, family.digits, end, family.digits));
  }
  return fmt::format("{}[{}]{}", family.prefix, fmt::join(ranges, ","),
                     left == 0 ? "" : fmt::format(" and {} more", left));
}

}  // namespace

std::string shorten_hosts(const std::vector<std::string>& hosts) {
  constexpr std::size_t most_families = 4;
  std::map<Family, std::set<std::uint64_t>> families;
  for (const std::string& host : hosts) {
    const auto [family, number] = split(host);
    families[family].insert(number);
  }
  std::vector<std::string> shown;
  std::size_t left = 0;
  for (const auto& [family, numbers] : families) {
    if (shown.size() < most_families) {
      shown.push_back(text_of(family, numbers));
    } else {
      left += numbers.size();
    }
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     left == 0 ? "" : fmt::format(" and {} more", left));
}

}  // namespace isoscale::analysis
