// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/text.hpp"
#include "program/fill_and_checksum.hpp"
#include "units/quantity_text.hpp"
#include "workloads/p2p/p2p.hpp"

namespace isoscale::workloads::p2p {

namespace {

Pair pair_of(int a, int b) { return {.low = std::min(a, b), .high = std::max(a, b)}; }

/// Adds pairs that must not be run at the same time, one to each round, beginning with round
/// `first`.
void add_to_rounds(const std::vector<Pair>& pairs, std::size_t first, std::vector<Round>& rounds) {
  if (rounds.size() < first + pairs.size()) rounds.resize(first + pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) rounds[first + i].push_back(pairs[i]);
}

constexpr std::array<std::string_view, 5> kind_names{"latency", "bandwidth", "bidirectional",
                                                     "bisection", "all_to_all"};

/// The number of bytes that a pair should have in flight in one direction. It is so large that the
/// latency of a message does not reduce the bandwidth. Small messages have fewer bytes in flight,
/// since there are at most `most_messages` of them.
constexpr std::uint64_t bytes_under_way = std::uint64_t{32} << 20U;

constexpr std::uint64_t most_messages = 64;  // in flight at the same time

/// Reads "all", "neighbours", "isolated" or "sample:4". Throws base::UsageError for any other text.
PairChoice parse_pairs(std::string_view key, std::string_view text) {
  using Kind = PairChoice::Kind;
  if (text == "all") return {.kind = Kind::all};
  if (text == "neighbours") return {.kind = Kind::neighbours};
  if (text == "isolated") return {.kind = Kind::isolated};
  constexpr std::string_view prefix = "sample:";
  if (text.starts_with(prefix)) {
    const auto count = base::number_in<int>(text.substr(prefix.size()));
    if (count && *count >= 1) return {.kind = Kind::sample, .count = *count};
  }
  throw usage_error(
      "option {} = {}: it takes all, neighbours, isolated, or sample:K with a whole "
      "number K of at least 1",
      key, base::quoted(text));
}

std::vector<Round> rounds_of(const Request& request, const PairChoice& pairs) {
  const int ranks = request.mesh.size();
  switch (pairs.kind) {
    case PairChoice::Kind::all:
      return all_pairs(ranks);
    case PairChoice::Kind::neighbours:
      return neighbours(ranks);
    case PairChoice::Kind::sample:
      return sample(ranks, pairs.count, request.seed);
    case PairChoice::Kind::isolated:
      break;
  }
  std::vector<int> node_of_rank = request.node_of_rank;
  node_of_rank.resize(static_cast<std::size_t>(ranks));  // if unknown: all on one node
  return isolated(node_of_rank);
}

units::Seconds parse_timeout(std::string_view key, std::string_view text) {
  try {
    const units::Seconds limit = units::parse_seconds(text);
    if (limit.value() > 0) return limit;
  } catch (const std::invalid_argument& error) {
    throw usage_error("option {}: {}", key, error.what());
  }
  throw usage_error("option {}: no pair can answer in no time; it takes a time, 30s", key);
}

void sort_kinds(const Request& request, Setting& setting) {
  std::ranges::sort(setting.kinds);
  const bool puts = setting.transport == program::Transport::symmetric;
  // The default list contains all_to_all, which is an error only if the user named it.
  if (puts && std::erase(setting.kinds, Kind::all_to_all) > 0 &&
      request.options.contains("kinds")) {
    throw base::UsageError(
        "kinds=all_to_all is a collective, and transport=symmetric has puts alone; leave it out "
        "of kinds, or use transport=nccl");
  }
}

mesh::Axis only_axis(const mesh::Shape& shape) {
  if (shape.size() == 1) {
    throw base::UsageError("a rank alone has nobody to send to: p2p needs 2 ranks or more");
  }
  for (const mesh::Axis axis : mesh::all_axes) {
    if (shape[axis] == shape.size()) return axis;
  }
  throw usage_error("p2p takes all ranks in one row, not the mesh {}; leave --mesh out",
                    mesh::to_string(shape));
}

}  // namespace

std::vector<Round> all_pairs(int ranks) {
  if (ranks < 2) return {};
  // In the circle method one rank keeps its seat, and the others move on by one seat in each round.
  // If the number of ranks is odd, the fixed seat is empty, and the rank opposite it rests.
  const int seats = ranks + ranks % 2;
  std::vector<Round> rounds(static_cast<std::size_t>(seats) - 1);
  for (int round = 0; round < seats - 1; ++round) {
    Round& pairs = rounds[static_cast<std::size_t>(round)];
    if (seats == ranks) pairs.push_back(pair_of(round, seats - 1));
    for (int i = 1; i < seats / 2; ++i) {
      pairs.push_back(pair_of((round + i) % (seats - 1), (round - i + seats - 1) % (seats - 1)));
    }
    std::ranges::sort(pairs);
  }
  return rounds;
}

std::vector<Round> neighbours(int ranks) {
  if (ranks <= 3) return all_pairs(ranks);
  std::vector<Round> rounds(ranks % 2 == 0 ? 2 : 3);
  for (int rank = 0; rank + 1 < ranks; ++rank) {
    rounds[static_cast<std::size_t>(rank % 2)].push_back({.low = rank, .high = rank + 1});
  }
  rounds[ranks % 2 == 0 ? 1 : 2].push_back({.low = 0, .high = ranks - 1});
  for (Round& round : rounds) std::ranges::sort(round);
  return rounds;
}

std::vector<Round> sample(int ranks, int count, std::uint64_t seed) {
  std::vector<Round> rounds = all_pairs(ranks);
  // If the number of ranks is odd, a different rank rests in each round. One more round makes up
  // for the pairs that these ranks miss.
  const auto wanted = static_cast<std::size_t>(count) + static_cast<std::size_t>(ranks % 2);
  // Each round draws a number, and the rounds with the smallest numbers are taken, so that a seed
  // gives the same rounds on every machine.
  std::vector<std::pair<std::uint64_t, std::size_t>> draws;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    draws.emplace_back(program::scatter_bits(program::fill_origin(seed) + i), i);
  }
  std::ranges::sort(draws);
  if (draws.size() > wanted) draws.resize(wanted);
  std::vector<std::size_t> chosen;
  for (const auto& [draw, i] : draws) chosen.push_back(i);
  std::ranges::sort(chosen);
  std::vector<Round> result;
  for (const std::size_t i : chosen) result.push_back(std::move(rounds[i]));
  return result;
}

