// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/traced_steps.hpp"

#include <fmt/format.h>

#include <cmath>
#include <compare>
#include <span>
#include <utility>

#include "base/parallel.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::breakdown {
namespace {

using program::OpKind;
using program::Outline;
using program::OutlineOp;
using program::OutlineSet;
using units::Nanoseconds;

/// True if the time is far enough from the limits of its type for sums and differences of two times
/// not to overflow.
bool time_is_sound(units::Nanoseconds time) {
  constexpr std::int64_t limit = std::int64_t{1} << 61U;
  return -limit <= time.value() && time.value() <= limit;
}

/// The longest step that is accepted, ten days, so that the sum of many steps does not overflow.
constexpr units::Nanoseconds longest_step{std::int64_t{864'000} * 1'000'000'000};

constexpr bool is_of_group(OpKind kind) {
  return program::communicates(kind) && kind != OpKind::exchange;
}

/// The axes and the stream of a communicator. The collectives with the same are numbered in program
/// order on each rank, and those with the same number match.
struct CollectiveClass {
  mesh::AxisSet axes;
  program::StreamId stream = 0;
  auto operator<=>(const CollectiveClass&) const = default;
};
/// The axis, offset and direction of messages. The messages with the same are numbered in program
/// order on each rank, and sends match receives by this number.
struct MessageClass {
  mesh::Axis axis = mesh::Axis::pp;
  std::int64_t offset = 0;
  program::Direction direction = program::Direction::send;
  auto operator<=>(const MessageClass&) const = default;

  [[nodiscard]] MessageClass partner() const {
    return {.axis = axis,
            .offset = -offset,
            .direction = direction == program::Direction::send ? program::Direction::receive
                                                               : program::Direction::send};
  }
};

/// The numbers of one outline's ops, by collective class and by message class, in program order: an
/// op's position in a list is its number within the class.
struct Sequences {
  std::map<CollectiveClass, std::vector<std::uint32_t>> collectives;
  std::map<MessageClass, std::vector<std::uint32_t>> messages;
};

Sequences sequences_of(const Outline& outline) {
  Sequences result;
  for (std::uint32_t op = 0; op < outline.ops.size(); ++op) {
    const OutlineOp& at = outline.ops[op];
    if (is_of_group(at.kind)) {
      result.collectives[{.axes = at.axes, .stream = at.stream}].push_back(op);
    }
    if (at.kind != OpKind::exchange) continue;
    for (const program::OutlineTransfer& transfer : outline.transfers_of(at)) {
      result
          .messages[{
              .axis = transfer.axis, .offset = transfer.offset, .direction = transfer.direction}]
          .push_back(op);
    }
  }
  return result;
}

struct Arrivals {
  /// Indexed by [rank][op]: the latest start among an op and the matching ops of its traced
  /// partners. Empty for ranks without a trace.
  std::vector<std::vector<Nanoseconds>> last;
  std::vector<std::vector<std::uint32_t>> instance;  ///< as in TracedStep: numbers of instances
  std::uint32_t instances = 0;
  bool sees_messages = true;  ///< false if a partner of some exchange has no trace
  std::set<int> unseen;       ///< ranks without a trace with which traced ranks communicate
  std::set<int> unmatched;    ///< ranks with a message that no op of the partner matches
};

/// Matches the n-th collective of each class and group among its members, and the n-th message of
/// each class between its two ranks, in time linear in the number of spans. All traces are usable.
class Matcher {
 public:
  Matcher(const OutlineSet& set, const TraceOfRank& traces) : set_(set), traces_(traces) {
    sequences_.reserve(set.outlines.size());
    for (const Outline& outline : set.outlines) sequences_.push_back(sequences_of(outline));
    arrivals_.last.resize(traces.size());
    arrivals_.instance.resize(traces.size());
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      if (traces[rank] == nullptr) continue;
      arrivals_.last[rank].reserve(traces[rank]->spans.size());
      arrivals_.instance[rank].assign(traces[rank]->spans.size(), no_instance);
      for (const auto& span : traces[rank]->spans) arrivals_.last[rank].push_back(span.start);
    }
  }

  Arrivals run() {
    for (int rank = 0; std::cmp_less(rank, traces_.size()); ++rank) {
      if (trace(rank) == nullptr) continue;
      for (const auto& [key, ops] : of(rank).collectives) gather(rank, key, ops);
    }
    for (int rank = 0; std::cmp_less(rank, traces_.size()); ++rank) {
      if (trace(rank) == nullptr) continue;
      for (const auto& [key, ops] : of(rank).collectives) spread(rank, key, ops);
      for (const auto& [key, ops] : of(rank).messages) match(rank, key, ops);
    }
    return std::move(arrivals_);
  }

  [[nodiscard]] std::vector<Message> pairs() const {
    std::vector<Message> result;
    for (int rank = 0; std::cmp_less(rank, traces_.size()); ++rank) {
      if (trace(rank) == nullptr) continue;
      for (const auto& [key, sends] : of(rank).messages) {
        const int peer = peer_of(rank, key);
        if (key.direction != program::Direction::send || trace(peer) == nullptr) continue;
        const std::span<const std::uint32_t> receives = partners_of(peer, key);
        for (std::size_t number = 0; number < std::min(sends.size(), receives.size()); ++number) {
          result.push_back({.sender = rank,
                            .receiver = peer,
                            .send = sends[number],
                            .receive = receives[number]});
        }
      }
    }
    return result;
  }

 private:
  using GroupKey = std::pair<CollectiveClass, int>;  // class, and mesh::group_colour()

  [[nodiscard]] const timeline::StepTrace* trace(int rank) const {
    return traces_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] const Sequences& of(int rank) const {
    return sequences_[set_.outline_of_rank[static_cast<std::size_t>(rank)]];
  }
  [[nodiscard]] GroupKey group(int rank, const CollectiveClass& key) const {
    return {key, mesh::group_colour(set_.mesh, rank, key.axes)};
  }

  /// For the collectives of one group, by their number within their class: when the last traced
  /// member arrived, and the instance number (see TracedStep::instance).
  struct Group {
    std::vector<Nanoseconds> latest;
    std::vector<std::uint32_t> instance;
  };

  /// Updates the table of the rank's group with the times at which `rank` began its ops.
  void gather(int rank, const CollectiveClass& key, const std::vector<std::uint32_t>& ops) {
    auto& [latest, instance] = groups_[group(rank, key)];
    for (std::size_t number = 0; number < ops.size(); ++number) {
      const Nanoseconds start = trace(rank)->spans[ops[number]].start;
      if (number == latest.size()) {
        latest.push_back(start);
        instance.push_back(arrivals_.instances++);
      } else {
        latest[number] = std::max(latest[number], start);
      }
    }
    for (const int member : mesh::group_members(set_.mesh, rank, key.axes)) {
      if (trace(member) == nullptr) arrivals_.unseen.insert(member);
    }
  }

  void spread(int rank, const CollectiveClass& key, const std::vector<std::uint32_t>& ops) {
    const auto& [latest, instance] = groups_[group(rank, key)];
    auto& last = arrivals_.last[static_cast<std::size_t>(rank)];
    auto& instances = arrivals_.instance[static_cast<std::size_t>(rank)];
    for (std::size_t number = 0; number < ops.size(); ++number) {
      last[ops[number]] = latest[number];
      instances[ops[number]] = instance[number];
    }
  }

  void match(int rank, const MessageClass& key, const std::vector<std::uint32_t>& ops) {
    const int peer = peer_of(rank, key);
    if (trace(peer) == nullptr) {
      arrivals_.unseen.insert(peer);
      arrivals_.sees_messages = false;
      return;
    }
    const std::span<const std::uint32_t> partners = partners_of(peer, key);
    if (partners.size() < ops.size()) arrivals_.unmatched.insert(rank);
    auto& last = arrivals_.last[static_cast<std::size_t>(rank)];
    for (std::size_t number = 0; number < std::min(ops.size(), partners.size()); ++number) {
      Nanoseconds& latest = last[ops[number]];
      latest = std::max(latest, trace(peer)->spans[partners[number]].start);
      pair_up(rank, ops[number], peer, partners[number]);
    }
  }

  /// Gives two matching exchanges the same instance number if each has only the other as partner.
  void pair_up(int rank, std::uint32_t op, int peer, std::uint32_t their_op) {
    if (rank >= peer || partner_count(rank, op) != 1 || partner_count(peer, their_op) != 1) return;
    auto& mine = arrivals_.instance[static_cast<std::size_t>(rank)][op];
    if (mine == no_instance) mine = arrivals_.instances++;
    arrivals_.instance[static_cast<std::size_t>(peer)][their_op] = mine;
  }
  [[nodiscard]] std::size_t partner_count(int rank, std::uint32_t op) const {
    const Outline& outline = set_.of(rank);
    const auto transfers = outline.transfers_of(outline.ops[op]);
    const auto same_peer = [&](const program::OutlineTransfer& transfer) {
      return transfer.axis == transfers.front().axis && transfer.offset == transfers.front().offset;
    };
    return std::ranges::all_of(transfers, same_peer) ? 1 : transfers.size();
  }

  [[nodiscard]] int peer_of(int rank, const MessageClass& key) const {
    return mesh::neighbour(set_.mesh, rank, key.axis, static_cast<std::int32_t>(key.offset));
  }
  /// Returns the ops of `peer` at the other end of messages of the class `key`, in order.
  [[nodiscard]] std::span<const std::uint32_t> partners_of(int peer,
                                                           const MessageClass& key) const {
    const auto found = of(peer).messages.find(key.partner());
    if (found == of(peer).messages.end()) return {};
    return found->second;
  }

  const OutlineSet& set_;
  const TraceOfRank& traces_;
  std::vector<Sequences> sequences_;  ///< of each outline
  std::map<GroupKey, Group> groups_;
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
  std::vector<std::pair<int, int>> ranges;
  for (const int rank : shown) {
    if (!ranges.empty() && ranges.back().second + 1 == rank) {
      ranges.back().second = rank;
    } else {
      ranges.emplace_back(rank, rank);
    }
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t left = ranks.size();
  for (std::size_t i = 0; i < std::min(ranges.size(), most_ranges); ++i) {
    const auto [first, last] = ranges[i];
    text += fmt::format("{}{}", i == 0 ? "" : ", ", first);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ", " : "-", last);
    left -= static_cast<std::size_t>(last - first) + 1;
  }
  if (left > 0) text += fmt::format(" and {} more", left);
  return text;
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
