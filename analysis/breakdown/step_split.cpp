// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/step_split.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "analysis/breakdown/replay.hpp"
#include "analysis/breakdown/seconds.hpp"
#include "base/error.hpp"

namespace isoscale::analysis {
namespace {

using units::Nanoseconds;

Breakdown to_breakdown(const RankStep& times, Nanoseconds bubble) {
  Breakdown result{.compute = seconds(times.compute),
                   .copies = seconds(times.copies),
                   .transfer = seconds(times.transfer),
                   .wait = seconds(times.wait + times.late - bubble),
                   .bubble = seconds(bubble),
                   .gap = seconds(times.gap),
                   .other = 0,
                   .step = seconds(times.step),
                   .hidden_communication = seconds(times.hidden),
                   .hidden_copies = seconds(times.hidden_copies)};
  result.other = seconds(times.step - times.compute - times.copies - times.transfer - times.wait -
                         times.late - times.gap);
  return result;
}

/// Splits one traced step over its ranks.
class StepSplit {
 public:
  StepSplit(const results::PointData& point, const Condensed& condensed, const TracedStep& step,
            const Layers& layers, std::vector<double> noise_shares)
      : point_(point),
        condensed_(condensed),
        step_(step),
        layers_(layers),
        noise_shares_(std::move(noise_shares)),
        result_(layers) {}

  StepResult run() {
    replay();
    for (int rank = 0; rank < point_.ranks; ++rank) {
      if (step_.traces[static_cast<std::size_t>(rank)] != nullptr) add_rank(rank);
    }
    return std::move(result_);
  }

 private:
  void replay() {
    try {
      Replay replay = replay_on_free_network(point_, condensed_, step_.traces);
      result_.replay.assumed = std::move(replay.assumed);
      result_.free_network_step = replay.step;
      idle_ = std::move(replay.idle);
    } catch (const base::Error& error) {
      result_.replay.failure = error.what();
      idle_.assign(step_.traces.size(), Nanoseconds{0});
    }
  }

  void add_rank(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const program::Outline& outline = point_.outline.of(rank);
    const RankStep times = split(outline, *step_.traces[at], step_.waits[at],
                                 point_.folded ? Streams::folded : Streams::as_written, shares_);
    const Nanoseconds bubble = std::clamp(idle_[at], Nanoseconds{0}, times.late);
    const double bubble_share = times.late > Nanoseconds{0} ? bubble / times.late : 0;
    result_.of_rank.emplace(rank, to_breakdown(times, bubble));
    result_.places.add(outline, layers_.of_outline(point_.outline.outline_of_rank[at]), shares_,
                       bubble_share);
    add_waiting(outline, at, bubble_share);
    result_.unaccounted += times.unaccounted;
    result_.length += times.step;
    if (times.largest.length > result_.largest.length) {
      result_.largest = times.largest;
      result_.largest_rank = rank;
    }
  }

  void add_waiting(const program::Outline& outline, std::size_t rank, double bubble_share) {
    if (noise_shares_.empty() || step_.instance[rank].empty()) return;
    for (std::size_t op = 0; op < shares_.size(); ++op) {
      const std::uint32_t instance = step_.instance[rank][op];
      if (instance == no_instance || shares_[op].waiting == Nanoseconds{0}) continue;
      const double noise = noise_shares_[instance];
      if (std::isnan(noise)) continue;
      double waiting = seconds(shares_[op].waiting);
      if (program::between_stages(outline.ops[op])) waiting *= 1 - bubble_share;
      result_.waiting.known += waiting;
      result_.waiting.noise += waiting * noise;
    }
  }

  const results::PointData& point_;
  const Condensed& condensed_;
  const TracedStep& step_;
  const Layers& layers_;
  std::vector<double> noise_shares_;  ///< by instance; empty = not known
  std::vector<Nanoseconds> idle_;     ///< by rank, on a free network
  std::vector<OpShare> shares_;       ///< of the rank under way
  StepResult result_;
};

}  // namespace

StepResult split_step(const results::PointData& point, const Condensed& condensed,
                      const TracedStep& step, const Layers& layers,
                      std::vector<double> noise_shares) {
  return StepSplit{point, condensed, step, layers, std::move(noise_shares)}.run();
}

}  // namespace isoscale::analysis
