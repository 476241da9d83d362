// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "workloads/stack/schedule.hpp"

namespace isoscale::workloads::stack {

/// The messages that pass between two neighbouring stages at one moment: what an action here has
/// made goes out, what the next action here reads comes in. They are one exchange on both sides.
struct HandOver {
  int offset = 1;  ///< +1: with the next stage (round to the first), -1: the one before
  std::optional<Action> made{};     ///< of this stage
  std::optional<Action> awaited{};  ///< of this stage
  bool operator==(const HandOver&) const = default;
};

using StageStep = std::variant<Action, HandOver>;

/// What a stage does and sends, in order. A message is handed over when the stage that reads it is
/// free to: the order of all stages is that of one clock, so no rank waits in a circle, whether
/// streams run side by side or all in program order. On that clock a forward pass of n layers takes
/// n, each half of a backward pass too.
[[nodiscard]] std::vector<StageStep> steps_of(const Pipeline& pipeline, int stage);

}  // namespace isoscale::workloads::stack
