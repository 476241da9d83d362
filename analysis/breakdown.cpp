// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "analysis/matching.hpp"
#include "analysis/rank_step.hpp"
#include "analysis/replay.hpp"
#include "analysis/trace_check.hpp"
#include "base/error.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

using units::Nanoseconds;

double seconds(Nanoseconds time) { return units::to_seconds(time).value(); }

/// What could not be said, over all traced steps of a point.
struct Notes {
  std::set<int> broken, unaligned, unseen, unmatched, assumed;
  std::string no_replay;
  double worst_clock = 0;  ///< seconds
};

/// The usable traces of one step.
TraceOfRank select(const results::PointData& point, const timeline::Timeline& step, Notes& notes) {
  TraceOfRank traces(static_cast<std::size_t>(point.ranks), nullptr);
  for (const timeline::StepTrace& trace : step.ranks) {
    if (check_trace(point, trace) == TraceState::usable) {
      traces[static_cast<std::size_t>(trace.rank)] = &trace;
    } else {
      notes.broken.insert(trace.rank);
    }
  }
  return traces;
}

Arrivals arrivals_of(const results::PointData& point, const TraceOfRank& traces, Notes& notes) {
  TraceOfRank comparable = traces;
  for (int rank = 0; rank < point.ranks; ++rank) {
    auto& trace = comparable[static_cast<std::size_t>(rank)];
    if (trace == nullptr) continue;
    if (aligned(point, rank)) {
      if (point.ranks > 1) {
        notes.worst_clock =
            std::max(notes.worst_clock, point.clock_error[static_cast<std::size_t>(rank)]);
      }
    } else {
      notes.unaligned.insert(rank);
      trace = nullptr;
    }
  }
  Arrivals arrivals = last_arrivals(point.outline, comparable);
  notes.unseen.merge(arrivals.unseen);
  notes.unmatched.merge(arrivals.unmatched);
  return arrivals;
}

/// Idle time of each rank on a free network; empty when it cannot be found out.
std::vector<Nanoseconds> idle_times(const results::PointData& point, const TraceOfRank& traces,
                                    Notes& notes) {
  try {
    Replay replay = replay_on_free_network(point, traces);
    notes.assumed.merge(replay.assumed);
    return std::move(replay.idle);
  } catch (const base::Error& error) {
    notes.no_replay = error.what();
    return {};
  }
}

Breakdown to_breakdown(const RankStep& times, Nanoseconds idle) {
  const Nanoseconds bubble = std::clamp(idle, Nanoseconds{0}, times.late);
  Breakdown result{.compute = seconds(times.compute),
                   .copies = seconds(times.copies),
                   .transfer = seconds(times.transfer),
                   .wait = seconds(times.wait + times.late - bubble),
                   .bubble = seconds(bubble),
                   .gap = seconds(times.gap),
                   .other = 0,
                   .step = seconds(times.step),
                   .hidden_communication = seconds(times.hidden)};
  result.other = seconds(times.step - times.compute - times.copies - times.transfer - times.wait -
                         times.late - times.gap);
  return result;
}

constexpr std::array fields{
    &Breakdown::compute, &Breakdown::copies, &Breakdown::transfer,
    &Breakdown::wait,    &Breakdown::bubble, &Breakdown::gap,
    &Breakdown::other,   &Breakdown::step,   &Breakdown::hidden_communication};

Breakdown mean(const std::vector<Breakdown>& parts) {
  Breakdown result;
  for (const auto field : fields) {
    for (const Breakdown& part : parts) result.*field += part.*field;
    result.*field /= static_cast<double>(parts.size());
  }
  return result;
}

/// Breakdowns of the traced steps by rank.
struct Steps {
  std::map<int, std::vector<Breakdown>> of_rank;
  Nanoseconds unaccounted, length;
};

void add_step(const results::PointData& point, const timeline::Timeline& step, Steps& steps,
              Notes& notes) {
  const TraceOfRank traces = select(point, step, notes);
  if (std::ranges::all_of(traces, [](const auto* trace) { return trace == nullptr; })) return;
  const Arrivals arrivals = arrivals_of(point, traces, notes);
  const Streams streams = point.folded ? Streams::folded : Streams::as_written;

  std::map<int, RankStep> times;
  Nanoseconds late;
  for (const auto* const trace : traces) {
    if (trace == nullptr) continue;
    const auto& last = arrivals.last[static_cast<std::size_t>(trace->rank)];
    const RankStep rank_step = split(point.outline.of(trace->rank), *trace, last, streams);
    late += rank_step.late;
    times.emplace(trace->rank, rank_step);
  }
  std::vector<Nanoseconds> idle;
  if (late > Nanoseconds{0}) idle = idle_times(point, traces, notes);
  for (const auto& [rank, rank_step] : times) {
    const auto at = static_cast<std::size_t>(rank);
    steps.of_rank[rank].push_back(
        to_breakdown(rank_step, at < idle.size() ? idle[at] : Nanoseconds{0}));
    steps.unaccounted += rank_step.unaccounted;
    steps.length += rank_step.step;
  }
}

std::string sentences(const Notes& notes, double step) {
  std::string text;
  const auto say = [&text](const std::string& sentence) {
    text += (text.empty() ? "" : "; ") + sentence;
  };
  if (!notes.broken.empty()) {
    say(fmt::format("the traces of {} are damaged and left out", rank_list(notes.broken)));
  }
  std::set<int> unseen = notes.unseen;
  for (const int rank : notes.unaligned) unseen.erase(rank);
  if (!unseen.empty()) {
    say(fmt::format("{} not traced: waiting for them counts as transfer", rank_list(unseen)));
  }
  if (!notes.unaligned.empty()) {
    say(
        fmt::format("the clocks of {} are not aligned: waiting there and for them counts as "
                    "transfer",
                    rank_list(notes.unaligned)));
  }
  if (!notes.unmatched.empty()) {
    say(fmt::format("messages of {} match no op of the partner: waiting in them counts as transfer",
                    rank_list(notes.unmatched)));
  }
  if (!notes.assumed.empty()) {
    say(fmt::format("bubble assumes the mean op times of like ranks for {}",
                    rank_list(notes.assumed)));
  }
  if (!notes.no_replay.empty()) {
    say(fmt::format("bubble is unknown and part of wait: {}", notes.no_replay));
  }
  constexpr double visible = 0.01;  // of a step: what a table of percents can show
  if (notes.worst_clock > visible * step) {
    say(fmt::format("clocks agree to {} only: waits and transfers shorter than that are guesses",
                    units::format(units::Seconds{notes.worst_clock})));
  }
  return text;
}

}  // namespace

BreakdownResult breakdown(const results::PointData& point) {
  BreakdownResult result;
  if (point.traces.empty()) {
    result.missing = "no step was traced";
    return result;
  }
  result.missing = outline_problem(point);
  if (!result.missing.empty()) return result;

  Notes notes;
  Steps steps;
  for (const timeline::Timeline& step : point.traces) {
    if (step_counts(point, step)) add_step(point, step, steps, notes);
  }
  for (const auto& [rank, parts] : steps.of_rank) {
    result.ranks.push_back(rank);
    result.of_rank.push_back(mean(parts));
  }
  if (!result.of_rank.empty()) {
    result.mean = mean(result.of_rank);
    result.unaccounted = steps.unaccounted / steps.length;
  }
  result.missing = sentences(notes, result.mean ? result.mean->step : 0);
  if (!result.mean && result.missing.empty()) result.missing = "no traced step counts";
  return result;
}

}  // namespace isoscale::analysis
