// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/op_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "simulate/layout.hpp"

namespace isoscale::simulate {
namespace {

using program::OpKind;

struct Tile {
  double rows = 0, columns = 0;
  /// Returns the multiplications for each loaded element in one step along k.
  [[nodiscard]] double intensity() const { return rows * columns / (rows + columns); }
};

/// The cost of loading a tile's operands, relative to the cost of multiplying, if each loaded
/// element were used in one multiplication. Small tiles load more elements for each multiplication.
/// Loads overlap with multiplications but still slow them down.
constexpr double load_cost = 20;

/// Returns the rate of a tile relative to that of the largest tile.
double tile_rate(const Tile& tile, const Tile& largest) {
  return (1 + load_cost / largest.intensity()) / (1 + load_cost / tile.intensity());
}

/// Returns the seconds of all waves of tiles (NVIDIA, "Matrix Multiplication Background", sections
/// 3.2 and 3.3). In a wave every multiprocessor computes one tile. `splits` is the number of parts
/// into which k is split; `flops` are the FLOP/s of all multiprocessors with this tile.
double tiled_seconds(const Processor& processor, const program::GemmShape& shape, const Tile& tile,
                     double splits, double flops) {
  const double tiles =
      std::ceil(shape.m / tile.rows) * std::ceil(shape.n / tile.columns) * shape.batch * splits;
  const double waves = std::ceil(tiles / processor.units);
  const double depth = std::ceil(shape.k / splits) + processor.tile_depth;
  return waves * 2 * tile.rows * tile.columns * depth * processor.units / flops;
}

/// The share of the bandwidth of a chain or ring that trees reach (NCCL's tuning model).
constexpr double tree_share = 0.92;
/// The share of a ring's bandwidth that PAT (parallel aggregated trees) reaches (NCCL's tuning
/// model).
constexpr double pat_share = 0.75;
/// The least number of chunks that messages are divided into: `ring_chunks` for the part of one
/// member in a ring, `tree_chunks` for all bytes in a tree, and in a ring that broadcasts or
/// reduces to one rank. They are fitted to 8 A100 at 16 MiB, and to NVLS trees of 32 to 8,192 H100
/// at 1 and 4 MiB (15 results in NVIDIA's talk GTC24 S62129).
constexpr double ring_chunks = 2, tree_chunks = 4;
/// The time for posting one message of an all-to-all. Messages are posted one after the other.
constexpr double post_seconds = 0.5e-6;

double hops_of(double count) { return std::ceil(std::log2(std::max(1.0, count))); }

/// Returns the bandwidth that a group gets from a node's ports: that of its members' own ports, but
/// of one port at least. If the groups along the same axes together need more ports than the node
/// has, it is the group's share of all ports.
double node_bandwidth(const Network& network, const GroupPlace& place) {
  const double ports = std::max(1.0, network.ports_per_rank * network.node_ranks);
  const double own = std::max(1.0, network.ports_per_rank * place.node_members);
  return std::min(own, ports / place.sharing) * network.across.bandwidth * network.across.reached;
}

/// Estimates the time of one collective on a network.
class Estimator {
 public:
  Estimator(const Network& network, OpKind kind, double bytes, const GroupPlace& place)
      : network_(network),
        kind_(kind),
        bytes_(bytes),
        members_(place.members),
        nodes_(place.nodes),
        here_(place.node_members),
        reach_(std::max(place.reach, place.nodes)),
        inside_bandwidth_(network.inside.bandwidth * network.inside.reached),
        narrowest_(inside_bandwidth_) {
    if (nodes_ == 1) {
      chunk_seconds_ = network.inside.chunk / inside_bandwidth_;
      return;
    }
    const double nearest = node_bandwidth(network, place);
    node_bandwidth_ = nearest;
    double below = nodes_, latency = network.across.latency;
    const auto add_level = [&](double above) {
      ring_latency_ += (below - above) * latency;
      tree_latency_ += hops_of(below / above) * latency;
    };
    for (const Tier& tier : network.tiers) {
      if (reach_ <= tier.nodes) break;
      ++levels_;
      // The tier connects parts of the network with tier.nodes nodes each. `above` is the number of
      // these parts that the group's nodes lie in.
      const double above = std::min(below, std::ceil(reach_ / tier.nodes));
      add_level(above);
      // In a ring or tree, data passes from a part to the next one once, over the links of all of
      // the part's nodes together. In an all-to-all, each node sends data for all other parts.
      node_bandwidth_ = std::min(node_bandwidth_, nearest * tier.share * nodes_ / above);
      scattered_bandwidth_ =
          std::min(scattered_bandwidth_, nearest * tier.share * nodes_ / (nodes_ - nodes_ / above));
      below = above;
      latency = tier.latency;
    }
    add_level(1);
    narrowest_ = std::min(inside_bandwidth_, node_bandwidth_);
    const double port = network.across.bandwidth * network.across.reached;
    chunk_seconds_ = network.across.chunk / std::min(port, node_bandwidth_);
  }

