// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/breakdown_notes.hpp"

#include <fmt/format.h>

#include "analysis/breakdown/trace_check.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {

std::string missing_text(const results::PointData& point, const TracedSteps& steps,
                         const ReplayNotes& replay, double step) {
  std::string text;
  const auto say = [&text](const std::string& sentence) {
    text += (text.empty() ? "" : "; ") + sentence;
  };
  if (!steps.broken.empty()) {
    say(fmt::format("the traces of {} are damaged and left out", rank_list(point, steps.broken)));
  }
  std::set<int> unseen = steps.unseen;
  for (const int rank : steps.unaligned) unseen.erase(rank);
  if (!unseen.empty()) {
    say(fmt::format("{} not traced: waiting for them counts as transfer",
                    rank_list(point, unseen)));
  }
  if (!steps.unaligned.empty()) {
    say(
        fmt::format("the clocks of {} are not aligned: waiting there and for them counts as "
                    "transfer",
                    rank_list(point, steps.unaligned)));
  }
  if (!steps.unmatched.empty()) {
    say(fmt::format("messages of {} match no op of the partner: waiting in them counts as transfer",
                    rank_list(point, steps.unmatched)));
  }
  if (!replay.assumed.empty()) {
    say(fmt::format("bubble assumes the mean op times of like ranks for {}",
                    rank_list(point, replay.assumed)));
  }
  if (!replay.failure.empty()) {
    say(fmt::format("bubble and waiting are not separated: {}", replay.failure));
  }
  constexpr double visible = 0.01;  // of a step: what a table of percents can show
  if (steps.clock_error > visible * step) {
    say(fmt::format("clocks agree to {} only: shorter waits count as transfer",
                    units::format(units::Seconds{steps.clock_error})));
  }
  return text;
}

}  // namespace isoscale::analysis
