// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/api/toml_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::workloads {

std::string place_of(std::string_view origin, const toml::source_region& region) {
  const std::string where = base::printable(origin);
  return region.begin.line == 0 ? where : fmt::format("{}:{}", where, region.begin.line);
}

toml::table parse_toml(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    constexpr std::size_t longest = 200;
    throw usage_error("{}: not valid TOML: {}", place_of(origin, error.source()),
                      base::printable(error.description(), longest));
  }
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
