// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/outline.hpp"

namespace isoscale::program {

/// The streams on which ops are run: the streams of the program, or a single stream for all ops
/// in program order.
enum class Folding : std::uint8_t { as_streamed, folded };

enum class Rendezvous : std::uint8_t { none, group, peers };

/// An op that a rank could not complete, for the error message of a deadlock.
struct StuckOp {
  int rank = 0;
  std::uint32_t op = 0;
  bool posted = false;       ///< true: it waits for other ranks; false: for streams of its own
  std::vector<int> present;  ///< for a collective: the members that have arrived
};

/// Tables by which Matcher (play_all_ranks.hpp) finds the partners of each collective and
/// message. They are compiled from the outlines of all ranks, which are their programs without
/// data. A lane is a stream, or the one lane for all streams if they are folded. Ranks that share
/// an outline share its tables.
class MatchTable {
 public:
  MatchTable(const OutlineSet& set, Folding folding);

  [[nodiscard]] int ranks() const { return set_.mesh.size(); }
  [[nodiscard]] std::uint32_t lanes() const { return lanes_; }
  [[nodiscard]] std::size_t op_count(int rank) const { return set_.of(rank).ops.size(); }
  [[nodiscard]] std::span<const std::uint32_t> lane_ops(int rank, std::uint32_t lane) const {
    return compiled(rank).lane_ops[lane];
  }
  [[nodiscard]] std::span<const Wait> waits(int rank, std::uint32_t op) const {
    const Outline& outline = set_.of(rank);
    return outline.waits_of(outline.ops[op]);
  }
  [[nodiscard]] std::span<const OutlineTransfer> transfers(int rank, std::uint32_t op) const {
    const Outline& outline = set_.of(rank);
    return outline.transfers_of(outline.ops[op]);
  }
  [[nodiscard]] Rendezvous rendezvous(int rank, std::uint32_t op) const {
    return compiled(rank).rendezvous[op];
  }

  [[nodiscard]] std::size_t group_count() const { return group_count_; }
  /// Returns the index of the communicator of a collective. Collectives of the same ranks, along
  /// the same axes and on the same stream have the same communicator.
  [[nodiscard]] std::size_t group(int rank, std::uint32_t op) const {
    return group_of_rank_[static_cast<std::size_t>(rank) * channels_.size() +
                          compiled(rank).channel[op]];
  }
  [[nodiscard]] int group_size(int rank, std::uint32_t op) const {
    return channels_[compiled(rank).channel[op]].group_size;
  }

  [[nodiscard]] std::size_t mailbox_count() const;
  /// Returns the index of the mailbox where the sender and the receiver of a message meet. A
  /// mailbox belongs to one receiving rank, one axis and one offset along it. `rank` is the rank
  /// that has the transfer, which may be the sender or the receiver.
  [[nodiscard]] std::size_t mailbox(int rank, const OutlineTransfer& transfer) const;

  /// Throws base::Error unless two ranks' ops are the same collective, with the same element type,
  /// reduction, root and size. Sizes are not compared for an uneven all_to_all.
  void require_alike(int rank_a, std::uint32_t op_a, int rank_b, std::uint32_t op_b) const;
  [[noreturn]] void throw_unlike_message(int rank_a, std::uint32_t op_a, std::uint64_t bytes_a,
                                         int rank_b, std::uint32_t op_b,
                                         std::uint64_t bytes_b) const;
  [[noreturn]] void throw_deadlock(std::span<const StuckOp> stuck) const;

 private:
  struct Compiled {
    std::vector<std::vector<std::uint32_t>> lane_ops;
    std::vector<Rendezvous> rendezvous;
    std::vector<std::uint32_t> channel;  ///< index into channels_ by op; collectives only
  };
  struct Channel {
    mesh::AxisSet axes;
    StreamId stream = 0;
    int group_size = 1;
    std::size_t first_group = 0;
  };
  struct Link {
    mesh::Axis axis = mesh::Axis::pp;
    std::int32_t offset = 1;  ///< steps along the axis from receiver to sender
    bool operator==(const Link&) const = default;
  };

  [[nodiscard]] static Link link_of(const OutlineTransfer& transfer) {
    const bool receives = transfer.direction == Direction::receive;
    return {.axis = transfer.axis, .offset = receives ? transfer.offset : -transfer.offset};
  }
  [[nodiscard]] const Compiled& compiled(int rank) const {
    return compiled_[set_.outline_of_rank[static_cast<std::size_t>(rank)]];
  }
  [[nodiscard]] const OutlineOp& op_of(int rank, std::uint32_t op) const {
    return set_.of(rank).ops[op];
  }
  std::uint32_t channel_of(const OutlineOp& op);
  void add_links(const Outline& outline);
  void compile(const Outline& outline);
  [[nodiscard]] std::string explain(const StuckOp& stuck) const;

  const OutlineSet& set_;
  Folding folding_;
  std::uint32_t lanes_ = 1;
  std::vector<Compiled> compiled_;
  std::vector<Channel> channels_;
  std::vector<Link> links_;
  std::vector<std::size_t> group_of_rank_;  ///< [rank][channel]
  std::size_t group_count_ = 0;
};

}  // namespace isoscale::program
