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
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::p2p {

// Measures latency and bandwidth of messages between pairs of ranks, and checks the messages bit
// for bit. Pairs are measured in rounds: the pairs of a round share no rank and are measured at the
// same time.

/// Two ranks that communicate, low < high.
struct Pair {
  int low = 0, high = 0;

  auto operator<=>(const Pair&) const = default;
};
/// Pairs that communicate at the same time; no rank is in two of them.
using Round = std::vector<Pair>;

/// Returns all pairs, each once, in ranks - 1 rounds, by the circle method of round-robin
/// tournaments. If the number of ranks is odd, there are `ranks` rounds, and a different rank rests
/// in each.
[[nodiscard]] std::vector<Round> all_pairs(int ranks);

/// Returns the pairs (r, r + 1) and the pair of the last and the first rank. There are two rounds,
/// three if the number of ranks is odd, and one for two ranks.
[[nodiscard]] std::vector<Round> neighbours(int ranks);

/// Returns `count` rounds of all_pairs(), or count + 1 if the number of ranks is odd, but not more
/// than there are. They are drawn with `seed` and keep their order. Each rank meets `count` or
/// count + 1 other ranks, or all others if there are fewer.
[[nodiscard]] std::vector<Round> sample(int ranks, int count, std::uint64_t seed);

/// Returns all pairs, each once, in rounds in which no two pairs have ranks on the same node. So a
/// network link that the ranks of a node share carries one pair's messages at a time.
/// node_of_rank[r] is the node of rank r.
[[nodiscard]] std::vector<Round> isolated(std::span<const int> node_of_rank);

/// Returns the pairs (r, r + ranks / 2), so that all messages cross the middle of the rank order.
/// If the number of ranks is odd, the last rank takes no part.
[[nodiscard]] Round bisection(int ranks);

[[nodiscard]] std::span<const OptionSpec> option_table();

/// The kinds of cases. In the first three, pairs of ranks are measured; in the last two, all ranks
/// take part.
enum class Kind : std::uint8_t { latency, bandwidth, bidirectional, bisection, all_to_all };
[[nodiscard]] std::string_view name(Kind kind);
/// True if all ranks take part, so that the case cannot be timed if two of them do not answer each
/// other.
[[nodiscard]] constexpr bool is_of_all(Kind kind) { return kind >= Kind::bisection; }

/// The size of a ping-pong's messages, in bytes.
inline constexpr std::uint64_t latency_bytes = 8;

/// The pairs to measure. Each kind stands for the function above with its name (all: all_pairs()).
struct PairChoice {
  enum class Kind : std::uint8_t { all, neighbours, isolated, sample } kind = Kind::all;
  int count = 0;  ///< only for `sample`: the number of other ranks that each rank meets
};

/// Holds the parsed options, which option_table() describes, and what setting_of() computes from
/// them.
struct Setting {
  mesh::Axis axis = mesh::Axis::dp;  ///< the axis along which all ranks are
  int ranks = 2;
  std::vector<Kind> kinds{};  ///< sorted: kinds with pairs, then kinds in which all ranks take part
  std::uint64_t bytes = 0;    ///< size of one message
  std::uint64_t messages = 1;  ///< messages in flight at the same time
  std::uint64_t part = 0;      ///< bytes that each rank sends to each other rank in all_to_all
  std::vector<Round> rounds{};
  std::size_t rounds_of_batch = 1;
  program::Transport transport = program::Transport::nccl;
  std::optional<std::uint64_t> expected{};  ///< least bandwidth of a pair, bytes/s; absent: none
  units::Seconds timeout{};
  PairChoice pairs{};

  [[nodiscard]] bool has_kinds_of_all() const { return !kinds.empty() && is_of_all(kinds.back()); }
  [[nodiscard]] std::size_t pair_batches() const {
    if (kinds.empty() || is_of_all(kinds.front())) return 0;
    return (rounds.size() + rounds_of_batch - 1) / rounds_of_batch;
  }
  /// Returns the rounds of pairs in a session (batch). The last session has no rounds if it is the
  /// one for the kinds in which all ranks take part.
  [[nodiscard]] std::span<const Round> rounds_of(int batch) const;
};

/// Reads the options. Throws base::UsageError for an invalid option, for fewer than two ranks, or
/// for a mesh with more than one axis.
[[nodiscard]] Setting setting_of(const Request& request);

/// Returns the functions of this micro-benchmark. Each session (batch) measures several rounds of
/// pairs. A round has one case for each quantity (for bandwidth two, one in each direction), and
/// each of its pairs gives a result row. If the options ask for cases in which all ranks take part,
/// the last session has these.
[[nodiscard]] BenchHooks hooks();

}  // namespace isoscale::workloads::p2p
