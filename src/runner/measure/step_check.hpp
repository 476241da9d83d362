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
#include "results/run_data.hpp"
#include "runner/measure/twin_check.hpp"

/// Checks that steps compute the right results while they are timed. Results that cannot be
/// predicted are compared between ranks that must agree (StepCheck), and between replays of one
/// step from saved state, each of which must give the same bits (Soak).
namespace isoscale::runner {

/// The result of a Checksum op.
struct Sum {
  std::uint64_t bits = 0, not_finite = 0;
  bool operator==(const Sum&) const = default;
};

/// The check of one point. Its verdict is the first problem that it finds.
class StepCheck {
 public:
  /// Adds its sections to the programs, which must not have been prepared and must outlive the
  /// check. Bits may be flipped on rank `flipping` of the point, see Flip.
  explicit StepCheck(program::ProgramSet& set, std::optional<int> flipping = std::nullopt);

  /// Collective over the point: plays a step with a checksum of each output. If a collective gives
  /// all members the same result, they must hold the same bits of it. Then checks weights().
  void step(executor::Session& session, const comm::Communicator& point);
  /// Collective over the point: checks that every weight is finite, and that replicas, along dp and
  /// cp, are bit for bit the same.
  void weights(executor::Session& session, const comm::Communicator& point);

  /// Plays the step with its checksums and returns them. A flip is made only on the rank where bits
  /// may be flipped.
  struct Flip {
    std::size_t checksum = 0;  ///< by its number
    std::uint64_t element = 0, mask = 0;
  };
  [[nodiscard]] std::vector<Sum> play(executor::Session& session, int rank,
                                      const std::optional<Flip>& flip = std::nullopt) const;

  /// Returns the verdict, the same on all ranks of the point.
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] const program::CheckedSection& checked() const { return checked_; }

 private:
  [[nodiscard]] std::string unlike_members(const std::vector<Sum>& sums,
                                           const comm::Communicator& point) const;
  /// Names the first weight of a buffer that is not finite.
  [[nodiscard]] std::string not_finite(executor::Session& session, int rank,
                                       program::BufferId id) const;
  void found(const comm::Communicator& point, const std::string& problem);

  const program::ProgramSet& set_;
  program::CheckedSection checked_, weights_;
  std::vector<mesh::AxisSet> shared_axes_;  ///< of collectives whose results all members share
  std::string problem_;
  int steps_ = 0;
};

/// A replay that differed.
struct Differing {
  std::uint64_t replay = 0;  ///< from 1
  /// The ranks of the point whose op differed before any other did: one rank if its replay shows
  /// it, or all members of a collective if all of their results differ.
  std::vector<int> ranks{};
  std::string sentence{};
};

struct SoakResult {
  std::uint64_t replays = 0;
  units::Seconds time{};
  std::vector<Differing> differing{};
};

/// The end of a soak: after a time or a number of replays, whichever comes first.
struct SoakEnd {
  units::Seconds time{};
  std::uint64_t replays = UINT64_MAX;
};

/// Replays one step from saved state repeatedly. Bits that differ were computed, stored or sent
/// wrongly.
class Soak {
 public:
  /// Adds its sections to the programs, which must not have been prepared. The programs and their
  /// check must outlive the soak. If the check has a rank for flipped bits, every second replay
  /// flips a bit of an op's result on that rank.
  Soak(program::ProgramSet& set, const StepCheck& check, std::uint64_t seed);

  /// Collective over the point; all ranks return the same. Leaves the state as it was. `on_replay`
  /// is called on every rank.
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

}  // namespace isoscale::runner
