// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "executor/executor.hpp"
#include "program/added_sections.hpp"
#include "results/run_data.hpp"
#include "runner/step_check.hpp"

/// One step, replayed from saved state again and again: each time every op must leave the same
/// bits. What differs was computed, stored or sent wrongly.
namespace isoscale::runner {

/// A replay that differed.
struct Differing {
  std::uint64_t replay = 0;  ///< from 1
  /// Ranks of the point whose op differed before any other did: one, where replay decides; all
  /// members of a collective whose results all differ.
  std::vector<int> ranks{};
  std::string sentence{};
};

struct SoakResult {
  std::uint64_t replays = 0;
  units::Seconds time{};
  std::vector<Differing> differing{};
};

/// When to end: after that time, or so many replays.
struct SoakEnd {
  units::Seconds time{};
  std::uint64_t replays = UINT64_MAX;
};

class Soak {
 public:
  /// Adds its sections to the programs, which must not have been prepared and must outlive it, as
  /// must their check. Every second replay a bit of what an op wrote is flipped, on the rank that
  /// the check has for that, if it has one.
  Soak(program::ProgramSet& set, const StepCheck& check, std::uint64_t seed);

  /// Collective over the point, whose ranks all return the same. Leaves the state as it was.
  /// `on_replay` is called on every rank.
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

/// "1204 replays of one step in 10 min left the same bits", or who differed first and how often.
[[nodiscard]] std::string soak_text(const SoakResult& result);

}  // namespace isoscale::runner
