// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/hang.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "runner/watch/rank_runs.hpp"

namespace isoscale::runner {
namespace {

using StateOfRank = std::map<int, const RankState*>;

/// A rank that waits at a call for members that have not made it.
struct Meeting {
  CallNumber call{};
  std::string op{};
  std::set<int> waiting{}, absent{};
};

/// That a rank can have made.
std::optional<CallNumber> last_call(const RankState& state, const std::string& group) {
  const auto found = std::ranges::find_if(
      state.arrivals, [&](const Arrival& arrival) { return arrival.group.name == group; });
  return found == state.arrivals.end() ? std::nullopt : std::optional{found->latest()};
}

/// Or may have, for all that is known.
bool has_arrived(const StateOfRank& states, int rank, const Arrival& at) {
  const auto found = states.find(rank);
  if (found == states.end()) return false;
  const auto call = last_call(*found->second, at.group.name);
  return call && *call >= at.call;
}

/// By group and call, those that somebody is absent from.
std::vector<Meeting> meetings_of(const StateOfRank& states) {
  std::map<std::pair<std::string, CallNumber>, Meeting> found;
  for (const auto& [rank, state] : states) {
    for (const AtOp& op : state->at) {
      for (const Arrival& at : op.meets) {
        std::set<int> absent;
        for (const int member : at.group.ranks) {
          if (!has_arrived(states, member, at)) absent.insert(member);
        }
        if (absent.empty()) continue;
        Meeting& meeting = found[{at.group.name, at.call}];
        meeting.call = at.call;
        meeting.op = op.op;
        meeting.waiting.insert(rank);
        meeting.absent = std::move(absent);
      }
    }
  }
  std::vector<Meeting> meetings;
  for (auto& [key, meeting] : found) meetings.push_back(std::move(meeting));
  std::ranges::stable_sort(meetings, {}, &Meeting::call);
  return meetings;
}

std::string what_of(const RankState& state) {
  if (!state.failure.empty()) return "failed: " + state.failure;
  for (const AtOp& op : state.at) {
    if (op.meets.empty()) return "is in " + op.op;
  }
  if (!state.at.empty()) return "waits in " + state.at.front().op;
  return "is at: " + state.doing;
}

std::vector<int> list(const std::set<int>& ranks) { return {ranks.begin(), ranks.end()}; }

}  // namespace

Hang find_hang(const std::vector<RankState>& states, int ranks) {
  StateOfRank known;
  for (const RankState& state : states) known.try_emplace(state.rank, &state);
  Hang hang;
  std::map<int, std::string> culprits;
  for (int rank = 0; rank < ranks; ++rank) {
    if (known.contains(rank)) continue;
    hang.silent.push_back(rank);
    culprits[rank] = "never answered";
  }
  const std::vector<Meeting> meetings = meetings_of(known);
  std::set<int> waiting;
  for (const Meeting& meeting : meetings)
    waiting.insert(meeting.waiting.begin(), meeting.waiting.end());
  for (const auto& [rank, state] : known) {
    if (!state->failure.empty()) culprits[rank] = what_of(*state);
  }
  // Who is absent and waits for nobody itself. Where ranks are gone or have failed, others may just
  // be on their way.
  const bool is_plain = culprits.empty();
  for (const Meeting& meeting : meetings) {
    for (const int rank : meeting.absent) {
      const bool is_busy = known.contains(rank) && !waiting.contains(rank);
      if (is_plain && is_busy) culprits[rank] = what_of(*known[rank]);
    }
  }
  // Outside of programs: who is in no call of the runner while others are.
  if (culprits.empty()) {
    for (const auto& [rank, state] : known) {
      if (state->is_alone()) culprits[rank] = what_of(*state);
    }
    if (culprits.size() == known.size() && known.size() > 1) culprits.clear();
  }
  for (auto& [rank, what] : culprits)
    hang.culprits.push_back({.rank = rank, .what = std::move(what)});
  if (!meetings.empty()) {
    const Meeting& first = meetings.front();
    hang.first_op = fmt::format("{} ({})", first.op, to_text(first.call));
    hang.waiting = list(first.waiting);
    hang.absent = list(first.absent);
  }
  return hang;
}

std::string Hang::sentence() const {
  std::vector<std::string> who;
  constexpr std::size_t most = 8;
  for (const Culprit& culprit : culprits) {
    if (who.size() == most) {
      who.push_back(fmt::format("and {} more", culprits.size() - most));
      break;
    }
    who.push_back(fmt::format("rank {} {}", culprit.rank, culprit.what));
  }
  std::string text = fmt::format("{}", fmt::join(who, "; "));
  if (!first_op.empty()) {
    text += fmt::format("{}{} {} did not arrive at {}, where {} {} wait{}",
                        text.empty() ? "" : "; ", base::plural(absent.size(), "rank"),
                        ranks_text(absent), first_op, base::plural(waiting.size(), "rank"),
                        ranks_text(waiting), waiting.size() == 1 ? "s" : "");
  } else if (text.empty()) {
    text = "all ranks are at the same call, and it does not end: check the network and its library";
  }
  return text;
}

}  // namespace isoscale::runner
