// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/options.hpp"

#include <vector>

#include "workloads/stack/option_groups.hpp"

namespace isoscale::workloads::stack {

std::span<const OptionSpec> option_table() {
  static const std::vector<OptionSpec> table = [] {
    std::vector<OptionSpec> all;
    for (const auto& group : {data_options(), tensor_options(), pipeline_options(), layer_options(),
                              expert_options()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return table;
}

}  // namespace isoscale::workloads::stack
