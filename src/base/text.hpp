// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Text that people typed, made fit to be shown to people.
namespace isoscale::base {

/// Foreign text fit for a terminal: control characters, bidirectional overrides and bytes that are
/// not UTF-8 escaped as \xNN or \u{N}, at most `longest` characters of the input, "..." where cut.
[[nodiscard]] std::string printable(std::string_view text, std::size_t longest = 80);
/// printable(text) in single quotes.
[[nodiscard]] std::string quoted(std::string_view text);

/// UTF-8 without anything that printable() would escape.
[[nodiscard]] bool is_plain(std::string_view text);

/// What `wanted` was most likely meant to be: the candidate with the fewest insertions, deletions,
/// replacements and swaps of neighbours away, letter case aside; the first of equals. Nothing when
/// even that one has little in common with it.
[[nodiscard]] std::optional<std::string_view> nearest_name(
    std::string_view wanted, std::span<const std::string_view> candidates);

/// A half sentence for an error: "; did you mean 'tiny'?", or "" when nothing is near.
[[nodiscard]] std::string did_you_mean(std::string_view wanted,
                                       std::span<const std::string_view> candidates);

}  // namespace isoscale::base
