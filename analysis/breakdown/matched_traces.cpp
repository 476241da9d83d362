// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/matched_traces.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/parallel.hpp"
#include "base/text.hpp"
#include "program/match_table.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::breakdown {
namespace {

using program::OutlineSet;
using units::Nanoseconds;

/// True if the time is so small that sums and differences of two such times cannot overflow.
bool time_is_sound(units::Nanoseconds time) {
  constexpr std::int64_t limit = std::int64_t{1} << 61U;
  return -limit <= time.value() && time.value() <= limit;
}

/// The longest step that is accepted, ten days, so that the sum of many steps does not overflow.
constexpr units::Nanoseconds longest_step{std::int64_t{864'000} * 1'000'000'000};

struct Arrivals {
  /// Indexed by [rank][op]: the latest start among an op and the matching ops of its traced
  /// partners. Empty for ranks without a trace.
  std::vector<std::vector<Nanoseconds>> last;
  std::vector<std::vector<std::uint32_t>> instance;  ///< [rank][op], see TracedStep
  std::uint32_t instances = 0;
  bool sees_messages = true;  ///< false if a partner of some exchange has no trace
  std::set<int> unseen;       ///< ranks without a trace with which traced ranks communicate
  std::set<int> unmatched;    ///< ranks with a message that no op of the partner matches
};

/// Matches the n-th collective on each communicator among its members, and the n-th send with the
/// n-th receive of each mailbox (see MatchTable), in time linear in the number of spans. All traces
/// must be usable.
class Matcher {
 public:
  Matcher(const OutlineSet& set, const TraceOfRank& traces)
      : set_(set),
        traces_(traces),
        table_(set, program::Folding::as_streamed),
        groups_(table_.group_count()),
        mailboxes_(table_.mailbox_count()) {
    arrivals_.last.resize(traces.size());
    arrivals_.instance.resize(traces.size());
    for (const timeline::StepTrace* const trace : traces) {
      if (trace != nullptr) add(*trace);
    }
  }

  Arrivals run() {
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      for (std::size_t op = 0; op < arrivals_.last[rank].size(); ++op) {
        const std::uint32_t instance = arrivals_.instance[rank][op];
        if (instance != no_instance) arrivals_.last[rank][op] = latest_[instance];
      }
    }
    for (const Mailbox& box : mailboxes_) {
      for (std::size_t i = 0; i < box.pairs(); ++i) pair_up(box.sends[i], box.receives[i]);
      if (box.sends.size() == box.receives.size()) continue;
      const auto& more = box.sends.size() > box.receives.size() ? box.sends : box.receives;
      if (traces_[at(more.front().peer)] != nullptr) arrivals_.unmatched.insert(more.front().rank);
    }
    return std::move(arrivals_);
  }

  [[nodiscard]] std::vector<Message> pairs() const {
    std::vector<Message> result;
    for (const Mailbox& box : mailboxes_) {
      for (std::size_t i = 0; i < box.pairs(); ++i) {
        const End &from = box.sends[i], &to = box.receives[i];
        result.push_back(
            {.sender = from.rank, .receiver = to.rank, .send = from.op, .receive = to.op});
      }
    }
    return result;
  }

 private:
  /// The instances of one communicator's collectives. `rank` (-1 = none yet) is the member whose
  /// spans are being added; so far it has arrived at the first `arrived` instances.
  struct Group {
    std::vector<std::uint32_t> instances;
    int rank = -1;
    std::size_t arrived = 0;
  };
  /// The exchange op of a rank that sends to or receives from `peer`.
  struct End {
    int rank = 0, peer = 0;
    std::uint32_t op = 0;
  };
  struct Mailbox {
    std::vector<End> sends, receives;
    [[nodiscard]] std::size_t pairs() const { return std::min(sends.size(), receives.size()); }
  };

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  void add(const timeline::StepTrace& trace) {
    const std::size_t rank = at(trace.rank);
    arrivals_.instance[rank].assign(trace.spans.size(), no_instance);
    arrivals_.last[rank].reserve(trace.spans.size());
    for (const timeline::Span& span : trace.spans) {
      arrivals_.last[rank].push_back(span.start);
      const program::Rendezvous rendezvous = table_.rendezvous(trace.rank, span.op);
      if (rendezvous == program::Rendezvous::group) add_collective(trace.rank, span);
      if (rendezvous == program::Rendezvous::peers) add_messages(trace.rank, span.op);
    }
  }

  void add_collective(int rank, const timeline::Span& span) {
    Group& group = groups_[table_.group(rank, span.op)];
    if (group.rank != rank) {
      group.rank = rank;
      group.arrived = 0;
      for (const int member :
           mesh::group_members(set_.mesh, rank, set_.of(rank).ops[span.op].axes)) {
        if (traces_[at(member)] == nullptr) arrivals_.unseen.insert(member);
      }
    }
    if (group.arrived == group.instances.size()) {
      group.instances.push_back(arrivals_.instances++);
      latest_.push_back(span.start);
    }
    const std::uint32_t instance = group.instances[group.arrived++];
    latest_[instance] = std::max(latest_[instance], span.start);
    arrivals_.instance[at(rank)][span.op] = instance;
  }

  void add_messages(int rank, std::uint32_t op) {
    for (const program::OutlineTransfer& transfer : table_.transfers(rank, op)) {
      const int peer = mesh::neighbour(set_.mesh, rank, transfer.axis, transfer.offset);
      if (traces_[at(peer)] == nullptr) {
        arrivals_.unseen.insert(peer);
        arrivals_.sees_messages = false;
      }
      Mailbox& box = mailboxes_[table_.mailbox(rank, transfer)];
      const bool sends = transfer.direction == program::Direction::send;
      (sends ? box.sends : box.receives).push_back({.rank = rank, .peer = peer, .op = op});
    }
  }

  /// Notes that each of two matching exchanges waits for the other. They get the same instance
  /// number if each has no other partner.
  void pair_up(const End& send, const End& receive) {
    const auto hear = [this](const End& end, const End& other) {
      Nanoseconds& last = arrivals_.last[at(end.rank)][end.op];
      last = std::max(last, traces_[at(other.rank)]->spans[other.op].start);
    };
    hear(send, receive);
    hear(receive, send);
    if (send.rank == receive.rank || !has_one_partner(send) || !has_one_partner(receive)) return;
    auto& mine = arrivals_.instance[at(send.rank)][send.op];
    auto& theirs = arrivals_.instance[at(receive.rank)][receive.op];
    if (mine == no_instance) mine = theirs;
    if (mine == no_instance) mine = arrivals_.instances++;
    theirs = mine;
  }
  [[nodiscard]] bool has_one_partner(const End& end) const {
    const auto transfers = table_.transfers(end.rank, end.op);
    return std::ranges::all_of(transfers, [&](const program::OutlineTransfer& transfer) {
      return transfer.axis == transfers.front().axis && transfer.offset == transfers.front().offset;
    });
  }

  const OutlineSet& set_;
  const TraceOfRank& traces_;
  program::MatchTable table_;
  std::vector<Group> groups_;
  std::vector<Mailbox> mailboxes_;
  std::vector<Nanoseconds> latest_;  ///< the last arrival at each instance of a collective
  Arrivals arrivals_;
};

/// True if the trace has one span per op of its rank's program, in order, with possible times.
bool is_usable(const results::PointData& point, const timeline::StepTrace& trace) {
  if (trace.rank < 0 || trace.rank >= point.ranks ||
      trace.spans.size() != point.outline.of(trace.rank).ops.size() ||
      !time_is_sound(trace.begin) || !time_is_sound(trace.end) || trace.end <= trace.begin ||
      trace.end - trace.begin > longest_step) {
    return false;
  }
  for (std::size_t op = 0; op < trace.spans.size(); ++op) {
    const timeline::Span& span = trace.spans[op];
    if (span.op != op || !time_is_sound(span.start) || !time_is_sound(span.end)) return false;
  }
  return true;
}

/// Finds the traced ranks whose clocks are not aligned. For the aligned ranks, clock_error is the
/// sum of the two largest errors, since two clocks may differ by this much.
void judge_clocks(const results::PointData& point, TracedSteps& result) {
  double worst = 0, second = 0;
  for (int rank = 0; rank < point.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const bool traced = std::ranges::any_of(
        result.steps, [at](const TracedStep& step) { return step.traces[at] != nullptr; });
    if (!traced) continue;
    if (!aligned(point, rank)) {
      result.unaligned.insert(rank);
    } else if (point.ranks > 1) {
      const double error = point.clock_error[at];
      second = std::max(second, std::min(worst, error));
      worst = std::max(worst, error);
    }
  }
  result.clock_error = worst + second;
}

/// Computes the waits of a step from the arrivals of the ranks whose clocks are aligned.
Arrivals add_waits(const results::PointData& point, const TracedSteps& all, TracedStep& step) {
  TraceOfRank comparable = step.traces;
  for (const int rank : all.unaligned) comparable[static_cast<std::size_t>(rank)] = nullptr;
  Arrivals arrivals = Matcher{point.outline, comparable}.run();
  const Nanoseconds error = units::to_nanoseconds(units::Seconds{all.clock_error});
  step.waits.resize(step.traces.size());
  for (std::size_t rank = 0; rank < step.traces.size(); ++rank) {
    if (comparable[rank] == nullptr) continue;
    const auto& last = arrivals.last[rank];
    auto& waits = step.waits[rank];
    waits.resize(last.size());
    for (std::size_t op = 0; op < last.size(); ++op) {
      const Nanoseconds wait = last[op] - comparable[rank]->spans[op].start;
      if (wait > error) waits[op] = wait;
    }
  }
  step.instance = std::move(arrivals.instance);
  step.instances = arrivals.instances;
  return arrivals;
}

}  // namespace

