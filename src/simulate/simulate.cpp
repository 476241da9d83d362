// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/simulate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "program/play_all_ranks.hpp"
#include "simulate/layout.hpp"
#include "simulate/noise.hpp"

namespace isoscale::simulate {
namespace {

using units::Nanoseconds;

/// Gives op times to the Matcher, which simulates programs, and stores the timelines of all steps.
class Recorder {
 public:
  Recorder(const program::OutlineSet& set, const Costs& costs, int plays)
      : costs_(costs), plays_(at(plays)), play_(at(set.mesh.size())) {
    for (timeline::Timeline& timeline : plays_) {
      for (int rank = 0; rank < set.mesh.size(); ++rank) {
        timeline.ranks.emplace_back().spans.resize(set.of(rank).ops.size());
      }
    }
  }

  [[nodiscard]] std::int64_t cost(int rank, std::uint32_t op) const {
    return costs_.tables[costs_.table_of_rank[at(rank)]][op].value();
  }

  void span(int rank, std::uint32_t op, std::int64_t start, std::int64_t end) {
    plays_[play_[at(rank)]].ranks[at(rank)].spans[op] = {
        .op = op, .start = Nanoseconds{start}, .end = Nanoseconds{end}};
  }

  void step(int rank, int play, std::int64_t begin, std::int64_t end) {
    timeline::StepTrace& trace = plays_[at(play)].ranks[at(rank)];
    trace.rank = rank;
    trace.step = static_cast<std::uint32_t>(play);
    trace.begin = Nanoseconds{begin};
    trace.end = Nanoseconds{end};
    ++play_[at(rank)];
  }

  [[nodiscard]] std::vector<timeline::Timeline>& plays() { return plays_; }

 private:
  const Costs& costs_;
  std::vector<timeline::Timeline> plays_;
  std::vector<std::size_t> play_;  ///< [rank]: index of the step that the rank is in
};

/// True if an op of an outline communicates with no other rank of the mesh: the mesh has extent 1
/// along the op's axes. The messages of an exchange, which the rank then sends to itself, must also
/// match those that it receives in the same op.
bool is_alone(const mesh::Shape& mesh, const program::Outline& outline,
              const program::OutlineOp& op) {
  if (op.kind != program::OpKind::exchange) return mesh::group_size(mesh, op.axes) == 1;
  std::map<std::pair<mesh::Axis, int>, int> open;
  for (const program::OutlineTransfer& transfer : outline.transfers_of(op)) {
    if (mesh[transfer.axis] > 1) return false;
    const bool sends = transfer.direction == program::Direction::send;
    open[{transfer.axis, sends ? -transfer.offset : transfer.offset}] += sends ? 1 : -1;
  }
  return std::all_of(open.begin(), open.end(), [](const auto& box) { return box.second == 0; });
}

/// Returns for each op, in program order, whether another op waits for it.
std::vector<bool> awaited_ops(const program::Outline& outline) {
  std::array<std::vector<std::uint32_t>, program::max_streams> on_stream;
  std::vector<bool> awaited(outline.ops.size());
  for (std::uint32_t op = 0; op < outline.ops.size(); ++op) {
    for (const program::Wait& wait : outline.waits_of(outline.ops[op])) {
      const auto& before = on_stream[wait.stream];
      if (wait.count > 0 && wait.count <= before.size()) awaited[before[wait.count - 1]] = true;
    }
    on_stream[outline.ops[op].stream].push_back(op);
  }
  return awaited;
}

/// Gives the times of coarse ops to the Matcher, which simulates the programs, and stores the begin
/// and end of each step.
class CoarsePolicy {
 public:
  CoarsePolicy(const CoarseSet& set, const CoarseOptions& options)
      : options_(options),
        ranks_(set.programs.outline_of_rank.size()),
        steps_(at(options.plays), std::vector<timeline::Interval>(ranks_.size())) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].times = &set.times[set.table_of_rank[rank]];
      ranks_[rank].draws = mixed(options.seed ^ mixed(rank));
    }
    take_factors();
  }

  /// Sets the factor on each rank's compute times for the first step.
  void take_factors() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) set_factor(static_cast<int>(rank), 0);
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
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): times are positive, and this is fast
    return static_cast<std::int64_t>(time.compute + time.fixed + extra + 0.5);
  }
  [[nodiscard]] bool may_skip(int rank, int other) const {
    return ranks_[at(rank)].times == ranks_[at(other)].times;
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

/// True if the step took the same time on every rank, from the rank's begin to its end. All later
/// steps then take this time too, since a step depends only on the times at which the ranks begin.
bool moves_all_alike(const std::vector<timeline::Interval>& step) {
  const Nanoseconds first = step.front().end - step.front().begin;
  return std::ranges::all_of(
      step, [&](const timeline::Interval& rank) { return rank.end - rank.begin == first; });
}

/// Simulates steps until they are steady (see settle_each). `begin` has the time at which each rank
/// begins the first step.
CoarseSteady settled(program::Matcher<CoarsePolicy>& matcher, CoarsePolicy& policy,
                     std::vector<Nanoseconds> begin) {
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
  // The steps did not become steady: ranks that never wait for each other drift apart, and some
  // programs repeat only after several steps. The period is then the time from the last end of any
  // rank in one step to that in the next, averaged over the later half of the steps.
  constexpr int counted = most_plays - most_plays / 2;
  steady.period = later_half / counted;
  return steady;
}

}  // namespace

std::vector<timeline::Timeline> simulate(const program::OutlineSet& set, const Costs& costs,
                                         Options options) {
  Recorder recorder{set, costs, options.plays};
  program::Matcher<Recorder>{set, program::Folding::as_streamed, options.plays, recorder}.run(
      options.begin);
  return std::move(recorder.plays());
}

