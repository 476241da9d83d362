// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "units/quantity.hpp"

/// Pure rules for how many steps a point plays, in which blocks, and when there have been enough.
namespace isoscale::runner {

/// Relative half-width of the median's interval at a confidence; absent while there is none.
using HalfWidth = std::function<std::optional<double>(std::span<const double>, double confidence)>;
/// The confidence that each of `planned` interim looks must have so that the overall confidence
/// stays 95%, where the number of samples grows by the factor `growth` from look to look.
using NominalConfidence = std::function<double(int planned, double growth)>;

/// Looks at samples at numbers that grow geometrically, and says whether they suffice. The number
/// of looks is planned once, so that the interval at each can be as much wider as looking so often
/// demands. Ranks that hold the same samples decide alike.
class StopRule {
 public:
  static constexpr double growth = 1.5;  ///< of the samples from one look to the next

  struct Goal {
    double precision = 0.01;  ///< relative half-width to stop at
    std::size_t first = 6;    ///< samples at the first look
    double most = 6;          ///< samples that the time is expected to hold
  };

  /// Without `nominal`, every look has 95%.
  StopRule(const Goal& goal, HalfWidth half_width, const NominalConfidence& nominal);

  /// Samples that the next look waits for.
  [[nodiscard]] std::size_t next_look() const { return next_look_; }
  /// True if there are samples enough for the next look, and looks left but the last one: that is
  /// kept for when time is up.
  [[nodiscard]] bool is_due(std::size_t samples) const {
    return samples >= next_look_ && made_ + 1 < planned_;
  }
  /// Looks; whether the samples suffice.
  bool suffices(std::span<const double> samples);

  [[nodiscard]] int planned() const { return planned_; }
  [[nodiscard]] int made() const { return made_; }
  /// As the last look found it.
  [[nodiscard]] std::optional<double> half_width() const { return reached_; }

 private:
  double precision_;
  HalfWidth half_width_;
  int planned_;
  double confidence_;
  std::size_t next_look_;
  int made_ = 0;
  std::optional<double> reached_;
};

/// The first sample after the last change of level that is larger than this, relative; 0 = none.
using LastChange = std::function<std::size_t(std::span<const double>, double smallest)>;

/// Decides when steps have settled. At least 3 are played and a tenth of the time, up to half a
/// second; then at least 16 must have followed the last change of level, and half as many as came
/// before it. It gives up when 3 tenths of the time have gone, and does not spend more than one on
/// the first 16. Ranks that hold the same times decide alike.
class WarmUp {
 public:
  /// Without `last_change`, nobody looks for changes.
  WarmUp(units::Seconds max_time, double smallest, LastChange last_change)
      : max_time_(max_time), smallest_(smallest), last_change_(std::move(last_change)) {}

  /// Returns why it is over, in words; absent: another step is to be played. `times` are those of
  /// all steps so far, of which there is one, and `elapsed` is how long they took.
  [[nodiscard]] std::optional<std::string> over(std::span<const double> times,
                                                units::Seconds elapsed);

 private:
  units::Seconds max_time_;
  double smallest_;
  LastChange last_change_;
  std::size_t next_check_ = 0;  ///< steps; not after each of them
};

/// Pairs of an untraced and a traced block from which on their differences have an interval.
inline constexpr std::size_t least_pairs = 6;
/// Steps that count, from which on a step time has an interval.
inline constexpr std::size_t least_counted = 6;
/// Times --max-time that a loop may last for so many to count.
inline constexpr double longest_overtime = 3;

/// The limits of a loop: when to stop, and how much to trace.
struct Effort {
  double precision = 0.01;      ///< relative half-width of the interval to stop at
  units::Seconds max_time{30};  ///< target for the whole loop, warm-up included
  /// Times max_time that the loop may last while there is no interval. At least 1.
  double overtime = longest_overtime;
  int trace_steps = 4;  ///< traced steps to keep; 0: none is traced
  /// Pure functions over step times that the loop judges by; the last two may be absent, see
  /// StopRule and WarmUp.
  HalfWidth half_width;
  NominalConfidence nominal_confidence{};
  LastChange last_change{};
};

enum class Tracing : bool { off, on };

/// Steps that are played without a look at the clock. The first of an untraced or traced block
/// begins from a standstill and does not count.
struct Block {
  enum class Kind : std::uint8_t { warm_up, untraced, traced } kind = Kind::warm_up;
  std::size_t steps = 1;  ///< in all

