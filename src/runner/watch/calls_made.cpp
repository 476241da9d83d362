// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/calls_made.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runner/watch/rank_runs.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

using executor::Whereabouts;
using program::OutlineOp;

/// The communicators that a rank's ops meet others in, each named once: a step may hold a hundred
/// thousand ops, and a group thousands of ranks.
class Groups {
 public:
  explicit Groups(const CallMap& map) : map_(map) {}

  /// How often the rank has called each; the order of first calls.
  std::vector<Arrival> arrivals{};

  /// Those that an op meets, by their place in `arrivals`; none for what the rank does alone.
  [[nodiscard]] std::vector<std::size_t> of(const OutlineOp& op) {
    if (!program::communicates(op.kind)) return {};
    if (op.kind == program::OpKind::exchange) return partners_of(op);
    const auto [place, is_new] = collectives_.try_emplace({op.axes, op.stream});
    if (is_new) place->second = collective(op);
    if (!place->second) return {};
    return {*place->second};
  }

 private:
  [[nodiscard]] std::optional<std::size_t> collective(const OutlineOp& op) {
    const std::vector<int> members = mesh::group_members(map_.mesh, map_.rank, op.axes);
    if (members.size() < 2) return std::nullopt;
    return add(fmt::format("{} on {}", mesh::to_string(mesh::varying(map_.mesh, op.axes)),
                           map_.outline.streams[op.stream]),
               members);
  }

  [[nodiscard]] std::vector<std::size_t> partners_of(const OutlineOp& op) {
    std::vector<std::size_t> found;
    for (const program::OutlineTransfer& transfer : map_.outline.transfers_of(op)) {
      const int partner = mesh::neighbour(map_.mesh, map_.rank, transfer.axis, transfer.offset);
      if (partner == map_.rank) continue;
      const auto [place, is_new] = partners_.try_emplace({transfer.axis, partner});
      if (is_new) {
        place->second =
            add(fmt::format("{} messages", mesh::name(transfer.axis)), {map_.rank, partner});
      }
      // Two transfers of one exchange with the same partner are one call.
      if (std::ranges::find(found, place->second) == found.end()) found.push_back(place->second);
    }
    return found;
  }

  [[nodiscard]] std::size_t add(const std::string& what, const std::vector<int>& members) {
    Group group;
    for (const int member : members) {
      group.ranks.push_back(map_.world_ranks[static_cast<std::size_t>(member)]);
    }
    std::ranges::sort(group.ranks);
    group.name = fmt::format("{}, ranks {}", what, ranks_text(group.ranks));
    arrivals.push_back({.group = std::move(group)});
    return arrivals.size() - 1;
  }

  const CallMap& map_;
  std::map<std::pair<mesh::AxisSet, program::StreamId>, std::optional<std::size_t>> collectives_;
  std::map<std::pair<mesh::Axis, int>, std::size_t> partners_;
};

}  // namespace

std::string op_text(const OutlineOp& op, const mesh::Shape& mesh) {
  std::string text{program::name(op.kind)};
  if (program::communicates(op.kind)) {
    text += fmt::format(" of {} along {}", units::format(units::Bytes{op.bytes}),
                        mesh::to_string(mesh::varying(mesh, op.axes)));
  }
  text += fmt::format(", {}", program::name(op.place.phase));
  if (op.place.layer >= 0) text += fmt::format(", layer {}", op.place.layer);
  if (op.place.microbatch >= 0) text += fmt::format(", microbatch {}", op.place.microbatch);
  return text;
}

void describe_calls(const CallMap& map, const Whereabouts& at, RankState& state) {
  if (at.plays == 0) return;
  Groups groups{map};
  const bool has_lanes = at.begun.size() > 1;
  const auto begun_in = [&](program::StreamId stream) -> std::int64_t {
    if (!at.playing) return static_cast<std::int64_t>(map.outline.ops.size());
    const std::size_t lane = has_lanes ? stream : 0;
    if (lane >= at.begun.size() || at.begun[lane] == Whereabouts::no_op) return -1;
    return at.begun[lane];
  };
  for (std::size_t i = 0; i < map.outline.ops.size(); ++i) {
    const OutlineOp& op = map.outline.ops[i];
    const auto begun = begun_in(op.stream);
    if (static_cast<std::int64_t>(i) > begun) continue;
    const bool is_at = at.playing && static_cast<std::int64_t>(i) == begun;
    std::vector<Arrival> meets;
    for (const std::size_t place : groups.of(op)) {
      Arrival& arrival = groups.arrivals[place];
      arrival.call = {.play = at.plays, .number = arrival.call.number + 1};
      if (is_at) meets.push_back(arrival);
    }
    if (is_at) state.at.push_back({.op = op_text(op, map.mesh), .meets = std::move(meets)});
  }
  std::ranges::sort(groups.arrivals, {}, [](const Arrival& a) { return a.group.name; });
  for (Arrival& arrival : groups.arrivals) state.arrivals.push_back(std::move(arrival));
}

}  // namespace isoscale::runner
