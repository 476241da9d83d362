// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/coarse_play.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.hpp"
#include "simulate/layout.hpp"
#include "simulate/noise.hpp"

namespace isoscale::simulate {
namespace {

/// Plays coarse programs by the rules of program::Matcher, but advances a whole group through a
/// chain of collectives at once, instead of rank by rank and op by op.
class Play {
 public:
  Play(const CoarseSet& set, const CoarseOptions& options)
      : set_(set), options_(options), lanes_(at(set.mesh.size()) * set.lanes) {
    ranks_.resize(at(set.mesh.size()));
    std::size_t slots = 0;
    for (int rank = 0; rank < set.mesh.size(); ++rank) {
      ranks_[at(rank)].slots_begin = slots;
      ranks_[at(rank)].draws = mixed(options.seed ^ mixed(at(rank)));
      slots += set.of(rank).slots;
    }
    slots_.resize(slots);
    boxes_.resize(at(set.mesh.size()) * set.boxes);
    for (const CoarseChannel& channel : set.channels) {
      first_group_.push_back(groups_.size());
      groups_.resize(groups_.size() + at(set.mesh.size() / channel.members));
    }
    for (int rank = 0; rank < set.mesh.size(); ++rank) {
      for (std::size_t c = 0; c < set.channels.size(); ++c) {
        group_of_rank_.push_back(first_group_[c] +
                                 at(mesh::group_colour(set.mesh, rank, set.channels[c].axes)));
      }
    }
    steps_.assign(at(options.plays), std::vector<CoarseStep>(ranks_.size()));
  }

  std::vector<std::vector<CoarseStep>> run() {
    if (!options_.begin.empty() && options_.begin.size() != ranks_.size()) {
      throw std::invalid_argument("a play has not one begin for each rank");
    }
    for (int rank = set_.mesh.size(); rank-- > 0;) {
      begin_play(rank, options_.begin.empty() ? 0 : options_.begin[at(rank)]);
      enqueue(rank);
    }
    while (!queue_.empty()) {
      const int rank = queue_.back();
      queue_.pop_back();
      ranks_[at(rank)].queued = false;
      advance(rank);
    }
    const auto stuck = std::count_if(ranks_.begin(), ranks_.end(), [this](const RankState& rank) {
      return rank.play < options_.plays;
    });
    if (stuck > 0) throw base::Error(fmt::format("the programs of {} ranks deadlock", stuck));
    return std::move(steps_);
  }

 private:
  struct Lane {
    std::uint32_t position = 0;   ///< coarse ops done
    std::uint32_t link = 0;       ///< link of the chain at `position`
    std::uint32_t unmatched = 0;  ///< messages of a posted exchange that have no partner yet
    bool posted = false;
    double free = 0;    ///< end of its last coarse op
    double start = 0;   ///< of the posted op, or of the chain's next link
    double latest = 0;  ///< latest arrival so far at the posted exchange
  };
  struct RankState {
    int play = 0;
    bool queued = false;
    double factor = 1, begin = 0;
    std::size_t slots_begin = 0;
    std::uint64_t draws = 0;  ///< state of the rank's random numbers
  };
  struct Arrival {
    int rank = 0;
    std::uint32_t lane = 0;
  };
  struct Box {  ///< unmatched messages: only sends or only receives
    std::vector<Arrival> sends, receives;
    std::size_t sends_taken = 0, receives_taken = 0;
  };

  Lane& lane(int rank, std::uint32_t l) { return lanes_[at(rank) * set_.lanes + l]; }
  Lane& lane(const Arrival& arrival) { return lane(arrival.rank, arrival.lane); }
  const CoarseOp& op_at(const Arrival& arrival) {
    return set_.of(arrival.rank).lanes[arrival.lane][lane(arrival).position];
  }

  void enqueue(int rank) {
    if (ranks_[at(rank)].queued) return;
    ranks_[at(rank)].queued = true;
    queue_.push_back(rank);
  }

  void begin_play(int rank, double begin) {
    RankState& state = ranks_[at(rank)];
    state.begin = begin;
    state.factor = options_.factor ? options_.factor(rank, state.play) : 1;
    for (std::uint32_t l = 0; l < set_.lanes; ++l) lane(rank, l) = {.free = begin};
  }

  void advance(int rank) {
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::uint32_t l = 0; l < set_.lanes; ++l) {
        while (step_lane(rank, l)) progress = true;
      }
      if (finish_play(rank)) progress = ranks_[at(rank)].play < options_.plays;
    }
  }

  /// Returns the time that a rank takes for a piece of work in its current play.
  double time_of(RankState& rank, const Work& work) {
    double extra = work.compute * (rank.factor - 1);
    if (options_.op_noise > 0 && work.spread > 0) {
      rank.draws += 0x9e3779b97f4a7c15ULL;
      extra += options_.op_noise * work.spread * quick_normal(mixed(rank.draws));
      extra = std::max(extra, -work.compute);
    }
    if (extra == 0) return work.compute + work.fixed;
    return work.compute + work.fixed + extra;
  }

