// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <limits>

#include "config/option_rows.hpp"
#include "config/option_values.hpp"
#include "config/values.hpp"
#include "workloads/toml_files.hpp"

namespace isoscale::config {
namespace {

using workloads::Scaling;
using workloads::toml_string;

// The rows take and leave what they need of these.
using In = std::string_view;
using E = Experiment;
using R = RunConfig;

const std::array what_rows{

    RunOption{.name = "workload",
              .value = "NAME[,NAME...]",
              .default_text = "the quick suite",
              .group = Group::basic,
              .arity = Arity::list,
              .scope = Scope::experiment,
              .help = "what to measure (isoscale list workloads)",
              .apply = [](In text, E&, R&) { (void)parse_names(text); },
              .write = [](const E& e, const R&) { return toml_string(e.workload); }},
    RunOption{.name = "suite",
              .value = "NAME",
              .group = Group::basic,
              .help = "set of experiments (isoscale list suites)",
              .apply = [](In, E&, R&) {},
              .write = [](const E&, const R&) { return std::string{}; }},
    RunOption{.name = "model",
              .value = "NAME|FILE.toml",
              .default_text = "tiny",
              .group = Group::basic,
              .scope = Scope::experiment,
              .help = "transformer whose shapes to use (isoscale list models)",
              .apply = [](In text, E& e, R&) { e.base.model = workloads::load_model(text); },
              .write =
                  [](const E& e, const R&) {
                    return is_preset(e.base.model) ? toml_string(e.base.model.name) : "";
                  }},
    RunOption{
        .name = "dtype",
        .value = "f64|f32|tf32|f16|bf16|fp8",
        .default_text = "f32",
        .group = Group::basic,
        .scope = Scope::experiment,
        .help = "compute type; the host has f64 and f32 only",
        .apply = [](In text, E& e, R&) { e.base.precision = workloads::parse_precision(text); },
        .write = [](const E& e,
                    const R&) { return toml_string(workloads::name(e.base.precision)); }},
    RunOption{.name = "set",
              .value = "KEY=VALUE",
              .group = Group::basic,
              .arity = Arity::repeated,
              .scope = Scope::experiment,
              .help = "workload option (isoscale list options WORKLOAD)",
              .apply = [](In text, E&, R&) { (void)parse_assignment(text); },
              .write = [](const E& e, const R&) { return write_options(e.base.options); }},
    RunOption{
        .name = "seed",
        .value = "N",
        .default_text = "1",
        .group = Group::what,
        .scope = Scope::experiment,
        .help = "seed of all random numbers",
        .apply =
            [](In text, E& e, R&) {
              e.base.seed = parse_number(text, 0, std::numeric_limits<std::uint64_t>::max());
            },
        .write = [](const E& e, const R&) { return toml_string(std::to_string(e.base.seed)); }},
};

}  // namespace

std::span<const RunOption> what_options() { return what_rows; }

}  // namespace isoscale::config
