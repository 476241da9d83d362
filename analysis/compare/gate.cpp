// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/gate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace isoscale::analysis {
namespace {

Verdict verdict_of(const Difference& at) {
  if (!at.p_regression) return Verdict::one_launch;
  if (*at.p_regression <= beyond_one_end) return Verdict::regression;
  return *at.p_passed <= beyond_one_end ? Verdict::passed : Verdict::too_noisy;
}

}  // namespace

Gate pass_through_gate(std::span<Difference> differences, double loss,
                       CompareOptions::Untold untold) {
  const double bound = std::log1p(-loss);
  std::vector<Difference*> tested;
  std::vector<double> larger, smaller;
  for (Difference& at : differences) {
    if (!at.log_ratio) continue;
    tested.push_back(&at);
    larger.push_back(p_below(*at.log_ratio, bound));
    smaller.push_back(p_above(*at.log_ratio, bound));
  }
  larger = holm(larger);
  smaller = holm(smaller);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p_regression = larger[i];
    tested[i]->p_passed = smaller[i];
  }
  Gate gate{.loss = loss, .untold = untold, .tested = tested.size()};
  for (Difference& at : differences) {
    at.verdict = verdict_of(at);
    gate.regressions += at.verdict == Verdict::regression ? 1 : 0;
    gate.passed += at.verdict == Verdict::passed ? 1 : 0;
    gate.too_noisy += at.verdict == Verdict::too_noisy ? 1 : 0;
    gate.one_launch += at.verdict == Verdict::one_launch ? 1 : 0;
  }
  return gate;
}

}  // namespace isoscale::analysis
