// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "program/match_table.hpp"
#include "program/outline.hpp"
#include "units/quantity.hpp"

/// Runs the outlines of all ranks (their programs without data) together under rendezvous
/// semantics: a message or collective completes only once all its partners have reached it. check()
/// uses it to find deadlocks, the simulator to find times. A play is one run of a rank's program.
/// Each user gives a `Policy` of its own, whose functions have times in ns:
///   std::int64_t cost(int rank, std::uint32_t op)
///       must return the duration of an op, counted from the arrival of its last partner
///   void span(int rank, std::uint32_t op, std::int64_t start, std::int64_t end)
///       is called when an op of a rank has ended
///   void step(int rank, int play, std::int64_t begin, std::int64_t end)
///       is called when a rank has ended a play
/// A policy may also have
///   std::int64_t work(int rank, std::uint32_t op)
///       must return the time of the rank's own work before it arrives at the op
/// work() is called once for each op in each play. Such a policy also has
///   bool may_skip(int rank, int other)
///       must return true if cost() is the same for both ranks and span() may be omitted for some
///       ops
/// If it returns true for all members of a group that meet at the same op of the same program, this
/// collective and those of the group that directly follow it without a wait for another stream are
/// handled together: span() is called only for the last of them, with the start of the first.
namespace isoscale::program {

template <class Policy>
class Matcher {
 public:
  Matcher(const OutlineSet& set, Folding folding, int plays, Policy& policy)
      : table_(set, folding), plays_(plays), policy_(policy) {
    const std::size_t lanes = static_cast<std::size_t>(table_.ranks()) * table_.lanes();
    lanes_.resize(lanes);
    ranks_.resize(static_cast<std::size_t>(table_.ranks()));
    groups_.resize(table_.group_count());
    mailboxes_.resize(table_.mailbox_count());
    if (table_.lanes() > 1) {
      std::size_t ops = 0;
      for (int rank = 0; rank < table_.ranks(); ++rank) {
        ranks_[index(rank)].ends_begin = ops;
        ops += table_.op_count(rank);
      }
      ends_.resize(ops);
    }
  }

  /// Runs all programs from their start. `begin` is the time at which each rank begins its first
  /// play; empty = all at 0. Throws base::Error, which names ranks and ops, on a deadlock or when
  /// partners differ in kind or size, and std::invalid_argument if `begin` lacks a time for a rank.
  void run(std::span<const units::Nanoseconds> begin = {}) {
    if (!begin.empty() && begin.size() != ranks_.size()) {
      throw std::invalid_argument("a play has not one begin for each rank");
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      RankState& state = ranks_[rank];
      state = {.begin = begin.empty() ? 0 : begin[rank].value(), .ends_begin = state.ends_begin};
      for (std::uint32_t l = 0; l < table_.lanes(); ++l) {
        lanes_[rank * table_.lanes() + l] = {.free = state.begin};
      }
    }
    for (int rank = table_.ranks(); rank-- > 0;) enqueue(rank);
    while (!queue_.empty()) {
      const int rank = queue_.back();
      queue_.pop_back();
      ranks_[index(rank)].queued = false;
      advance(rank);
    }
    report_stuck();
  }

 private:
  struct Lane {
    std::uint32_t position = 0;   ///< number of ops completed in this play
    bool posted = false;          ///< true while the next op waits at its rendezvous
    std::uint32_t unmatched = 0;  ///< transfers of a posted exchange that have no partner yet
    std::int64_t free = 0;        ///< end of the lane's last op; at first, the begin of the play
    std::int64_t start = 0;       ///< arrival of the posted op
    std::int64_t latest = 0;      ///< latest arrival so far among the partners of the posted op
  };
  struct RankState {
    int play = 0;
    std::int64_t begin = 0;
    std::size_t ends_begin = 0;
    bool queued = false, finished = false;
  };
  struct Arrival {
    int rank = 0;
    std::uint32_t lane = 0;
  };
  struct Group {
    std::vector<Arrival> arrived;
    std::int64_t latest = 0;
  };
  struct Message {
    Arrival from;
    std::uint64_t bytes = 0;
  };
  /// The sends and receives of messages to one rank, from the rank at one offset along one axis, in
  /// order. The first `sends_taken` sends and `receives_taken` receives have met their partners.
  /// Only one of the two lists can have entries without a partner: a send and a receive that both
  /// lack a partner would become partners.
  struct Mailbox {
    std::vector<Message> sends, receives;
    std::size_t sends_taken = 0, receives_taken = 0;
  };

