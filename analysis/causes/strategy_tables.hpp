// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "analysis/causes/cause_tables.hpp"

namespace isoscale::analysis {

/// What strategies are asked for, one column per rank count: utilisation of replicas with different
/// shares of the batch, copies of what is offloaded, a pipeline's bubble beside its formula. Empty
/// for curves with none of these.
[[nodiscard]] std::vector<TitledTable> strategy_tables(const Curve& curve);

}  // namespace isoscale::analysis
