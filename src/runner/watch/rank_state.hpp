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

/// The state of a rank when its job stood still: what it does, and how far it is in the calls of
/// each communicator.
namespace isoscale::runner {

/// The progress of a rank in the calls of one communicator. All members make the same calls in the
/// same order, so who has made fewer has not arrived.
struct CallNumber {
  std::uint64_t play = 0;    ///< of the session, from 1
  std::uint32_t number = 0;  ///< of the communicator's calls in it, from 1
  auto operator<=>(const CallNumber&) const = default;
};

/// Ranks of the launch that communicate, and on what: "dp on compute, ranks 0 2".
struct Group {
  std::string name{};        ///< the same on all members, and on no other group
  std::vector<int> ranks{};  ///< ascending
};

/// A rank's last call on a communicator of its own.
struct Arrival {
  Group group{};
  CallNumber call{};       ///< that it is known to have made
  std::uint32_t more = 0;  ///< calls after it that it may have made too, for all that is known
  [[nodiscard]] CallNumber latest() const { return {call.play, call.number + more}; }
};

/// The op that a stream of a rank is in.
struct AtOp {
  std::string op{};  ///< "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0"
  std::vector<Arrival> meets{};  ///< with whom; none: it communicates with nobody
};

struct RankState {
  int rank = 0;
  std::string doing{};         ///< "point 3: measuring"
  double still = 0;            ///< seconds since anything moved here
  bool rests = false;          ///< has nothing to do: waits for others, or for a time to come
  bool in_collective = false;  ///< of the runner's own
  bool can_leave = false;      ///< what it is at can be left, and the run gone on with
  std::string failure{};       ///< of the rank alone; "" = none
  std::vector<AtOp> at{};
  std::vector<Arrival> arrivals{};

  /// True if only the rank itself can end what holds it up.
  [[nodiscard]] bool is_alone() const;
};

/// "step 12, number 3".
[[nodiscard]] std::string to_text(const CallNumber& call);

[[nodiscard]] std::string to_json(const RankState& state);
/// nullopt for what is not a state.
[[nodiscard]] std::optional<RankState> state_from_json(std::string_view text);

/// The program of one rank, by which its calls are told apart.
struct CallMap {
  const program::Outline& outline;  ///< of the section that is played
  const mesh::Shape& mesh;
  int rank = 0;                         ///< of the mesh
  const std::vector<int>& world_ranks;  ///< of the mesh's ranks
};

/// Adds to `state` how far each communicator of a rank is, and which ops its streams are in.
/// A collective's communicator is its group on its stream; messages are counted by partner.
void describe_calls(const CallMap& map, const executor::Whereabouts& at, RankState& state);

/// "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0".
[[nodiscard]] std::string op_text(const program::OutlineOp& op, const mesh::Shape& mesh);

/// Ranks at equal distances, as the groups of a mesh are.
struct RankRange {
  int first = 0, count = 1, distance = 1;
};

/// Splits ascending ranks into ranges.
[[nodiscard]] std::vector<RankRange> ranges_of(std::span<const int> ranks);
[[nodiscard]] std::vector<int> ranks_of(std::span<const RankRange> ranges);

/// "0-3, 8", "0-56 by 8".
[[nodiscard]] std::string ranks_text(std::span<const int> ranks);

}  // namespace isoscale::runner
