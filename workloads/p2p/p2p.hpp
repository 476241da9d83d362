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

// The p2p benchmark measures latency and bandwidth of messages between pairs of ranks, and checks
// them bit for bit. Pairs are arranged in rounds by pure arithmetic.

/// Two ranks of a point, low < high.
struct Pair {
  int low = 0, high = 0;

  auto operator<=>(const Pair&) const = default;
};
/// Pairs that communicate at the same time: no rank is in two of them.
using Round = std::vector<Pair>;

/// Returns every pair once, in ranks - 1 rounds (in `ranks` rounds for an odd number, each of which
/// lets another rank rest), by the circle method of tournaments.
[[nodiscard]] std::vector<Round> all_pairs(int ranks);

/// Returns (r, r + 1) and the pair that closes the ring: two rounds, three for an odd number of
/// ranks.
[[nodiscard]] std::vector<Round> neighbours(int ranks);

/// Returns `count` of the rounds of all_pairs, drawn by `seed`, in order; one more for an odd
/// number of ranks, and all if there are no more. Each rank then meets at least `count` others, and
/// at most one more.
[[nodiscard]] std::vector<Round> sample(int ranks, int count, std::uint64_t seed);

/// Returns every pair once, with no two pairs at a time that have ranks on the same node, so that
/// links which ranks of a node share are measured with one user. node_of_rank[r] is the node of
/// rank r.
[[nodiscard]] std::vector<Round> isolated(std::span<const int> node_of_rank);

/// Returns (r, r + ranks/2): one matching across the middle; the last of an odd number rests.
[[nodiscard]] Round bisection(int ranks);

[[nodiscard]] std::span<const OptionSpec> option_table();

enum class Kind : std::uint8_t { latency, bandwidth, bidirectional, bisection, all_to_all };
[[nodiscard]] std::string_view name(Kind kind);

/// The bytes of a ping-pong's messages.
inline constexpr std::uint64_t latency_bytes = 8;

/// The options of the benchmark, parsed.
struct Setting {
  mesh::Axis axis = mesh::Axis::dp;  ///< all ranks are along it
  int ranks = 2;
  std::vector<Kind> pair_kinds{};  ///< measured in every round of pairs, in this order
  bool bisects = false, all_to_all = false;
  std::uint64_t bytes = 0;     ///< of a message
  std::uint64_t messages = 1;  ///< under way at once, each with memory of its own
  std::uint64_t part = 0;      ///< bytes that all_to_all moves from each rank to each
  std::vector<Round> rounds{};
  std::size_t rounds_of_batch = 1;
  program::Transport transport = program::Transport::nccl;
  std::optional<units::BytesPerSecond> expected{};
  units::Seconds timeout{};

  [[nodiscard]] std::size_t pair_batches() const;
  /// Returns the rounds of one batch; none for the batch after the last pairs.
  [[nodiscard]] std::span<const Round> rounds_of(int batch) const;
};

/// Reads the options. Throws base::UsageError for an invalid option, fewer than two ranks, or a
/// mesh of several axes.
[[nodiscard]] Setting setting_of(const Request& request);

[[nodiscard]] BenchHooks hooks();

[[nodiscard]] int batches(const Request& request);
/// Builds a batch: some rounds of pairs, each with a case per kind (two for bandwidth, one in each
/// direction) and a row per pair. The last batch has the cases in which all ranks take part.
[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);

}  // namespace isoscale::workloads::p2p
