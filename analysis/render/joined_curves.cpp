// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "analysis/render/curve_tables_and_remarks.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::render {
namespace {

/// The table with the step time of each launch is left out if there are more launches than this.
constexpr std::size_t most_columns = 6;

using Numbers = std::set<std::size_t>;

std::size_t number_of(const merge::LaunchPoint& at, std::span<const RunReport> reports) {
  return static_cast<std::size_t>(at.run - reports.data()) + 1;
}

std::string launches(const Numbers& numbers) {
  return fmt::format("{} {}", base::plural(numbers.size(), "launch"), fmt::join(numbers, ", "));
}

Numbers numbers_of(const merge::JoinedCurve& joined, std::span<const RunReport> reports) {
  Numbers numbers;
  for (const auto& points : joined.launches) {
    for (const merge::LaunchPoint& at : points) numbers.insert(number_of(at, reports));
  }
  return numbers;
}

void add_left_out(const merge::JoinedCurve& joined, std::span<const RunReport> reports,
                  Facts& facts) {
  std::map<std::pair<int, std::string>, Numbers> all;
  for (const merge::LeftOut& at : joined.left_out) {
    all[{at.at.point->data->ranks, at.reason}].insert(number_of(at.at, reports));
  }
  for (const auto& [what, numbers] : all) {
    facts.emplace_back("left out", fmt::format("{}, {}: {}", base::counted(what.first, "rank"),
                                               launches(numbers), escape(what.second)));
  }
}

/// Adds a remark about points that only one launch measured, and, if the table of step times is
/// left out, a remark that names the output formats with these times.
void add_launches(const merge::JoinedCurve& joined, std::span<const RunReport> reports,
                  Facts& facts) {
  std::vector<int> once;
  bool has_repeats = false;
  for (const auto& points : joined.launches) {
    has_repeats = has_repeats || points.size() > 1;
    if (points.size() == 1) once.push_back(points.front().point->data->ranks);
  }
  if (!once.empty()) {
    facts.emplace_back("launches", base::counted(once, "rank") +
                                       ": only one launch, whose interval does not show how "
                                       "much another launch would differ");
  }
  if (has_repeats && numbers_of(joined, reports).size() > most_columns) {
    facts.emplace_back("launches", "--format csv and json have the step times of each");
  }
}

}  // namespace

DocumentTable times_table(const merge::JoinedCurve& joined, std::span<const RunReport> reports) {
  DocumentTable table{.title = "step time of each launch, and the ±95% interval inside it"};
  const Numbers numbers = numbers_of(joined, reports);
  if (numbers.size() > most_columns) return table;
  for (const auto& points : joined.launches) {
    if (points.size() < 2) continue;
    std::map<std::size_t, std::string> times;
    for (const merge::LaunchPoint& at : points) {
      times[number_of(at, reports)] = step_time(*at.point) + " " + interval(*at.point);
    }
    std::vector<Cell> cells{{"ranks", Json(points.front().point->data->ranks)}};
    for (const std::size_t at : numbers) cells.push_back({fmt::format("launch {}", at), times[at]});
    add_row(table, std::move(cells));
  }
  return table;
}

Facts joined_remarks(const merge::JoinedCurve& joined, std::span<const RunReport> reports) {
  Facts facts;
  if (joined.curve.points.empty()) {
    add_left_out(joined, reports, facts);
    return facts;
  }
  for (const auto& [name, value] : joined.machine) facts.emplace_back(name, escape(value));
  for (const std::string& why : joined.apart) {
    facts.emplace_back("apart", "not joined with " + escape(why));
  }
  add_left_out(joined, reports, facts);
  add_launches(joined, reports, facts);
  append(facts, baseline_remark(joined.curve));
  Sentences said{{"label", "axes"}};
  for (const PointReport& point : joined.curve.points) {
    said.add("label", point, few_steps_text(point));
    said.add("axes", point, axes_text(point));
  }
  said.append_to(facts);
  append(facts, cause_remarks(joined.curve));
  return facts;
}

std::vector<std::string> joined_key() {
  return {
      "Over launches: step time is the median of the launches' medians; spread is (max - min) / "
      "median over launches.",
      "Their ±95%: t-interval over launches, from 3 on. The interval inside one launch says "
      "nothing about the next.",
      "Where a step went, lost time and causes are, for each point, of the launch nearest to the "
      "median."};
}

}  // namespace isoscale::analysis::render
