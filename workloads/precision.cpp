// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads {
namespace {

/// In the order of Precision.
constexpr std::array<std::string_view, 6> precision_names{"f64", "f32",  "tf32",
                                                          "f16", "bf16", "fp8"};

}  // namespace

std::string_view name(Precision precision) {
  return precision_names[static_cast<std::size_t>(precision)];
}

Precision parse_precision(std::string_view text) {
  for (std::size_t i = 0; i < precision_names.size(); ++i) {
    if (precision_names[i] == text) return static_cast<Precision>(i);
  }
  throw base::UsageError(fmt::format("unknown dtype {}{}; the dtypes are {}", base::quoted(text),
                                     base::did_you_mean(text, precision_names),
                                     fmt::join(precision_names, ", ")));
}

std::string_view name(Scaling scaling) { return scaling == Scaling::strong ? "strong" : "weak"; }

}  // namespace isoscale::workloads
