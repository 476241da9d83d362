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
#include "statistics/estimate.hpp"
#include "statistics/sample_flags.hpp"
#include "units/quantity.hpp"

/// Decides how many steps of a point are played, into which blocks they are divided, and when they
/// suffice. All rules are pure.
namespace isoscale::runner::plan {

/// Returns the half-width of the confidence interval of the samples' median, divided by the median;
/// absent if there is no interval, for example with too few samples.
using HalfWidth = std::function<std::optional<double>(std::span<const double>, double confidence)>;
/// Returns the confidence that each of `planned` interim analyses must have for an overall
/// confidence of 95%. From one to the next, the number of samples grows by the factor `growth`.
using NominalConfidence = std::function<double(int planned, double growth)>;

/// Decides at interim analyses, called looks, whether there are enough samples. The number of
/// samples grows by the same factor from look to look. The number of looks is planned at the
/// beginning, and the interval at each look is widened accordingly. Ranks with the same samples
/// make the same decisions.
class StopRule {
 public:
  /// Factor by which the number of samples grows from look to look.
  static constexpr double growth = statistics::look_growth;

  struct Goal {
    double precision = 0.01;  ///< the relative half-width of the confidence interval that suffices
    std::size_t first = 6;    ///< number of samples at the first look
    double most = 6;          ///< number of samples that the available time is expected to give
  };

  StopRule(const Goal& goal, HalfWidth half_width, const NominalConfidence& nominal);

  /// Returns the number of samples at which the next look is due.
  [[nodiscard]] std::size_t next_look() const { return next_look_; }
  /// True if there are enough samples for the next look. For the last look that was planned it is
  /// always false, since this look is made when time is up.
  [[nodiscard]] bool is_due(std::size_t samples) const {
    return samples >= next_look_ && made_ + 1 < planned_;
  }
  /// Makes the next look (interim analysis) at `samples`. Returns true if they suffice.
  bool suffices(std::span<const double> samples);

  [[nodiscard]] int planned() const { return planned_; }
  [[nodiscard]] int made() const { return made_; }
  /// Returns the relative half-width of the last look's confidence interval; absent without one.
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

/// Returns the index of the first sample after the last change of level in a series; 0 if there is
/// no change. Changes smaller than `smallest` (relative) are ignored.
using LastChange = std::function<std::size_t(std::span<const double>, double smallest)>;

/// Decides when warm-up is over. Warm-up lasts at least a tenth of max_time, or half a second if
/// that is less, and has at least 3 steps unless these take three tenths of max_time. Then it ends
/// as soon as one of these is true:
/// - at least 16 steps were played, and their times show no change of level
/// - the last change of level is followed by at least 16 steps, and by at least half as many steps
///   as precede it
/// - one tenth of max_time is over, and 16 steps would take more than three tenths
/// - three tenths of max_time are over
/// Changes of level are searched for only each time that there are a quarter more steps, and when
/// three tenths of max_time are over.
/// Ranks with the same step times make the same decisions.
class WarmUp {
 public:
  /// Changes of level that are smaller than `smallest` (relative) are ignored.
  WarmUp(units::Seconds max_time, double smallest, LastChange last_change)
      : max_time_(max_time), smallest_(smallest), last_change_(std::move(last_change)) {}

  /// Returns the reason why warm-up is over; absent if another step must be played. `times` has the
  /// seconds of all steps so far, at least one; with pauses they took `elapsed`.
  [[nodiscard]] std::optional<std::string> over(std::span<const double> times,
                                                units::Seconds elapsed);

 private:
  units::Seconds max_time_;
  double smallest_;
  LastChange last_change_;
  std::size_t next_check_ = 0;  ///< the next search for changes is at this number of steps
};

/// Traced and untraced blocks are played in pairs. At least this many pairs are needed for a
/// confidence interval of the difference between their step times.
inline constexpr std::size_t least_pairs = 6;
/// At least this many counted steps are needed for a confidence interval of the step time.
inline constexpr std::size_t least_counted = 6;
/// A loop may last this many times --max-time if it needs that to reach `least_counted` steps.
inline constexpr double longest_overtime = 3;

/// The limits of a loop: when it ends, and how many steps are traced.
struct Effort {
  double precision = 0.01;      ///< the sufficient relative half-width of the confidence interval
  units::Seconds max_time{30};  ///< the time that the whole loop should take, warm-up included
  /// Without a confidence interval, the loop may last this many times max_time; at least 1.
  double overtime = longest_overtime;
  int trace_steps = 4;  ///< number of traced steps to keep; 0 = no step is traced
  /// The statistics of step times by which decisions are made, as pure functions.
  HalfWidth half_width = [](std::span<const double> samples, double confidence) {
    return statistics::relative_half_width(samples, confidence);
  };
  NominalConfidence nominal_confidence = statistics::nominal_confidence;
  LastChange last_change = statistics::last_change;
};

enum class Tracing : bool { off, on };

/// A block: steps that are played without a pause, so that the time limit is checked only after the
/// last one. The first step of an untraced or traced block begins on idle ranks and does not count.
struct Block {
  enum class Kind : std::uint8_t { warm_up, untraced, traced } kind = Kind::warm_up;
  std::size_t steps = 1;  ///< number of steps, including those that do not count

