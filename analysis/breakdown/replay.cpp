// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "mesh/mesh.hpp"
#include "program/match.hpp"
#include "simulate/simulate.hpp"
#include "statistics/estimate.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::analysis::breakdown {
namespace {

using mesh::Axis;
using program::Outline;
using program::OutlineOp;
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
/// Communication ops have the time 0, as on the network of the replay.
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

/// Returns the mean op times over the traced ranks that play the program with the number `outline`.
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

/// True if the compute and copy ops of every rank are on one stream, so that their times add up.
bool busy_on_one_stream(const program::OutlineSet& set) {
  return std::ranges::all_of(set.outlines, [](const Outline& outline) {
    std::optional<program::StreamId> stream;
    return std::ranges::all_of(outline.ops, [&stream](const program::OutlineOp& op) {
      if (program::communicates(op.kind)) return true;
      if (!stream) stream = op.stream;
      return *stream == op.stream;
    });
  });
}

Nanoseconds busy_time(const Outline& outline, const timeline::StepTrace& step) {
  std::vector<timeline::Interval> busy;
  for (const timeline::Span& span : step.spans) {
    if (program::communicates(outline.ops[span.op].kind)) continue;
    busy.push_back({.begin = span.start, .end = span.end});
  }
  return timeline::total(timeline::normalise(std::move(busy)));
}

/// Records, from play number `first` on, when the plays of each rank began and ended and how long
/// its exchanges between stages took, which is waiting only.
class Policy {
 public:
  Policy(const program::OutlineSet& set, const simulate::Costs& costs, int first)
      : set_(set), costs_(costs), first_(first), ranks_(set.outline_of_rank.size()) {}

  struct Rank {
    int play = 0;
    std::int64_t begin = 0, end = 0, late = 0;
  };

  [[nodiscard]] std::int64_t cost(int rank, std::uint32_t op) const {
    return costs_.tables[costs_.table_of_rank[static_cast<std::size_t>(rank)]][op].value();
  }
  void span(int rank, std::uint32_t op, std::int64_t start, std::int64_t end) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    if (state.play < first_) return;
    if (program::between_stages(set_.of(rank).ops[op])) state.late += end - start;
  }
  void step(int rank, int play, std::int64_t begin, std::int64_t end) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    if (play == first_) state.begin = begin;
    state.end = end;
    state.play = play + 1;
  }
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  const program::OutlineSet& set_;
  const simulate::Costs& costs_;
  int first_;
  std::vector<Rank> ranks_;
};

/// Returns the times over the counted plays. If the last settling play was equally long on all
/// ranks, all later plays would repeat it, so its times are multiplied instead.
std::vector<Policy::Rank> counted_times(const program::OutlineSet& set,
                                        const simulate::Costs& costs, program::Folding folding) {
  Policy settling{set, costs, settling_plays - 1};
  program::Matcher<Policy>{set, folding, settling_plays, settling}.run();
  std::vector<Policy::Rank> ranks = settling.ranks();
  const auto length = [](const Policy::Rank& at) { return at.end - at.begin; };
  const bool is_periodic = std::ranges::all_of(
      ranks, [&](const Policy::Rank& at) { return length(at) == length(ranks.front()); });
  if (is_periodic) {
    for (Policy::Rank& at : ranks) {
      at.end = at.begin + counted_plays * length(at);
      at.late *= counted_plays;
    }
    return ranks;
  }
  std::vector<Nanoseconds> begin;
  for (const Policy::Rank& at : ranks) begin.emplace_back(at.end);
  Policy counted{set, costs, 0};
  program::Matcher<Policy>{set, folding, counted_plays, counted}.run(begin);
  return counted.ranks();
}

/// Returns for each rank the time in which compute or copies run, summed over the counted plays.
std::vector<Nanoseconds> busy_times(const program::OutlineSet& set, const simulate::Costs& costs,
                                    program::Folding folding) {
  std::vector<Nanoseconds> busy(set.outline_of_rank.size());
  if (folding == program::Folding::folded || busy_on_one_stream(set)) {
    for (std::size_t rank = 0; rank < busy.size(); ++rank) {
      for (const Nanoseconds time : costs.tables[costs.table_of_rank[rank]]) busy[rank] += time;
      busy[rank] = counted_plays * busy[rank];
    }
    return busy;
  }
  const auto plays = simulate::simulate(set, costs, {.plays = settling_plays + counted_plays});
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    for (int play = settling_plays; play < settling_plays + counted_plays; ++play) {
      busy[rank] += busy_time(set.of(static_cast<int>(rank)),
                              plays[static_cast<std::size_t>(play)].ranks[rank]);
    }
  }
  return busy;
}

/// Returns the times over the counted plays of the condensed programs. If these deadlock, it plays
/// the whole programs, whose op numbers the error message then has.
std::vector<Policy::Rank> condensed_times(const results::PointData& point, const LikeRanks& like,
                                          const simulate::Costs& all_costs) {
  const program::Folding folding = folding_of(point);
  try {
    return counted_times(like.set, like.costs, folding);
  } catch (const base::Error&) {
    const LikeRanks whole = like_ranks(point.outline, all_costs);
    return counted_times(whole.set, whole.costs, folding);
  }
}

