// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/peak_rate.hpp"

#include <algorithm>

#include "workloads/stack/geometry.hpp"

namespace isoscale::analysis {

std::optional<double> peak_rate(const simulate::Machine& machine, workloads::Precision precision) {
  const workloads::stack::Types types = workloads::stack::types_of(precision);
  double best = 0;
  for (const simulate::TimedGemm& gemm : machine.measured.gemms) {
    if (gemm.type != types.operand || gemm.mode != types.mode || !(gemm.seconds > 0)) continue;
    best = std::max(best, 2 * gemm.m * gemm.n * gemm.k * gemm.batch / gemm.seconds);
  }
  if (best > 0) return best;
  if (!machine.processor) return std::nullopt;
  for (const simulate::MatrixRate& rate : machine.processor->matrix) {
    if (rate.type == types.operand && rate.mode == types.mode) return rate.peak;
  }
  return std::nullopt;
}

}  // namespace isoscale::analysis