  /// Returns the time with an algorithm; absent if the algorithm does not support the collective.
  [[nodiscard]] std::optional<double> seconds(Algorithm algorithm, const Protocol& protocol) const {
    switch (algorithm) {
      case Algorithm::ring:
        return ring(protocol);
      case Algorithm::tree:
        return tree(protocol);
      case Algorithm::multicast:
        return multicast();
      case Algorithm::hierarchical:
        return hierarchical(protocol);
      case Algorithm::pat:
        return pat(protocol);
      case Algorithm::collnet:
        return collnet();
    }
    return std::nullopt;
  }

  /// Returns the seconds of an all-to-all: every rank sends a part to each other rank, and all
  /// messages are posted at once, as NCCL and MPI do.
  [[nodiscard]] double all_to_all() const {
    const double inside = bytes_ * (here_ - 1) / members_ / inside_bandwidth_;
    const double leaving = nodes_ > 1 ? bytes_ * (members_ - here_) / members_ * here_ : 0;
    const double across =
        nodes_ > 1 ? leaving / std::min(node_bandwidth_, scattered_bandwidth_) : 0;
    return network_.start + hop() + (members_ - 1) * post_seconds + std::max(inside, across);
  }

  /// Returns the seconds of a gather or scatter: the parts of all other members pass the root's
  /// link.
  [[nodiscard]] double to_root() const {
    const double part = bytes_ * (members_ - 1) / members_;
    return network_.start + hop() + (members_ - 1) * post_seconds + part / narrowest_;
  }

 private:
  [[nodiscard]] bool goes_both_ways() const {
    return kind_ == OpKind::all_reduce || kind_ == OpKind::barrier;
  }
  [[nodiscard]] double hop() const {
    return nodes_ > 1 ? network_.across.latency : network_.inside.latency;
  }
  /// Returns the bandwidth of a chain through all members with this protocol.
  [[nodiscard]] double chain_bandwidth(const Protocol& protocol) const {
    double most = protocol.most;
    if (nodes_ > 1 && protocol.most_across > 0) most = protocol.most_across;
    if (nodes_ == 2 && protocol.most_two > 0) most = protocol.most_two;
    const double bandwidth = narrowest_ * protocol.share;
    return most > 0 ? std::min(bandwidth, most) : bandwidth;
  }
  [[nodiscard]] double inside_hop(const Protocol& protocol) const {
    return network_.inside.latency * protocol.hop_inside;
  }
  /// Returns the seconds that a hop adds because a rank receives a whole chunk before it passes it
  /// on. `bytes` is the size of a chunk, limited by the link's largest chunk.
  [[nodiscard]] double chunk(double bytes, double bandwidth) const {
    return std::min(bytes / bandwidth, chunk_seconds_);
  }

  /// Returns the seconds with a ring: in each step, one member's part passes each link. In a
  /// broadcast or reduce, all bytes pass each link once. All ranks take their steps together, so
  /// each step waits for a chunk on the slowest link.
  [[nodiscard]] double ring(const Protocol& protocol) const {
    const double rounds = goes_both_ways() ? 2 : 1;
    const bool from_root = kind_ == OpKind::broadcast || kind_ == OpKind::reduce;
    const double steps = rounds * (members_ - 1);
    const double bandwidth = chain_bandwidth(protocol);
    const double part = bytes_ / members_;
    const double latency =
        rounds * ((members_ - nodes_) * inside_hop(protocol) + ring_latency_ * protocol.hop_across);
    const double passes = from_root ? bytes_ : steps * part;
    const double piece = from_root ? bytes_ / tree_chunks : part / ring_chunks;
    return network_.start + latency + passes / bandwidth + steps * chunk(piece, bandwidth);
  }

