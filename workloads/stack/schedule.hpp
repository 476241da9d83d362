// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

namespace isoscale::workloads::stack {

enum class Pass : std::uint8_t { forward, backward };

/// One microbatch through one stage, forward or backward.
struct Action {
  Pass pass = Pass::forward;
  int microbatch = 0;
  bool operator==(const Action&) const = default;
};

/// gpipe: all forward, then all backward (Huang et al., arXiv 1811.06965).
/// one_f_one_b: min(stages - 1 - stage, m) forward, then one of each in turn, then the rest
/// backward (Narayanan et al., arXiv 2104.04473, section 2.2.1).
enum class Schedule : std::uint8_t { gpipe, one_f_one_b };

/// What a stage does, in order. Backward keeps microbatch order, so the last one is the last
/// action.
[[nodiscard]] std::vector<Action> actions_of(Schedule schedule, int stage, int stages,
                                             int microbatches);

}  // namespace isoscale::workloads::stack
