// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a rank was doing when its job stood still: what it tells the others.
namespace isoscale::runner {

/// How far a rank is in the calls of one communicator. All members make the same calls in the same
/// order, so who has made fewer has not arrived.
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

/// What a stream of a rank is at.
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

  /// Whether what holds it up is its own: nobody else could free it.
  [[nodiscard]] bool is_alone() const;
};

/// "step 12, number 3".
[[nodiscard]] std::string to_text(const CallNumber& call);

[[nodiscard]] std::string to_json(const RankState& state);
/// nullopt for what is not a state.
[[nodiscard]] std::optional<RankState> state_from_json(std::string_view text);

}  // namespace isoscale::runner
