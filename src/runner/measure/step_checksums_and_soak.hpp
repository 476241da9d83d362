// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "executor/executor.hpp"
#include "program/checksum_replay_and_solo_sections.hpp"
#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "runner/measure/reference_check.hpp"

/// Checks that the steps that are timed compute right results. No reference results exist for them,
/// so results are compared: between ranks that must hold the same bits (StepCheck), and between
/// replays of one step that start from the same saved state (Soak).
namespace isoscale::runner::measure {

/// The checksum of a buffer: a sum over the bits of all elements, and how many are not finite.
struct Sum {
  std::uint64_t bits = 0, not_finite = 0;
  bool operator==(const Sum&) const = default;
};

/// Checks steps of one point. The first problem that is found becomes the verdict.
class StepCheck {
 public:
  /// Adds to the programs the sections that the check plays. The programs must not be prepared yet
  /// and must outlive the check. On the ranks `flipping` of the point, play() may flip bits.
  explicit StepCheck(program::ProgramSet& set, std::span<const int> flipping = {});

  /// Collective over the point: plays a step that takes a checksum of each op's result. Checks that
  /// the ranks of a collective hold the same bits if it gives them the same result. Then calls
  /// weights().
  void step(executor::Session& session, const comm::Communicator& point);
  /// Collective over the point: checks that all weights are finite, and that ranks which must hold
  /// the same weights (such as replicas along dp) hold them bit for bit.
  void weights(executor::Session& session, const comm::Communicator& point);

  /// The bits to flip in one element of an op's result, just before its checksum is computed: those
  /// that are set in `mask`. `element` is the index of the element in the result.
  struct Flip {
    std::size_t checksum = 0;  ///< index of the checksum in the step
    std::uint64_t element = 0, mask = 0;
  };
  /// Plays the step with its checksums and returns them. `flip` takes effect only on the ranks that
  /// were given to the constructor.
  [[nodiscard]] std::vector<Sum> play(executor::Session& session, int rank,
                                      const std::optional<Flip>& flip = std::nullopt) const;

  /// Returns the verdict, the same on all ranks of the point.
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] const program::CheckedSection& checked() const { return checked_; }

 private:
  [[nodiscard]] std::string unlike_members(const std::vector<Sum>& sums,
                                           const comm::Communicator& point) const;
  /// Returns a text about the first weight in a buffer that is not finite. It names the first op of
  /// the step that uses this weight.
  [[nodiscard]] std::string not_finite(executor::Session& session, int rank,
                                       program::BufferId id) const;
  void found(const comm::Communicator& point, const std::string& problem);

  const program::ProgramSet& set_;
  program::CheckedSection checked_, weights_;
  /// Axes of the collectives that give all members the same result.
  std::vector<mesh::AxisSet> shared_axes_;
  std::string problem_;
  int steps_ = 0;
};

/// A replay of the step whose results differed from those of other replays.
struct Differing {
  std::uint64_t replay = 0;  ///< number of the replay, from 1
  /// The ranks of the point on which a result differed first. Usually this is one rank, or all
  /// members of a collective if it gave all of them a different result.
  std::vector<int> ranks{};
  std::string sentence{};
};

struct SoakResult {
  std::uint64_t replays = 0;
  units::Seconds time{};
  std::vector<Differing> differing{};
};

/// A soak ends after `replays` replays or, if that is sooner, when `time` is over and at least
/// three replays have been made.
struct SoakEnd {
  units::Seconds time{};
  std::uint64_t replays = UINT64_MAX;
};

/// The soak: replays one step again and again from the same saved state. If bits differ between
/// replays, some of them were computed, stored or sent wrongly.
class Soak {
 public:
  /// Adds to the programs the sections that the soak plays. The programs must not be prepared yet,
  /// and they and `check` must outlive the soak. On each rank that was given to `check`, every
  /// second replay flips a random bit in the result of some op.
  Soak(program::ProgramSet& set, const StepCheck& check, std::uint64_t seed);

  /// Collective over the point: replays the step until `end`, and returns a result that is the same
  /// on all ranks, except for its `time`. Afterwards the weights and other state are what they were
  /// before. `on_replay` is called on every rank after each replay.
  [[nodiscard]] SoakResult run(executor::Session& session, const comm::Communicator& point,
                               const SoakEnd& end,
                               const std::function<void(const SoakResult&)>& on_replay);

 private:
  [[nodiscard]] StepCheck::Flip drawn_flip(const program::RankProgram& program,
                                           const program::Sums& places);

  const program::ProgramSet& set_;
  const StepCheck& check_;
  program::Replay replay_;
  std::mt19937_64 draw_;
};

/// Returns a sentence about a soak: "1204 replays of one step in 10 min left the same bits", or
/// which ranks differed first and in how many replays.
[[nodiscard]] std::string soak_text(const SoakResult& result);

}  // namespace isoscale::runner::measure
