// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "config/arguments.hpp"

namespace isoscale::config {
namespace {

std::string quote_plain(std::string_view argument) {
  constexpr std::string_view harmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  const bool bare =
      !argument.empty() && argument.find_first_not_of(harmless) == std::string_view::npos;
  if (bare) return std::string{argument};
  std::string result = "'";
  for (const char c : argument) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

/// $'...' of bash, zsh and ksh, for bytes that no text file should hold.
std::string quote_bytes(std::string_view argument) {
  std::string result = "$'";
  for (const char c : argument) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      // Octal, always three digits: a hexadecimal escape would swallow digits that follow it.
      result += fmt::format("\\{:03o}", byte);
    }
  }
  return result + "'";
}

}  // namespace

std::string shell_quoted(std::span<const std::string> arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    if (!line.empty()) line += ' ';
    line += base::is_plain(argument) ? quote_plain(argument) : quote_bytes(argument);
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

}  // namespace isoscale::config
