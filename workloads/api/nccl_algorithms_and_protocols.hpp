// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "program/op.hpp"

/// These tables say which of NCCL's algorithms and protocols exist for which collective. They
/// contain only data, so that a run can be planned on a machine without NCCL. Only NCCL can tell if
/// a machine has the hardware that an algorithm needs (NVLink SHARP, a CollNet network, several
/// nodes), and only when a communicator is used.
///
/// Sources: NCCL user guide, environment variables NCCL_ALGO and NCCL_PROTO; NCCL 2.28,
/// src/graph/tuning.cc, which sets the bandwidth to 0 if an algorithm does not have a protocol.
namespace isoscale::workloads {

struct CollectiveAlgorithm {
  std::string_view name;       ///< the name in options and result rows
  std::string_view nccl_name;  ///< the name in NCCL_ALGO
  std::uint16_t kinds;         ///< bit k: NCCL has the algorithm for program::CollectiveKind k
  bool every_protocol;         ///< false: it exists only with the protocol `simple`

  [[nodiscard]] constexpr bool does(program::CollectiveKind kind) const {
    return (kinds >> static_cast<unsigned>(kind) & 1U) != 0;
  }
};

[[nodiscard]] constexpr std::uint16_t kind_bits(
    std::initializer_list<program::CollectiveKind> kinds) {
  unsigned bits = 0;
  for (const program::CollectiveKind kind : kinds) bits |= 1U << static_cast<unsigned>(kind);
  return static_cast<std::uint16_t>(bits);
}

inline constexpr std::array collective_algorithms = [] {
  using enum program::CollectiveKind;
  return std::array<CollectiveAlgorithm, 7>{
      {{"ring", "Ring", kind_bits({all_reduce, reduce_scatter, all_gather, broadcast, reduce}),
        true},
       {"tree", "Tree", kind_bits({all_reduce}), true},
       {"nvls", "NVLS", kind_bits({all_reduce, reduce_scatter, all_gather}), false},
       {"nvlstree", "NVLSTree", kind_bits({all_reduce}), false},
       {"collnetdirect", "CollnetDirect", kind_bits({all_reduce, reduce_scatter, all_gather}),
        false},
       {"collnetchain", "CollnetChain", kind_bits({all_reduce}), false},
       {"pat", "PAT", kind_bits({reduce_scatter, all_gather}), false}}};
}();

struct CollectiveProtocol {
  std::string_view name;       ///< the name in options and result rows
  std::string_view nccl_name;  ///< the name in NCCL_PROTO
};
inline constexpr std::array<CollectiveProtocol, 3> collective_protocols{
    {{"ll", "LL"}, {"ll128", "LL128"}, {"simple", "Simple"}}};

/// Returns the row of this name in one of the tables above; nullptr if there is none.
template <class Row, std::size_t count>
[[nodiscard]] constexpr const Row* find_named(const std::array<Row, count>& table,
                                              std::string_view name) {
  const auto found = std::ranges::find(table, name, &Row::name);
  return found == table.end() ? nullptr : &*found;
}

/// True if NCCL has the algorithm with the protocol.
[[nodiscard]] constexpr bool has_protocol(const CollectiveAlgorithm& algorithm,
                                          std::string_view protocol) {
  return algorithm.every_protocol || protocol == "simple";
}

}  // namespace isoscale::workloads
