// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "analysis/causes/laws.hpp"
#include "analysis/causes/named_causes.hpp"
#include "analysis/causes/pop.hpp"
#include "analysis/causes/step_costs.hpp"
#include "analysis/causes/waterfall.hpp"

namespace isoscale::analysis {

/// Why a point is not faster.
struct Causes {
  std::optional<Pop> pop{};                  ///< with scalability where the curve has a baseline
  std::optional<StepCosts> costs{};          ///< absent without traces
  std::optional<Waterfall> waterfall{};      ///< absent at the baseline and without one
  std::optional<Located> serial_fraction{};  ///< Karp and Flatt's; of strong scaling
  std::vector<NamedCause> named{};
};

/// Laws that a curve follows; absent where there are too few points for an interval.
struct Laws {
  std::optional<Located> amdahl;     ///< serial fraction, of strong scaling
  std::optional<Located> gustafson;  ///< serial fraction, of weak scaling
  std::optional<Usl> usl;
};

}  // namespace isoscale::analysis
