// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/sample_files.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "system/cgroup.hpp"

namespace isoscale::system {

namespace fs = std::filesystem;

std::optional<double> leading_number(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return std::nullopt;
  text.remove_prefix(first);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} ? std::optional{value} : std::nullopt;
}

std::optional<double> number_in(const fs::path& file) {
  const std::optional<std::string> text = read_file(file.string());
  return text ? leading_number(*text) : std::nullopt;
}

std::optional<std::string> line_in(const fs::path& file) {
  std::optional<std::string> text = read_file(file.string());
  if (!text) return std::nullopt;
  text->resize(std::min(text->find('\n'), text->size()));
  const std::size_t last = text->find_last_not_of(" \t\r");
  text->resize(last == std::string::npos ? 0 : last + 1);
  return text;
}

}  // namespace isoscale::system
