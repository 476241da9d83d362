// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"
#include "analysis/breakdown/replay_without_network.hpp"
#include "analysis/breakdown/time_attribution.hpp"
#include "analysis/breakdown/wait_causes.hpp"
#include "base/error.hpp"
#include "base/parallel.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::breakdown {
namespace {

using units::Nanoseconds;

/// Notes on the replays of a point's steps on a network that takes no time
/// (replay_without_network.hpp).
struct ReplayNotes {
  /// Ranks without a trace, replayed with the mean op times of traced ranks with the same program.
  std::set<int> assumed;
  std::string failure;  ///< why a replay failed; "" if none did
};

/// Returns the text of BreakdownResult::missing: sentences on the parts that could not be
/// determined; "" if all could. `step` is in seconds.
std::string missing_text(const results::PointData& point, const TracedSteps& steps,
                         const ReplayNotes& replay, double step) {
  std::string text;
  const auto say = [&text](const std::string& sentence) {
    text += (text.empty() ? "" : "; ") + sentence;
  };
  const auto say_of = [&](const std::set<int>& ranks, std::string_view before,
                          std::string_view after) {
    if (!ranks.empty()) say(fmt::format("{}{}{}", before, rank_list(point, ranks), after));
  };
  say_of(steps.broken, "the traces of ", " are damaged and left out");
  std::set<int> unseen = steps.unseen;
  for (const int rank : steps.unaligned) unseen.erase(rank);
  say_of(unseen, "", " not traced: waiting for them counts as transfer");
  say_of(steps.unaligned, "the clocks of ",
         " are not aligned: waiting there and for them counts as transfer");
  say_of(steps.unmatched, "messages of ",
         " match no op of the partner: waiting in them counts as transfer");
  say_of(replay.assumed, "bubble assumes the mean op times of like ranks for ", "");
  if (!replay.failure.empty()) {
    say(fmt::format("bubble and waiting are not separated: {}", replay.failure));
  }
  constexpr double visible = 0.01;  // smallest share that tables of whole percents show
  if (steps.clock_error > visible * step) {
    say(fmt::format("clocks agree to {} only: shorter waits count as transfer",
                    units::format(units::Seconds{steps.clock_error})));
  }
  return text;
}

/// Seconds of waiting without bubble, summed over the ops whose cause of waiting is known, and the
/// part of these seconds that is noise.
struct Waiting {
  double known = 0, noise = 0;
};

struct StepResult {
  explicit StepResult(const Layers& layers) : places(layers) {}

