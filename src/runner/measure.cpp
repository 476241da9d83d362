// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/measure.hpp"

#include <algorithm>
#include <cmath>

#include "runner/block_plan.hpp"
#include "runner/spread.hpp"

namespace isoscale::runner {
namespace {

constexpr int alone_between_pairs = 3;  // untraced blocks, after the least pairs
constexpr std::size_t least_alone = 6;  // steps of a block without partner: few are dropped
constexpr std::size_t least_kept = 2;   // traced steps of a block, if so many are wanted at all

/// The loop over blocks on one rank. All ranks hold the same slowest-rank step times and the same
/// elapsed time after each block, and so decide alike.
class Loop {
 public:
  Loop(executor::Session& session, const program::Program& step, const comm::Communicator& active,
       Share share, const Effort& effort)
      : session_(session),
        classes_(op_classes(step)),
        active_(active),
        share_(share),
        effort_(effort),
        most_traces_(static_cast<std::size_t>(effort.trace_steps)),
        begin_(comm::now()) {}

  void warm_up() {
    // What is smaller than half of what is asked for need not settle.
    WarmUp rule{effort_.max_time, effort_.precision / 2, effort_.last_change};
    std::optional<std::string> over;
    while (!over) {
      play_block(1, executor::Trace::off);
      record_.dropped.back() = 0;  // warm-up says it all
      over = rule.over(agreed_, elapsed());
    }
    record_.warm_up_rule = *over;
    record_.warm_up_steps = record_.step_times.size();
    make_plan();
  }

  /// A pair of blocks, or an untraced one.
  void round() {
    const bool goes_on = plan_.pairs >= least_pairs && alone_ >= alone_between_pairs;
    if (pairs_ >= plan_.pairs && !goes_on) {
      ++alone_;
      return untraced_block(block_size(std::max(plan_.steps, least_alone)));
    }
    const std::size_t steps = block_size(plan_.steps);
    alone_ = 0;
    if (pairs_++ % 2 == 0) {
      untraced_block(steps);
      traced_block(steps);
    } else {
      traced_block(steps);
      untraced_block(steps);
    }
  }

  /// Why the loop is done, or "".
  [[nodiscard]] std::string finished() {
    const bool is_late = elapsed_ >= effort_.max_time.value();
    if (!is_late && !rule_->is_due(samples_.size())) return "";
    const bool suffices = rule_->suffices(samples_);
    record_.looks = {
        .planned = rule_->planned(), .made = rule_->made(), .growth = StopRule::growth};
    if (suffices) return "precision";
    return is_late ? "max-time" : "";
  }

  [[nodiscard]] units::Seconds elapsed() const { return units::Seconds{elapsed_}; }
  [[nodiscard]] Standing standing() const {
    return {.steps = record_.step_times.size(),
            .traced = static_cast<std::size_t>(std::ranges::count(record_.traced, 1)),
            .elapsed = elapsed(),
            .half_width = rule_->half_width()};
  }
  [[nodiscard]] Record& record() { return record_; }

 private:
  /// Blocks as long as warm-up's second half suggests, and when to look.
  void make_plan() {
    const units::Seconds step = std::max(warm_step(agreed_), units::Seconds{1e-9});
    const units::Seconds left = effort_.max_time - elapsed();
    plan_ = plan_blocks(step, left, most_traces_ > 0 ? Tracing::on : Tracing::off);
    rule_.emplace(StopRule::Goal{.precision = effort_.precision,
                                 .first = least_pairs * plan_.steps,
                                 .most = left / step},
                  effort_.half_width, effort_.nominal_confidence);
  }

  /// Steps that count until the next agreement, at most: equal parts of what the next look waits
  /// for.
  [[nodiscard]] std::size_t block_size(std::size_t most) const {
    const std::size_t wanted = rule_->next_look() - std::min(samples_.size(), rule_->next_look());
    if (wanted == 0) return most;
    const std::size_t blocks = (wanted + most - 1) / most;
    return (wanted + blocks - 1) / blocks;
  }

