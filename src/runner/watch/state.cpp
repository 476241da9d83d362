// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runner/watch/rank_runs.hpp"

namespace isoscale::runner {
namespace {

using nlohmann::json;

/// [[first, count, distance], ...]: thousands of ranks send this to one.
json json_of(const std::vector<int>& ranks) {
  json list = json::array();
  for (const RankRun& run : runs_of(ranks)) {
    list.push_back(json::array({run.first, run.count, run.distance}));
  }
  return list;
}

std::vector<int> ranks_from(const json& list) {
  std::vector<RankRun> runs;
  for (const json& run : list) {
    runs.push_back({.first = run.at(0).get<int>(),
                    .count = run.at(1).get<int>(),
                    .distance = run.at(2).get<int>()});
  }
  return ranks_of(runs);
}

json json_of(const Arrival& arrival) {
  json call{{"group", arrival.group.name},
            {"ranks", json_of(arrival.group.ranks)},
            {"play", arrival.call.play},
            {"number", arrival.call.number}};
  if (arrival.more > 0) call["more"] = arrival.more;
  return call;
}

json json_of(const std::vector<Arrival>& arrivals) {
  json list = json::array();
  for (const Arrival& arrival : arrivals) list.push_back(json_of(arrival));
  return list;
}

std::vector<Arrival> arrivals_from(const json& list) {
  std::vector<Arrival> result;
  for (const json& at : list) {
    result.push_back(
        {.group = {.name = at.at("group").get<std::string>(), .ranks = ranks_from(at.at("ranks"))},
         .call = {.play = at.at("play").get<std::uint64_t>(),
                  .number = at.at("number").get<std::uint32_t>()},
         .more = at.value("more", std::uint32_t{0})});
  }
  return result;
}

}  // namespace

bool RankState::is_alone() const {
  if (!failure.empty()) return true;
  if (rests || in_collective) return false;
  return std::ranges::all_of(at, [](const AtOp& op) { return op.meets.empty(); });
}

std::string to_text(const CallNumber& call) {
  return fmt::format("play {}, call {}", call.play, call.number);
}

std::string to_json(const RankState& state) {
  json at = json::array();
  for (const AtOp& op : state.at) at.push_back({{"op", op.op}, {"meets", json_of(op.meets)}});
  const json whole{{"rank", state.rank},
                   {"doing", state.doing},
                   {"still", state.still},
                   {"rests", state.rests},
                   {"in_collective", state.in_collective},
                   {"can_leave", state.can_leave},
                   {"failure", state.failure},
                   {"at", at},
                   {"arrivals", json_of(state.arrivals)}};
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<RankState> state_from_json(std::string_view text) {
  const json whole = json::parse(text, nullptr, false);
  if (!whole.is_object()) return std::nullopt;
  try {
    RankState state{.rank = whole.at("rank").get<int>(),
                    .doing = whole.at("doing").get<std::string>(),
                    .still = whole.at("still").get<double>(),
                    .rests = whole.at("rests").get<bool>(),
                    .in_collective = whole.at("in_collective").get<bool>(),
                    .can_leave = whole.at("can_leave").get<bool>(),
                    .failure = whole.at("failure").get<std::string>(),
                    .arrivals = arrivals_from(whole.at("arrivals"))};
    for (const json& op : whole.at("at")) {
      state.at.push_back(
          {.op = op.at("op").get<std::string>(), .meets = arrivals_from(op.at("meets"))});
    }
    return state;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace isoscale::runner
