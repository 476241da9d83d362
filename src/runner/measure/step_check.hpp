// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "executor/executor.hpp"
#include "program/added_sections.hpp"
#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "runner/measure/twin_check.hpp"

/// Checks that the timed steps compute the right results. Their results cannot be predicted, so
/// they are compared: between ranks that must hold the same bits (StepCheck), and between replays
/// of one step that start from the same saved state (Soak).
namespace isoscale::runner::measure {

/// The result of a Checksum op: a sum over the bits of all elements, and the number of elements
/// that are not finite.
struct Sum {
  std::uint64_t bits = 0, not_finite = 0;
  bool operator==(const Sum&) const = default;
};

/// Checks the steps of one point. The verdict is the first problem that was found.
class StepCheck {
 public:
  /// Adds the sections of the check to the programs. They must not have been prepared yet, and must
  /// outlive the check. `flipping` is the rank of the point on which play() may flip bits, if any.
  explicit StepCheck(program::ProgramSet& set, std::optional<int> flipping = std::nullopt);

  /// Collective over the point: plays a step with a checksum of each output. If a collective gives
  /// all its members the same result, all must hold the same bits. Then calls weights().
  void step(executor::Session& session, const comm::Communicator& point);
  /// Collective over the point: checks that every weight is finite, and that ranks which hold the
  /// same weights, along dp and cp, hold the same bits.
  void weights(executor::Session& session, const comm::Communicator& point);

  /// The bits to flip in one element before checksum number `checksum` is computed.
  struct Flip {
    std::size_t checksum = 0;  ///< index of the checksum
    std::uint64_t element = 0, mask = 0;
  };
  /// Plays the step with its checksums and returns them. `flip` takes effect only on the rank where
  /// bits may be flipped.
  [[nodiscard]] std::vector<Sum> play(executor::Session& session, int rank,
                                      const std::optional<Flip>& flip = std::nullopt) const;

  /// Returns the verdict, the same on all ranks of the point.
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] const program::CheckedSection& checked() const { return checked_; }

 private:
  [[nodiscard]] std::string unlike_members(const std::vector<Sum>& sums,
                                           const comm::Communicator& point) const;
  /// Returns a text that names the first weight of a buffer that is not finite.
  [[nodiscard]] std::string not_finite(executor::Session& session, int rank,
                                       program::BufferId id) const;
  void found(const comm::Communicator& point, const std::string& problem);

  const program::ProgramSet& set_;
  program::CheckedSection checked_, weights_;
  std::vector<mesh::AxisSet> shared_axes_;  ///< axes of collectives with one result for all
  std::string problem_;
  int steps_ = 0;
};

/// A replay whose results differed from those of other replays.
struct Differing {
  std::uint64_t replay = 0;  ///< number of the replay, from 1
  /// The ranks of the point on which an op differed before any other did: one rank, or all members
  /// of a collective if all of their results differ.
  std::vector<int> ranks{};
  std::string sentence{};
};

struct SoakResult {
  std::uint64_t replays = 0;
  units::Seconds time{};
  std::vector<Differing> differing{};
};

/// A soak ends after this time or this number of replays, whichever comes first.
struct SoakEnd {
  units::Seconds time{};
  std::uint64_t replays = UINT64_MAX;
};

/// Replays one step from saved state again and again. If bits differ between replays, they were
/// computed, stored or sent wrongly.
class Soak {
 public:
  /// Adds the sections of the soak to the programs, which must not have been prepared yet. The
  /// programs and `check` must outlive the soak. If `check` has a rank on which bits may be
  /// flipped, every second replay flips a random bit of an op's result there.
  Soak(program::ProgramSet& set, const StepCheck& check, std::uint64_t seed);

  /// Collective over the point: replays the step, and returns the same result on all ranks. After
  /// the soak, the state of the programs is the same as before. `on_replay` is called on every rank
  /// after each replay.
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

/// Returns "1204 replays of one step in 10 min left the same bits", or which ranks differed first
/// and how often.
[[nodiscard]] std::string soak_text(const SoakResult& result);

}  // namespace isoscale::runner::measure
