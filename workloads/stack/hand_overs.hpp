// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/stage_order.hpp"

namespace isoscale::workloads::stack {

/// Activations and their gradients on their way between stages: [tokens, hidden], whole, or each
/// rank of tp sends its block of rows and they are gathered where they arrive (Narayanan et al.,
/// arXiv 2104.04473, section 4.1).
class HandOvers {
 public:
  HandOvers(program::Builder& builder, const Geometry& geometry, const Types& types);

  /// What an action made for a neighbour; sent, then released, by the hand-over that names it.
  void leave(const Action& made, program::BufferId buffer);
  /// One exchange with a neighbour.
  void write(const HandOver& message);
  /// What a hand-over received for this action; the caller releases it.
  [[nodiscard]] program::BufferId take(const Action& awaited);

 private:
  using Key = std::tuple<Pass, int, int>;
  static Key key(const Action& action) { return {action.pass, action.microbatch, action.chunk}; }
  [[nodiscard]] program::BufferId allocate(std::uint64_t count, program::Role role, int microbatch);
  /// Rows of all ranks of tp, from this rank's.
  [[nodiscard]] program::BufferId gather(program::BufferId part, const Action& awaited);
  [[nodiscard]] program::Role role_of(const Action& awaited) const;

  program::Builder& builder_;
  const Geometry& g_;
  program::DType type_;
  std::map<Key, program::BufferId> made_, received_;
};

}  // namespace isoscale::workloads::stack
