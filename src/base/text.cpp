// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "base/text.hpp"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

namespace isoscale::base {
namespace {

struct Lead {
  std::size_t bytes;
  std::uint32_t bits;   ///< the bits that the first byte contributes to the code point
  std::uint32_t least;  ///< the smallest code point that may take this many bytes
};

std::optional<Lead> classify(std::uint32_t first) {
  if (first < 0x80U) return Lead{1, first, 0};
  if ((first & 0xE0U) == 0xC0U) return Lead{2, first & 0x1FU, 0x80};
  if ((first & 0xF0U) == 0xE0U) return Lead{3, first & 0x0FU, 0x800};
  if ((first & 0xF8U) == 0xF0U) return Lead{4, first & 0x07U, 0x10000};
  return std::nullopt;
}

/// True for control characters, line separators and marks that change the direction of the text.
bool is_unsafe(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
  const bool separator = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
  return control || separator || direction;
}

/// Returns the optimal string alignment distance of two texts (edits and swaps of neighbours).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::string quote_plain(std::string_view argument) {
  constexpr std::string_view harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  const bool bare =
      !argument.empty() && argument.find_first_not_of(harmless) == std::string_view::npos;
  if (bare) return std::string{argument};
  return fmt::format("'{}'", fmt::join(split(argument, '\''), "'\\''"));
}

/// Quotes an argument as $'...' (bash, zsh and ksh), with escapes for the bytes that a text file
/// should not hold.
std::string quote_bytes(std::string_view argument) {
  std::string result = "$'";
  for (const char c : argument) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_printed = byte >= 0x20 && byte < 0x7f;
    if (c == '\'' || c == '\\') result += '\\';
    // Each escape is octal with three digits: a hexadecimal one would take in hexadecimal digits
    // that follow it.
    result += is_printed ? std::string{c} : fmt::format("\\{:03o}", byte);
  }
  return result + "'";
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string lowered(std::string_view text) {
  std::string result{text};
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

Character next_character(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at]));
  };
  const auto lead = classify(byte(0));
  if (!lead || lead->bytes > text.size()) return {};
  std::uint32_t code = lead->bits;
  for (std::size_t at = 1; at < lead->bytes; ++at) {
    if ((byte(at) & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (byte(at) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < lead->least || code > 0x10FFFF || surrogate) return {};
  return {.bytes = lead->bytes, .code = code};
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string result;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == longest) return result + "...";
    const Character next = next_character(text);
    if (!next.code) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (is_unsafe(*next.code)) {
      result += *next.code < 0x80 ? fmt::format("\\x{:02x}", *next.code)
                                  : fmt::format("\\u{{{:x}}}", *next.code);
    } else {
      result += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes);
  }
  return result;
}

std::string quoted(std::string_view text) { return fmt::format("'{}'", printable(text)); }

bool is_plain(std::string_view text) { return printable(text, text.size()) == text; }

std::optional<std::string_view> nearest_name(std::string_view wanted,
                                             std::span<const std::string_view> candidates) {
  constexpr std::size_t least_beginning = 3;
  constexpr std::size_t longest = 80;  // longer than every name; bounds the cost of hostile input
  if (wanted.empty() || wanted.size() > longest) return std::nullopt;
  const std::string letters = lowered(wanted);
  std::optional<std::string_view> best;
  std::size_t least = 0;
  for (const std::string_view candidate : candidates) {
    // A candidate that begins with `wanted` counts as one letter away.
    const bool begins = wanted.size() >= least_beginning && candidate.starts_with(wanted);
    const std::size_t distance = begins ? 1 : edit_distance(letters, lowered(candidate));
    // At most two letters may differ, or a third of the longer name if that is more. At least one
    // letter must be the same.
    const std::size_t length = std::max(wanted.size(), candidate.size());
    if (distance > std::max<std::size_t>(2, length / 3) || distance >= length) continue;
    if (best && distance >= least) continue;
    best = candidate;
    least = distance;
  }
  return best;
}

std::string did_you_mean(std::string_view wanted, std::span<const std::string_view> candidates) {
  const auto nearest = nearest_name(wanted, candidates);
  return nearest ? fmt::format("; did you mean '{}'?", *nearest) : "";
}

std::string counted(std::span<const int> counts, std::string_view noun, std::size_t most) {
  return fmt::format("{} {}", listed(counts, most),
                     plural(counts.size() == 1 ? counts.front() : 2, noun));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<Range> ranges_of(std::span<const int> numbers) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    const std::size_t begin = i++;
    if (i == numbers.size()) {
      ranges.push_back({.first = numbers[begin]});
      break;
    }
    const int distance = numbers[i] - numbers[begin];
    while (i < numbers.size() && numbers[i] - numbers[i - 1] == distance) ++i;
    // Two numbers alone form a range only if they are adjacent; otherwise the second may be the
    // first of a longer range.
    if (distance != 1 && i - begin == 2) --i;
    const auto count = static_cast<int>(i - begin);
    ranges.push_back(
        {.first = numbers[begin], .count = count, .distance = count == 1 ? 1 : distance});
  }
  return ranges;
}

std::string ranges_text(std::span<const int> numbers, std::size_t most) {
  std::string text;
  std::size_t left = numbers.size();
  for (const Range& range : ranges_of(numbers)) {
    if (most-- == 0) return text + fmt::format(" and {} more", left);
    left -= static_cast<std::size_t>(range.count);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", range.first);
    if (range.count > 1) {
      text += fmt::format("-{}", range.first + (range.count - 1) * range.distance);
    }
    if (range.distance > 1) text += fmt::format(" by {}", range.distance);
  }
  return text;
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

std::string shell_quoted(std::span<const std::string> arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    if (!line.empty()) line += ' ';
    line += is_plain(argument) ? quote_plain(argument) : quote_bytes(argument);
  }
  return line;
}

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words;
  bool is_open = false, is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char letter = line[i];
    if (letter == ' ' && !is_quoted) {
      is_open = false;
      continue;
    }
    if (!is_open) words.emplace_back();
    is_open = true;
    if (letter == '\'') {
      is_quoted = !is_quoted;
    } else if (letter == '\\' && !is_quoted && i + 1 < line.size()) {
      words.back() += line[++i];
    } else {
      words.back() += letter;
    }
  }
  return words;
}

}  // namespace isoscale::base