std::string outline_problem(const results::PointData& point) {
  const program::OutlineSet& set = point.outline;
  if (point.ranks <= 0 || set.mesh.size() != point.ranks ||
      std::cmp_not_equal(set.outline_of_rank.size(), point.ranks)) {
    return fmt::format("the op table covers {} of {} ranks", set.outline_of_rank.size(),
                       point.ranks);
  }
  for (const std::uint32_t outline : set.outline_of_rank) {
    if (outline >= set.outlines.size()) return "a rank's op table is missing";
  }
  return "";
}

std::string missing_traces(const results::PointData& point) {
  return point.traces.empty() ? "no step was traced" : outline_problem(point);
}

/// The smallest error, in seconds, at which a clock does not count as aligned.
constexpr double useless_error = 1e3;

bool aligned(const results::PointData& point, int rank) {
  if (point.ranks == 1) return true;
  const auto at = static_cast<std::size_t>(rank);
  return at < point.clock_offset.size() && std::isfinite(point.clock_offset[at]) &&
         at < point.clock_error.size() && std::isfinite(point.clock_error[at]) &&
         point.clock_error[at] >= 0 && point.clock_error[at] < useless_error;
}

bool step_counts(const results::PointData& point, const timeline::Timeline& step) {
  return std::ranges::all_of(step.ranks, [&point](const timeline::StepTrace& trace) {
    return step_counts(point, trace.step);
  });
}

