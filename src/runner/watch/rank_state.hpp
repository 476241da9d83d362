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

#include "base/text.hpp"
#include "executor/executor.hpp"
#include "mesh/mesh.hpp"
#include "program/outline.hpp"

/// The state of a rank in a job that makes no progress: what it was doing, and how many calls it
/// had made on each communicator.
namespace isoscale::runner::watch {

/// Identifies a call on a communicator. All members make the same calls in the same order, so a
/// member that has made fewer calls has not arrived yet.
struct CallNumber {
  std::uint64_t play = 0;    ///< number of the session's play, from 1
  std::uint32_t number = 0;  ///< number of the call on this communicator in the play, from 1
  auto operator<=>(const CallNumber&) const = default;
};

/// The name and the ranks of a communicator: "dp on compute, ranks 0 2". Ranks are those of the
/// launch.
struct Group {
  std::string name{};        ///< the same on all members, and different from other groups
  std::vector<int> ranks{};  ///< ascending
};

/// The last call of a rank on one of its communicators.
struct Arrival {
  Group group{};
  CallNumber call{};       ///< the last call that the rank has certainly made
  std::uint32_t more = 0;  ///< number of calls after it that the rank may have made
  [[nodiscard]] CallNumber latest() const { return {call.play, call.number + more}; }
};

/// The op that a stream of a rank is playing.
struct AtOp {
  std::string op{};  ///< "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0"
  std::vector<Arrival> meets{};  ///< calls in which it waits; empty without communication
};

struct RankState {
  int rank = 0;
  std::string doing{};         ///< "point 3: measuring"
  double still = 0;            ///< seconds without progress on this rank
  bool rests = false;          ///< true if idle: it waits for others, or for a time
  bool in_collective = false;  ///< true during a collective call of the runner itself
  std::string failure{};       ///< an error on this rank alone; "" = none
  std::vector<AtOp> at{};
  std::vector<Arrival> arrivals{};

  /// True if the rank waits for no other rank, so that its lack of progress has its cause on the
  /// rank itself.
  [[nodiscard]] bool is_alone() const;
};

/// Returns "play 12, call 3".
[[nodiscard]] std::string to_text(const CallNumber& call);

[[nodiscard]] std::string to_json(const RankState& state);
/// Reads a state; nullopt if the text is not valid.
[[nodiscard]] std::optional<RankState> state_from_json(std::string_view text);

/// The program of one rank and its mesh, from which the communicators of its calls are found.
struct CallMap {
  const program::Outline& outline;  ///< the section that is being played
  const mesh::Shape& mesh;
  int rank = 0;                         ///< within the mesh
  const std::vector<int>& world_ranks;  ///< rank of the launch, for each rank of the mesh
};

/// Adds to `state` the calls that a rank has made on each communicator, and the ops that its
/// streams are in. The communicator of a collective is identified by group and stream, and the
/// communicator of a message by the partner.
void describe_calls(const CallMap& map, const executor::Whereabouts& at, RankState& state);

/// Returns "all_reduce of 4 MiB along dp, backward, layer 3, microbatch 0".
[[nodiscard]] std::string op_text(const program::OutlineOp& op, const mesh::Shape& mesh);

/// Returns all ranks in `ranges`, which base::ranges_of() has made.
[[nodiscard]] std::vector<int> ranks_of(std::span<const base::Range> ranges);

}  // namespace isoscale::runner::watch