  bool step_lane(int rank, std::uint32_t l) {
    Lane& state = lane(rank, l);
    const CoarseProgram& program = set_.of(rank);
    if (state.posted || state.position == program.lanes[l].size()) return false;
    const CoarseOp& op = program.lanes[l][state.position];
    RankState& mine = ranks_[at(rank)];
    double start = state.free;
    for (std::uint32_t w = op.wait_first; w < op.wait_first + op.wait_count; ++w) {
      const CoarseWait& wait = program.waits[w];
      if (lane(rank, wait.lane).position < wait.count) return false;
      start = std::max(start, slots_[mine.slots_begin + static_cast<std::size_t>(wait.slot)]);
    }
    switch (op.kind) {
      case CoarseKind::work:
        complete({rank, l}, start + time_of(mine, op.work));
        return true;
      case CoarseKind::chain:
        state.start = start;
        state.posted = true;
        return post_chain({rank, l}, op);
      case CoarseKind::exchange:
        return post_exchange({rank, l}, op, start);
    }
    return false;
  }

  void complete(const Arrival& who, double end) {
    Lane& state = lane(who);
    const std::int32_t slot = op_at(who).slot;
    if (slot >= 0) {
      slots_[ranks_[at(who.rank)].slots_begin + static_cast<std::size_t>(slot)] = end;
    }
    state.free = end;
    state.posted = false;
    state.link = 0;
    ++state.position;
  }

  bool post_chain(const Arrival& who, const CoarseOp& op) {
    std::vector<Arrival>& group =
        groups_[group_of_rank_[at(who.rank) * set_.channels.size() + op.channel]];
    const auto members = static_cast<std::size_t>(set_.channels[op.channel].members);
    group.push_back(who);
    while (group.size() == members) {
      play_links(group);
      // Members with links left stay in the group: they already wait at their next link.
      std::erase_if(group, [&](const Arrival& member) {
        const CoarseOp& chain = op_at(member);
        Lane& state = lane(member);
        if (state.link < chain.count) return false;
        complete(member, state.start);
        if (member.rank != who.rank) enqueue(member.rank);
        return true;
      });
    }
    return !lane(who).posted;
  }

  /// Plays links until some member of the group has no links left in its chain.
  void play_links(const std::vector<Arrival>& group) {
    std::uint32_t count = ~0U;
    bool alike = true;
    const CoarseOp& first = op_at(group.front());
    const std::uint32_t from = lane(group.front()).link;
    for (const Arrival& member : group) {
      const CoarseOp& op = op_at(member);
      count = std::min(count, op.count - lane(member).link);
      alike = alike && &op == &first && lane(member).link == from;
    }
    if (count == 0) throw base::Error("a chain of collectives has none left");
    if (alike) {
      play_like_links(group, first, count);
    } else {
      for (std::uint32_t i = 0; i < count; ++i) play_link(group);
    }
  }

  /// Plays the next link of the chain (a piece of work, then a collective; see ChainLink) for a
  /// group whose members have different programs or are at different positions in their chains.
  void play_link(const std::vector<Arrival>& group) {
    double latest = 0;
    for (const Arrival& member : group) {
      Lane& state = lane(member);
      const ChainLink& link = set_.of(member.rank).links[op_at(member).first + state.link];
      state.start += time_of(ranks_[at(member.rank)], link.before);
      latest = std::max(latest, state.start);
    }
    for (const Arrival& member : group) {
      Lane& state = lane(member);
      const ChainLink& link = set_.of(member.rank).links[op_at(member).first + state.link];
      state.start = latest + link.collective;
      ++state.link;
    }
  }

  /// Plays `count` links of a group whose members are at the same link of the same program. After
  /// the first of these links all members have the same time.
  void play_like_links(const std::vector<Arrival>& group, const CoarseOp& op, std::uint32_t count) {
    const CoarseProgram& program = set_.of(group.front().rank);
    const std::uint32_t from = op.first + lane(group.front()).link;
    double time = 0, most = 0;
    for (const Arrival& member : group) {
      RankState& rank = ranks_[at(member.rank)];
      time = std::max(time, lane(member).start + time_of(rank, program.links[from].before));
      most = std::max(most, rank.factor);
    }
    time += program.links[from].collective;
    for (std::uint32_t i = from + 1; i < from + count; ++i) {
      const ChainLink& link = program.links[i];
      double longest = 0;
      if (options_.op_noise > 0 && link.before.spread > 0) {
        for (const Arrival& member : group) {
          longest = std::max(longest, time_of(ranks_[at(member.rank)], link.before));
        }
      } else {
        longest = link.before.compute + link.before.fixed;
        if (most != 1) longest += link.before.compute * (most - 1);
      }
      time += longest + link.collective;
    }
    for (const Arrival& member : group) {
      Lane& state = lane(member);
      state.start = time;
      state.link += count;
    }
  }

