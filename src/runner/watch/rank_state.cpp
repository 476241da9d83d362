// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/rank_state.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::runner::watch {

static void to_json(nlohmann::json& call, const Arrival& arrival);
static void from_json(const nlohmann::json& call, Arrival& arrival);
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(AtOp, op, meets)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankState, rank, doing, still, rests, in_collective, failure, at,
                                   arrivals)

namespace {

using executor::Whereabouts;
using nlohmann::json;
using program::OutlineOp;

/// Writes a list of ascending ranks as [[first, count, distance], ...]. The text must be short,
/// since thousands of ranks may send their state to a single rank.
json json_of(const std::vector<int>& ranks) {
  json list = json::array();
  for (const base::Range& range : base::ranges_of(ranks)) {
    list.push_back(json::array({range.first, range.count, range.distance}));
  }
  return list;
}

std::vector<int> ranks_from(const json& list) {
  std::vector<int> ranks;
  for (const json& range : list) {
    const int first = range.at(0), count = range.at(1), distance = range.at(2);
    for (int i = 0; i < count; ++i) ranks.push_back(first + i * distance);
  }
  return ranks;
}

/// The communicators on which the ops of a rank make calls. Each is stored only once, since a step
/// may have a hundred thousand ops, and a communicator thousands of ranks.
class Groups {
 public:
  explicit Groups(const CallMap& map) : map_(map) {}

  /// The calls that the rank has made on each communicator, in the order of their first call.
  std::vector<Arrival> arrivals{};

  /// Returns the communicators on which an op makes a call, as indices into `arrivals`; empty if
  /// the op does not communicate.
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
      // If an exchange op has two messages with the same partner, they count as one call.
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
    group.name = fmt::format("{}, ranks {}", what, base::ranges_text(group.ranks));
    arrivals.push_back({.group = std::move(group)});
    return arrivals.size() - 1;
  }

  const CallMap& map_;
  std::map<std::pair<mesh::AxisSet, program::StreamId>, std::optional<std::size_t>> collectives_;
  std::map<std::pair<mesh::Axis, int>, std::size_t> partners_;
};

/// Tells whether an op has begun. maybe: the executor does not know.
enum class Begun : std::uint8_t { no, maybe, yes };

/// Tells whether op number `op` of the section has begun; `lane` is its lane (see struct Lane).
Begun begun_of(const Whereabouts& at, std::size_t lane, std::size_t op) {
  if (!at.playing) return Begun::yes;
  if (lane >= at.begun.size()) return Begun::no;
  const std::uint32_t last = at.begun[lane];
  if (last != Whereabouts::no_op && op <= last) return Begun::yes;
  return lane < at.next.size() && op < at.next[lane] ? Begun::maybe : Begun::no;
}

/// A lane is a sequence of ops that run in order: the ops of one stream or, if one thread plays all
/// streams, all ops. Op number `op` is the last that has begun for certain, or the lane's first if
/// none has for certain. Any of the next `behind` ops may have begun, too.
struct Lane {
  bool is_empty = true;
  std::size_t op = 0;
  std::size_t behind = 0;
  std::vector<std::size_t> met{};  ///< communicators of these ops, as indices into Groups::arrivals

  void add(std::size_t index, Begun begun, const std::vector<std::size_t>& places) {
    if (begun == Begun::yes || is_empty) {
      op = index;
      behind = 0;
      met.clear();
    } else {
      ++behind;
    }
    is_empty = false;
    for (const std::size_t place : places) {
      if (std::ranges::find(met, place) == met.end()) met.push_back(place);
    }
  }
};

}  // namespace

bool RankState::is_alone() const {
  if (!failure.empty()) return true;
  if (rests || in_collective) return false;
  return std::ranges::all_of(at, [](const AtOp& op) { return op.meets.empty(); });
}

std::string to_text(const CallNumber& call) {
  return fmt::format("play {}, call {}", call.play, call.number);
}

static void to_json(json& call, const Arrival& arrival) {
  call = {{"group", arrival.group.name},
          {"ranks", json_of(arrival.group.ranks)},
          {"play", arrival.call.play},
          {"number", arrival.call.number}};
  if (arrival.more > 0) call["more"] = arrival.more;
}

static void from_json(const json& call, Arrival& arrival) {
  arrival.group = {.name = call.at("group"), .ranks = ranks_from(call.at("ranks"))};
  arrival.call = {.play = call.at("play"), .number = call.at("number")};
  arrival.more = call.value("more", std::uint32_t{0});
}

std::string to_json(const RankState& state) {
  return json(state).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<RankState> state_from_json(std::string_view text) {
  try {
    return json::parse(text).get<RankState>();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

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
  std::map<std::size_t, Lane> lanes;
  for (std::size_t i = 0; i < map.outline.ops.size(); ++i) {
    const OutlineOp& op = map.outline.ops[i];
    const std::size_t lane = at.begun.size() > 1 ? op.stream : 0;
    const Begun begun = begun_of(at, lane, i);
    if (begun == Begun::no) continue;
    const std::vector<std::size_t> met = groups.of(op);
    for (const std::size_t place : met) {
      Arrival& arrival = groups.arrivals[place];
      arrival.call.play = at.plays;
      ++(begun == Begun::yes ? arrival.call.number : arrival.more);
    }
    if (at.playing) lanes[lane].add(i, begun, met);
  }
  std::vector<Lane> in_order;
  for (auto& [number, lane] : lanes) in_order.push_back(std::move(lane));
  std::ranges::sort(in_order, {}, &Lane::op);
  for (const Lane& lane : in_order) {
    AtOp& shown = state.at.emplace_back(AtOp{.op = op_text(map.outline.ops[lane.op], map.mesh)});
    if (lane.behind > 0) {
      shown.op += fmt::format(", or {} {} behind it", lane.behind == 1 ? "the" : "one of the",
                              lane.behind == 1 ? "op" : base::counted(lane.behind, "op"));
    }
    for (const std::size_t place : lane.met) {
      const Arrival& arrival = groups.arrivals[place];
      shown.meets.push_back({.group = arrival.group, .call = arrival.latest()});
    }
  }
  std::ranges::sort(groups.arrivals, {}, [](const Arrival& a) { return a.group.name; });
  for (Arrival& arrival : groups.arrivals) state.arrivals.push_back(std::move(arrival));
}

}  // namespace isoscale::runner::watch