  bool operator==(const Block&) const = default;
};

/// Pairs of blocks, and the steps of each block that count.
struct BlockPlan {
  std::size_t steps = 2;
  std::size_t pairs = 0;

  bool operator==(const BlockPlan&) const = default;
};

/// Blocks of about 50 ms, of 2 to 64 steps, and six pairs of them. Where these would take more than
/// half of the time that is left, first the blocks become shorter, then the pairs fewer: as many as
/// a quarter of the time holds, up to five, or none.
[[nodiscard]] BlockPlan plan_blocks(units::Seconds step, units::Seconds left, Tracing tracing);

/// Returns how long a step takes once it is warm: the median of the later half. There is at least
/// one.
[[nodiscard]] units::Seconds warm_step(std::span<const double> times);

/// Hands out the blocks of a loop one after the other. Warm-up comes first, a step at a time; then
/// untraced steps until six count; then, with tracing, pairs of an untraced and a traced block of
/// as many steps, their order swapped from pair to pair: six until the samples are looked at, then
/// one for every three untraced blocks; where six would take more than half of the time, fewer, and
/// none later. However little time there is, one step counts and two are traced. Ranks that hold
/// the same times are handed the same blocks.
class StepLoop {
 public:
  /// `effort` must outlive the loop.
  explicit StepLoop(const Effort& effort);

  /// The block to play now. Not to be called once there is an end.
  [[nodiscard]] Block next();
  /// Takes the times of its steps, and how long the loop has lasted.
  void played(const Block& block, std::span<const double> times, units::Seconds elapsed);

  /// "precision" or "max-time" once the loop is over, until then "".
  [[nodiscard]] const std::string& end() const { return end_; }
  /// Says why warm-up is over; absent while it lasts.
  [[nodiscard]] const std::optional<std::string>& warm_up_end() const { return warm_up_end_; }
  /// Steps so far: all of them, and those whose times count.
  [[nodiscard]] std::size_t steps() const { return times_.size(); }
  [[nodiscard]] std::size_t counted() const { return samples_.size(); }
  [[nodiscard]] units::Seconds elapsed() const { return elapsed_; }
  /// Once warm-up is over: see StopRule.
  [[nodiscard]] int looks_planned() const { return rule_->planned(); }
  [[nodiscard]] int looks_made() const;
  [[nodiscard]] std::optional<double> half_width() const;

 private:
  [[nodiscard]] units::Seconds bound() const { return effort_.overtime * effort_.max_time; }
  [[nodiscard]] std::size_t steps_until(units::Seconds end) const;
  [[nodiscard]] std::size_t block_size(std::size_t most) const;
  [[nodiscard]] Block untraced(std::size_t counted) const;
  [[nodiscard]] Block traced(std::size_t counted) const;
  [[nodiscard]] bool owes_trace() const { return effort_.trace_steps > 0 && traced_ == 0; }
  void plan_rounds();
  void plan_round();
  void look();

  const Effort& effort_;
  WarmUp warm_up_;
  std::optional<std::string> warm_up_end_;
  BlockPlan plan_;
  std::optional<StopRule> rule_;
  std::deque<Block::Kind> round_;  ///< blocks to come before the next look
  std::size_t round_steps_ = 0;    ///< that count, of each of these
  std::size_t pairs_ = 0;          ///< begun so far
  int alone_ = 0;                  ///< untraced blocks since the last pair
  std::size_t traced_ = 0;         ///< blocks
  bool is_late_ = false;           ///< looked at when max_time was over
  std::vector<double> times_;      ///< of every step
  std::vector<double> samples_;    ///< of those that count
  units::Seconds elapsed_{};
  std::string end_;
};

/// Returns how often the step without communication is played; the first play warms up.
[[nodiscard]] int solo_plays(units::Seconds step, units::Seconds max_time);

}  // namespace isoscale::runner
