// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/api/toml_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/text.hpp"

namespace isoscale::workloads {

std::string place_of(std::string_view origin, const toml::source_region& region) {
  const std::string where = base::printable(origin);
  return region.begin.line == 0 ? where : fmt::format("{}:{}", where, region.begin.line);
}

namespace {

/// Copies into `table` each key of `base` that it lacks, also inside nested tables.
void complete(toml::table& table, const toml::table& base) {
  for (const auto& [key, node] : base) {
    if (toml::node* const known = table.get(key); known == nullptr) {
      table.insert(key, node);
    } else if (known->is_table() && node.is_table()) {
      complete(*known->as_table(), *node.as_table());
    }
  }
}

}  // namespace

toml::table parse_toml(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    constexpr std::size_t longest = 200;
    throw usage_error("{}: not valid TOML: {}", place_of(origin, error.source()),
                      base::printable(error.description(), longest));
  }
}

toml::table parse_sheet(std::string_view text, std::string_view origin) {
  toml::table table = parse_toml(text, origin);
  const toml::node* const node = table.get("base");
  if (node == nullptr) return table;
  const std::string name = node->value_or(std::string{});
  const auto presets = system_presets();
  const auto base = std::ranges::find(presets, name, &Preset::name);
  if (base == presets.end()) {
    throw usage_error("{}: base names no built-in system", place_of(origin, node->source()));
  }
  complete(table, parse_sheet(base->toml, base->name));
  return table;
}

std::string toml_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string read_small_file(const std::filesystem::path& path, std::string_view kind) {
  constexpr std::size_t most = 1'000'000;  // bytes
  const auto refuse = [&](std::string_view why) {
    throw usage_error("cannot read the {} {}: {}", kind, base::quoted(path.string()), why);
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse("it is a directory");
  std::ifstream file{path, std::ios::binary};
  if (!file) refuse(std::system_category().message(errno));
  std::string text(most + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) refuse("reading failed");
  if (text.size() > most) refuse(fmt::format("it is larger than {} bytes", most));
  return text;
}

}  // namespace isoscale::workloads
