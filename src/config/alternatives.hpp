// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "workloads/workload.hpp"

/// Choices that were given several values: so many experiments are meant, an A/B pair in one run.
namespace isoscale::config {

/// The values of an option as it was given: those between commas for a choice, the text for others.
[[nodiscard]] std::vector<std::string> values_of(const workloads::OptionSpec& spec,
                                                 const std::string& text);

/// The experiment, or one for each combination of the values that its choices were given.
[[nodiscard]] std::vector<Experiment> alternatives(const Experiment& experiment,
                                                   const workloads::Workload& workload);

}  // namespace isoscale::config
