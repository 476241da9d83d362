// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/command_line.hpp"

#include "config/arguments.hpp"
#include "config/toml_form.hpp"

namespace isoscale::config {

Command parse_command_line(int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  return parse_arguments(arguments, workloads::registry());
}

RunConfig from_toml(std::string_view toml, std::string_view origin) {
  return from_toml(toml, origin, workloads::registry());
}

}  // namespace isoscale::config
