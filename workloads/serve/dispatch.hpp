// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// Which replica a request goes to; pure.
namespace isoscale::workloads::serve {

/// round_robin: one after the other, whatever they do. shortest_queue: the fewest requests that are
/// not answered yet. least_loaded: the least work that is not answered yet. Of equals, the next one
/// in turn.
enum class Policy : std::uint8_t { round_robin, least_loaded, shortest_queue };

/// Throws base::Error for a name that does not exist.
[[nodiscard]] Policy parse_policy(std::string_view name);

class Dispatch {
 public:
  Dispatch(Policy policy, std::size_t replicas) : policy_(policy), state_(replicas) {}

  /// The replica that takes a request of so much work, which counts as its from now on.
  [[nodiscard]] std::size_t assign(double work);
  /// `replica` has answered a request of so much work.
  void answered(std::size_t replica, double work);

 private:
  struct State {
    std::uint64_t requests = 0;
    double work = 0;
  };
  [[nodiscard]] bool is_better(const State& one, const State& other) const;

  Policy policy_;
  std::vector<State> state_;
  std::size_t turn_ = 0;
};

}  // namespace isoscale::workloads::serve
