// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "results/columns.hpp"

namespace isoscale::results {
namespace {

/// What a column holds where there is nothing to tell.
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

GemmTable to_table(const std::vector<GemmChoice>& choices) {
  GemmTable table;
  for (const GemmChoice& choice : choices) {
    table.shape.push_back(choice.shape);
    table.algorithm.push_back(choice.algorithm);
    table.workspace.push_back(choice.workspace);
    table.time.push_back(choice.time.value_or(unknown));
    table.candidates.push_back(choice.candidates);
    table.arithmetic.push_back(choice.arithmetic);
  }
  return table;
}

std::vector<GemmChoice> to_choices(const GemmTable& t) {
  require_lengths(
      {t.shape.size(), t.algorithm.size(), t.workspace.size(), t.time.size(), t.candidates.size()},
      "the columns of gemm_choices differ in length");
  const bool knows_arithmetic = !t.arithmetic.empty();
  if (knows_arithmetic) {
    require_lengths({t.arithmetic.size(), t.shape.size()},
                    "the columns of gemm_choices differ in length");
  }
  std::vector<GemmChoice> choices;
  for (std::size_t row = 0; row < t.shape.size(); ++row) {
    choices.push_back({.shape = t.shape[row],
                       .algorithm = t.algorithm[row],
                       .workspace = t.workspace[row],
                       .time = known(t.time[row]),
                       .candidates = t.candidates[row],
                       .arithmetic = knows_arithmetic ? t.arithmetic[row] : ""});
  }
  return choices;
}

std::vector<GemmChoice> choices_of_run(const RunData& run, const std::string& file) {
  std::vector<GemmChoice> choices;
  std::set<std::string_view> shapes;
  for (const PointData& point : run.points) {
    for (const GemmChoice& choice : point.gemm_choices) {
      if (shapes.insert(choice.shape).second) choices.push_back(choice);
    }
  }
  if (!choices.empty()) return choices;
  throw base::UsageError(
      fmt::format("{}: holds no choice of GEMM algorithms; give a run that was measured on a GPU "
                  "(--device cuda)",
                  base::printable(file)));
}

CommunicatorTable to_table(const std::vector<CommunicatorTime>& times) {
  CommunicatorTable table;
  for (const CommunicatorTime& time : times) {
    table.name.push_back(time.name);
    table.ranks.push_back(time.ranks);
    table.creation.push_back(time.creation);
    table.first_call.push_back(time.first_call.value_or(unknown));
  }
  return table;
}

std::vector<CommunicatorTime> to_communicators(const CommunicatorTable& t) {
  require_lengths({t.name.size(), t.ranks.size(), t.creation.size(), t.first_call.size()},
                  "the columns of communicators differ in length");
  std::vector<CommunicatorTime> times;
  for (std::size_t row = 0; row < t.name.size(); ++row) {
    times.push_back({.name = t.name[row],
                     .ranks = t.ranks[row],
                     .creation = t.creation[row],
                     .first_call = known(t.first_call[row])});
  }
  return times;
}

}  // namespace isoscale::results
