// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/option_groups.hpp"

namespace isoscale::workloads::stack {

std::vector<OptionSpec> layer_options() {
  return {
      OptionSpec{.key = "elementwise",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help =
                     "norms before attention and MLP, softmax of the scores, and gelu or swiglu, "
                     "as ops bound by memory"},
      OptionSpec{.key = "recompute",
                 .default_value = "none",
                 .choices = {"none", "selective", "full"},
                 .help = "activations that backward recomputes instead of keeping: none, selective "
                         "(attention scores and their softmax), or full (all but a layer's input)"},
      fp8_accumulate_option(),
  };
}

}  // namespace isoscale::workloads::stack
