// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/buffer.hpp"
#include "workloads/p2p/setting.hpp"
#include "workloads/workload.hpp"

/// What is timed, and what each rank does in it.
namespace isoscale::workloads::p2p {

inline constexpr program::DType type = program::DType::u8;  ///< so that any size can be had
/// Buffers, in the order in which they are allocated: what is sent, and where messages come in.
inline constexpr program::BufferId source = 0, work = 1;

/// One thing that is timed. `Kind::bandwidth` has two of each round: from low to high, and back.
struct Timed {
  Kind kind = Kind::latency;
  bool back = false;
  Round pairs{};  ///< at the same time; none for all_to_all
};
[[nodiscard]] std::vector<Timed> timed_of(const Setting& setting, int batch);

[[nodiscard]] bool is_silent(const Request& request, const Pair& pair);
/// Whether a timed thing is of all ranks, and so cannot be had where two of them do not answer.
[[nodiscard]] bool is_of_all(Kind kind);

/// What one rank does in a timed thing: nothing, or its part towards its partner, who is `hop`
/// ranks further on (modulo their number).
struct Part {
  enum class Role : std::uint8_t { rests, low, high, of_all } role = Role::rests;
  int hop = 0;

  auto operator<=>(const Part&) const = default;
};
[[nodiscard]] Part part_of(const Request& request, const Setting& setting, const Timed& timed,
                           int rank);

}  // namespace isoscale::workloads::p2p