  std::map<int, Breakdown> of_rank;
  PlaceSums places;
  Waiting waiting;
  units::Nanoseconds unaccounted, length;
  Unexplained largest;
  int largest_rank = 0;
  ReplayNotes replay;
  std::optional<units::Nanoseconds> free_network_step;
};

Breakdown to_breakdown(const RankStep& times, Nanoseconds bubble) {
  return {.compute = seconds(times.compute),
          .copies = seconds(times.copies),
          .transfer = seconds(times.transfer),
          .wait = seconds(times.wait + times.late - bubble),
          .bubble = seconds(bubble),
          .gap = seconds(times.gap),
          .other = seconds(times.step - times.compute - times.copies - times.transfer - times.wait -
                           times.late - times.gap),
          .step = seconds(times.step),
          .hidden_communication = seconds(times.hidden),
          .hidden_transfer = seconds(times.hidden_transfer),
          .hidden_copies = seconds(times.hidden_copies)};
}

/// Returns each rank's idle time in a replay of a step on a network that takes no time; all times
/// are 0 if the replay fails. Adds the other results of the replay to `result`.
std::vector<Nanoseconds> idle_times(const results::PointData& point,
                                    const simulate::Coarsener& programs, const TracedStep& step,
                                    StepResult& result) {
  try {
    Replay replay = replay_on_free_network(point, programs, step.traces);
    result.replay.assumed = std::move(replay.assumed);
    result.free_network_step = replay.step;
    return std::move(replay.idle);
  } catch (const base::Error& error) {
    result.replay.failure = error.what();
    return std::vector<Nanoseconds>(step.traces.size());
  }
}

/// Adds the waiting of a rank's ops for which the cause of waiting is known. instance[op] is the
/// number of the collective, or of the pair of exchanges, that the op belongs to, an index into
/// `noise_shares`. The share `bubble_share` of waiting in exchanges between stages is bubble and is
/// not added.
void add_waiting(const program::Outline& outline, const std::vector<OpShare>& shares,
                 const std::vector<std::uint32_t>& instance,
                 const std::vector<double>& noise_shares, double bubble_share, Waiting& waiting) {
  if (noise_shares.empty() || instance.empty()) return;
  for (std::size_t op = 0; op < shares.size(); ++op) {
    if (instance[op] == no_instance || shares[op].waiting == Nanoseconds{0}) continue;
    const double noise = noise_shares[instance[op]];
    if (std::isnan(noise)) continue;
    double waited = seconds(shares[op].waiting);
    if (program::between_stages(outline.ops[op])) waited *= 1 - bubble_share;
    waiting.known += waited;
    waiting.noise += waited * noise;
  }
}

/// Divides one traced step into the categories of the breakdown, rank by rank. `noise_shares` comes
/// from WaitCauses::noise_shares(); it is empty if not known.
StepResult split_step(const results::PointData& point, const simulate::Coarsener& programs,
                      const TracedStep& step, const Layers& layers,
                      const std::vector<double>& noise_shares) {
  StepResult result{layers};
  const std::vector<Nanoseconds> idle = idle_times(point, programs, step, result);
  std::vector<OpShare> shares;  // shares of one rank's ops
  for (int rank = 0; rank < point.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (step.traces[at] == nullptr) continue;
    const program::Outline& outline = point.outline.of(rank);
    const RankStep times = split(outline, *step.traces[at], step.waits[at], point.folded, shares);
    const Nanoseconds bubble = std::clamp(idle[at], Nanoseconds{0}, times.late);
    const double bubble_share = times.late > Nanoseconds{0} ? bubble / times.late : 0;
    result.of_rank.emplace(rank, to_breakdown(times, bubble));
    result.places.add(outline, layers.of_outline(point.outline.outline_of_rank[at]), shares,
                      bubble_share);
    add_waiting(outline, shares, step.instance[at], noise_shares, bubble_share, result.waiting);
    result.unaccounted += times.unaccounted;
    result.length += times.step;
    if (times.largest.length > result.largest.length) {
      result.largest = times.largest;
      result.largest_rank = rank;
    }
  }
  return result;
}

constexpr std::array fields{&Breakdown::compute,
                            &Breakdown::copies,
                            &Breakdown::transfer,
                            &Breakdown::wait,
                            &Breakdown::bubble,
                            &Breakdown::gap,
                            &Breakdown::other,
                            &Breakdown::step,
                            &Breakdown::hidden_communication,
                            &Breakdown::hidden_transfer,
                            &Breakdown::hidden_copies};

Breakdown mean(const std::vector<Breakdown>& parts) {
  Breakdown result;
  for (const Breakdown& part : parts) result += part;
  return result *= 1 / static_cast<double>(parts.size());
}

LargestUnexplained describe(const results::PointData& point, const TracedStep& step,
                            const StepResult& result) {
  const auto rank = static_cast<std::size_t>(result.largest_rank);
  const timeline::StepTrace& trace = *step.traces[rank];
  LargestUnexplained largest{.rank = result.largest_rank,
                             .step = step.step,
                             .begin = seconds(result.largest.begin - trace.begin),
                             .length = seconds(result.largest.length)};
  const auto& ops = point.outline.of(result.largest_rank).ops;
  if (result.largest.after >= ops.size() || result.largest.begin <= trace.begin) return largest;
  const program::OutlineOp& op = ops[result.largest.after];
  largest.after = fmt::format("{}, {}", program::name(op.kind), program::name(op.place.phase));
  if (op.place.layer >= 0) largest.after += fmt::format(", layer {}", op.place.layer);
  return largest;
}

class Merge {
 public:
  Merge(const results::PointData& point, const simulate::Coarsener& programs,
        const TracedSteps& steps, const Layers& layers)
      : point_(point), programs_(programs), steps_(steps), places_(layers) {}

  void add(const TracedStep& step, const StepResult& one) {
    double slowest = 0;
    for (const auto& [rank, parts] : one.of_rank) {
      of_rank_[rank].push_back(parts);
      ++rank_steps_;
      slowest = std::max(slowest, parts.step);
    }
    slowest_ += slowest;
    places_.add(one.places);
    waiting_.known += one.waiting.known;
    waiting_.noise += one.waiting.noise;
    unaccounted_ += one.unaccounted;
    length_ += one.length;
    if (one.largest.length > largest_) {
      largest_ = one.largest.length;
      result_.largest = describe(point_, step, one);
    }
    notes_.assumed.insert(one.replay.assumed.begin(), one.replay.assumed.end());
    if (notes_.failure.empty()) notes_.failure = one.replay.failure;
    if (one.free_network_step) free_network_ += seconds(*one.free_network_step);
  }

