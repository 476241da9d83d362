// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/coarse_play.hpp"

#include <algorithm>

#include "program/match.hpp"
#include "simulate/layout.hpp"
#include "simulate/noise.hpp"

namespace isoscale::simulate {
namespace {

using units::Nanoseconds;

/// Gives the times of coarse ops to the Matcher, and keeps the steps.
class CoarsePolicy {
 public:
  CoarsePolicy(const CoarseSet& set, const CoarseOptions& options)
      : options_(options),
        ranks_(set.programs.outline_of_rank.size()),
        steps_(at(options.plays), std::vector<timeline::Interval>(ranks_.size())) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].times = &set.times[set.programs.outline_of_rank[rank]];
      ranks_[rank].draws = mixed(options.seed ^ mixed(rank));
      set_factor(static_cast<int>(rank), 0);
    }
  }

  [[nodiscard]] std::int64_t cost(int rank, std::uint32_t op) const {
    return (*ranks_[at(rank)].times)[op].meeting;
  }
  [[nodiscard]] std::int64_t work(int rank, std::uint32_t op) {
    Rank& state = ranks_[at(rank)];
    const CoarseTime& time = (*state.times)[op];
    double extra = time.compute * (state.factor - 1);
    if (options_.op_noise > 0 && time.spread > 0) {
      state.draws += 0x9e3779b97f4a7c15ULL;
      extra += options_.op_noise * time.spread * quick_normal(mixed(state.draws));
      extra = std::max(extra, -time.compute);
    }
    return static_cast<std::int64_t>(time.compute + time.fixed + extra + 0.5);
  }
  void span(int /*rank*/, std::uint32_t /*op*/, std::int64_t /*start*/, std::int64_t /*end*/) {}
  void step(int rank, int play, std::int64_t begin, std::int64_t end) {
    steps_[at(play)][at(rank)] = {.begin = Nanoseconds{begin}, .end = Nanoseconds{end}};
    set_factor(rank, (play + 1) % options_.plays);
  }
  [[nodiscard]] std::vector<std::vector<timeline::Interval>>& steps() { return steps_; }

 private:
  struct Rank {
    const std::vector<CoarseTime>* times = nullptr;
    double factor = 1;
    std::uint64_t draws = 0;  ///< state of the rank's random numbers
  };

  void set_factor(int rank, int play) {
    if (options_.factor) ranks_[at(rank)].factor = options_.factor(rank, play);
  }

  const CoarseOptions& options_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<timeline::Interval>> steps_;
};

constexpr int most_plays = 16;

/// True if the play took the same time on every rank, from the rank's begin to its end. Then all
/// later plays take this time too, since a play depends only on when each rank began.
bool moves_all_alike(const std::vector<timeline::Interval>& step) {
  const Nanoseconds first = step.front().end - step.front().begin;
  return std::ranges::all_of(
      step, [&](const timeline::Interval& rank) { return rank.end - rank.begin == first; });
}

}  // namespace

std::vector<std::vector<timeline::Interval>> play_coarse(const CoarseSet& set,
                                                         const CoarseOptions& options) {
  CoarsePolicy policy{set, options};
  program::Matcher<CoarsePolicy>{set.programs, program::Folding::as_streamed, options.plays, policy}
      .run();
  return std::move(policy.steps());
}

CoarseSteady settle(const CoarseSet& set, const std::vector<double>& factor) {
  CoarseOptions options;
  if (!factor.empty()) options.factor = [&](int rank, int) { return factor[at(rank)]; };
  CoarsePolicy policy{set, options};
  program::Matcher<CoarsePolicy> matcher{set.programs, program::Folding::as_streamed, 1, policy};
  std::vector<Nanoseconds> begin(set.programs.outline_of_rank.size());
  CoarseSteady steady;
  double later_half = 0;
  for (int i = 0; i < most_plays; ++i) {
    const Nanoseconds first = std::ranges::min(begin);
    for (Nanoseconds& time : begin) time -= first;
    matcher.run(begin);
    steady.step = policy.steps().front();
    if (moves_all_alike(steady.step)) {
      const timeline::Interval& rank = steady.step.front();
      steady.period = static_cast<double>((rank.end - rank.begin).value());
      return steady;
    }
    const Nanoseconds before = std::ranges::max(begin);
    for (std::size_t rank = 0; rank < begin.size(); ++rank) begin[rank] = steady.step[rank].end;
    if (i >= most_plays / 2) {
      later_half += static_cast<double>((std::ranges::max(begin) - before).value());
    }
  }
  // Ranks that never meet drift apart, and some programs repeat only after several plays. The
  // period is then that of the last rank, averaged over many plays.
  steady.period = later_half / (most_plays - most_plays / 2);
  return steady;
}

}  // namespace isoscale::simulate
