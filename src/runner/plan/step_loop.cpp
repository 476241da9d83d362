// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/step_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::runner::plan {
namespace {

// A limit that is never reached, since it would take 1.5^40 samples; up to it,
// statistics::nominal_confidence() has a table.
constexpr int most_looks = 40;

/// Returns how many looks (interim analyses) to plan for. The first look is at `first` samples, and
/// one follows each time that the number of samples has grown by the factor StopRule::growth, up to
/// `most`. There is one more in case steps are shorter than expected, and one when the time is up.
/// If time is expected to be up before there are `first` samples, only this last look is planned.
int looks_until(double first, double most) {
  if (most < first) return 1;
  const double ratio = std::max(1.0, most / first);
  const double grown = std::ceil(std::log(ratio) / std::log(StopRule::growth) - 1e-9);
  return std::min(most_looks, 3 + static_cast<int>(std::min(grown, 1.0 * most_looks)));
}

constexpr std::size_t least_steps = 3;     // least number of warm-up steps
constexpr std::size_t steps_to_tell = 16;  // in fewer steps, no change of level can be detected
// Warm-up lasts at least this share of max_time, but no more than least_seconds is required.
constexpr double least_share = 0.1;
constexpr double least_seconds = 0.5;  // long enough for clocks and caches to settle
constexpr double largest_share = 0.3;  // warm-up takes at most this share of max_time
// If steps_to_tell steps would take more than that, warm-up ends after this share.
constexpr double share_of_few_steps = 0.1;

constexpr double block_seconds = 0.05;  // a block should take this long
// Limits of the number of counted steps in a block.
constexpr std::size_t least_block = 2, largest_block = 64;
// When blocks are planned, the first least_pairs pairs (of an untraced and a traced block) may
// together take at most this share of the time that is left.
constexpr double share_of_pairs = 0.5;
// If not even the shortest blocks allow least_pairs pairs, there are fewer pairs: as many as fit
// into this share of the time that is left.
constexpr double share_of_few = 0.5;
// Number of untraced blocks between two pairs, after the first least_pairs pairs.
constexpr int alone_between_pairs = 3;
// Least number of counted steps in a block outside a pair, so that dropping the first step of the
// block, which does not count, costs little.
constexpr std::size_t least_alone = 6;
// Least number of counted steps in a traced block, unless Effort::trace_steps is smaller.
constexpr std::size_t least_traced = 2;
constexpr double shortest_step = 1e-9;  // seconds; avoids division by zero

constexpr int fewest_solo_plays = 4, most_solo_plays = 9;  // limits of the result of solo_plays()
// All plays without communication may take this share of max_time.
constexpr double share_of_time = 0.1;

}  // namespace

StopRule::StopRule(const Goal& goal, HalfWidth half_width, const NominalConfidence& nominal)
    : precision_(goal.precision),
      half_width_(std::move(half_width)),
      planned_(looks_until(static_cast<double>(goal.first), goal.most)),
      confidence_(nominal(planned_, growth)),
      next_look_(goal.first) {}

bool StopRule::suffices(std::span<const double> samples) {
  ++made_;
  next_look_ = static_cast<std::size_t>(std::ceil(growth * static_cast<double>(samples.size())));
  reached_ = half_width_(samples, confidence_);
  return reached_ && *reached_ <= precision_;
}