  bool operator==(const Block&) const = default;
};

/// The number of pairs of blocks, and the number of steps that count in each block.
struct BlockPlan {
  std::size_t steps = 2;
  std::size_t pairs = 0;

  bool operator==(const BlockPlan&) const = default;
};

/// Plans six pairs of blocks; each block takes about 50 ms and has 2 to 64 counted steps. If the
/// pairs would take more than half of the time left, the blocks become shorter. If they cannot
/// become short enough, there are fewer pairs: as many as fit into a quarter of the time left, from
/// none to five. Without tracing there are no pairs.
[[nodiscard]] BlockPlan plan_blocks(units::Seconds step, units::Seconds left, Tracing tracing);

/// Returns how long a step takes after warming up: the median of the later half of `times`, which
/// has at least one element.
[[nodiscard]] units::Seconds warm_step(std::span<const double> times);

/// Determines the blocks of a loop one after another. Warm-up comes first, in blocks of one step.
/// Untraced steps follow until six count. With tracing, pairs of an untraced and a traced block of
/// equal length come next; which of the two is first alternates. There are six pairs before the
/// first look (interim analysis), then one pair for every three untraced blocks. If six pairs of
/// the shortest blocks would take more than half of the time left, there are fewer pairs, and none
/// after the first look. However short the time is, at least one untraced step counts and, with
/// tracing, at least two steps are traced. Ranks with the same times get the same blocks.
class StepLoop {
 public:
  /// `effort` must outlive the loop.
  explicit StepLoop(const Effort& effort);

  /// Returns the block to play now. Must not be called when the loop is over.
  [[nodiscard]] Block next();
  /// Notes that a block was played: the seconds of its steps, and how long the loop has lasted.
  void played(const Block& block, std::span<const double> times, units::Seconds elapsed);

  /// Returns why the loop is over, "precision" or "max-time"; "" if it is not over.
  [[nodiscard]] const std::string& end() const { return end_; }
  /// Returns why warm-up is over; absent if it is not over.
  [[nodiscard]] const std::optional<std::string>& warm_up_end() const { return warm_up_end_; }
  /// steps() is the number of all steps so far, counted() that of the steps that count.
  [[nodiscard]] std::size_t steps() const { return times_.size(); }
  [[nodiscard]] std::size_t counted() const { return samples_.size(); }
  [[nodiscard]] units::Seconds elapsed() const { return elapsed_; }
  /// Returns the number of traced blocks that were played.
  [[nodiscard]] std::size_t traced_blocks() const { return traced_; }
  /// Returns the relative half-width of the confidence interval at the last look; see StopRule.
  [[nodiscard]] std::optional<double> half_width() const;
  /// Returns how many looks (interim analyses) were planned and made; only after the loop.
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
  std::deque<Block::Kind> round_;  ///< kinds of the blocks that are still to play in this round
  std::size_t round_steps_ = 0;    ///< number of steps that count in each of these blocks
  std::size_t pairs_ = 0;          ///< number of pairs that have begun
  int alone_ = 0;                  ///< number of single blocks since the last pair
  std::size_t traced_ = 0;         ///< number of traced blocks that were played
  bool is_late_ = false;           ///< true if the last look was made after max_time
  std::vector<double> times_;      ///< times of all steps, in seconds
  std::vector<double> samples_;    ///< times of the steps that count, in seconds
  units::Seconds elapsed_{};
  std::string end_;
};

/// Returns how many times the step without communication is played; the first play only warms up.
[[nodiscard]] int solo_plays(units::Seconds step, units::Seconds max_time);

}  // namespace isoscale::runner::plan
