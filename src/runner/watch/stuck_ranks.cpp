// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/stuck_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/warn.hpp"
#include "results/hdf5/publish_and_lock_files.hpp"

namespace isoscale::runner::watch {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Culprit, rank, what)

namespace {

using StateOfRank = std::map<int, const RankState*>;

/// A call on a communicator in which the members that have made it wait for those that have not.
struct PendingCall {
  CallNumber call{};
  std::string op{};
  std::set<int> waiting{}, absent{};
};

/// True if a rank has made the call `at`, or may have made it.
bool has_arrived(const StateOfRank& states, int rank, const Arrival& at) {
  const auto found = states.find(rank);
  return found != states.end() &&
         std::ranges::any_of(found->second->arrivals, [&](const Arrival& arrival) {
           return arrival.group.name == at.group.name && arrival.latest() >= at.call;
         });
}

/// Returns the calls in which ranks wait for members that have not arrived, sorted by call number.
/// Calls of the same number are sorted by the name of their communicator.
std::vector<PendingCall> pending_calls(const StateOfRank& states) {
  std::map<std::pair<std::string, CallNumber>, PendingCall> found;
  for (const auto& [rank, state] : states) {
    for (const AtOp& op : state->at) {
      for (const Arrival& at : op.meets) {
        std::set<int> absent;
        for (const int member : at.group.ranks) {
          if (!has_arrived(states, member, at)) absent.insert(member);
        }
        if (absent.empty()) continue;
        PendingCall& pending = found[{at.group.name, at.call}];
        pending.call = at.call;
        pending.op = op.op;
        pending.waiting.insert(rank);
        pending.absent = std::move(absent);
      }
    }
  }
  std::vector<PendingCall> calls;
  for (auto& [key, pending] : found) calls.push_back(std::move(pending));
  std::ranges::stable_sort(calls, {}, &PendingCall::call);
  return calls;
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

enum Box : int { question, answer, finding };

/// Limits in ns from the start of a poll: for the answers of ranks, and for the leader's findings.
constexpr units::Nanoseconds answers_within{2'500'000'000}, finding_within{4'000'000'000};
constexpr std::chrono::milliseconds pause{5};  // sleep between two checks for messages

/// The number of ranks, from rank 0 on, that may become the leader of a poll. If none of them
/// answers, each rank ends the job itself.
constexpr int most_leaders = 8;

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
  const std::vector<PendingCall> calls = pending_calls(known);
  std::set<int> waiting;
  for (const PendingCall& pending : calls)
    waiting.insert(pending.waiting.begin(), pending.waiting.end());
  for (const auto& [rank, state] : known) {
    if (!state->failure.empty()) culprits[rank] = what_of(*state);
  }
  // A culprit has not arrived at a call in which others wait, and does not itself wait in another
  // call. If some ranks do not answer or have failed, only these are culprits: others that have not
  // arrived may only be late because of them.
  const bool is_plain = culprits.empty();
  for (const PendingCall& pending : calls) {
    for (const int rank : pending.absent) {
      const bool is_busy = known.contains(rank) && !waiting.contains(rank);
      if (is_plain && is_busy) culprits[rank] = what_of(*known[rank]);
    }
  }
  // If there are no culprits so far, the runner's own collective calls are examined. While some
  // ranks wait in such a call, the ranks that wait for no other rank are the culprits. If no rank
  // waits for another, nobody is named.
  if (culprits.empty()) {
    for (const auto& [rank, state] : known) {
      if (state->is_alone()) culprits[rank] = what_of(*state);
    }
    if (culprits.size() == known.size() && known.size() > 1) culprits.clear();
  }
  for (auto& [rank, what] : culprits)
    hang.culprits.push_back({.rank = rank, .what = std::move(what)});
  if (!calls.empty()) {
    const PendingCall& first = calls.front();
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
                        base::ranges_text(absent), first_op, base::plural(waiting.size(), "rank"),
                        base::ranges_text(waiting), waiting.size() == 1 ? "s" : "");
  } else if (text.empty()) {
    text = "all ranks are at the same call, and it does not end: check the network and its library";
  }
  return text;
}

/// Sends a message. If that fails, there is only a warning. Without the question or the answer that
/// was lost, the poll may count a rank as one that never answered.
void RankPoll::post(int to, int box, const std::string& text) {
  const std::string message = fmt::format("{}\n{}", number_, text);
  try {
    mail_.post(to, box, std::as_bytes(std::span{message}));
  } catch (const comm::MpiError& error) {
    base::warn_within(
        fmt::format("isoscale: rank {} cannot be asked for its state: {}", to, error.what()),
        std::chrono::milliseconds{0});
  }
}

/// Returns the next message of the current poll; messages of earlier polls are dropped.
std::optional<std::string> RankPoll::take(int box, int* from) {
  const std::string current = fmt::format("{}\n", number_);
  while (const auto envelope = mail_.take(box)) {
    std::string text(envelope->bytes.size(), '\0');
    std::ranges::transform(envelope->bytes, text.begin(),
                           [](std::byte byte) { return static_cast<char>(byte); });
    if (!text.starts_with(current)) continue;
    if (from != nullptr) *from = envelope->from;
    return text.substr(current.size());
  }
  return std::nullopt;
}

bool RankPoll::is_requested() { return asked_ = asked_ || take(question).has_value(); }

void RankPoll::collect(std::vector<RankState>& states) {
  int from = 0;
  while (const auto message = take(answer, &from)) {
    auto state = state_from_json(*message);
    const bool is_known = std::ranges::count(states, from, &RankState::rank) > 0;
    if (state && state->rank == from && !is_known) states.push_back(std::move(*state));
  }
}

