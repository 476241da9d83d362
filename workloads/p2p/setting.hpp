// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "program/op.hpp"
#include "units/quantity.hpp"
#include "workloads/p2p/rounds.hpp"
#include "workloads/workload.hpp"

/// What the point-to-point benchmark measures: its options, understood.
namespace isoscale::workloads::p2p {

[[nodiscard]] std::span<const OptionSpec> option_table();

enum class Kind : std::uint8_t { latency, bandwidth, bidirectional, bisection, all_to_all };
[[nodiscard]] std::string_view name(Kind kind);

/// Bytes of a ping-pong's messages.
inline constexpr std::uint64_t latency_bytes = 8;

struct Setting {
  mesh::Axis axis = mesh::Axis::dp;  ///< the one that all ranks are along
  int ranks = 2;
  std::vector<Kind> pair_kinds{};  ///< measured in every round of pairs, in this order
  bool bisects = false, all_to_all = false;
  std::uint64_t bytes = 0;     ///< of a message
  std::uint64_t messages = 1;  ///< that are under way together, each with memory of its own
  std::uint64_t part = 0;      ///< bytes that all_to_all moves from each rank to each
  std::vector<Round> rounds{};
  std::size_t rounds_of_batch = 1;
  program::Transport transport = program::Transport::nccl;
  std::optional<units::BytesPerSecond> expected{};
  units::Seconds timeout{};

  [[nodiscard]] std::size_t pair_batches() const;
  /// Rounds of one batch; none for the one that comes after the last pairs.
  [[nodiscard]] std::span<const Round> rounds_of(int batch) const;
};

/// Throws base::UsageError: an option that means nothing, fewer than two ranks, a mesh of several
/// axes.
[[nodiscard]] Setting setting_of(const Request& request);

}  // namespace isoscale::workloads::p2p