  /// Returns the seconds with two trees, each of which carries half of the bytes up and down
  /// (Sanders, Speck & Träff, 2009); inside a node the data passes a chain of ranks. Absent for
  /// collectives other than all-reduce, barrier, broadcast and reduce.
  [[nodiscard]] std::optional<double> tree(const Protocol& protocol) const {
    if (!goes_both_ways() && kind_ != OpKind::broadcast && kind_ != OpKind::reduce) {
      return std::nullopt;
    }
    const double ways = goes_both_ways() ? 2 : 1;
    double bandwidth = tree_share * chain_bandwidth(protocol);
    if (nodes_ > 2 && network_.tree_most > 0) bandwidth = std::min(bandwidth, network_.tree_most);
    const double latency = (here_ - 1) * inside_hop(protocol) + tree_latency_ * protocol.hop_across;
    const double hops = here_ - 1 + hops_of(nodes_);
    // A rank passes on the data that goes up and the data that comes down at the same time, so a
    // chunk takes `ways` times as long.
    const double delay = latency + hops * ways * chunk(bytes_ / tree_chunks, bandwidth);
    return network_.start + ways * delay + ways * bytes_ / bandwidth;
  }

  /// Returns the seconds in which the switch inside each node reduces all bytes and hands them back
  /// (NVLS), without latency. Absent if no switch can reduce, for collectives other than
  /// all-reduce, and for groups with fewer than 4 ranks on a node. Each of a node's n ranks moves S
  /// (1 + 1/n) bytes in each direction for S bytes of data.
  [[nodiscard]] std::optional<double> reduced_inside() const {
    if (!network_.multicast || kind_ != OpKind::all_reduce || here_ < 4) return std::nullopt;
    const double reached = reached_share(network_.multicast->reached, bytes_ / here_);
    return bytes_ * (1 + 1 / here_) / (network_.inside.bandwidth * reached);
  }

  /// Returns the seconds of an all-reduce by the switches inside nodes (NVLS); absent if it cannot
  /// use them. Between nodes the switches form trees (NVLS tree): with two nodes, a node's
  /// ports carry S bytes in each direction for S bytes of data; with more nodes, as many as for a
  /// ring.
  [[nodiscard]] std::optional<double> multicast() const {
    const std::optional<double> inside = reduced_inside();
    if (!inside) return std::nullopt;
    const SwitchReduction& rate = *network_.multicast;
    if (rate.most_nodes > 0 && nodes_ > rate.most_nodes) return std::nullopt;
    if (nodes_ == 1) return rate.latency + *inside;
    const double across = (nodes_ == 2 ? 1 : 2 * (members_ - 1) / members_) * bytes_;
    const double hop = rate.across_latency + 2 * chunk(bytes_ / tree_chunks, node_bandwidth_);
    return rate.latency + 2 * hops_of(nodes_) * hop + std::max(*inside, across / node_bandwidth_);
  }

  /// Returns the seconds of an all-reduce that is made of a reduce-scatter inside nodes, an
  /// all-reduce of each part between nodes, and an all-gather inside nodes. Absent for other
  /// collectives, and if the group is on one node or has one rank on each node.
  [[nodiscard]] std::optional<double> hierarchical(const Protocol& protocol) const {
    if (kind_ != OpKind::all_reduce || nodes_ == 1 || here_ == 1) return std::nullopt;
    const double inside = 2 * (here_ - 1) * inside_hop(protocol) +
                          2 * (here_ - 1) / here_ * bytes_ / (inside_bandwidth_ * protocol.share);
    const double across = 2 * tree_latency_ * protocol.hop_across +
                          2 * (nodes_ - 1) / nodes_ * bytes_ / (node_bandwidth_ * protocol.share);
    return network_.start + inside + across;
  }

  /// Returns the seconds of an all-gather or reduce-scatter by parallel aggregated trees (PAT, by
  /// NCCL's tuning model). Absent for other collectives, and if the group has several members on a
  /// node, because NCCL then does not use these trees.
  [[nodiscard]] std::optional<double> pat(const Protocol& protocol) const {
    if ((kind_ != OpKind::all_gather && kind_ != OpKind::reduce_scatter) || here_ > 1) {
      return std::nullopt;
    }
    const double latency = tree_latency_ * protocol.hop_across / 3.5 + members_ * 2.8e-6;
    return network_.start + latency +
           bytes_ * (members_ - 1) / members_ / (pat_share * chain_bandwidth(protocol));
  }