std::vector<Round> isolated(std::span<const int> node_of_rank) {
  std::map<int, std::vector<int>> ranks_of_node;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    ranks_of_node[node_of_rank[rank]].push_back(static_cast<int>(rank));
  }
  std::vector<std::vector<int>> nodes;
  for (auto& [node, ranks] : ranks_of_node) nodes.push_back(std::move(ranks));
  std::vector<Round> rounds;
  for (const std::vector<int>& node : nodes) {
    std::vector<Pair> within;
    for (std::size_t i = 0; i < node.size(); ++i) {
      for (std::size_t j = i + 1; j < node.size(); ++j) within.push_back(pair_of(node[i], node[j]));
    }
    add_to_rounds(within, 0, rounds);
  }
  // all_pairs() arranges nodes in pairs, as it does with ranks. Between two nodes, one pair of
  // ranks is measured at a time.
  for (const Round& node_pairs : all_pairs(static_cast<int>(nodes.size()))) {
    const std::size_t first = rounds.size();
    for (const Pair& pair : node_pairs) {
      std::vector<Pair> between;
      for (const int a : nodes[static_cast<std::size_t>(pair.low)]) {
        for (const int b : nodes[static_cast<std::size_t>(pair.high)]) {
          between.push_back(pair_of(a, b));
        }
      }
      add_to_rounds(between, first, rounds);
    }
  }
  for (Round& round : rounds) std::ranges::sort(round);
  return rounds;
}

Round bisection(int ranks) {
  Round round;
  for (int rank = 0; rank < ranks / 2; ++rank) {
    round.push_back({.low = rank, .high = rank + ranks / 2});
  }
  return round;
}

std::string_view name(Kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::list<&Setting::kinds>(
          "kinds", "latency,bandwidth,bidirectional,bisection,all_to_all",
          {kind_names.begin(), kind_names.end()},
          "what to measure: between pairs of ranks the latency of 8 B one "
          "way (half a ping-pong) and the bandwidth in one and in both "
          "directions; among all ranks the bisection, and all_to_all"),
      option::bytes<&Setting::bytes>(
          "size", "4MiB", {1, 1LL << 36U},
          "bytes of a message; for all_to_all, of all that a rank sends"),
      option::parsed<&Setting::pairs, parse_pairs>(
          "pairs", "all",
          "pairs to measure: all (each rank in one pair at a time), neighbours (on a ring), "
          "sample:K (each rank with at least K others, drawn by --seed), or isolated (all, but on "
          "each node one pair at a time)"),
      option::integer<&Setting::rounds_of_batch>(
          "renew", "8", {1, 1'000'000},
          "make new communicators after this many rounds of pairs, so that the memory that "
          "libraries keep for each connection does not add up"),
      option::choice<&Setting::transport>(
          "transport", "nccl", {"nccl", "symmetric"},
          "how messages travel: nccl, or symmetric: puts into NCCL's symmetric windows by "
          "Isoscale's own kernel (--device cuda, NVLink), without all_to_all"),
      option::bytes<&Setting::expected>(
          "expect", "", {1},
          "least bandwidth of every pair in one direction, per second (2GB is 2 GB/s); a slower "
          "pair fails the point. Default: none"),
      option::parsed<&Setting::timeout, parse_timeout>(
          "timeout", "30s",
          "a pair that does not answer within this time fails; the others are measured"),
  };
  return table;
}

std::span<const Round> Setting::rounds_of(int batch) const {
  const std::size_t first = static_cast<std::size_t>(batch) * rounds_of_batch;
  if (static_cast<std::size_t>(batch) >= pair_batches()) return {};
  return std::span{rounds}.subspan(first, std::min(rounds_of_batch, rounds.size() - first));
}

Setting setting_of(const Request& request) {
  auto setting = typed_options<Setting>(option_table(), request.options);
  setting.ranks = request.mesh.size();
  sort_kinds(request, setting);
  setting.rounds = rounds_of(request, setting.pairs);
  setting.axis = only_axis(request.mesh);
  setting.messages = std::clamp<std::uint64_t>(bytes_under_way / setting.bytes, 1, most_messages);
  setting.part = setting.bytes / static_cast<std::uint64_t>(setting.ranks);
  if (setting.part == 0 && std::ranges::count(setting.kinds, Kind::all_to_all) > 0) {
    throw usage_error(
        "size={}: all_to_all deals that out over {} ranks, at least 1 byte each; use a larger "
        "size, or kinds= without all_to_all",
        option_text(option_table(), request.options, "size"), setting.ranks);
  }
  return setting;
}

}  // namespace isoscale::workloads::p2p
