// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/replay_without_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "mesh/mesh.hpp"
#include "program/play_all_ranks.hpp"
#include "simulate/layout.hpp"
#include "simulate/simulate.hpp"
#include "statistics/estimate.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::analysis::breakdown {
namespace {

using program::Outline;
using simulate::at;
using units::Nanoseconds;

using Table = std::vector<Nanoseconds>;
using Traces = std::vector<const timeline::StepTrace*>;

/// The numbers of plays (runs of the step) before and after the replay has settled. The former are
/// not counted, since all ranks begin the first play at the same time, unlike in the steady state.
constexpr int settling_plays = 2;
constexpr int counted_plays = 2;

Table measured_times(const Outline& outline, const timeline::StepTrace& trace) {
  Table table(outline.ops.size());
  for (std::size_t op = 0; op < table.size(); ++op) {
    if (program::communicates(outline.ops[op].kind)) continue;
    table[op] = std::max(Nanoseconds{0}, trace.spans[op].end - trace.spans[op].start);
  }
  return table;
}

/// Returns the mean time of each op over traces of the program `outline`; empty without traces.
/// Communication ops have the time 0, since the replayed network takes no time.
Table mean_times(const Outline& outline, const Traces& traces) {
  Table sum;
  for (const timeline::StepTrace* const trace : traces) {
    const Table table = measured_times(outline, *trace);
    sum.resize(table.size());
    std::ranges::transform(sum, table, sum.begin(), std::plus<>{});
  }
  for (Nanoseconds& time : sum) time = time / static_cast<std::int64_t>(traces.size());
  return sum;
}

/// Returns the mean op times over the traced ranks that run the program with the number `outline`.
Table mean_over_ranks(const program::OutlineSet& set, std::uint32_t outline,
                      const TraceOfRank& traces) {
  Traces alike;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    const bool plays = traces[rank] != nullptr && set.outline_of_rank[rank] == outline;
    if (plays) alike.push_back(traces[rank]);
  }
  if (alike.empty()) {
    throw base::Error(fmt::format(
        "no rank that plays program {} was traced; trace more ranks (--trace-ranks)", outline));
  }
  return mean_times(set.outlines[outline], alike);
}

simulate::Costs costs_of(const program::OutlineSet& set, const TraceOfRank& traces,
                         std::set<int>& assumed) {
  simulate::Costs costs;
  std::vector<std::optional<std::uint32_t>> mean_table(set.outlines.size());
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    const auto next = static_cast<std::uint32_t>(costs.tables.size());
    if (traces[rank] != nullptr) {
      costs.table_of_rank.push_back(next);
      costs.tables.push_back(measured_times(set.of(static_cast<int>(rank)), *traces[rank]));
      continue;
    }
    assumed.insert(static_cast<int>(rank));
    auto& table = mean_table[set.outline_of_rank[rank]];
    if (!table) {
      table = next;
      costs.tables.push_back(mean_over_ranks(set, set.outline_of_rank[rank], traces));
    }
    costs.table_of_rank.push_back(*table);
  }
  return costs;
}

/// Records for each rank, from play number `first` on, when its plays began and ended, how long it
/// computed and copied, and how long it waited in exchanges between stages.
class Policy {
 public:
  Policy(const simulate::CoarseSet& set, int first)
      : set_(set), first_(first), ranks_(set.table_of_rank.size()), busy_(ranks_.size()) {}

  struct Rank {
    int play = 0;
    std::int64_t begin = 0, end = 0, late = 0;
    Nanoseconds busy;
  };

  [[nodiscard]] static std::int64_t cost(int /*rank*/, std::uint32_t /*op*/) { return 0; }
  [[nodiscard]] std::int64_t work(int rank, std::uint32_t op) const {
    const simulate::CoarseTime& time = set_.times[set_.table_of_rank[at(rank)]][op];
    return static_cast<std::int64_t>(time.compute + time.fixed);
  }
  [[nodiscard]] static bool may_skip(int /*rank*/, int /*other*/) { return false; }
  void span(int rank, std::uint32_t op, std::int64_t start, std::int64_t end) {
    Rank& state = ranks_[at(rank)];
    if (state.play < first_) return;
    if (program::between_stages(set_.programs.of(rank).ops[op])) state.late += end - start;
    busy_[at(rank)].push_back(
        {.begin = Nanoseconds{start - work(rank, op)}, .end = Nanoseconds{start}});
  }
  void step(int rank, int play, std::int64_t begin, std::int64_t end) {
    Rank& state = ranks_[at(rank)];
    if (play == first_) state.begin = begin;
    state.end = end;
    state.play = play + 1;
    state.busy += timeline::total(timeline::normalise(std::exchange(busy_[at(rank)], {})));
  }
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  const simulate::CoarseSet& set_;
  int first_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<timeline::Interval>> busy_;  ///< [rank]: intervals of the current play
};

/// Returns the times over the counted plays. If the last settling play was equally long on all
/// ranks, all later plays would repeat it, so its times are multiplied instead.
std::vector<Policy::Rank> counted_times(const simulate::CoarseSet& set) {
  const auto play = [&set](int plays, int first, const std::vector<Nanoseconds>& begin) {
    Policy policy{set, first};
    program::Matcher<Policy>{set.programs, program::Folding::as_streamed, plays, policy}.run(begin);
    return policy.ranks();
  };
  std::vector<Policy::Rank> ranks = play(settling_plays, settling_plays - 1, {});
  const auto length = [](const Policy::Rank& at) { return at.end - at.begin; };
  const bool is_periodic = std::ranges::all_of(
      ranks, [&](const Policy::Rank& at) { return length(at) == length(ranks.front()); });
  if (is_periodic) {
    for (Policy::Rank& at : ranks) {
      at.end = at.begin + counted_plays * length(at);
      at.late *= counted_plays;
      at.busy = counted_plays * at.busy;
    }
    return ranks;
  }
  std::vector<Nanoseconds> begin;
  for (const Policy::Rank& at : ranks) begin.emplace_back(at.end);
  return play(counted_plays, 0, begin);
}

