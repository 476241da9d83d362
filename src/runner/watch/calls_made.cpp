// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/calls_made.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>

#include "runner/watch/hang.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

using executor::Whereabouts;
using program::OutlineOp;

/// Groups that an op of the rank meets; none for what it does alone.
class Groups {
 public:
  explicit Groups(const CallMap& map) : map_(map) {}

  [[nodiscard]] std::vector<Group> of(const OutlineOp& op) const {
    if (!program::communicates(op.kind)) return {};
    if (op.kind == program::OpKind::exchange) return partners_of(op);
    const std::vector<int> members = mesh::group_members(map_.mesh, map_.rank, op.axes);
    if (members.size() < 2) return {};
    return {named(fmt::format("{} on {}", mesh::to_string(mesh::varying(map_.mesh, op.axes)),
                              map_.outline.streams[op.stream]),
                  members)};
  }

 private:
  [[nodiscard]] std::vector<Group> partners_of(const OutlineOp& op) const {
    std::map<int, Group> by_partner;
    for (const program::OutlineTransfer& transfer : map_.outline.transfers_of(op)) {
      const int partner = mesh::neighbour(map_.mesh, map_.rank, transfer.axis, transfer.offset);
      if (partner == map_.rank) continue;
      by_partner.try_emplace(partner, named(fmt::format("{} messages", mesh::name(transfer.axis)),
                                            {map_.rank, partner}));
    }
    std::vector<Group> groups;
    for (auto& [partner, group] : by_partner) groups.push_back(std::move(group));
    return groups;
  }

  [[nodiscard]] Group named(const std::string& what, const std::vector<int>& members) const {
    Group group;
    for (const int member : members) {
      group.ranks.push_back(map_.world_ranks[static_cast<std::size_t>(member)]);
    }
    std::ranges::sort(group.ranks);
    group.name = fmt::format("{}, ranks {}", what, ranks_text(group.ranks));
    return group;
  }

  const CallMap& map_;
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
  const Groups groups{map};
  const bool has_lanes = at.begun.size() > 1;
  const auto begun_in = [&](program::StreamId stream) -> std::int64_t {
    if (!at.playing) return static_cast<std::int64_t>(map.outline.ops.size());
    const std::size_t lane = has_lanes ? stream : 0;
    if (lane >= at.begun.size() || at.begun[lane] == Whereabouts::no_op) return -1;
    return at.begun[lane];
  };
  std::map<std::string, Arrival> arrivals;
  std::vector<std::vector<Arrival>> meets_of_lane(at.begun.size());
  for (std::size_t i = 0; i < map.outline.ops.size(); ++i) {
    const OutlineOp& op = map.outline.ops[i];
    const auto begun = begun_in(op.stream);
    if (static_cast<std::int64_t>(i) > begun) continue;
    std::vector<Arrival> meets;
    for (Group& group : groups.of(op)) {
      Arrival& arrival = arrivals.try_emplace(group.name, Arrival{.group = group}).first->second;
      arrival.call = {.play = at.plays, .number = arrival.call.number + 1};
      meets.push_back(arrival);
    }
    if (!at.playing || static_cast<std::int64_t>(i) != begun) continue;
    state.at.push_back({.op = op_text(op, map.mesh), .meets = std::move(meets)});
  }
  for (auto& [name, arrival] : arrivals) state.arrivals.push_back(std::move(arrival));
}

}  // namespace isoscale::runner
