// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/match_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"

namespace isoscale::program {

namespace {

std::string described(const OutlineOp& op) { return describe(op.kind, op.place); }

}  // namespace

MatchTable::MatchTable(const OutlineSet& set, Folding folding) : set_(set), folding_(folding) {
  if (folding == Folding::as_streamed) {
    for (const Outline& outline : set.outlines) {
      lanes_ = std::max(lanes_, static_cast<std::uint32_t>(outline.streams.size()));
    }
  }
  compiled_.reserve(set.outlines.size());
  for (const Outline& outline : set.outlines) compile(outline);
  for (Channel& channel : channels_) {
    channel.first_group = group_count_;
    group_count_ += static_cast<std::size_t>(set_.mesh.size() / channel.group_size);
  }
  for (int rank = 0; rank < set_.mesh.size(); ++rank) {
    for (const Channel& channel : channels_) {
      group_of_rank_.push_back(channel.first_group + static_cast<std::size_t>(mesh::group_colour(
                                                         set_.mesh, rank, channel.axes)));
    }
  }
}

void MatchTable::compile(const Outline& outline) {
  Compiled& result = compiled_.emplace_back();
  result.lane_ops.resize(lanes_);
  result.rendezvous.reserve(outline.ops.size());
  result.channel.reserve(outline.ops.size());
  for (std::uint32_t i = 0; i < outline.ops.size(); ++i) {
    const OutlineOp& op = outline.ops[i];
    result.lane_ops[folding_ == Folding::folded ? 0 : op.stream].push_back(i);
    std::uint32_t channel = 0;
    Rendezvous rendezvous = Rendezvous::none;
    if (op.kind == OpKind::exchange) {
      rendezvous = Rendezvous::peers;
    } else if (communicates(op.kind)) {
      rendezvous = Rendezvous::group;
      channel = channel_of(op);
    }
    result.rendezvous.push_back(rendezvous);
    result.channel.push_back(channel);
  }
  add_links(outline);
}

std::uint32_t MatchTable::channel_of(const OutlineOp& op) {
  const auto found = std::ranges::find_if(channels_, [&](const Channel& channel) {
    return channel.axes == op.axes && channel.stream == op.stream;
  });
  if (found != channels_.end()) return static_cast<std::uint32_t>(found - channels_.begin());
  channels_.push_back({.axes = op.axes,
                       .stream = op.stream,
                       .group_size = mesh::group_size(set_.mesh, op.axes),
                       .first_group = 0});
  return static_cast<std::uint32_t>(channels_.size() - 1);
}

void MatchTable::add_links(const Outline& outline) {
  for (const OutlineTransfer& transfer : outline.transfers) {
    const Link link = link_of(transfer);
    if (std::ranges::find(links_, link) == links_.end()) links_.push_back(link);
  }
}

std::size_t MatchTable::mailbox_count() const {
  return links_.size() * static_cast<std::size_t>(set_.mesh.size());
}

std::size_t MatchTable::mailbox(int rank, const OutlineTransfer& transfer) const {
  const bool receives = transfer.direction == Direction::receive;
  const int receiver =
      receives ? rank : mesh::neighbour(set_.mesh, rank, transfer.axis, transfer.offset);
  const auto link = std::ranges::find(links_, link_of(transfer)) - links_.begin();
  return static_cast<std::size_t>(receiver) * links_.size() + static_cast<std::size_t>(link);
}

void MatchTable::require_alike(int rank_a, std::uint32_t op_a, int rank_b,
                               std::uint32_t op_b) const {
  const OutlineOp& a = op_of(rank_a, op_a);
  const OutlineOp& b = op_of(rank_b, op_b);
  const bool same_size = a.bytes == b.bytes || (a.uneven && b.uneven);
  if (a.kind == b.kind && same_size && a.signature == b.signature) return;
  const char* difference = a.kind == b.kind && same_size
                               ? "with different element types, reductions or roots"
                               : "with different collectives";
  throw base::Error(fmt::format(
      "ranks {} and {} meet in the {} group {}: {}, {} bytes, and {}, {} bytes", rank_a, rank_b,
      mesh::to_string(a.axes), difference, described(a), a.bytes, described(b), b.bytes));
}

void MatchTable::throw_unlike_message(int rank_a, std::uint32_t op_a, std::uint64_t bytes_a,
                                      int rank_b, std::uint32_t op_b, std::uint64_t bytes_b) const {
  throw base::Error(
      fmt::format("ranks {} and {} exchange a message of different sizes: {} bytes in op {}, {}; "
                  "{} bytes in op "
                  "{}, {}",
                  rank_a, rank_b, bytes_a, op_a, described(op_of(rank_a, op_a)), bytes_b, op_b,
                  described(op_of(rank_b, op_b))));
}

std::string MatchTable::explain(const StuckOp& stuck) const {
  const OutlineOp& op = op_of(stuck.rank, stuck.op);
  std::string text = fmt::format("rank {} at op {}, {}, ", stuck.rank, stuck.op, described(op));
  if (!stuck.posted) return text + "waits for its own other streams";
  if (op.kind != OpKind::exchange) {
    return text + fmt::format("in which only ranks {} of {} are present",
                              fmt::join(stuck.present, ", "),
                              fmt::join(mesh::group_members(set_.mesh, stuck.rank, op.axes), ", "));
  }
  std::vector<std::string> peers;
  for (const OutlineTransfer& transfer : transfers(stuck.rank, stuck.op)) {
    peers.push_back(fmt::format(
        "{} rank {}", transfer.direction == Direction::send ? "send to" : "receive from",
        mesh::neighbour(set_.mesh, stuck.rank, transfer.axis, transfer.offset)));
  }
  return text + fmt::format("which must {}", fmt::join(peers, " and "));
}

void MatchTable::throw_deadlock(std::span<const StuckOp> stuck) const {
  constexpr std::size_t shown = 6;
  std::string text = fmt::format(
      "the programs deadlock{}: ",
      folding_ == Folding::folded ? " when each rank plays all streams in program order" : "");
  for (std::size_t i = 0; i < std::min(shown, stuck.size()); ++i) {
    text += (i == 0 ? "" : "; ") + explain(stuck[i]);
  }
  if (stuck.size() > shown) text += fmt::format("; and {} more", stuck.size() - shown);
  throw base::Error(text);
}

}  // namespace isoscale::program