Replay play(const results::PointData& point, const Condensed& condensed,
            const simulate::Costs& all_costs) {
  const LikeRanks like = like_ranks(condensed.set(), condensed.costs(all_costs));
  const std::vector<Policy::Rank> ranks = condensed_times(point, like, all_costs);
  const std::vector<Nanoseconds> busy = busy_times(like.set, like.costs, folding_of(point));
  Replay replay;
  for (const std::uint32_t rank : like.rank) {
    const Policy::Rank& times = ranks[rank];
    const Nanoseconds whole{times.end - times.begin};
    replay.idle.push_back(std::min(Nanoseconds{times.late}, whole - busy[rank]) / counted_plays);
    replay.step = std::max(replay.step, whole / counted_plays);
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

Condensed::Condensed(const program::OutlineSet& whole, program::Folding folding)
    : set_{.mesh = whole.mesh, .outlines = {}, .outline_of_rank = whole.outline_of_rank} {
  for (const program::Outline& outline : whole.outlines) add(outline, folding);
}

void Condensed::add(const program::Outline& whole, program::Folding folding) {
  const bool folded = folding == program::Folding::folded;
  const std::vector<bool> awaited = simulate::awaited_ops(whole);
  program::Outline& outline = set_.outlines.emplace_back(program::Outline{
      .streams = whole.streams, .ops = {}, .waits = {}, .transfers = whole.transfers});
  std::vector<std::uint32_t>& place = place_.emplace_back();
  place.reserve(whole.ops.size());
  struct Lane {
    std::uint32_t last = 0;  ///< the latest condensed op of the lane
    bool open = false;       ///< true if the next op of the lane may be merged into `last`
    /// counts[i] is the number of condensed ops that contain the first i + 1 ops of the lane.
    std::vector<std::uint32_t> counts;
  };
  // A program that was folded into one stream has a single lane. Its waits, which count the ops of
  // other streams, are not copied.
  std::array<Lane, program::max_streams> lanes;
  for (std::uint32_t op = 0; op < whole.ops.size(); ++op) {
    const OutlineOp& at = whole.ops[op];
    Lane& lane = lanes[folded ? 0 : at.stream];
    const bool communicates = program::communicates(at.kind);
    if (!lane.open || communicates || (!folded && at.wait_count > 0)) {
      OutlineOp& added = outline.ops.emplace_back(at);
      added.wait_begin = static_cast<std::uint32_t>(outline.waits.size());
      added.wait_count = 0;
      if (!folded) {
        for (const program::Wait& wait : whole.waits_of(at)) {
          const std::vector<std::uint32_t>& counts = lanes[wait.stream].counts;
          // A wait for an op that does not exist is kept, so that the condensed program also
          // deadlocks.
          const bool is_there = wait.count > 0 && wait.count <= counts.size();
          outline.waits.push_back(
              {.stream = wait.stream, .count = is_there ? counts[wait.count - 1] : wait.count});
          ++added.wait_count;
        }
      }
      lane.last = static_cast<std::uint32_t>(outline.ops.size() - 1);
      lane.counts.push_back(lane.counts.empty() ? 1 : lane.counts.back() + 1);
    } else {
      lane.counts.push_back(lane.counts.back());
    }
    lane.open = !communicates && (folded || !awaited[op]);
    place.push_back(lane.last);
  }
}

simulate::Costs Condensed::costs(const simulate::Costs& whole) const {
  simulate::Costs condensed{.tables = {}, .table_of_rank = whole.table_of_rank};
  condensed.tables.resize(whole.tables.size());
  for (std::size_t rank = 0; rank < whole.table_of_rank.size(); ++rank) {
    const std::uint32_t number = whole.table_of_rank[rank];
    auto& table = condensed.tables[number];
    if (!table.empty()) continue;
    const std::uint32_t outline = set_.outline_of_rank[rank];
    table.resize(set_.outlines[outline].ops.size());
    const std::vector<std::uint32_t>& place = place_[outline];
    for (std::size_t op = 0; op < place.size(); ++op) {
      table[place[op]] += whole.tables[number][op];
    }
  }
  return condensed;
}

LikeRanks like_ranks(const program::OutlineSet& set, simulate::Costs costs) {
  std::vector<std::uint64_t> kind;
  for (std::size_t rank = 0; rank < set.outline_of_rank.size(); ++rank) {
    kind.push_back(std::uint64_t{set.outline_of_rank[rank]} << 32U | costs.table_of_rank[rank]);
  }
  const mesh::AxisSet messages = simulate::axes_of_messages(set);
  simulate::ReducedMesh mesh =
      simulate::reduced(set.mesh, kind, [&](Axis axis, int) { return !messages.contains(axis); });
  LikeRanks like{.set = {.mesh = mesh.mesh, .outlines = set.outlines, .outline_of_rank = {}},
                 .costs = {.tables = std::move(costs.tables), .table_of_rank = {}},
                 .rank = std::move(mesh.place)};
  for (const int rank : mesh.rank) {
    like.set.outline_of_rank.push_back(set.outline_of_rank[static_cast<std::size_t>(rank)]);
    like.costs.table_of_rank.push_back(costs.table_of_rank[static_cast<std::size_t>(rank)]);
  }
  return like;
}

Replay replay_on_free_network(const results::PointData& point, const Condensed& condensed,
                              const TraceOfRank& traces) {
  std::set<int> assumed;
  Replay replay = play(point, condensed, costs_of(point.outline, traces, assumed));
  replay.assumed = std::move(assumed);
  return replay;
}

Replay replay_of_schedule(const results::PointData& point, const Condensed& condensed,
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
  return play(point, condensed, costs);
}

}  // namespace isoscale::analysis::breakdown
