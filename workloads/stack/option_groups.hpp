// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "workloads/options.hpp"

/// The option table of training workloads, by what an option is about.
namespace isoscale::workloads::stack {

[[nodiscard]] std::vector<OptionSpec> data_options();      ///< samples and gradients over replicas
[[nodiscard]] std::vector<OptionSpec> tensor_options();    ///< a layer over ranks
[[nodiscard]] std::vector<OptionSpec> pipeline_options();  ///< stages in turn
[[nodiscard]] std::vector<OptionSpec> expert_options();    ///< experts instead of MLPs
[[nodiscard]] std::vector<OptionSpec> layer_options();     ///< what a layer is made of and keeps

}  // namespace isoscale::workloads::stack
