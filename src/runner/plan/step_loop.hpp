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

/// Pure rules for how many steps a point plays, in which blocks, and when they suffice.
namespace isoscale::runner {

/// Returns the relative half-width of the median's interval at a confidence; absent while there is
/// none.
using HalfWidth = std::function<std::optional<double>(std::span<const double>, double confidence)>;
/// Returns the confidence that each of `planned` interim analyses must have so that the overall
/// confidence stays 95%, if the number of samples grows by the factor `growth` between them.
using NominalConfidence = std::function<double(int planned, double growth)>;

/// Decides at interim analyses ("looks") whether the samples suffice. The numbers of samples at the
/// looks grow geometrically. The number of looks is planned once, so that the interval at each look
/// can be widened for so many looks. Ranks that hold the same samples decide alike.
class StopRule {
 public:
  static constexpr double growth = 1.5;  ///< of the samples from one look to the next

  struct Goal {
    double precision = 0.01;  ///< relative half-width to stop at
    std::size_t first = 6;    ///< samples at the first look
    double most = 6;          ///< samples that the time is expected to hold
  };

  /// Without `nominal`, every look has 95% confidence.
  StopRule(const Goal& goal, HalfWidth half_width, const NominalConfidence& nominal);

  /// Returns the number of samples that the next look waits for.
  [[nodiscard]] std::size_t next_look() const { return next_look_; }
  /// True if there are enough samples for the next look, and more than one look is left: the last
  /// one is kept for when time is up.
  [[nodiscard]] bool is_due(std::size_t samples) const {
    return samples >= next_look_ && made_ + 1 < planned_;
  }
  /// Makes a look. True if the samples suffice.
  bool suffices(std::span<const double> samples);

  [[nodiscard]] int planned() const { return planned_; }
  [[nodiscard]] int made() const { return made_; }
  /// Returns the half-width that the last look found.
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

/// Returns the first sample after the last change of level that exceeds `smallest`, relative; 0 if
/// there is none.
using LastChange = std::function<std::size_t(std::span<const double>, double smallest)>;

/// Decides when steps have settled. At least 3 steps are played, and a tenth of the time but no
/// more than half a second. Then at least 16 steps must follow the last change of level, and half
/// as many as came before it. Warm-up gives up after 3 tenths of the time, and spends no more than
/// one tenth on the first 16 steps. Ranks that hold the same times decide alike.
class WarmUp {
 public:
  /// Without `last_change`, changes of level are not searched for.
  WarmUp(units::Seconds max_time, double smallest, LastChange last_change)
      : max_time_(max_time), smallest_(smallest), last_change_(std::move(last_change)) {}

  /// Returns why warm-up is over, in words; absent if another step must be played. `times` holds
  /// all steps so far (at least one), and `elapsed` is how long they took.
  [[nodiscard]] std::optional<std::string> over(std::span<const double> times,
                                                units::Seconds elapsed);

 private:
  units::Seconds max_time_;
  double smallest_;
  LastChange last_change_;
  std::size_t next_check_ = 0;  ///< steps; the check is not made after each
};

/// The number of pairs of an untraced and a traced block from which on their differences have an
/// interval.
inline constexpr std::size_t least_pairs = 6;
/// The number of counted steps from which on a step time has an interval.
inline constexpr std::size_t least_counted = 6;
/// A loop may last this many times --max-time to reach `least_counted` steps.
inline constexpr double longest_overtime = 3;

/// The limits of a loop: when to stop, and how much to trace.
struct Effort {
  double precision = 0.01;      ///< relative half-width of the interval to stop at
  units::Seconds max_time{30};  ///< target for the whole loop, warm-up included
  /// The loop may last this many times max_time while there is no interval. At least 1.
  double overtime = longest_overtime;
  int trace_steps = 4;  ///< traced steps to keep; 0: none is traced
  /// Pure functions over step times by which the loop decides. The last two may be absent, see
  /// StopRule and WarmUp.
  HalfWidth half_width;
  NominalConfidence nominal_confidence{};
  LastChange last_change{};
};

enum class Tracing : bool { off, on };

/// Steps that are played in a row; the time limit is checked only after the last. The first step of
/// an untraced or traced block begins from a standstill and does not count.
struct Block {
  enum class Kind : std::uint8_t { warm_up, untraced, traced } kind = Kind::warm_up;
  std::size_t steps = 1;  ///< in all

  bool operator==(const Block&) const = default;
};

/// The number of pairs of blocks, and the counted steps of each block.
struct BlockPlan {
  std::size_t steps = 2;
  std::size_t pairs = 0;

  bool operator==(const BlockPlan&) const = default;
};

/// Plans blocks of about 50 ms, with 2 to 64 steps each, and six pairs of them. If these would take
/// more than half of the time left, first the blocks become shorter, then the pairs fewer: as many
/// as fit into a quarter of the time, from none to five.
[[nodiscard]] BlockPlan plan_blocks(units::Seconds step, units::Seconds left, Tracing tracing);

/// Returns how long a warm step takes: the median of the later half of `times`, which must not be
/// empty.
[[nodiscard]] units::Seconds warm_step(std::span<const double> times);

/// Hands out the blocks of a loop one after the other. Warm-up comes first, a step at a time. Then
/// come untraced steps until six count. With tracing, pairs of an untraced and a traced block of as
/// many steps follow, in alternating order: six pairs until the samples are first looked at, then
/// one pair for every three untraced blocks. If six pairs would take more than half of the time,
/// there are fewer, and none after the first look. However little time there is, one step counts
/// and two are traced. Ranks that hold the same times are handed the same blocks.
class StepLoop {
 public:
  /// `effort` must outlive the loop.
  explicit StepLoop(const Effort& effort);

  /// Returns the block to play now; not to be called after the end.
  [[nodiscard]] Block next();
  /// Takes the times of the block's steps, and how long the loop has lasted.
  void played(const Block& block, std::span<const double> times, units::Seconds elapsed);

  /// Returns "precision" or "max-time" once the loop is over, until then "".
  [[nodiscard]] const std::string& end() const { return end_; }
  /// Returns why warm-up is over; absent while it lasts.
  [[nodiscard]] const std::optional<std::string>& warm_up_end() const { return warm_up_end_; }
  /// Return the number of steps so far: all of them, and those whose times count.
  [[nodiscard]] std::size_t steps() const { return times_.size(); }
  [[nodiscard]] std::size_t counted() const { return samples_.size(); }
  [[nodiscard]] units::Seconds elapsed() const { return elapsed_; }
  /// The following are known once warm-up is over, see StopRule.
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
  std::size_t round_steps_ = 0;    ///< steps of each of these blocks that count
  std::size_t pairs_ = 0;          ///< pairs begun so far
  int alone_ = 0;                  ///< untraced blocks since the last pair
  std::size_t traced_ = 0;         ///< traced blocks
  bool is_late_ = false;           ///< the last look was after max_time
  std::vector<double> times_;      ///< of every step
  std::vector<double> samples_;    ///< of those that count
  units::Seconds elapsed_{};
  std::string end_;
};

/// Returns how often the step without communication is played; the first play warms up.
[[nodiscard]] int solo_plays(units::Seconds step, units::Seconds max_time);

}  // namespace isoscale::runner
