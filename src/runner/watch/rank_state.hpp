// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.hpp"
#include "mesh/mesh.hpp"
#include "program/outline.hpp"

/// The state of a rank when its job stood still: what it was doing, and how many calls it had made
/// on each communicator.
namespace isoscale::runner {

/// The progress of a rank in the calls of one communicator. All members make the same calls in the
/// same order, so a member that has made fewer calls has not arrived.
struct CallNumber {
  std::uint64_t play = 0;    ///< of the session, from 1
  std::uint32_t number = 0;  ///< of the communicator's calls in it, from 1
  auto operator<=>(const CallNumber&) const = default;
};

/// Ranks of the launch that communicate, and the name of their communicator: "dp on compute, ranks
/// 0 2".
struct Group {
  std::string name{};        ///< the same on all members, and on no other group
  std::vector<int> ranks{};  ///< ascending
};

/// A rank's last call on one of its communicators.
struct Arrival {
  Group group{};
  CallNumber call{};       ///< the last that it is known to have made
  std::uint32_t more = 0;  ///< calls after it that it may have made, too
  [[nodiscard]] CallNumber latest() const { return {call.play, call.number + more}; }
};

/// The op that a stream of a rank is in.
struct AtOp {
  std::string op{};  ///< "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0"
  std::vector<Arrival> meets{};  ///< the calls it waits in; none: no communication
};

struct RankState {
  int rank = 0;
  std::string doing{};         ///< "point 3: measuring"
  double still = 0;            ///< seconds since anything moved here
  bool rests = false;          ///< is idle: it waits for others, or for a time to come
  bool in_collective = false;  ///< in one of the runner's own
  bool can_leave = false;      ///< its work can be given up, and the run continue
  std::string failure{};       ///< of the rank alone; "" = none
  std::vector<AtOp> at{};
  std::vector<Arrival> arrivals{};

  /// True if the rank waits for no other, so that only it can end what holds it up.
  [[nodiscard]] bool is_alone() const;
};

/// Returns "step 12, number 3".
[[nodiscard]] std::string to_text(const CallNumber& call);

[[nodiscard]] std::string to_json(const RankState& state);
/// Reads a state; nullopt if the text is none.
[[nodiscard]] std::optional<RankState> state_from_json(std::string_view text);

/// The program of one rank, by which its calls are identified.
struct CallMap {
  const program::Outline& outline;  ///< of the section that is played
  const mesh::Shape& mesh;
  int rank = 0;                         ///< of the mesh
  const std::vector<int>& world_ranks;  ///< of the mesh's ranks
};

/// Adds to `state` the progress on each communicator of a rank, and the ops that its streams are
/// in. A collective's communicator is its group on its stream; messages are counted by partner.
void describe_calls(const CallMap& map, const executor::Whereabouts& at, RankState& state);

/// Returns "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0".
[[nodiscard]] std::string op_text(const program::OutlineOp& op, const mesh::Shape& mesh);

/// Ranks at equal distances, like the groups of a mesh.
struct RankRange {
  int first = 0, count = 1, distance = 1;
};

/// Splits ascending ranks into ranges.
[[nodiscard]] std::vector<RankRange> ranges_of(std::span<const int> ranks);
[[nodiscard]] std::vector<int> ranks_of(std::span<const RankRange> ranges);

/// Returns "0-3, 8" or "0-56 by 8".
[[nodiscard]] std::string ranks_text(std::span<const int> ranks);

}  // namespace isoscale::runner
