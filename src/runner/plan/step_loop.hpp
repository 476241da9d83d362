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

#include "results/records/run_data.hpp"
#include "units/quantity.hpp"

/// Decides how many steps a point plays, in which blocks, and when they suffice. All rules are
/// pure.
namespace isoscale::runner::plan {

/// Returns the relative half-width of the interval of the median at a confidence level; absent if
/// there are too few samples for an interval.
using HalfWidth = std::function<std::optional<double>(std::span<const double>, double confidence)>;
/// Returns the confidence that each of `planned` interim analyses must have so that the overall
/// confidence stays 95%, if the number of samples grows by the factor `growth` between them.
using NominalConfidence = std::function<double(int planned, double growth)>;

/// Decides at interim analyses ("looks") whether there are enough samples. The number of samples
/// grows geometrically from look to look. The number of looks is planned at the beginning, so that
/// the interval of each look can be widened accordingly. Ranks with the same samples make the same
/// decisions.
class StopRule {
 public:
  static constexpr double growth = 1.5;  ///< growth of the number of samples from look to look

  struct Goal {
    double precision = 0.01;  ///< stop at this relative half-width
    std::size_t first = 6;    ///< samples at the first look
    double most = 6;          ///< samples that the available time is expected to give
  };

  /// If `nominal` is empty, every look has a confidence of 95%.
  StopRule(const Goal& goal, HalfWidth half_width, const NominalConfidence& nominal);

  /// Returns the number of samples at which the next look is due.
  [[nodiscard]] std::size_t next_look() const { return next_look_; }
  /// True if there are enough samples for the next look and it is not the last one planned, which
  /// is kept for the time limit.
  [[nodiscard]] bool is_due(std::size_t samples) const {
    return samples >= next_look_ && made_ + 1 < planned_;
  }
  /// Carries out the next interim analysis (a look). Returns true if the samples suffice.
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

/// Returns the index of the first sample after the last change of level by more than `smallest`
/// (relative); 0 if there is no such change.
using LastChange = std::function<std::size_t(std::span<const double>, double smallest)>;

/// Decides when warm-up is over. Warm-up has at least 3 steps and lasts at least a tenth of the
/// time, or half a second if that is less. Then the last change of level must be followed by at
/// least 16 steps and by at least half as many steps as precede it. Warm-up ends in any case after
/// 3 tenths of the time, or after one tenth if there are fewer than 16 steps by then. Ranks with
/// the same times make the same decisions.
class WarmUp {
 public:
  /// If `last_change` is empty, changes of level are ignored.
  WarmUp(units::Seconds max_time, double smallest, LastChange last_change)
      : max_time_(max_time), smallest_(smallest), last_change_(std::move(last_change)) {}

  /// Returns the reason why warm-up is over; absent if another step must be played. `times` holds
  /// all steps so far (at least one), which took `elapsed`.
  [[nodiscard]] std::optional<std::string> over(std::span<const double> times,
                                                units::Seconds elapsed);

 private:
  units::Seconds max_time_;
  double smallest_;
  LastChange last_change_;
  std::size_t next_check_ = 0;  ///< number of steps at which changes are searched for again
};

/// The least number of pairs of an untraced and a traced block for which the difference between
/// their step times has an interval.
inline constexpr std::size_t least_pairs = 6;
/// The least number of counted steps for which the step time has an interval.
inline constexpr std::size_t least_counted = 6;
/// A loop may last this many times --max-time in order to reach `least_counted` steps.
inline constexpr double longest_overtime = 3;

/// The limits of a loop: when to stop, and how much to trace.
struct Effort {
  double precision = 0.01;      ///< stop at this relative half-width of the interval
  units::Seconds max_time{30};  ///< target for the whole loop, warm-up included
  /// The loop may last this many times max_time as long as there is no interval; at least 1.
  double overtime = longest_overtime;
  int trace_steps = 4;  ///< traced steps to keep; 0 = no step is traced
  /// The statistics of step times on which decisions depend. All are pure functions; the last two
  /// may be empty, see StopRule and WarmUp.
  HalfWidth half_width;
  NominalConfidence nominal_confidence{};
  LastChange last_change{};
};

enum class Tracing : bool { off, on };

/// Steps that are played without a pause; the time limit is checked only after the last one. The
/// first step of an untraced or traced block starts on idle ranks and does not count.
struct Block {
  enum class Kind : std::uint8_t { warm_up, untraced, traced } kind = Kind::warm_up;
  std::size_t steps = 1;  ///< number of steps, including those that do not count