  BreakdownResult finish(const WaitCauses& causes) {
    for (const auto& [rank, parts] : of_rank_) {
      result_.ranks.push_back(rank);
      result_.of_rank.push_back(mean(parts));
    }
    if (steps_.unaligned.empty()) result_.clock_error = steps_.clock_error;
    result_.steps = steps_.steps.size();
    result_.wait_known = steps_.knows_waits();
    result_.bubble_known = !exchanges() || (steps_.knows_messages() && notes_.failure.empty());
    if (!result_.of_rank.empty()) {
      result_.slowest_step = slowest_ / static_cast<double>(result_.steps);
      result_.mean = mean(result_.of_rank);
      result_.unaccounted = unaccounted_ / length_;
      places_.write(rank_steps_, point_.mesh, result_);
      if (causes.known() && result_.wait_known) result_.waits = wait_split(causes);
      result_.caused = causes.caused(point_.outline);
      if (notes_.failure.empty()) {
        result_.free_network_step = free_network_ / static_cast<double>(result_.steps);
        if (exchanges() && result_.bubble_known) result_.schedule_bubble = schedule_bubble();
      }
    }
    result_.missing = missing_text(point_, steps_, exchanges() ? notes_ : ReplayNotes{},
                                   result_.mean ? result_.mean->step : 0);
    if (!result_.mean && result_.missing.empty()) result_.missing = "no traced step counts";
    return std::move(result_);
  }

 private:
  /// Divides the waiting into imbalance and noise. Waiting of unknown cause is divided in the same
  /// proportion. Absent if neither the traces nor the sums of op times show the share of noise.
  [[nodiscard]] std::optional<WaitSplit> wait_split(const WaitCauses& causes) const {
    const double wait = result_.mean->wait;
    if (!(wait > 0)) return WaitSplit{};
    // The noise share of a single instance (one collective, or one pair of exchanges) may be far
    // outside of 0 to 1, and only the mean over many instances is reliable. If there are fewer, the
    // estimate from the sums of op times is used instead.
    constexpr std::size_t fewest_instances = 20;
    std::optional<double> share = noise_share(point_.op_sums);
    if (waiting_.known > 0 && causes.instances() >= fewest_instances) {
      share = waiting_.noise / waiting_.known;
    }
    if (!share) return std::nullopt;
    const double noise = wait * std::clamp(*share, 0.0, 1.0);
    return WaitSplit{.imbalance = wait - noise, .noise = noise};
  }

  /// Returns the mean idle time of ranks if all were equally fast, but at most the measured bubble.
  [[nodiscard]] std::optional<double> schedule_bubble() const {
    try {
      const Replay replay = replay_of_schedule(point_, programs_, steps_.steps);
      double idle = 0;
      for (const Nanoseconds time : replay.idle) idle += seconds(time);
      return std::min(idle / static_cast<double>(replay.idle.size()), result_.mean->bubble);
    } catch (const base::Error&) {
      return std::nullopt;  // the replay with measured times fails too, and reports the reason
    }
  }

  /// True if the point's programs have exchanges between pipeline stages. Programs without any have
  /// no bubble.
  [[nodiscard]] bool exchanges() const {
    return std::ranges::any_of(point_.outline.outlines, [](const program::Outline& outline) {
      return std::ranges::any_of(
          outline.ops, [](const program::OutlineOp& op) { return program::between_stages(op); });
    });
  }

  const results::PointData& point_;
  const simulate::Coarsener& programs_;
  const TracedSteps& steps_;
  PlaceSums places_;
  std::map<int, std::vector<Breakdown>> of_rank_;
  double rank_steps_ = 0, free_network_ = 0, slowest_ = 0;
  Waiting waiting_;
  Nanoseconds unaccounted_, length_, largest_;
  ReplayNotes notes_;
  BreakdownResult result_;
};

}  // namespace

Breakdown& Breakdown::operator+=(const Breakdown& more) {
  for (const auto field : fields) this->*field += more.*field;
  return *this;
}

Breakdown& Breakdown::operator*=(double factor) {
  for (const auto field : fields) this->*field *= factor;
  return *this;
}

BreakdownResult breakdown(const results::PointData& point) {
  BreakdownResult nothing;
  nothing.missing = missing_traces(point);
  return nothing.missing.empty() ? breakdown(point, traced_steps(point)) : nothing;
}

BreakdownResult breakdown(const results::PointData& point, const TracedSteps& traced) {
  const WaitCauses causes{traced};
  const Layers layers{point.outline};
  const simulate::Coarsener programs = coarse_programs(point);
  std::vector<StepResult> steps(traced.steps.size(), StepResult{layers});
  base::parallel_for(steps.size(), [&](std::size_t i) {
    steps[i] = split_step(point, programs, traced.steps[i], layers,
                          causes.known() ? causes.noise_shares(i) : std::vector<double>{});
  });
  Merge merge{point, programs, traced, layers};
  for (std::size_t i = 0; i < steps.size(); ++i) merge.add(traced.steps[i], steps[i]);
  return merge.finish(causes);
}

}  // namespace isoscale::analysis::breakdown