program::OutlineSet folded(program::OutlineSet set) {
  for (program::Outline& outline : set.outlines) {
    for (program::OutlineOp& op : outline.ops) {
      op.stream = 0;
      op.wait_begin = op.wait_count = 0;
    }
    outline.waits.clear();
  }
  return set;
}

Coarsener::Coarsener(const mesh::Shape& mesh, const std::vector<program::Outline>& outlines) {
  for (const program::Outline& outline : outlines) add(mesh, outline);
}

void Coarsener::add(const mesh::Shape& mesh, const program::Outline& whole) {
  struct Lane {
    /// counts[i] is the number of coarse ops of the stream up to and including the one that has op
    /// i of the stream.
    std::vector<std::uint32_t> counts;
    std::uint32_t last = 0;  ///< index of the stream's latest coarse op
    bool is_open = false;    ///< the stream's next op may become part of this coarse op
  };
  std::array<Lane, program::max_streams> lanes;
  program::Outline& coarse = outlines_.emplace_back(program::Outline{
      .streams = whole.streams, .ops = {}, .waits = {}, .transfers = whole.transfers});
  std::vector<Place>& places = places_.emplace_back();
  const std::vector<bool> awaited = awaited_ops(whole);
  for (std::size_t i = 0; i < whole.ops.size(); ++i) {
    const program::OutlineOp& op = whole.ops[i];
    Lane& lane = lanes[op.stream];
    std::uint32_t count = lane.counts.empty() ? 0 : lane.counts.back();
    if (!lane.is_open || op.wait_count > 0) {
      lane.last = static_cast<std::uint32_t>(coarse.ops.size());
      program::OutlineOp& added = coarse.ops.emplace_back(program::OutlineOp{
          .kind = program::OpKind::copy, .stream = op.stream, .place = {}, .axes = {}});
      added.wait_begin = static_cast<std::uint32_t>(coarse.waits.size());
      added.wait_count = op.wait_count;
      for (const program::Wait& wait : whole.waits_of(op)) {
        // A wait for an op that comes later is kept, so that the coarse program deadlocks, too.
        const std::vector<std::uint32_t>& counts = lanes[wait.stream].counts;
        const bool is_there = wait.count > 0 && wait.count <= counts.size();
        coarse.waits.push_back(
            {.stream = wait.stream, .count = is_there ? counts[wait.count - 1] : wait.count});
      }
      ++count;
    }
    lane.counts.push_back(count);
    Part part = program::computes(op.kind) ? Part::compute : Part::fixed;
    if (program::communicates(op.kind) && !is_alone(mesh, whole, op)) {
      part = Part::meeting;
      program::OutlineOp& last = coarse.ops[lane.last];
      const std::uint32_t begin = last.wait_begin, waits = last.wait_count;
      last = op;
      last.wait_begin = begin;
      last.wait_count = waits;
    }
    places.push_back({.op = lane.last, .part = part});
    lane.is_open = part != Part::meeting && !awaited[i];
  }
}

CoarseSet Coarsener::set(const mesh::Shape& mesh, std::vector<std::uint32_t> outline_of_rank,
                         const Costs& costs) const {
  CoarseSet coarse{.programs = {.mesh = mesh, .outlines = outlines_, .outline_of_rank = {}},
                   .times = std::vector<std::vector<CoarseTime>>(costs.tables.size()),
                   .table_of_rank = costs.table_of_rank};
  for (std::size_t rank = 0; rank < outline_of_rank.size(); ++rank) {
    const std::uint32_t outline = outline_of_rank[rank], table = coarse.table_of_rank.at(rank);
    std::vector<CoarseTime>& times = coarse.times[table];
    if (!times.empty()) continue;
    times.resize(outlines_[outline].ops.size());
    for (std::size_t op = 0; op < places_[outline].size(); ++op) {
      const auto [place, part] = places_[outline][op];
      const Nanoseconds cost = costs.tables[table][op];
      const auto nanoseconds = static_cast<double>(cost.value());
      if (part == Part::meeting) {
        times[place].meeting = cost.value();
      } else if (part == Part::compute) {
        times[place].compute += nanoseconds;
        times[place].spread += nanoseconds * nanoseconds;
      } else {
        times[place].fixed += nanoseconds;
      }
    }
    for (CoarseTime& time : times) time.spread = std::sqrt(time.spread);
  }
  coarse.programs.outline_of_rank = std::move(outline_of_rank);
  return coarse;
}

std::vector<std::vector<timeline::Interval>> play_coarse(const CoarseSet& set,
                                                         const CoarseOptions& options) {
  CoarsePolicy policy{set, options};
  program::Matcher<CoarsePolicy>{set.programs, program::Folding::as_streamed, options.plays, policy}
      .run();
  return std::move(policy.steps());
}

std::vector<CoarseSteady> settle_each(const CoarseSet& set,
                                      const std::vector<std::vector<double>>& factors,
                                      const CoarseSteady& from) {
  std::span<const double> factor;
  const CoarseOptions options{
      .factor = [&](int rank, int) { return factor.empty() ? 1.0 : factor[at(rank)]; }};
  CoarsePolicy policy{set, options};
  program::Matcher<CoarsePolicy> matcher{set.programs, program::Folding::as_streamed, 1, policy};
  std::vector<Nanoseconds> begin(set.programs.outline_of_rank.size());
  for (std::size_t rank = 0; rank < from.step.size(); ++rank) begin[rank] = from.step[rank].end;
  std::vector<CoarseSteady> result;
  for (const std::vector<double>& of_ranks : factors) {
    factor = of_ranks;
    policy.take_factors();
    result.push_back(settled(matcher, policy, begin));
  }
  return result;
}

}  // namespace isoscale::simulate