/// Replays one rank of each set of alike ranks (like_ranks), and returns the times of all ranks.
Replay play(const results::PointData& point, const simulate::Coarsener& programs,
            simulate::Costs costs) {
  const program::OutlineSet& whole = point.outline;
  const simulate::ReducedMesh like = like_ranks(whole, costs);
  std::vector<std::uint32_t> outline_of_rank;
  const std::vector<std::uint32_t> table_of_rank = std::exchange(costs.table_of_rank, {});
  for (const int rank : like.rank) {
    outline_of_rank.push_back(whole.outline_of_rank[at(rank)]);
    costs.table_of_rank.push_back(table_of_rank[at(rank)]);
  }
  std::vector<Policy::Rank> ranks;
  try {
    ranks = counted_times(programs.set(like.mesh, std::move(outline_of_rank), costs));
  } catch (const base::Error&) {
    // The programs were merged, so this error has wrong numbers of ops and ranks. Simulating the
    // original programs fails, too, with the right numbers in its message.
    costs.table_of_rank = table_of_rank;
    (void)simulate::simulate(point.folded ? simulate::folded(whole) : whole, costs);
    throw;
  }
  Replay replay;
  for (const std::uint32_t rank : like.place) {
    const Policy::Rank& times = ranks[rank];
    const Nanoseconds length{times.end - times.begin};
    replay.idle.push_back(std::min(Nanoseconds{times.late}, length - times.busy) / counted_plays);
    replay.step = std::max(replay.step, length / counted_plays);
  }
  return replay;
}

/// Returns a rank's mean op times over the steps in which it was traced; empty if there are none.
Table mean_over_steps(const program::OutlineSet& set, const std::vector<TracedStep>& steps,
                      std::size_t rank) {
  Traces of_rank;
  for (const TracedStep& step : steps) {
    if (step.traces[rank] != nullptr) of_rank.push_back(step.traces[rank]);
  }
  return mean_times(set.of(static_cast<int>(rank)), of_rank);
}

/// Returns the seconds per FLOP of a rank's GEMMs; 0 if it has none.
double gemm_cost(const Outline& outline, const Table& table) {
  double seconds = 0, flop = 0;
  for (std::size_t op = 0; op < table.size(); ++op) {
    if (!(outline.ops[op].flop > 0)) continue;
    seconds += units::to_seconds(table[op]).value();
    flop += outline.ops[op].flop;
  }
  return flop > 0 ? seconds / flop : 0;
}

}  // namespace

simulate::Coarsener coarse_programs(const results::PointData& point) {
  return {point.outline.mesh,
          point.folded ? simulate::folded(point.outline).outlines : point.outline.outlines};
}

simulate::ReducedMesh like_ranks(const program::OutlineSet& set, const simulate::Costs& costs) {
  std::vector<std::uint64_t> kind;
  for (std::size_t rank = 0; rank < set.outline_of_rank.size(); ++rank) {
    kind.push_back(std::uint64_t{set.outline_of_rank[rank]} << 32U | costs.table_of_rank[rank]);
  }
  const mesh::AxisSet messages = simulate::axes_of_messages(set);
  return simulate::reduced(set.mesh, kind,
                           [&](mesh::Axis axis, int) { return !messages.contains(axis); });
}

Replay replay_on_free_network(const results::PointData& point, const simulate::Coarsener& programs,
                              const TraceOfRank& traces) {
  std::set<int> assumed;
  Replay replay = play(point, programs, costs_of(point.outline, traces, assumed));
  replay.assumed = std::move(assumed);
  return replay;
}

Replay replay_of_schedule(const results::PointData& point, const simulate::Coarsener& programs,
                          const std::vector<TracedStep>& steps) {
  const program::OutlineSet& set = point.outline;
  std::vector<Table> tables(set.outline_of_rank.size());
  std::vector<double> rates;
  for (std::size_t rank = 0; rank < tables.size(); ++rank) {
    tables[rank] = mean_over_steps(set, steps, rank);
    if (tables[rank].empty()) continue;
    const double cost = gemm_cost(set.of(static_cast<int>(rank)), tables[rank]);
    if (cost > 0) rates.push_back(cost);
  }
  const double middle = statistics::median(rates).value_or(0);
  simulate::Costs costs;
  std::vector<std::optional<std::uint32_t>> table_of_outline(set.outlines.size());
  for (std::size_t rank = 0; rank < tables.size(); ++rank) {
    auto& shared = table_of_outline[set.outline_of_rank[rank]];
    if (shared || tables[rank].empty()) continue;
    const double cost = gemm_cost(set.of(static_cast<int>(rank)), tables[rank]);
    const double factor = cost > 0 ? middle / cost : 1;
    for (Nanoseconds& time : tables[rank]) {
      time = Nanoseconds{std::llround(static_cast<double>(time.value()) * factor)};
    }
    shared = static_cast<std::uint32_t>(costs.tables.size());
    costs.tables.push_back(tables[rank]);
  }
  for (const std::uint32_t outline : set.outline_of_rank) {
    if (!table_of_outline[outline]) {
      throw base::Error(fmt::format("no rank that plays program {} was traced", outline));
    }
    costs.table_of_rank.push_back(*table_of_outline[outline]);
  }
  return play(point, programs, std::move(costs));
}

}  // namespace isoscale::analysis::breakdown
