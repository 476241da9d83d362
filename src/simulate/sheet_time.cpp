// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/op_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace isoscale::simulate {
namespace {

using program::OpKind;

struct Tile {
  double rows = 0, columns = 0;
  /// Returns the multiplications per loaded element in one step along k.
  [[nodiscard]] double intensity() const { return rows * columns / (rows + columns); }
};

/// The cost of loading the operands of a tile at intensity 1, relative to the cost of multiplying.
/// A small tile loads more elements per product; loads overlap with the products but still slow
/// them.
constexpr double load_cost = 20;

/// Returns the rate of a tile relative to that of the largest tile.
double tile_rate(const Tile& tile, const Tile& largest) {
  return (1 + load_cost / largest.intensity()) / (1 + load_cost / tile.intensity());
}

/// Returns the seconds of all waves of tiles (NVIDIA, "Matrix Multiplication Background", section
/// 3.2 and 3.3); in a wave every multiprocessor computes one tile.
double tiled_seconds(const Processor& processor, const program::GemmShape& shape, const Tile& tile,
                     double splits, double flops) {
  const double tiles =
      std::ceil(shape.m / tile.rows) * std::ceil(shape.n / tile.columns) * shape.batch * splits;
  const double waves = std::ceil(tiles / processor.units);
  const double depth = std::ceil(shape.k / splits) + processor.tile_depth;
  return waves * 2 * tile.rows * tile.columns * depth * processor.units / flops;
}

/// The share of a ring's bandwidth that trees between nodes reach (NCCL's tuning model).
constexpr double tree_share = 0.92;
/// The time for posting one message of an all-to-all; they are posted one after another.
constexpr double post_seconds = 0.5e-6;

double hops_of(double count) { return std::ceil(std::log2(std::max(1.0, count))); }

/// Returns the bandwidth that a group gets from a node's ports: the bandwidth of its members' own
/// ports, or of its share of all ports if the groups along the same axes need more ports than the
/// node has.
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
        place_(place),
        members_(place.members),
        nodes_(place.nodes) {}

  /// Returns the time by an algorithm; absent if the algorithm does not support the collective.
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
    }
    return std::nullopt;
  }

  /// Returns the seconds of an all-to-all: every rank sends a part to each other rank, and NCCL and
  /// MPI post all messages at once.
  [[nodiscard]] double all_to_all() const {
    const double here = place_.node_members;
    const double inside = bytes_ * (here - 1) / members_ / inside_bandwidth();
    const double across =
        nodes_ > 1 ? bytes_ * (members_ - here) / members_ * here / node_bandwidth(network_, place_)
                   : 0;
    return network_.start + hop() + (members_ - 1) * post_seconds + std::max(inside, across);
  }

  /// Returns the seconds of a gather or scatter: the parts of all members pass the root's link.
  [[nodiscard]] double to_root() const {
    const double part = bytes_ * (members_ - 1) / members_;
    return network_.start + hop() + (members_ - 1) * post_seconds + part / narrowest();
  }

 private:
  [[nodiscard]] double inside_bandwidth() const {
    return network_.inside.bandwidth * network_.inside.reached;
  }
  /// Returns the bandwidth of the narrowest link between members.
  [[nodiscard]] double narrowest() const {
    return nodes_ > 1 ? std::min(inside_bandwidth(), node_bandwidth(network_, place_))
                      : inside_bandwidth();
  }
  [[nodiscard]] double hop() const {
    return nodes_ > 1 ? network_.across.latency : network_.inside.latency;
  }
  [[nodiscard]] double part_share(Algorithm algorithm) const {
    for (const PartShare& part : network_.parts) {
      if (part.kind == kind_ && part.algorithm == algorithm) {
        // The switch handles the parts of a node's members; a ring passes on the part of one
        // member.
        const double parts = algorithm == Algorithm::multicast ? place_.node_members : members_;
        return reached_share(part.reached, bytes_ / parts);
      }
    }
    return 1;
  }
  /// Returns the bandwidth of a chain through all members with a protocol.
  [[nodiscard]] double chain_bandwidth(Algorithm algorithm, const Protocol& protocol) const {
    double bandwidth = narrowest() * protocol.share;
    if (protocol.most > 0) bandwidth = std::min(bandwidth, protocol.most);
    // A protocol with flags sends small chunks, whose pipeline fills at once, so part_share() does
    // not apply.
    return protocol.share < 1 ? bandwidth : bandwidth * part_share(algorithm);
  }
  [[nodiscard]] double inside_hop(const Protocol& protocol) const {
    return network_.inside.latency * protocol.hop_inside;
  }
  [[nodiscard]] double across_hop(const Protocol& protocol) const {
    return network_.across.latency * protocol.hop_across;
  }

  /// Returns the seconds by a ring: in each step, one member's part passes each link.
  [[nodiscard]] double ring(const Protocol& protocol) const {
    const double rounds = kind_ == OpKind::all_reduce || kind_ == OpKind::barrier ? 2 : 1;
    const bool from_root = kind_ == OpKind::broadcast || kind_ == OpKind::reduce;
    const double steps = rounds * (members_ - 1);
    const double across = nodes_ > 1 ? rounds * (nodes_ - 1) : 0;
    const double passes = from_root ? 1 : steps / members_;
    return network_.start + (steps - across) * inside_hop(protocol) +
           across * across_hop(protocol) +
           passes * bytes_ / chain_bandwidth(Algorithm::ring, protocol);
  }

  /// Returns the seconds by two trees, each of which carries half of the bytes up and down
  /// (Sanders, Speck & Träff, 2009), over chains inside the nodes.
  [[nodiscard]] std::optional<double> tree(const Protocol& protocol) const {
    const bool both_ways = kind_ == OpKind::all_reduce || kind_ == OpKind::barrier;
    if (!both_ways && kind_ != OpKind::broadcast && kind_ != OpKind::reduce) return std::nullopt;
    const double ways = both_ways ? 2 : 1;
    const double hops =
        (place_.node_members - 1) * inside_hop(protocol) + hops_of(nodes_) * across_hop(protocol);
    const double latency = ways * hops;
    const double wire = ways * bytes_ / (tree_share * chain_bandwidth(Algorithm::tree, protocol));
    // The formula assumes chunks of the best size: larger ones take longer to fill the tree, while
    // smaller ones pay more latencies.
    return network_.start + latency + wire + 2 * std::sqrt(latency * wire);
  }

  /// Returns the seconds of an all-reduce by the switches; absent if they take no part, as for
  /// fewer than 4 ranks on a node. Inside a node each rank moves S (1 + 1/n) bytes per direction.
  /// Between nodes the switches form trees (NVLS tree), for which the nodes' ports carry as many
  /// bytes as for a ring.
  [[nodiscard]] std::optional<double> multicast() const {
    if (!network_.multicast || kind_ != OpKind::all_reduce || place_.node_members < 4) {
      return std::nullopt;
    }
    const Multicast& rate = *network_.multicast;
    const double share = part_share(Algorithm::multicast);
    const double here = place_.node_members;
    const double inside =
        bytes_ * (1 + 1 / here) / (network_.inside.bandwidth * rate.reached * share);
    if (nodes_ == 1) return rate.latency + inside;
    const double across = 2 * (members_ - 1) / members_ * bytes_ / narrowest();
    return rate.latency + 2 * hops_of(nodes_) * rate.across_latency + std::max(inside, across);
  }

  /// Returns the seconds of a reduce-scatter inside nodes, an all-reduce of each part across them,
  /// and an all-gather inside.
  [[nodiscard]] std::optional<double> hierarchical(const Protocol& protocol) const {
    if (kind_ != OpKind::all_reduce || nodes_ == 1 || place_.node_members == 1) return std::nullopt;
    const double here = place_.node_members;
    const double inside = 2 * (here - 1) * inside_hop(protocol) +
                          2 * (here - 1) / here * bytes_ / (inside_bandwidth() * protocol.share);
    const double across =
        2 * hops_of(nodes_) * across_hop(protocol) +
        2 * (nodes_ - 1) / nodes_ * bytes_ / (node_bandwidth(network_, place_) * protocol.share);
    return network_.start + inside + across;
  }

  const Network& network_;
  OpKind kind_;
  double bytes_;
  const GroupPlace& place_;
  double members_, nodes_;
};

}  // namespace

