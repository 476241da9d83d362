// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/roll_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>
#include <utility>

#include "base/log.hpp"

namespace isoscale::runner {
namespace {

enum Box : int { question, answer, finding };

/// How long answers are waited for, and what the leader found.
constexpr units::Nanoseconds answers_within{2'500'000'000}, finding_within{4'000'000'000};
constexpr std::chrono::milliseconds pause{5};

std::string text_of(const comm::Message& envelope) {
  std::string text(envelope.bytes.size(), '\0');
  std::ranges::transform(envelope.bytes, text.begin(),
                         [](std::byte byte) { return static_cast<char>(byte); });
  return text;
}

bool has(const std::vector<RankState>& states, int rank) {
  return std::ranges::find(states, rank, &RankState::rank) != states.end();
}

}  // namespace

/// Those that may lead: should the first all be gone, each rank ends by itself.
int RollCall::leaders() const {
  constexpr int most = 8;
  return std::min(most, size_);
}

/// A rank that cannot be written to is one that never answers.
void RollCall::post(int to, int box, const std::string& text) {
  const std::string letter = fmt::format("{}\n{}", number_, text);
  try {
    mail_.post(to, box, std::as_bytes(std::span{letter}));
  } catch (const comm::MpiError& error) {
    base::warn_within(
        fmt::format("isoscale: rank {} cannot be asked what it is at: {}", to, error.what()),
        std::chrono::milliseconds{0});
  }
}

/// The next letter of this roll call.
std::optional<std::string> RollCall::take(int box, int* from) {
  const std::string current = fmt::format("{}\n", number_);
  while (const auto envelope = mail_.take(box)) {
    std::string text = text_of(*envelope);
    if (!text.starts_with(current)) continue;
    if (from != nullptr) *from = envelope->from;
    return text.substr(current.size());
  }
  return std::nullopt;
}

bool RollCall::is_called() { return asked_ = asked_ || take(question).has_value(); }

void RollCall::ask_all() {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) post(rank, question, "");
  }
}

void RollCall::collect(std::vector<RankState>& states) {
  int from = 0;
  while (const auto letter = take(answer, &from)) {
    auto state = state_from_json(*letter);
    if (!state || state->rank != from || has(states, from)) continue;
    states.push_back(std::move(*state));
  }
}

RollCall::Result RollCall::lead(std::vector<RankState> states, units::Seconds timeout) {
  std::ranges::sort(states, {}, &RankState::rank);
  const auto fails = [](const RankState& s) { return !s.failure.empty(); };
  // A rank with nothing to do may have called while others are at something that takes long.
  const bool one_is_due = std::ranges::any_of(
      states, [&](const RankState& s) { return !s.rests && s.still >= timeout.value(); });
  const double still = one_is_due ? timeout.value() / 2 : timeout.value();
  const auto moves = [&](const RankState& s) { return !s.rests && s.still < still; };
  Result result{.hang = find_hang(states, size_), .leader = rank_};
  result.sentence = result.hang.sentence();
  result.goes_on = result.hang.silent.empty() &&
                   std::ranges::all_of(states, [](const RankState& s) { return s.can_leave; });
  // Where all have nothing to do, they wait for a time to come.
  const bool none_works = std::ranges::all_of(states, &RankState::rests);
  result.calm = result.hang.silent.empty() && std::ranges::none_of(states, fails) &&
                (none_works || std::ranges::any_of(states, moves));
  result.states = std::move(states);
  const nlohmann::json told{
      {"sentence", result.sentence}, {"calm", result.calm}, {"goes_on", result.goes_on}};
  const std::string text = told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (const RankState& state : result.states) {
    if (state.rank != rank_) post(state.rank, finding, text);
  }
  return result;
}

std::optional<RollCall::Result> RollCall::told() {
  int from = 0;
  const auto letter = take(finding, &from);
  if (!letter) return std::nullopt;
  const nlohmann::json told = nlohmann::json::parse(*letter, nullptr, false);
  if (!told.is_object()) return std::nullopt;
  return Result{.leader = from,
                .sentence = told.value("sentence", ""),
                .calm = told.value("calm", false),
                .goes_on = told.value("goes_on", false)};
}

RollCall::Result RollCall::hold(const RankState& own, units::Seconds timeout,
                                const std::function<void()>& meanwhile) {
  const units::Nanoseconds begin = comm::now();
  const std::string text = to_json(own);
  for (int rank = 0; rank < leaders(); ++rank) {
    if (rank != rank_) post(rank, answer, text);
  }
  if (may_lead()) ask_all();
  std::vector<RankState> states{own};
  std::optional<Result> result;
  const auto all_there = [&] { return static_cast<int>(states.size()) == size_; };
  while (!result) {
    collect(states);
    const units::Nanoseconds waited = comm::now() - begin;
    const bool is_lowest = std::ranges::min(states, {}, &RankState::rank).rank == rank_;
    if (may_lead() && is_lowest && (all_there() || waited > answers_within)) {
      result = lead(std::move(states), timeout);
    } else if (auto found = told()) {
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

}  // namespace isoscale::runner