  /// No more than the time that is left holds.
  [[nodiscard]] std::size_t fitting(std::size_t steps) const {
    const double left = std::max(effort_.max_time.value() - elapsed_, 0.0);
    const double last = std::max(agreed_.back(), 1e-9);
    return static_cast<std::size_t>(std::min(std::ceil(left / last), static_cast<double>(steps)));
  }

  void untraced_block(std::size_t steps) {
    const std::size_t first = record_.step_times.size();
    play_block(std::max<std::size_t>(1, fitting(steps)) + 1, executor::Trace::off);
    samples_.insert(samples_.end(), agreed_.begin() + static_cast<std::ptrdiff_t>(first + 1),
                    agreed_.end());
  }

  void traced_block(std::size_t steps) {
    play_block(std::max(std::min(least_kept, most_traces_), fitting(steps)) + 1,
               executor::Trace::on);
  }

  void play_block(std::size_t steps, executor::Trace trace) {
    const std::size_t kept = std::max(least_kept, (most_traces_ + least_pairs - 1) / least_pairs);
    std::vector<double> times;
    for (std::size_t i = 0; i < steps; ++i) {
      const executor::PlayTime time = session_.play(program::Section::step, trace);
      times.push_back(units::to_seconds(time.end - time.begin).value());
      if (record_.traced.empty()) record_.begin = time.begin;
      record_.end = time.end;
      record_.traced.push_back(trace == executor::Trace::on ? 1 : 0);
      record_.dropped.push_back(i == 0 ? 1 : 0);
      if (trace == executor::Trace::off || i == 0) continue;
      const auto number = static_cast<std::uint32_t>(record_.step_times.size() + i);
      record_.op_sums.push_back(sum_up(number, session_.spans(), classes_));
      if (i + kept >= steps) keep(number, time);
    }
    thin_to(record_.op_sums, most_op_sums);
    record_.step_times.insert(record_.step_times.end(), times.begin(), times.end());

    // What all know: each step's slowest rank, and how long it has been.
    if (share_ == Share::replica) std::fill(times.begin(), times.end(), 0.0);
    times.push_back(units::to_seconds(comm::now() - begin_).value());
    active_.all_max(times);
    elapsed_ = times.back();
    agreed_.insert(agreed_.end(), times.begin(), times.end() - 1);
  }

  /// The spans of the step just played, and as many of the earlier ones as are wanted.
  void keep(std::uint32_t number, const executor::PlayTime& time) {
    const auto spans = session_.spans();
    record_.traces.push_back({.rank = 0,
                              .step = number,
                              .begin = time.begin,
                              .end = time.end,
                              .spans = {spans.begin(), spans.end()}});
    thin_to(record_.traces, most_traces_);
  }

  executor::Session& session_;
  std::vector<OpClass> classes_;
  const comm::Communicator& active_;
  Share share_;
  const Effort& effort_;
  std::size_t most_traces_;
  units::Nanoseconds begin_;
  double elapsed_ = 0;
  BlockPlan plan_;
  std::size_t pairs_ = 0;  ///< played so far
  int alone_ = 0;          ///< untraced blocks since the last pair
  std::optional<StopRule> rule_;
  std::vector<double> agreed_;   ///< slowest rank's time of every step
  std::vector<double> samples_;  ///< of the untraced steps that count
  Record record_;
};

}  // namespace

Record measure(executor::Session& session, const program::Program& step,
               const comm::Communicator& active, Share share, const Effort& effort,
               const OnBlock& on_block) {
  Loop loop{session, step, active, share, effort};
  loop.warm_up();
  std::string done;
  while (done.empty()) {
    loop.round();
    done = loop.finished();
    on_block(loop.standing());
  }
  loop.record().stopped_because = done;
  return std::move(loop.record());
}

}  // namespace isoscale::runner
