// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/op_sums.hpp"

#include <array>
#include <cstddef>

#include "program/op.hpp"

namespace isoscale::runner {
namespace {

OpClass class_of(program::OpKind kind) {
  if (kind == program::OpKind::gemm) return OpClass::gemm;
  if (program::communicates(kind)) return OpClass::communication;
  if (kind == program::OpKind::copy || kind == program::OpKind::advise) return OpClass::copies;
  return OpClass::other_compute;
}

}  // namespace

std::vector<OpClass> op_classes(const program::Program& program) {
  std::vector<OpClass> classes;
  classes.reserve(program.ops.size());
  for (const program::Op& op : program.ops) {
    classes.push_back(class_of(program::kind_of(op.payload)));
  }
  return classes;
}

StepSums sum_up(std::uint32_t step, std::span<const timeline::Span> spans,
                std::span<const OpClass> classes) {
  std::array<units::Nanoseconds, 4> sums{};
  for (const timeline::Span& span : spans) {
    sums[static_cast<std::size_t>(classes[span.op])] += span.end - span.start;
  }
  const auto seconds = [&](OpClass which) {
    return units::to_seconds(sums[static_cast<std::size_t>(which)]).value();
  };
  return {.step = step,
          .gemm = seconds(OpClass::gemm),
          .other_compute = seconds(OpClass::other_compute),
          .copies = seconds(OpClass::copies),
          .communication = seconds(OpClass::communication)};
}

}  // namespace isoscale::runner
