// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/api/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "base/text.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::workloads {

namespace {

[[noreturn]] void refuse(const OptionSpec& spec, std::string_view value, std::string_view why) {
  throw usage_error("option {} = {}: {}; it takes {}", spec.key, base::quoted(value), why,
                    accepted(spec));
}

/// Returns a size in bytes, which is below 2^63. Throws base::UsageError, which names `key`, if the
/// text is no size.
std::uint64_t parse_bytes(std::string_view key, std::string_view text) {
  try {
    return units::parse_bytes(text).value();
  } catch (const std::invalid_argument& error) {
    throw usage_error("option {}: {}", key, error.what());
  }
}

std::string range_text(const OptionSpec& spec) {
  if (spec.maximum != 0) return fmt::format(" from {} to {}", spec.minimum, spec.maximum);
  if (spec.minimum == 0) return spec.type == OptionType::bytes ? "" : ", 0 or more";
  return fmt::format(" of at least {}", spec.minimum);
}

std::uint64_t parse_size(std::string_view key, std::string_view text) {
  const std::uint64_t bytes = parse_bytes(key, text);
  if (bytes == 0) throw usage_error("option {}: a message of 0 bytes measures nothing", key);
  return bytes;
}

std::uint64_t parse_factor(std::string_view key, std::string_view text) {
  constexpr std::uint64_t largest = 1024;
  const auto factor = base::number_in<std::uint64_t>(text);
  if (factor && *factor >= 2 && *factor <= largest) return *factor;
  throw usage_error("option {}: {} must be a whole number from 2 to {}, the factor between sizes",
                    key, base::quoted(text), largest);
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
    throw usage_error("option {}: {} goes from large to small", key, base::quoted(text));
  }
  for (std::uint64_t size = first;; size *= factor) {
    sizes.insert(size);
    if (size > last / factor) break;
  }
}

std::string advice(std::string_view key, const std::vector<long long>& suggested) {
  if (suggested.empty()) return "";
  if (suggested.size() == 1)
    return fmt::format("; the nearest {} that works is {}", key, suggested[0]);
  return fmt::format("; the nearest that work are {}={} and {}", key, suggested[0], suggested[1]);
}

}  // namespace

NumberError::NumberError(const std::string& why, std::string key, std::vector<long long> suggested)
    : base::UsageError(why + advice(key, suggested)),
      why_(why),
      key_(std::move(key)),
      suggested_(std::move(suggested)) {}

std::vector<long long> nearest_accepted(long long number,
                                        const std::function<bool(long long)>& accepts,
                                        long long most_apart) {
  std::vector<long long> found;
  for (const int direction : {-1, 1}) {
    for (long long step = 1; step <= most_apart && number + direction * step >= 1; ++step) {
      if (!accepts(number + direction * step)) continue;
      found.push_back(number + direction * step);
      break;
    }
  }
  return found;
}

std::string accepted(const OptionSpec& spec) {
  switch (spec.type) {
    case OptionType::choice:
      return fmt::format("{}", fmt::join(spec.choices, "|"));
    case OptionType::integer:
      return "a whole number" + range_text(spec);
    case OptionType::bytes:
      return fmt::format("a size in bytes{}, such as 25MiB", range_text(spec));
    case OptionType::list:
      return fmt::format("a list of {}", fmt::join(spec.choices, ","));
    case OptionType::text:
      return "text";
  }
  throw std::logic_error("an option of a type that does not exist");
}

void validate(const OptionSpec& spec, std::string_view value) {
  // The value may come from a file of any size. Every valid value is plain text of at most
  // `longest` characters, or at most `longest_list` if its type is list or text.
  constexpr std::size_t longest = 64, longest_list = 4096;
  const bool is_long = spec.type == OptionType::list || spec.type == OptionType::text;
  if (value.empty()) refuse(spec, value, "empty");
  if (value.size() > (is_long ? longest_list : longest) || !base::is_plain(value))
    refuse(spec, value, "without meaning");
  spec.store(spec, value, nullptr);
  if (spec.type != OptionType::integer && spec.type != OptionType::bytes) return;
  const auto number = static_cast<long long>(option::number_of(spec, value));
  if (number < spec.minimum) refuse(spec, value, "too small");
  if (spec.maximum != 0 && number > spec.maximum) refuse(spec, value, "too large");
}

