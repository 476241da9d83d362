// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

/// Reads numbers from texts, and prepares texts for users: escapes untrusted text, suggests names
/// for misspelt ones, writes counts with their nouns, lists items.
namespace isoscale::base {

/// Returns the number that the whole of `text` represents; absent if `text` is not a number, or if
/// the number does not fit into the type.
template <class Number>
[[nodiscard]] std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end ? std::optional{number} : std::nullopt;
}

/// Returns the text without the blanks and line breaks at its start and end.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Returns the text with the letters A to Z in lower case.
[[nodiscard]] std::string lowered(std::string_view text);

/// A character in UTF-8: the number of bytes it takes, and its code point. If the bytes are not
/// UTF-8, it is the first byte alone, without a code point.
struct Character {
  std::size_t bytes = 1;
  std::optional<std::uint32_t> code;
};
/// Returns the character at the start of a text, which must not be empty.
[[nodiscard]] Character next_character(std::string_view text);

/// Returns untrusted text in a form that is safe for a terminal: control characters, line
/// separators, marks that change the direction of the text, and bytes that are not UTF-8 are
/// escaped as \xNN or \u{N}. It takes at most `longest` characters of the input and ends in "..."
/// if it was cut.
[[nodiscard]] std::string printable(std::string_view text, std::size_t longest = 80);
/// Returns printable(text) in single quotes.
[[nodiscard]] std::string quoted(std::string_view text);

/// True if the text is UTF-8 without anything that printable() would escape.
[[nodiscard]] bool is_plain(std::string_view text);

/// Guesses the name that `wanted` was meant to be: the candidate that differs from it by the fewest
/// insertions, deletions, replacements and swaps of neighbouring letters, ignoring letter case; the
/// first one if several are equally near. A candidate that begins with `wanted` (3 letters or more)
/// counts as one change away. Absent if even the nearest has little in common with `wanted`, or if
/// `wanted` is empty or longer than 80 bytes.
[[nodiscard]] std::optional<std::string_view> nearest_name(
    std::string_view wanted, std::span<const std::string_view> candidates);

/// Returns the end of an error message: "; did you mean 'tiny'?", or "" if no candidate is near.
[[nodiscard]] std::string did_you_mean(std::string_view wanted,
                                       std::span<const std::string_view> candidates);

/// Returns the noun in the form that follows `count`: "rank" after 1, "ranks" after other counts;
/// "switch", "switches".
[[nodiscard]] inline std::string plural(std::integral auto count, std::string_view noun) {
  if (count == 1) return std::string{noun};
  if (noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with('s') || noun.ends_with('x')) {
    return fmt::format("{}es", noun);
  }
  return fmt::format("{}s", noun);
}

/// Returns the count with its noun: "1 rank", "4 ranks".
[[nodiscard]] inline std::string counted(std::integral auto count, std::string_view noun) {
  return fmt::format("{} {}", count, plural(count, noun));
}

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

/// Returns counts with their noun: "1 rank", "2, 4, 8 ranks". If there are more than `most` counts,
/// only the first `most` are listed: "2, 4 and 3 more ranks".
[[nodiscard]] std::string counted(std::span<const int> counts, std::string_view noun,
                                  std::size_t most = no_limit);

/// Returns the items separated by commas: "a, b, c". If there are more than `most` items, only the
/// first `most` are listed: "a, b and 5 more".
template <class Items>
[[nodiscard]] std::string listed(const Items& items, std::size_t most = no_limit) {
  std::string text;
  std::size_t shown = 0;
  for (auto at = items.begin(); at != items.end() && shown < most; ++at, ++shown) {
    text += fmt::format("{}{}", shown == 0 ? "" : ", ", *at);
  }
  return shown == items.size() ? text : fmt::format("{} and {} more", text, items.size() - shown);
}

/// Returns the parts of a text between separators; the whole text if it has none.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// Numbers with equal distances between them, like the ranks of a mesh axis.
struct Range {
  int first = 0, count = 1, distance = 1;
};
/// Splits ascending numbers into ranges with equal distances.
[[nodiscard]] std::vector<Range> ranges_of(std::span<const int> numbers);
/// Returns ascending numbers as a short text: "0-3, 8" or "0-56 by 8". If there are more than
/// `most` ranges, only the first `most` are listed: "0-3, 8 and 5 more".
[[nodiscard]] std::string ranges_text(std::span<const int> numbers, std::size_t most = no_limit);

/// Returns the current time in UTC in the form of ISO 8601: "2026-01-31T12:34:56Z".
[[nodiscard]] std::string utc_now();

/// Returns the arguments as a user would type them into a shell. An argument that is not plain text
/// is written in ASCII as $'...'.
[[nodiscard]] std::string shell_quoted(std::span<const std::string> arguments);
/// Splits a line that shell_quoted() returned into its arguments. It cannot read arguments written
/// as $'...'.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view line);

}  // namespace isoscale::base
