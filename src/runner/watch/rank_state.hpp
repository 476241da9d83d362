// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.hpp"
#include "mesh/mesh.hpp"
#include "program/outline.hpp"

/// The state of a rank in a job that makes no progress: what it was doing, and how many calls it
/// had made on each communicator.
namespace isoscale::runner::watch {

/// The number of a call on a communicator. All members of a communicator make the same calls in the
/// same order. So a member with a lower number than others has not arrived at their call yet.
struct CallNumber {
  std::uint64_t play = 0;  ///< number of the play (execution of a section) in the session, from 1
  /// Number of the call among the play's calls on this communicator, from 1.
  std::uint32_t number = 0;
  auto operator<=>(const CallNumber&) const = default;
};

/// A communicator: its name, such as "dp on compute, ranks 0 2", where "compute" is the stream, and
/// its ranks. Ranks are numbered as in the launch.
struct Group {
  std::string name{};        ///< the same on all its members; no other communicator has it
  std::vector<int> ranks{};  ///< ascending
};

/// The last call that a rank has made on one of its communicators.
struct Arrival {
  Group group{};
  CallNumber call{};       ///< the last call that the rank has certainly made
  std::uint32_t more = 0;  ///< number of further calls that the rank may have made
  [[nodiscard]] CallNumber latest() const { return {call.play, call.number + more}; }
};

/// The op that one stream of a rank is in.
struct AtOp {
  std::string op{};  ///< "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0"
  /// The calls in which the op may be waiting; empty if it does not communicate. Here Arrival::call
  /// is the last call that the rank may have made, and Arrival::more is 0.
  std::vector<Arrival> meets{};
};

struct RankState {
  int rank = 0;
  std::string doing{};  ///< "point 3: measuring"
  double still = 0;     ///< seconds for which this rank has made no progress
  /// True if the rank is idle, that is, waits for other ranks or until a certain time.
  bool rests = false;
  bool in_collective = false;  ///< true if it is in a collective call that the runner makes itself
  std::string failure{};       ///< an error that only this rank has; "" = none
  std::vector<AtOp> at{};
  std::vector<Arrival> arrivals{};

  /// True if the rank has failed, or if it is not idle and waits for no other rank. If it makes no
  /// progress, the cause is then on the rank itself.
  [[nodiscard]] bool is_alone() const;
};

/// Returns the call as text: "play 12, call 3".
[[nodiscard]] std::string to_text(const CallNumber& call);

[[nodiscard]] std::string to_json(const RankState& state);
/// Reads a state from JSON; nullopt if the text is not the JSON of a state.
[[nodiscard]] std::optional<RankState> state_from_json(std::string_view text);

/// The section that a rank plays and the rank's position in the mesh. They determine the
/// communicators on which its ops make calls.
struct CallMap {
  const program::Outline& outline;  ///< the section that is being played
  const mesh::Shape& mesh;
  int rank = 0;                         ///< within the mesh
  const std::vector<int>& world_ranks;  ///< ranks of the launch that play the point, in mesh order
};

/// Adds to `state` how many calls a rank has made on each communicator in its last play and, while
/// it plays, which ops its streams are in. A collective's communicator is named by its axes, its
/// stream and its ranks. For messages, two ranks that exchange them along an axis count as a
/// communicator, named by the axis and the ranks.
void describe_calls(const CallMap& map, const executor::Whereabouts& at, RankState& state);

/// Returns an op as text: "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0".
[[nodiscard]] std::string op_text(const program::OutlineOp& op, const mesh::Shape& mesh);

}  // namespace isoscale::runner::watch