  /// Returns the seconds of a collective in which the switches between nodes reduce and copy
  /// (CollNet, by NCCL's tuning model); absent if CollNet cannot be used. NCCL offers it for
  /// all-reduces and, with a port for each rank of a node, for all-gathers and reduce-scatters. The
  /// switches form a tree whose depth is the number of levels of switches, and each byte goes up
  /// and down once (SHARP; Graham et al., COMHPC 2016), so a node's ports carry S bytes in each
  /// direction for S bytes of data. Inside nodes, at the same time, either the ranks send parts to
  /// each other, or the switch reduces (NVLS), whichever is faster.
  [[nodiscard]] std::optional<double> collnet() const {
    const bool one_way = kind_ == OpKind::all_gather || kind_ == OpKind::reduce_scatter;
    const bool is_offered =
        kind_ == OpKind::all_reduce || (one_way && network_.ports_per_rank >= 1);
    if (!network_.collnet || nodes_ == 1 || !is_offered) return std::nullopt;
    const SwitchReduction& rate = *network_.collnet;
    if (rate.most_nodes > 0 && reach_ > rate.most_nodes) return std::nullopt;
    const double parts = (one_way ? 1 : 2) * (here_ - 1) / here_ * bytes_ / inside_bandwidth_;
    const double inside = std::min(parts, reduced_inside().value_or(parts));
    const double across = bytes_ / (node_bandwidth_ * reached_share(rate.reached, bytes_ / here_));
    return rate.latency + levels_ * rate.across_latency + std::max(inside, across);
  }

  const Network& network_;
  OpKind kind_;
  double bytes_, members_, nodes_;
  double here_;        ///< largest number of members on one node
  double reach_;       ///< nodes from the group's first one to its last one
  double levels_ = 1;  ///< levels of switches that connect the group's nodes
  double inside_bandwidth_;
  double node_bandwidth_ = 0;  ///< bytes/s of the group through one node's ports
  /// Bytes/s through one node's ports for all-to-all.
  double scattered_bandwidth_ = std::numeric_limits<double>::infinity();
  double narrowest_;          ///< bytes/s of the slowest link between members
  double ring_latency_ = 0;   ///< seconds of all hops between nodes, once around the ring
  double tree_latency_ = 0;   ///< seconds of all hops between nodes, from leaf to root
  double chunk_seconds_ = 0;  ///< seconds of the largest chunk on the slowest link
};

}  // namespace

double multiply_seconds(const Processor& processor, const MatrixRate& rate,
                        const program::GemmShape& shape) {
  const double flop = flop_of(shape);
  const double flops = rate.peak * reached_share(rate.reached, flop);
  if (processor.units == 0 || processor.tile_rows == 0 || processor.tile_columns == 0) {
    return flop / flops;
  }
  const auto rows = static_cast<double>(processor.tile_rows);
  const auto columns = static_cast<double>(processor.tile_columns);
  const double side = std::min(rows, columns);
  const Tile largest{rows, columns};
  const std::array tiles{largest,
                         Tile{columns, rows},
                         Tile{side, side},
                         Tile{side, side / 2},
                         Tile{side / 2, side},
                         Tile{side / 2, side / 2}};
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    // Splitting k saves time if there are few tiles: each part of k gives more tiles, whose results
    // are added.
    double splits = 1;
    do {
      least = std::min(
          least, tiled_seconds(processor, shape, tile, splits, flops * tile_rate(tile, largest)));
      splits *= 2;
    } while (splits <= 16 && shape.k / splits >= 512);
  }
  return least;
}

CollectiveEstimate network_collective(const Network& network, OpKind kind, double bytes,
                                      const GroupPlace& place) {
  if (place.members <= 1) return {};
  const Estimator estimator{network, kind, bytes, place};
  if (kind == OpKind::all_to_all) return {.seconds = estimator.all_to_all()};
  if (kind == OpKind::gather || kind == OpKind::scatter) return {.seconds = estimator.to_root()};
  CollectiveEstimate best{.seconds = std::numeric_limits<double>::infinity()};
  for (const Algorithm algorithm : network.algorithms) {
    for (const Protocol& protocol : network.protocols) {
      const auto seconds = estimator.seconds(algorithm, protocol);
      if (!seconds || *seconds >= best.seconds) continue;
      const bool by_switches = algorithm == Algorithm::multicast || algorithm == Algorithm::collnet;
      best = {.seconds = *seconds,
              .algorithm = algorithm,
              .protocol = by_switches ? nullptr : &protocol};
    }
  }
  return best;
}

double network_message(const Network& network, double bytes, const GroupPlace& place) {
  const Protocol& protocol = network.protocols.back();
  if (place.nodes == 1) {
    const double reached =
        network.message_reached > 0 ? network.message_reached : network.inside.reached;
    return network.start + network.inside.latency * protocol.hop_inside +
           bytes / (network.inside.bandwidth * reached);
  }
  double latency = network.across.latency;
  double bandwidth = node_bandwidth(network, place);
  const double nearest = bandwidth;
  for (const Tier& tier : network.tiers) {
    if (place.reach <= tier.nodes) break;
    latency = tier.latency;
    bandwidth = std::min(bandwidth, nearest * tier.share);
  }
  return network.start + latency * protocol.hop_across + bytes / bandwidth;
}

}  // namespace isoscale::simulate
