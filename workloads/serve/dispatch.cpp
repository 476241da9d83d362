// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/serve/dispatch.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::workloads::serve {

Policy parse_policy(std::string_view name) {
  if (name == "round-robin") return Policy::round_robin;
  if (name == "least-loaded") return Policy::least_loaded;
  if (name == "shortest-queue") return Policy::shortest_queue;
  throw base::Error(fmt::format("no policy of dispatch is called {}", base::quoted(name)));
}

bool Dispatch::is_better(const State& one, const State& other) const {
  switch (policy_) {
    case Policy::round_robin:
      return false;
    case Policy::least_loaded:
      return one.work < other.work;
    case Policy::shortest_queue:
      return one.requests < other.requests;
  }
  return false;
}

std::size_t Dispatch::assign(double work) {
  std::size_t best = turn_;
  for (std::size_t i = 1; i < state_.size(); ++i) {
    const std::size_t next = (turn_ + i) % state_.size();
    if (is_better(state_[next], state_[best])) best = next;
  }
  turn_ = (best + 1) % state_.size();
  ++state_[best].requests;
  state_[best].work += work;
  return best;
}

void Dispatch::answered(std::size_t replica, double work) {
  State& state = state_.at(replica);
  if (state.requests == 0) throw base::Error("a replica has answered more than it was given");
  --state.requests;
  // Sums of unlike numbers leave rests: what has nothing to do is equal to others that have not.
  state.work = state.requests == 0 ? 0 : state.work - work;
}

}  // namespace isoscale::workloads::serve