std::optional<std::string> WarmUp::over(std::span<const double> times, units::Seconds elapsed) {
  const std::size_t steps = times.size();
  const double share = elapsed / max_time_;
  if (share < largest_share && steps < least_steps) return std::nullopt;
  if (elapsed.value() < std::min(least_share * max_time_.value(), least_seconds)) {
    return std::nullopt;
  }
  if (steps < steps_to_tell) {
    const auto more = static_cast<double>(steps_to_tell - steps);
    const bool will_tell =
        elapsed.value() + more * times.back() <= largest_share * max_time_.value();
    if (will_tell || share < share_of_few_steps) return std::nullopt;
    return fmt::format("{}: too few to see a change", base::counted(steps, "step"));
  }
  const bool is_late = share >= largest_share;
  if (steps < next_check_ && !is_late) return std::nullopt;
  next_check_ = steps + std::max<std::size_t>(1, steps / 4);
  const std::size_t change = last_change_(times, smallest_);
  if (change == 0) return fmt::format("no change in {} steps", steps);
  const std::size_t settled = steps - change;
  if (settled >= std::max(steps_to_tell, change / 2)) {
    return fmt::format("no change in the last {} of {} steps", settled, steps);
  }
  if (!is_late) return std::nullopt;
  return fmt::format("gave up after {}: still changing", units::format(elapsed));
}

BlockPlan plan_blocks(units::Seconds step, units::Seconds left, Tracing tracing) {
  const auto steps_in = [&](double seconds, std::size_t least, std::size_t most) {
    return static_cast<std::size_t>(std::clamp(
        std::floor(seconds / step.value()), static_cast<double>(least), static_cast<double>(most)));
  };
  const std::size_t wanted = steps_in(block_seconds, least_block, largest_block);
  if (tracing == Tracing::off) return {.steps = wanted, .pairs = 0};
  const double time = std::max(left.value(), 0.0);
  // The number of steps that each block may have, if all pairs together may take share_of_pairs of
  // the time. It includes the first step of a block, which does not count.
  const std::size_t fit = steps_in(share_of_pairs * time / (2 * least_pairs), 1, largest_block + 1);
  if (fit > least_block) return {.steps = std::min(wanted, fit - 1), .pairs = least_pairs};
  return {.steps = least_block,
          .pairs = steps_in(share_of_few * time / (2 * (least_block + 1)), 0, least_pairs - 1)};
}

units::Seconds warm_step(std::span<const double> times) {
  const auto later = times.subspan(times.size() / 2);
  std::vector<double> sorted{later.begin(), later.end()};
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return units::Seconds{*middle};
}

// Warm-up may end while step times still change by less than half of the wanted precision.
StepLoop::StepLoop(const Effort& effort)
    : effort_(effort), warm_up_(effort.max_time, effort.precision / 2, effort.last_change) {}

Block StepLoop::next() {
  if (!warm_up_end_) return {.kind = Block::Kind::warm_up, .steps = 1};
  if (!rule_) return untraced(least_counted - samples_.size());
  if (round_.empty()) plan_round();
  const Block::Kind kind = round_.front();
  round_.pop_front();
  return kind == Block::Kind::traced ? traced(round_steps_) : untraced(round_steps_);
}

void StepLoop::played(const Block& block, std::span<const double> times, units::Seconds elapsed) {
  elapsed_ = elapsed;
  times_.insert(times_.end(), times.begin(), times.end());
  if (block.kind == Block::Kind::warm_up) {
    warm_up_end_ = warm_up_.over(times_, elapsed);
    return;
  }
  if (block.kind == Block::Kind::traced) {
    ++traced_;
  } else {
    samples_.insert(samples_.end(), times.begin() + 1, times.end());
  }
  if (!rule_) {
    if (samples_.size() < least_counted && elapsed_ < bound()) return;
    plan_rounds();
  }
  if (round_.empty() && !owes_trace()) look();
}

std::optional<double> StepLoop::half_width() const {
  return rule_ ? rule_->half_width() : std::nullopt;
}

results::Looks StepLoop::looks() const {
  return {.planned = rule_->planned(),
          .made = std::min(rule_->made(), rule_->planned()),
          .growth = StopRule::growth};
}