  static constexpr bool works_first = requires(Policy& policy) { policy.work(0, 0U); };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  Lane& lane(int rank, std::uint32_t l) { return lanes_[index(rank) * table_.lanes() + l]; }

  void enqueue(int rank) {
    RankState& state = ranks_[index(rank)];
    if (state.queued) return;
    state.queued = true;
    queue_.push_back(rank);
  }

  void advance(int rank) {
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::uint32_t l = 0; l < table_.lanes(); ++l) {
        while (step_lane(rank, l)) progress = true;
      }
      if (finish_play(rank)) progress = !ranks_[index(rank)].finished;
    }
  }

  /// Runs the next op of a lane, or posts it at its rendezvous if it has one. Returns true if the
  /// op has completed, false if it must wait or if the lane has no further op.
  bool step_lane(int rank, std::uint32_t l) {
    Lane& state = lane(rank, l);
    const std::span<const std::uint32_t> ops = table_.lane_ops(rank, l);
    if (state.posted || state.position == ops.size()) return false;
    const std::uint32_t op = ops[state.position];
    std::int64_t start = state.free;
    if (table_.lanes() > 1) {
      for (const Wait& wait : table_.waits(rank, op)) {
        if (lane(rank, wait.stream).position < wait.count) return false;
        const std::uint32_t before = table_.lane_ops(rank, wait.stream)[wait.count - 1];
        start = std::max(start, ends_[ranks_[index(rank)].ends_begin + before]);
      }
    }
    if constexpr (works_first) start += policy_.work(rank, op);
    switch (table_.rendezvous(rank, op)) {
      case Rendezvous::none:
        complete(rank, l, op, start, start + policy_.cost(rank, op));
        return true;
      case Rendezvous::group:
        return post_collective(rank, l, op, start);
      case Rendezvous::peers:
        return post_exchange(rank, l, op, start);
    }
    return false;
  }

  void complete(int rank, std::uint32_t l, std::uint32_t op, std::int64_t start, std::int64_t end) {
    Lane& state = lane(rank, l);
    state.free = end;
    state.posted = false;
    ++state.position;
    if (!ends_.empty()) ends_[ranks_[index(rank)].ends_begin + op] = end;
    policy_.span(rank, op, start, end);
  }

  [[nodiscard]] std::uint32_t current_op(const Arrival& at) {
    return table_.lane_ops(at.rank, at.lane)[lane(at.rank, at.lane).position];
  }

  bool post_collective(int rank, std::uint32_t l, std::uint32_t op, std::int64_t start) {
    Group& group = groups_[table_.group(rank, op)];
    const int size = table_.group_size(rank, op);
    if (!group.arrived.empty()) {
      table_.require_alike(group.arrived.front().rank, current_op(group.arrived.front()), rank, op);
    }
    Lane& state = lane(rank, l);
    state.start = start;
    state.posted = true;
    group.arrived.push_back({rank, l});
    group.latest = std::max(group.latest, start);
    if (static_cast<int>(group.arrived.size()) < size) return false;
    if constexpr (works_first) run_on(group, rank, l);
    for (const Arrival& member : group.arrived) {
      const std::uint32_t theirs = current_op(member);
      complete(member.rank, member.lane, theirs, lane(member.rank, member.lane).start,
               group.latest + policy_.cost(member.rank, theirs));
      if (member.rank != rank) enqueue(member.rank);
    }
    group.arrived.clear();
    group.latest = 0;
    return true;
  }

  /// Called when all members of a group have arrived at a collective. If they are all at the same
  /// op of the same program, and the next ops are collectives of the same group that wait for no
  /// other stream, this function moves all members to the last of these ops, and sets group.latest
  /// to the last arrival there.
  void run_on(Group& group, int rank, std::uint32_t l) {
    const std::span<const std::uint32_t> ops = table_.lane_ops(rank, l);
    std::uint32_t position = lane(rank, l).position;
    for (const Arrival& member : group.arrived) {
      const bool alike = table_.lane_ops(member.rank, member.lane).data() == ops.data() &&
                         lane(member.rank, member.lane).position == position &&
                         policy_.may_skip(rank, member.rank);
      if (!alike) return;
    }
    const std::size_t number = table_.group(rank, ops[position]);
    for (; position + 1 < ops.size(); ++position) {
      const std::uint32_t before = ops[position], op = ops[position + 1];
      const bool follows = table_.rendezvous(rank, op) == Rendezvous::group &&
                           table_.group(rank, op) == number && table_.waits(rank, op).empty();
      if (!follows) break;
      const std::int64_t end = group.latest + policy_.cost(rank, before);
      for (const Arrival& member : group.arrived) {
        if (!ends_.empty()) ends_[ranks_[index(member.rank)].ends_begin + before] = end;
        group.latest = std::max(group.latest, end + policy_.work(member.rank, op));
      }
    }
    for (const Arrival& member : group.arrived) lane(member.rank, member.lane).position = position;
  }

  bool post_exchange(int rank, std::uint32_t l, std::uint32_t op, std::int64_t start) {
    Lane& state = lane(rank, l);
    state.start = start;
    state.latest = start;
    state.posted = true;
    const auto transfers = table_.transfers(rank, op);
    state.unmatched = static_cast<std::uint32_t>(transfers.size());
    for (const OutlineTransfer& transfer : transfers) {
      Mailbox& box = mailboxes_[table_.mailbox(rank, transfer)];
      const bool sends = transfer.direction == Direction::send;
      auto& others = sends ? box.receives : box.sends;
      auto& others_taken = sends ? box.receives_taken : box.sends_taken;
      if (others_taken == others.size()) {
        (sends ? box.sends : box.receives).push_back({{rank, l}, transfer.bytes});
        continue;
      }
      const Message partner = others[others_taken++];
      if (others_taken == others.size()) {
        others.clear();
        others_taken = 0;
      }
      if (partner.bytes != transfer.bytes) {
        table_.throw_unlike_message(rank, op, transfer.bytes, partner.from.rank,
                                    current_op(partner.from), partner.bytes);
      }
      Lane& theirs = lane(partner.from.rank, partner.from.lane);
      state.latest = std::max(state.latest, theirs.start);
      theirs.latest = std::max(theirs.latest, start);
      --state.unmatched;
      if (--theirs.unmatched == 0 && &theirs != &state) {
        const std::uint32_t their_op = current_op(partner.from);
        complete(partner.from.rank, partner.from.lane, their_op, theirs.start,
                 theirs.latest + policy_.cost(partner.from.rank, their_op));
        enqueue(partner.from.rank);
      }
    }
    if (state.unmatched > 0) return false;
    complete(rank, l, op, start, state.latest + policy_.cost(rank, op));
    return true;
  }

  /// If all lanes of a rank have finished the current play, ends that play and begins the next.
  /// Returns false if a lane has not finished, or if the rank had already finished all plays.
  bool finish_play(int rank) {
    RankState& state = ranks_[index(rank)];
    if (state.finished) return false;
    std::int64_t end = state.begin;
    for (std::uint32_t l = 0; l < table_.lanes(); ++l) {
      if (lane(rank, l).position < table_.lane_ops(rank, l).size()) return false;
      end = std::max(end, lane(rank, l).free);
    }
    policy_.step(rank, state.play, state.begin, end);
    state.begin = end;
    if (++state.play == plays_) {
      state.finished = true;
      return true;
    }
    for (std::uint32_t l = 0; l < table_.lanes(); ++l) {
      lane(rank, l).position = 0;
      lane(rank, l).free = end;
    }
    return true;
  }

  void report_stuck() {
    std::vector<StuckOp> stuck;
    for (int rank = 0; rank < table_.ranks(); ++rank) {
      if (ranks_[index(rank)].finished) continue;
      for (std::uint32_t l = 0; l < table_.lanes(); ++l) {
        const auto ops = table_.lane_ops(rank, l);
        const Lane& state = lane(rank, l);
        if (state.position == ops.size()) continue;
        StuckOp entry{
            .rank = rank, .op = ops[state.position], .posted = state.posted, .present = {}};
        if (state.posted && table_.rendezvous(rank, entry.op) == Rendezvous::group) {
          for (const Arrival& member : groups_[table_.group(rank, entry.op)].arrived) {
            entry.present.push_back(member.rank);
          }
        }
        stuck.push_back(std::move(entry));
      }
    }
    if (!stuck.empty()) table_.throw_deadlock(stuck);
  }

  MatchTable table_;
  int plays_;
  Policy& policy_;
  std::vector<Lane> lanes_;
  std::vector<RankState> ranks_;
  std::vector<Group> groups_;
  std::vector<Mailbox> mailboxes_;
  std::vector<std::int64_t> ends_;
  std::vector<int> queue_;
};

}  // namespace isoscale::program
