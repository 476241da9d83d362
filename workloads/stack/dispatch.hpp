// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/stack/geometry.hpp"
#include "workloads/stack/routing.hpp"

namespace isoscale::workloads::stack {

/// How the experts of a rank multiply: a GEMM each with its own rows, or one batched GEMM with as
/// many rows for each as the capacity allows.
enum class ExpertBatch : std::uint8_t { exact, padded };

/// The way of a microbatch's tokens to the experts of one layer and back, on one rank. Rows are
/// tokens as Geometry orders them; a row is sent once for each of its experts that has room.
struct Dispatch {
  /// For each row sent, by expert and then by token: the row of the activation.
  std::vector<std::uint32_t> sent_from;
  /// For each token topk places among the rows sent; program::Rows::no_row where it was dropped.
  std::vector<std::uint32_t> place_of;
  /// Rows to and from each member of the ep group.
  std::vector<std::uint64_t> sent, received;
  /// For each row of the experts' input, expert by expert, the row among those received; no_row is
  /// padding. Empty: it is as received.
  std::vector<std::uint32_t> arranged_from;
  /// The reverse: for each row received its place in the experts' output.
  std::vector<std::uint32_t> restored_from;
  /// Rows of each expert of this rank, padding included, one expert after the other.
  std::vector<std::uint64_t> rows_of_expert;

  [[nodiscard]] std::uint64_t received_rows() const;
  [[nodiscard]] std::uint64_t expert_rows() const;
};

/// `layer` is the model's. The geometry stands at its own coordinates along cp, ep and dp.
[[nodiscard]] Dispatch dispatch(const Routing& routing, const Geometry& geometry, ExpertBatch batch,
                                int layer, int microbatch);

}  // namespace isoscale::workloads::stack