void validate(std::string_view workload, std::span<const OptionSpec> table, const Options& given) {
  for (const auto& [key, value] : given) {
    const auto spec = std::ranges::find(table, std::string_view{key}, &OptionSpec::key);
    if (spec != table.end()) {
      validate(*spec, value);
      continue;
    }
    std::vector<std::string_view> keys;
    for (const OptionSpec& known : table) keys.push_back(known.key);
    throw usage_error("workload {} has no option {}{}; see: isoscale list options {}", workload,
                      base::quoted(key), base::did_you_mean(key, keys), workload);
  }
}

Options with_defaults_of(std::string_view device, std::span<const OptionSpec> table,
                         Options given) {
  if (device == "host") return given;
  for (const OptionSpec& spec : table) {
    if (!spec.gpu_default.empty()) given.try_emplace(std::string{spec.key}, spec.gpu_default);
  }
  return given;
}

const OptionSpec& find_option(std::span<const OptionSpec> table, std::string_view key) {
  const auto spec = std::ranges::find(table, key, &OptionSpec::key);
  if (spec != table.end()) return *spec;
  throw std::logic_error(fmt::format("option '{}' is read but stands in no table", key));
}

std::string_view value_in(const Options& given, const OptionSpec& spec) {
  const auto found = given.find(spec.key);
  return found == given.end() ? spec.default_value : found->second;
}

std::string option_text(std::span<const OptionSpec> table, const Options& given,
                        std::string_view key) {
  return std::string{value_in(given, find_option(table, key))};
}

std::map<std::string, std::string> all_options(std::span<const OptionSpec> table,
                                               const Options& given) {
  std::map<std::string, std::string> options;
  for (const OptionSpec& spec : table) {
    const std::string_view value = value_in(given, spec);
    if (!value.empty()) options.emplace(spec.key, value);
  }
  return options;
}

std::uint64_t option::number_of(const OptionSpec& spec, std::string_view value) {
  const auto number = spec.type == OptionType::bytes
                          ? static_cast<long long>(parse_bytes(spec.key, value))
                          : base::number_in<long long>(value);
  if (!number) refuse(spec, value, "not a whole number that can be stored");
  return static_cast<std::uint64_t>(*number);
}

std::size_t option::place_of(const OptionSpec& spec, std::string_view value) {
  const auto found = std::ranges::find(spec.choices, value);
  if (found != spec.choices.end()) return static_cast<std::size_t>(found - spec.choices.begin());
  refuse(spec, value, fmt::format("no such choice{}", base::did_you_mean(value, spec.choices)));
}

std::vector<std::string> parse_list(std::string_view key, std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string_view part : base::split(text, ',')) {
    if (part.empty() || std::ranges::find(parts, part) != parts.end()) {
      throw usage_error("option {} = {}: {}", key, base::quoted(text),
                        part.empty() ? "an empty part" : "a part twice");
    }
    parts.emplace_back(part);
  }
  return parts;
}

Sizes parse_sizes(std::string_view key, std::string_view text) {
  std::set<std::uint64_t> sizes;
  for (const std::string& part : parse_list(key, text)) {
    const std::size_t dots = part.find("..");
    if (dots == std::string::npos) {
      sizes.insert(parse_size(key, part));
    } else {
      add_range(key, part, dots, sizes);
    }
  }
  return {.text = std::string{text}, .bytes = {sizes.begin(), sizes.end()}};
}

}  // namespace isoscale::workloads
