// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "simulate/simulate.hpp"
#include "timeline/intervals.hpp"

namespace isoscale::analysis {
namespace {

using program::Outline;
using units::Nanoseconds;
using Table = std::vector<Nanoseconds>;

/// Plays until the first step, which all ranks begin together, no longer matters, and the plays
/// that are then looked at.
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

/// Mean op times over the traced ranks that play outline number `outline`.
Table mean_times(const program::OutlineSet& set, std::uint32_t outline, const TraceOfRank& traces) {
  std::optional<Table> sum;
  std::int64_t count = 0;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    if (traces[rank] == nullptr || set.outline_of_rank[rank] != outline) continue;
    const Table table = measured_times(set.outlines[outline], *traces[rank]);
    if (!sum) sum.emplace(table.size());
    std::ranges::transform(*sum, table, sum->begin(), std::plus<>{});
    ++count;
  }
  if (!sum) {
    throw base::Error(fmt::format(
        "no rank that plays program {} was traced; trace more ranks (--trace-ranks)", outline));
  }
  for (Nanoseconds& time : *sum) time = time / count;
  return *std::move(sum);
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
      costs.tables.push_back(mean_times(set, set.outline_of_rank[rank], traces));
    }
    costs.table_of_rank.push_back(*table);
  }
  return costs;
}

/// Whether compute and copy ops run one after the other on every rank, so that their times add up.
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

}  // namespace

Replay replay_on_free_network(const results::PointData& point, const TraceOfRank& traces) {
  const program::OutlineSet& set = point.outline;
  Replay replay;
  const simulate::Costs costs = costs_of(set, traces, replay.assumed);
  const bool times_add_up = point.folded || busy_on_one_stream(set);
  const auto plays = simulate::simulate(
      set, costs,
      {.plays = settling_plays + counted_plays,
       .streams = point.folded ? simulate::Streams::folded : simulate::Streams::as_written,
       .record = times_add_up ? simulate::Record::steps : simulate::Record::spans});

  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    const Nanoseconds whole =
        plays.back().ranks[rank].end - plays[settling_plays].ranks[rank].begin;
    Nanoseconds busy;
    for (int play = settling_plays; play < settling_plays + counted_plays; ++play) {
      if (times_add_up) {
        for (const Nanoseconds time : costs.tables[costs.table_of_rank[rank]]) busy += time;
      } else {
        busy += busy_time(set.of(static_cast<int>(rank)),
                          plays[static_cast<std::size_t>(play)].ranks[rank]);
      }
    }
    replay.idle.push_back((whole - busy) / counted_plays);
    replay.step = std::max(replay.step, whole / counted_plays);
  }
  return replay;
}

}  // namespace isoscale::analysis