bool step_counts(const results::PointData& point, std::uint32_t step) {
  const bool is_dropped = step < point.dropped.size() && point.dropped[step] != 0;
  return !is_dropped && !std::cmp_less(step, point.warm_up_steps);
}

std::map<int, std::vector<const timeline::StepTrace*>> usable_traces(
    const results::PointData& point) {
  std::map<int, std::vector<const timeline::StepTrace*>> of_rank;
  if (!outline_problem(point).empty()) return of_rank;
  for (const timeline::Timeline& step : point.traces) {
    if (!step_counts(point, step)) continue;
    for (const timeline::StepTrace& trace : step.ranks) {
      if (is_usable(point, trace)) of_rank[trace.rank].push_back(&trace);
    }
  }
  return of_rank;
}

std::vector<double> busy_seconds(const results::OpSums& step, std::size_t ranks) {
  if (step.gemm.size() != ranks || step.other_compute.size() != ranks ||
      step.copies.size() != ranks) {
    return {};
  }
  std::vector<double> seconds(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    seconds[rank] = step.gemm[rank] + step.other_compute[rank] + step.copies[rank];
  }
  return seconds;
}

std::string rank_list(const results::PointData& point, const std::set<int>& ranks) {
  constexpr std::size_t most_ranges = 4;
  std::vector<int> shown = world_ranks(point, ranks);
  std::ranges::sort(shown);
  return fmt::format("{} {}", base::plural(shown.size(), "rank"),
                     base::ranges_text(shown, most_ranges));
}

std::vector<Message> messages(const OutlineSet& set, const TraceOfRank& traces) {
  return Matcher{set, traces}.pairs();
}

TracedStep usable_step(const results::PointData& point, const timeline::Timeline& timeline,
                       std::set<int>& broken) {
  TracedStep step{.traces = TraceOfRank(static_cast<std::size_t>(point.ranks), nullptr)};
  for (const timeline::StepTrace& trace : timeline.ranks) {
    if (is_usable(point, trace)) {
      step.traces[static_cast<std::size_t>(trace.rank)] = &trace;
      step.step = trace.step;
    } else {
      broken.insert(trace.rank);
    }
  }
  return step;
}

TracedSteps traced_steps(const results::PointData& point) {
  TracedSteps result;
  for (const timeline::Timeline& timeline : point.traces) {
    if (!step_counts(point, timeline)) continue;
    TracedStep step = usable_step(point, timeline, result.broken);
    const bool is_traced =
        std::ranges::any_of(step.traces, [](const auto* trace) { return trace != nullptr; });
    if (is_traced) result.steps.push_back(std::move(step));
  }
  judge_clocks(point, result);
  std::vector<Arrivals> arrivals(result.steps.size());
  base::parallel_for(result.steps.size(), [&](std::size_t i) {
    arrivals[i] = add_waits(point, result, result.steps[i]);
  });
  for (Arrivals& of_step : arrivals) {
    result.unseen.merge(of_step.unseen);
    result.unmatched.merge(of_step.unmatched);
    result.sees_messages = result.sees_messages && of_step.sees_messages;
  }
  return result;
}

}  // namespace isoscale::analysis::breakdown