  bool post_exchange(const Arrival& who, const CoarseOp& op, double start) {
    Lane& state = lane(who);
    state.start = start;
    state.latest = start;
    state.posted = true;
    state.unmatched = op.count;
    const CoarseProgram& program = set_.of(who.rank);
    for (std::uint32_t m = op.first; m < op.first + op.count; ++m) {
      const CoarseMessage& message = program.messages[m];
      Box& box = boxes_[at(message.sends ? message.partner_of(who.rank) : who.rank) * set_.boxes +
                        message.box];
      auto& others = message.sends ? box.receives : box.sends;
      auto& taken = message.sends ? box.receives_taken : box.sends_taken;
      if (taken == others.size()) {
        (message.sends ? box.sends : box.receives).push_back(who);
        continue;
      }
      const Arrival other = others[taken++];
      if (taken == others.size()) {
        others.clear();
        taken = 0;
      }
      Lane& theirs = lane(other);
      state.latest = std::max(state.latest, theirs.start);
      theirs.latest = std::max(theirs.latest, start);
      --state.unmatched;
      if (--theirs.unmatched == 0 && &theirs != &state) {
        complete(other, theirs.latest + op_at(other).cost);
        enqueue(other.rank);
      }
    }
    if (state.unmatched > 0) return false;
    complete(who, state.latest + op.cost);
    return true;
  }

  /// If all lanes of a rank have finished the current play, ends that play and begins the next.
  /// Returns false if a lane has not finished, or if the rank had already finished all plays.
  bool finish_play(int rank) {
    RankState& state = ranks_[at(rank)];
    if (state.play == options_.plays) return false;
    double end = state.begin;
    for (std::uint32_t l = 0; l < set_.lanes; ++l) {
      if (lane(rank, l).position < set_.of(rank).lanes[l].size()) return false;
      end = std::max(end, lane(rank, l).free);
    }
    steps_[at(state.play)][at(rank)] = {.begin = state.begin, .end = end};
    if (++state.play < options_.plays) begin_play(rank, end);
    return true;
  }

  const CoarseSet& set_;
  const CoarseOptions& options_;
  std::vector<Lane> lanes_;
  std::vector<RankState> ranks_;
  std::vector<std::size_t> first_group_, group_of_rank_;
  std::vector<std::vector<Arrival>> groups_;
  std::vector<Box> boxes_;
  std::vector<double> slots_;
  std::vector<int> queue_;
  std::vector<std::vector<CoarseStep>> steps_;
};

constexpr int most_plays = 16;

/// True if the play took the same time on every rank, from the rank's begin to its end. Then all
/// later plays take this time too, since a play depends only on when each rank began. Costs are
/// whole nanoseconds, so smaller differences are rounding.
bool moves_all_alike(const std::vector<CoarseStep>& step) {
  constexpr double rounding = 1e-3;
  const double first = step.front().end - step.front().begin;
  return std::all_of(step.begin(), step.end(), [&](const CoarseStep& rank) {
    return std::abs(rank.end - rank.begin - first) < rounding;
  });
}

}  // namespace

std::vector<std::vector<CoarseStep>> play_coarse(const CoarseSet& set,
                                                 const CoarseOptions& options) {
  return Play{set, options}.run();
}

CoarseSteady settle(const CoarseSet& set, const std::vector<double>& factor) {
  CoarseOptions options{.begin = std::vector<double>(static_cast<std::size_t>(set.mesh.size()))};
  if (!factor.empty()) {
    options.factor = [&](int rank, int) { return factor[static_cast<std::size_t>(rank)]; };
  }
  std::vector<double>& begin = options.begin;
  CoarseSteady steady;
  double later_half = 0;
  for (int i = 0; i < most_plays; ++i) {
    const double first = *std::min_element(begin.begin(), begin.end());
    for (double& time : begin) time -= first;
    steady.step = play_coarse(set, options).front();
    if (moves_all_alike(steady.step)) {
      steady.period = steady.step.front().end - steady.step.front().begin;
      return steady;
    }
    const double before = *std::max_element(begin.begin(), begin.end());
    for (std::size_t rank = 0; rank < begin.size(); ++rank) begin[rank] = steady.step[rank].end;
    if (i >= most_plays / 2) later_half += *std::max_element(begin.begin(), begin.end()) - before;
  }
  // Ranks that never meet drift apart, and some programs repeat only after several plays. The
  // period is then that of the last rank, averaged over many plays.
  steady.period = later_half / (most_plays - most_plays / 2);
  return steady;
}

}  // namespace isoscale::simulate