double multiply_seconds(const Processor& processor, const MatrixRate& rate,
                        const program::GemmShape& shape) {
  const double flop = 2.0 * shape.m * shape.n * shape.k * shape.batch;
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
    // Splitting k saves time if there are few tiles: the parts are computed separately and added
    // up.
    for (double splits = 1; splits <= 16 && shape.k / splits >= 512; splits *= 2) {
      least = std::min(
          least, tiled_seconds(processor, shape, tile, splits, flops * tile_rate(tile, largest)));
    }
    least =
        std::min(least, tiled_seconds(processor, shape, tile, 1, flops * tile_rate(tile, largest)));
  }
  return least;
}

CollectiveEstimate network_collective(const Network& network, OpKind kind, double bytes,
                                      const GroupPlace& place) {
  if (place.members <= 1) return {};
  const Estimator estimator{network, kind, bytes, place};
  if (kind == OpKind::all_to_all) return {.seconds = estimator.all_to_all()};
  if (kind == OpKind::gather || kind == OpKind::scatter) return {.seconds = estimator.to_root()};
  const Protocol plain{};
  const std::span<const Protocol> protocols =
      network.protocols.empty() ? std::span{&plain, 1} : std::span{network.protocols};
  CollectiveEstimate best{.seconds = std::numeric_limits<double>::infinity()};
  for (const Algorithm algorithm : network.algorithms) {
    for (const Protocol& protocol : protocols) {
      const auto seconds = estimator.seconds(algorithm, protocol);
      if (!seconds || *seconds >= best.seconds) continue;
      best = {.seconds = *seconds,
              .algorithm = algorithm,
              .protocol = network.protocols.empty() ? nullptr : &protocol};
    }
  }
  return best;
}

double network_message(const Network& network, double bytes, const GroupPlace& place) {
  const Protocol plain{};
  const Protocol& protocol = network.protocols.empty() ? plain : network.protocols.back();
  if (place.nodes == 1) {
    const double reached =
        network.message_reached > 0 ? network.message_reached : network.inside.reached;
    return network.start + network.inside.latency * protocol.hop_inside +
           bytes / (network.inside.bandwidth * reached);
  }
  return network.start + network.across.latency * protocol.hop_across +
         bytes / node_bandwidth(network, place);
}

}  // namespace isoscale::simulate