/// Plans the length of blocks and the looks (interim analyses). The time of a step is taken from
/// the later half of all steps so far. Without time for the first look, only the last is planned.
void StepLoop::plan_rounds() {
  const units::Seconds step = std::max(warm_step(times_), units::Seconds{shortest_step});
  const units::Seconds left = effort_.max_time - elapsed_;
  plan_ = plan_blocks(step, left, effort_.trace_steps > 0 ? Tracing::on : Tracing::off);
  const auto so_far = static_cast<double>(samples_.size());
  rule_.emplace(StopRule::Goal{.precision = effort_.precision,
                               .first = samples_.size() + least_pairs * plan_.steps,
                               .most = so_far + std::max(left / step, 0.0)},
                effort_.half_width, effort_.nominal_confidence);
}

/// Plans the blocks of the next round: a pair of an untraced and a traced block, or a single block.
void StepLoop::plan_round() {
  using Kind = Block::Kind;
  const bool goes_on = plan_.pairs >= least_pairs && alone_ >= alone_between_pairs;
  if (pairs_ >= plan_.pairs && !goes_on) {
    ++alone_;
    round_ = {owes_trace() ? Kind::traced : Kind::untraced};
    round_steps_ = owes_trace() ? least_traced : block_size(std::max(plan_.steps, least_alone));
    return;
  }
  round_steps_ = block_size(plan_.steps);
  alone_ = 0;
  round_ = pairs_++ % 2 == 0 ? std::deque{Kind::untraced, Kind::traced}
                             : std::deque{Kind::traced, Kind::untraced};
}

/// Returns how many steps of the next block should count, at most `most`. The steps that are still
/// needed for the next look are divided into blocks of equal size.
std::size_t StepLoop::block_size(std::size_t most) const {
  const std::size_t wanted = rule_->next_look() - std::min(samples_.size(), rule_->next_look());
  if (wanted == 0) return most;
  const std::size_t blocks = (wanted + most - 1) / most;
  return (wanted + blocks - 1) / blocks;
}

/// Returns how many steps begin before the loop has lasted `end` if each takes as long as the last.
std::size_t StepLoop::steps_until(units::Seconds end) const {
  const units::Seconds left = std::max(end - elapsed_, units::Seconds{0});
  const double steps = std::ceil(left.value() / std::max(times_.back(), shortest_step));
  return static_cast<std::size_t>(std::min(steps, 1e9));
}

Block StepLoop::untraced(std::size_t counted) const {
  const std::size_t fitting = steps_until(is_late_ || !rule_ ? bound() : effort_.max_time);
  return {.kind = Block::Kind::untraced,
          .steps = std::max<std::size_t>(2, std::min(counted + 1, fitting))};
}

Block StepLoop::traced(std::size_t counted) const {
  const auto most = static_cast<std::size_t>(effort_.trace_steps);
  const std::size_t fitting = std::min(counted + 1, steps_until(effort_.max_time));
  return {.kind = Block::Kind::traced,
          .steps = std::max(std::min(least_traced, most) + 1, fitting)};
}

/// Makes a look (an interim analysis) if enough samples were taken or time is up. As long as the
/// step time has no confidence interval, the loop goes on beyond max_time, up to bound().
void StepLoop::look() {
  const bool is_over = elapsed_ >= bound();
  const bool is_late = elapsed_ >= effort_.max_time;
  const bool is_due =
      is_late_ ? samples_.size() >= rule_->next_look() : rule_->is_due(samples_.size());
  if (!is_over && !is_due && (is_late_ || !is_late)) return;
  is_late_ = is_late;
  if (rule_->suffices(samples_)) {
    end_ = "precision";
  } else if (is_over || (is_late && rule_->half_width())) {
    end_ = "max-time";
  }
}

int solo_plays(units::Seconds step, units::Seconds max_time) {
  const double fitting = share_of_time * max_time.value() / std::max(step.value(), 1e-9);
  return static_cast<int>(std::clamp(fitting, static_cast<double>(fewest_solo_plays),
                                     static_cast<double>(most_solo_plays)));
}

}  // namespace isoscale::runner::plan
