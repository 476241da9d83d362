// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.hpp"
#include "program/added_sections.hpp"
#include "program/outline.hpp"
#include "runner/verify.hpp"

/// Whether steps compute what they should while they are timed: what nobody can know from outside
/// is compared between ranks that must agree.
namespace isoscale::runner {

/// What a Checksum op left.
struct Sum {
  std::uint64_t bits = 0, not_finite = 0;
  bool operator==(const Sum&) const = default;
};
[[nodiscard]] std::vector<Sum> read_sums(executor::Session& session, const program::Sums& sums);

/// Of one point; what it finds first is what it says in the end.
class StepCheck {
 public:
  /// Adds its sections to the programs, which must not have been prepared and must outlive it.
  /// Bits may be flipped on the rank `flipping` of the point, see flip.
  explicit StepCheck(program::ProgramSet& set, std::optional<int> flipping = std::nullopt);

  /// Collective over the point: plays a step with a checksum of each output. All members of a
  /// collective that gives all the same result must hold the same bits of it; then as weights().
  void step(executor::Session& session, const comm::Communicator& point);
  /// Collective over the point: every weight is finite, and replicas, along dp and cp, are bit for
  /// bit the same.
  void weights(executor::Session& session, const comm::Communicator& point);

  /// Plays the step with its checksums and returns them. A flip is made only where bits may be
  /// flipped.
  struct Flip {
    std::size_t checksum = 0;  ///< by its number
    std::uint64_t element = 0, mask = 0;
  };
  [[nodiscard]] std::vector<Sum> play(executor::Session& session, int rank,
                                      const std::optional<Flip>& flip = std::nullopt) const;

  /// The same on all ranks of the point.
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

}  // namespace isoscale::runner
