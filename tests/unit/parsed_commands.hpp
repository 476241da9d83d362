// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "config/command_line.hpp"
#include "matchers.hpp"
#include "refusal.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::testing_support {

/// A registry of the tests' own, so that they check how configurations are read and not which
/// workloads exist. Nothing here is ever built or played.
inline std::span<const workloads::Workload> fake_workloads() {
  using workloads::OptionSpec;
  using workloads::OptionType;
  using workloads::Workload;
  static const std::array dp_options{
      OptionSpec{.key = "overlap", .default_value = "on", .choices = {"on", "off"}, .help = "o"},
      OptionSpec{.key = "bucket",
                 .type = OptionType::bytes,
                 .default_value = "25MiB",
                 .help = "bytes that travel together"},
      OptionSpec{.key = "batch", .type = OptionType::integer, .minimum = 1, .help = "samples"},
  };
  static const std::array pp_options{
      OptionSpec{
          .key = "schedule", .default_value = "1f1b", .choices = {"gpipe", "1f1b"}, .help = "s"},
      OptionSpec{.key = "batch", .type = OptionType::integer, .minimum = 1, .help = "samples"},
  };
  const auto fake = [](std::string_view name, std::span<const OptionSpec> options,
                       mesh::AxisSet axes) {
    Workload workload{};
    workload.name = name;
    workload.description = "a fake";
    workload.options = options;
    workload.axes = axes;
    return workload;
  };
  using enum mesh::Axis;
  static const std::array table{
      fake("dp", dp_options, dp),
      fake("tp", std::span{dp_options}.last(1), tp),
      fake("pp", pp_options, pp),
      fake("hybrid", dp_options, {dp, tp, pp}),
      fake("calibrate", {}, mesh::every_axis),
  };
  return table;
}

}  // namespace isoscale::testing_support

/// Command lines and experiment files, each as one text.
namespace isoscale::settings {

using testing_support::fake_workloads;
using testing_support::usage_error;
using Arguments = std::vector<std::string>;

inline config::Command parse(Arguments arguments,
                             std::span<const workloads::Workload> known = fake_workloads()) {
  arguments.insert(arguments.begin(), "isoscale");
  return config::parse_arguments(arguments, known);
}
/// The words of `line` are split as a shell does.
template <class Command>
Command parsed(std::string_view line) {
  return std::get<Command>(parse(base::shell_words(line)));
}
inline RunConfig run_of(std::string_view options) {
  return parsed<RunConfig>("run " + std::string{options});
}
inline RunConfig read(std::string_view toml) {
  return from_toml(toml, "exp.toml", fake_workloads());
}

inline std::string refusal(const Arguments& arguments) {
  return usage_error([&] { (void)parse(arguments); });
}
inline std::string refusal_of(std::string_view line) { return refusal(base::shell_words(line)); }

inline std::string text_of(const Arguments& arguments) {
  return std::get<config::PrintCommand>(parse(arguments)).text;
}

}  // namespace isoscale::settings