  bool operator==(const Block&) const = default;
};

/// The number of pairs of blocks, and the counted steps of each block.
struct BlockPlan {
  std::size_t steps = 2;
  std::size_t pairs = 0;

  bool operator==(const BlockPlan&) const = default;
};

/// Plans six pairs of blocks, each of about 50 ms and with 2 to 64 steps. If the pairs would take
/// more than half of the time left, the blocks become shorter. If that is not enough, there are
/// fewer pairs: as many as fit into a quarter of the time left, from none to five.
[[nodiscard]] BlockPlan plan_blocks(units::Seconds step, units::Seconds left, Tracing tracing);

/// Returns how long a warm step takes: the median of the later half of `times`, which must not be
/// empty.
[[nodiscard]] units::Seconds warm_step(std::span<const double> times);

/// Determines the blocks of a loop one after another. Warm-up comes first, in blocks of one step.
/// Untraced steps follow until six count. With tracing, pairs of an untraced and a traced block of
/// equal length come next, in alternating order: six pairs before the first look, then one pair for
/// every three untraced blocks. If six pairs would take more than half of the time, there are
/// fewer, and none after the first look. However short the time is, one step counts and two are
/// traced. Ranks with the same times get the same blocks.
class StepLoop {
 public:
  /// `effort` must outlive the loop.
  explicit StepLoop(const Effort& effort);

  /// Returns the block to play now. Must not be called after the end of the loop.
  [[nodiscard]] Block next();
  /// Stores the times of the block's steps, and how long the loop has lasted.
  void played(const Block& block, std::span<const double> times, units::Seconds elapsed);

  /// Returns why the loop is over, "precision" or "max-time"; "" if it is not.
  [[nodiscard]] const std::string& end() const { return end_; }
  /// Returns why warm-up is over; absent if it is not.
  [[nodiscard]] const std::optional<std::string>& warm_up_end() const { return warm_up_end_; }
  /// Return the number of steps played so far: all steps, and the steps that count.
  [[nodiscard]] std::size_t steps() const { return times_.size(); }
  [[nodiscard]] std::size_t counted() const { return samples_.size(); }
  [[nodiscard]] units::Seconds elapsed() const { return elapsed_; }
  /// Returns the number of traced blocks that were played.
  [[nodiscard]] std::size_t traced_blocks() const { return traced_; }
  /// Returns the relative half-width of the interval at the last look, see StopRule.
  [[nodiscard]] std::optional<double> half_width() const;
  /// Returns the looks of a loop that is over.
  [[nodiscard]] results::Looks looks() const;

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
  std::deque<Block::Kind> round_;  ///< blocks that remain in this round
  std::size_t round_steps_ = 0;    ///< steps that count in each of these blocks
  std::size_t pairs_ = 0;          ///< pairs begun so far
  int alone_ = 0;                  ///< untraced blocks since the last pair
  std::size_t traced_ = 0;         ///< traced blocks
  bool is_late_ = false;           ///< the last look was made after max_time
  std::vector<double> times_;      ///< times of all steps, in seconds
  std::vector<double> samples_;    ///< times of the steps that count, in seconds
  units::Seconds elapsed_{};
  std::string end_;
};

/// Returns how often the step without communication is played; the first play warms up.
[[nodiscard]] int solo_plays(units::Seconds step, units::Seconds max_time);

}  // namespace isoscale::runner::plan
