// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::runner {

enum class OpClass : std::uint8_t { gemm, other_compute, copies, communication };

/// By op of a program.
[[nodiscard]] std::vector<OpClass> op_classes(const program::Program& program);

/// Seconds that the ops of one traced step took on one rank, added up by class. Ops on different
/// streams overlap, so all of them together may exceed the step.
struct StepSums {
  std::uint32_t step = 0;  ///< number among all steps of the point
  double gemm = 0, other_compute = 0, copies = 0, communication = 0;
  bool operator==(const StepSums&) const = default;
};

/// `classes` has an entry for each op that a span names.
[[nodiscard]] StepSums sum_up(std::uint32_t step, std::span<const timeline::Span> spans,
                              std::span<const OpClass> classes);

}  // namespace isoscale::runner
