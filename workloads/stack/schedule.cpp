// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/schedule.hpp"

#include <algorithm>

namespace isoscale::workloads::stack {

std::vector<Action> actions_of(Schedule schedule, int stage, int stages, int microbatches) {
  const int ahead =
      schedule == Schedule::gpipe ? microbatches : std::min(stages - 1 - stage, microbatches);
  std::vector<Action> actions;
  actions.reserve(2 * static_cast<std::size_t>(microbatches));
  for (int i = 0; i < ahead; ++i) actions.push_back({Pass::forward, i});
  for (int i = 0; i < microbatches; ++i) {
    if (ahead + i < microbatches) actions.push_back({Pass::forward, ahead + i});
    actions.push_back({Pass::backward, i});
  }
  return actions;
}

}  // namespace isoscale::workloads::stack
