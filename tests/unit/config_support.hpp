// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <span>
#include <string>

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