RankPoll::Result RankPoll::lead(std::vector<RankState> states, units::Seconds timeout) {
  std::ranges::sort(states, {}, &RankState::rank);
  const auto fails = [](const RankState& s) { return !s.failure.empty(); };
  // Working ranks usually count as stuck after half of the timeout without progress. If no working
  // rank has been without progress for the whole timeout, the poll was begun by a rank that is idle
  // or has failed, and the others may only be doing work that takes long. Then they count as stuck
  // only after the whole timeout.
  const bool one_is_due = std::ranges::any_of(
      states, [&](const RankState& s) { return !s.rests && s.still >= timeout.value(); });
  const double still = one_is_due ? timeout.value() / 2 : timeout.value();
  const auto moves = [&](const RankState& s) { return !s.rests && s.still < still; };
  Result result{.hang = find_hang(states, size_), .leader = rank_};
  result.sentence = result.hang.sentence();
  // If all ranks are idle, they only wait until a certain time, which is not a hang.
  const bool none_works = std::ranges::all_of(states, &RankState::rests);
  result.calm = result.hang.silent.empty() && std::ranges::none_of(states, fails) &&
                (none_works || std::ranges::any_of(states, moves));
  result.states = std::move(states);
  const nlohmann::json findings{{"sentence", result.sentence}, {"calm", result.calm}};
  const std::string text = findings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (const RankState& state : result.states) {
    if (state.rank != rank_) post(state.rank, finding, text);
  }
  return result;
}

std::optional<RankPoll::Result> RankPoll::received_finding() {
  int from = 0;
  const auto message = take(finding, &from);
  if (!message) return std::nullopt;
  const nlohmann::json findings = nlohmann::json::parse(*message, nullptr, false);
  if (!findings.is_object()) return std::nullopt;
  return Result{.leader = from,
                .sentence = findings.value("sentence", ""),
                .calm = findings.value("calm", false)};
}

RankPoll::Result RankPoll::poll(const RankState& own, units::Seconds timeout,
                                const std::function<void()>& meanwhile) {
  const units::Nanoseconds begin = comm::now();
  const std::string text = to_json(own);
  const bool may_lead = rank_ < most_leaders;
  for (int rank = 0; rank < std::min(size_, most_leaders); ++rank) {
    if (rank != rank_) post(rank, answer, text);
  }
  if (may_lead) {
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) post(rank, question, "");
    }
  }
  std::vector<RankState> states{own};
  std::optional<Result> result;
  const auto all_there = [&] { return static_cast<int>(states.size()) == size_; };
  while (!result) {
    collect(states);
    const units::Nanoseconds waited = comm::now() - begin;
    const bool is_lowest = std::ranges::min(states, {}, &RankState::rank).rank == rank_;
    if (may_lead && is_lowest && (all_there() || waited > answers_within)) {
      result = lead(std::move(states), timeout);
    } else if (auto found = received_finding()) {
      result = std::move(found);
    } else if (waited > finding_within) {
      result = Result{.states = std::move(states), .sentence = "no rank of the first few answered"};
    } else {
      meanwhile();
      std::this_thread::sleep_for(pause);
    }
  }
  asked_ = false;
  ++number_;
  return std::move(*result);
}

std::filesystem::path write_hang_file(const Watched& watched, const RankPoll::Result& found) {
  using nlohmann::json;
  json ranks = json::array();
  for (const RankState& state : found.states) ranks.push_back(json::parse(to_json(state)));
  const json whole{{"created", base::utc_now()},
                   {"point", watched.point},
                   {"left", watched.left},
                   {"timeout", watched.timeout.value()},
                   {"sentence", found.sentence},
                   {"first_op", found.hang.first_op},
                   {"waiting", found.hang.waiting},
                   {"absent", found.hang.absent},
                   {"silent", found.hang.silent},
                   {"culprits", found.hang.culprits},
                   {"ranks", ranks}};
  std::filesystem::path path = results::resolved_output(watched.run_file);
  const bool is_most = 2 * found.states.size() >= static_cast<std::size_t>(watched.ranks);
  const int speaker =
      found.leader < 0 && !found.states.empty() ? found.states.front().rank : found.leader;
  path += is_most ? ".hang.json" : fmt::format(".hang-rank{}.json", speaker);
  results::TemporaryFile temporary{path.parent_path()};
  std::ofstream out{temporary.path()};
  out << whole.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  out.close();
  if (!out) throw base::Error("cannot write " + path.string());
  static_cast<void>(temporary.publish(path, results::Publish::replace));
  return path;
}

std::optional<StoredHang> read_hang_file(const std::filesystem::path& run_file,
                                         const std::string& since) {
  std::ifstream in{results::resolved_output(run_file).string() + ".hang.json"};
  const nlohmann::json whole = nlohmann::json::parse(in, nullptr, false);
  if (!whole.is_object()) return std::nullopt;
  try {
    StoredHang hang{.point = whole.at("point").get<int>(),
                    .sentence = whole.at("sentence").get<std::string>()};
    const bool is_of_run = whole.at("created").get<std::string>() >= since;
    return is_of_run && hang.point >= 0 ? std::optional{std::move(hang)} : std::nullopt;
  } catch (const nlohmann::json::exception&) {  // written by another version, or damaged
    return std::nullopt;
  }
}

}  // namespace isoscale::runner::watch
