// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "analysis/devices/held_down.hpp"
#include "analysis/rank_facts.hpp"
#include "analysis/render/text_escape.hpp"
#include "analysis/rows/bench_tables.hpp"
#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t most = 20;  // lines of one kind

/// What happened before anything was timed: what it took to make communicators, and the first call
/// of the first row that communicates, which makes connections.
void add_setup(const PointReport& point, Facts& facts) {
  const auto text = [](double seconds) { return units::format(units::Seconds{seconds}); };
  if (point.data->communicator_creation > 0 && point.data->ranks > 1) {
    facts.emplace_back("setup", "communicators made in " + text(point.data->communicator_creation));
  }
  for (const results::CommunicatorTime& made : point.data->communicators) {
    facts.emplace_back(
        "setup", fmt::format("{}: {} ranks, {}{}", escape(made.name), made.ranks,
                             made.creation > 0 ? "made in " + text(made.creation)
                                               : "kept from the session before",
                             made.first_call ? ", first call " + text(*made.first_call) : ""));
  }
  const auto communicates = [](const RowReport& row) {
    return row.data->text.contains("in_place") && row.data->number.contains("first_call") &&
           row.time.has_value();
  };
  const auto first = std::ranges::find_if(point.bench->rows, communicates);
  if (first == point.bench->rows.end()) return;
  facts.emplace_back(
      "setup", fmt::format("first calls of all: {} each, {} later on",
                           text(first->data->number.at("first_call")), text(first->time->median)));
}

void add_pairs(const PointReport& point, Facts& facts) {
  std::size_t said = 0;
  for (const PairReport& pair : point.bench->pairs) {
    if (pair.failure.empty() || ++said > most) continue;
    facts.emplace_back("failed",
                       fmt::format("rank {} to rank {}: {}", world_rank(*point.data, pair.src),
                                   world_rank(*point.data, pair.dst), escape(pair.failure)));
  }
  if (said > most) facts.emplace_back("failed", fmt::format("and {} more pairs", said - most));
  const auto& slow = point.bench->slow;
  for (std::size_t i = 0; i < std::min(slow.size(), most); ++i) {
    const SlowPair& at = slow[i];
    facts.emplace_back(
        "SLOW", at.quantity == "latency"
                    ? fmt::format("{} to {} ({}): latency {}, {:.3g} times its class's {}",
                                  escape(at.from), escape(at.to), escape(at.link_class),
                                  time_cell(at.value), at.value / at.typical, time_cell(at.typical))
                    : fmt::format("{} to {} ({}): {} {}, {} of its class's {}", escape(at.from),
                                  escape(at.to), escape(at.link_class), at.quantity,
                                  bandwidth_cell(at.value), percent(at.share()),
                                  bandwidth_cell(at.typical)));
  }
  if (slow.size() > most) {
    facts.emplace_back("SLOW", fmt::format("and {} more pairs", slow.size() - most));
  }
}

/// Clocks of GPUs over the rows, what held them down, and plays that were late.
void add_gpus(const PointReport& point, Facts& facts) {
  std::vector<double> clocks;
  std::map<std::string_view, std::size_t> held;  // rows
  double late = 0;
  for (const RowReport& row : point.bench->rows) {
    const auto clock = number_of(*row.data, "sm_clock");
    if (clock) clocks.push_back(*clock);
    const auto bits = sampled_bits(number_of(*row.data, "throttle_reasons").value_or(0));
    for (const std::string_view reason : reason_names(bits.value_or(0))) ++held[reason];
    late += number_of(*row.data, "late_plays").value_or(0);
  }
  if (!clocks.empty()) {
    constexpr double mega = 1e6;
    const auto [least, most_of_all] = std::ranges::minmax(clocks);
    facts.emplace_back("clocks", least == most_of_all
                                     ? fmt::format("GPUs at {:.0f} MHz in all rows", least / mega)
                                     : fmt::format("GPUs at {:.0f} to {:.0f} MHz, by row",
                                                   least / mega, most_of_all / mega));
  }
  for (const auto& [reason, rows] : held) {
    facts.emplace_back("clocks",
                       fmt::format("held down in {}: {}", base::counted(rows, "row"), reason));
  }
  if (late > 0) {
    facts.emplace_back("LATE",
                       fmt::format("the times of {:.0f} plays include launches by the host", late));
  }
}

/// Rows of tf32 that the library multiplied without tf32, which it may.
void add_arithmetic(const PointReport& point, Facts& facts) {
  std::map<std::string, std::size_t> others;  // rows
  for (const RowReport& row : point.bench->rows) {
    const auto dtype = row.data->text.find("dtype");
    const auto arithmetic = row.data->text.find("arithmetic");
    if (dtype == row.data->text.end() || dtype->second != "tf32") continue;
    if (arithmetic == row.data->text.end()) continue;
    if (arithmetic->second.find("tf32 inputs") == std::string::npos) ++others[arithmetic->second];
  }
  for (const auto& [arithmetic, rows] : others) {
    facts.emplace_back("NO TF32", fmt::format("{} multiplied with {}", base::counted(rows, "row"),
                                              escape(arithmetic)));
  }
}

}  // namespace

Facts bench_remarks(const PointReport& point) {
  Facts facts;
  if (!point.bench) return facts;
  for (const std::string& label : point.labels) facts.emplace_back("label", escape(label));
  if (point.data->folded) {
    const std::string reason = escape(point.data->folded_reason);
    facts.emplace_back("streams",
                       "all streams played as one" + (reason.empty() ? "" : ": " + reason));
  }
  add_setup(point, facts);
  if (point.data->verified) {
    const std::string found = escape(point.data->verification);
    facts.emplace_back(*point.data->verified ? "verified" : "WRONG",
                       found.empty() ? "all results are as expected" : found);
  }
  const auto wrong = std::ranges::count_if(
      point.bench->rows, [](const RowReport& row) { return row.data->wrong.value_or(0) > 0; });
  if (wrong > 0) {
    facts.emplace_back("WRONG",
                       fmt::format("{} came out with wrong elements", base::counted(wrong, "row")));
  }
  add_gpus(point, facts);
  add_arithmetic(point, facts);
  add_pairs(point, facts);
  return facts;
}

}  // namespace isoscale::analysis
