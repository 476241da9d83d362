// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Texts are made fit to be shown to people here: foreign ones escaped, misspelt names corrected,
/// nouns counted.
namespace isoscale::base {

/// Foreign text fit for a terminal: control characters, bidirectional overrides and bytes that are
/// not UTF-8 escaped as \xNN or \u{N}, at most `longest` characters of the input, "..." where cut.
[[nodiscard]] std::string printable(std::string_view text, std::size_t longest = 80);
/// printable(text) in single quotes.
[[nodiscard]] std::string quoted(std::string_view text);

/// UTF-8 without anything that printable() would escape.
[[nodiscard]] bool is_plain(std::string_view text);

/// Guesses what `wanted` was meant to be: the candidate with the fewest insertions, deletions,
/// replacements and swaps of neighbours away, letter case aside; the first of equals. Nothing when
/// even that one has little in common with it.
[[nodiscard]] std::optional<std::string_view> nearest_name(
    std::string_view wanted, std::span<const std::string_view> candidates);

/// A half sentence for an error: "; did you mean 'tiny'?", or "" when nothing is near.
[[nodiscard]] std::string did_you_mean(std::string_view wanted,
                                       std::span<const std::string_view> candidates);

/// The noun as it follows `count`: "rank" after 1, "ranks" after others; "switch", "switches".
[[nodiscard]] inline std::string plural(std::integral auto count, std::string_view noun) {
  if (count == 1) return std::string{noun};
  if (noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with('s') || noun.ends_with('x')) {
    return fmt::format("{}es", noun);
  }
  return fmt::format("{}s", noun);
}

/// "1 rank", "4 ranks".
[[nodiscard]] inline std::string counted(std::integral auto count, std::string_view noun) {
  return fmt::format("{} {}", count, plural(count, noun));
}

/// Gives the time now in UTC, as ISO 8601 writes it: "2026-01-31T12:34:56Z".
[[nodiscard]] std::string utc_now();

}  // namespace isoscale::base
