// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/table_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/value_units.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::render {
namespace {

/// Returns the value with the interval that `at` has, or without one if `at` is absent or its
/// interval is empty. Absent if there is no value.
std::optional<statistics::Located> without_empty(const std::optional<statistics::Located>& at,
                                                 const std::optional<double>& value) {
  if (!value) return std::nullopt;
  const bool has_width = at && at->lower && at->upper && *at->lower < *at->upper;
  return has_width ? *at : statistics::Located{*value};
}

constexpr int bar_width = 20;  // characters of a bar that stand for 100%
constexpr int bar_beyond = 4;  // characters beyond 100%: efficiencies of up to 120% are drawn

}  // namespace

const std::array<Category, 7>& categories() {
  static constexpr std::array<Category, 7> all{{
      {"compute", "█", "an op computes", &breakdown::Breakdown::compute},
      {"copies", "▓", "data is copied and nothing computes", &breakdown::Breakdown::copies},
      {"transfer", "▒", "exposed communication: all partners have arrived",
       &breakdown::Breakdown::transfer},
      {"wait", "░", "exposed communication: a partner has not arrived yet",
       &breakdown::Breakdown::wait},
      {"bubble", "o", "waiting for pipeline partners, even if communication took no time",
       &breakdown::Breakdown::bubble},
      {"gap", "·", "nothing runs", &breakdown::Breakdown::gap},
      {"other", "?", "nothing explains it", &breakdown::Breakdown::other},
  }};
  return all;
}

std::string percent(std::optional<double> ratio) {
  return ratio ? units::format_percent(*ratio) : std::string{undefined};
}

std::string step_time(const PointReport& point) {
  if (!point.step_time) return std::string{undefined};
  const std::string time = units::format(units::Seconds{point.step_time->median});
  return results::has_label(point.labels, results::few_steps)
             ? fmt::format("{} ({})", time, base::counted(point.steps, "step"))
             : time;
}

std::string interval(const PointReport& point) {
  return point.step_time ? interval_text(located(*point.step_time)) : std::string{undefined};
}

std::string interval_text(const statistics::Located& at) {
  if (!at.lower || !at.upper || !(at.value > 0)) return std::string{undefined};
  constexpr double alike = 1.2;  // the longer side is at most 1.2 times the shorter
  // If neither side is wider than this, relative to the value, only the mean of both is shown.
  constexpr double narrow = 0.01;
  const double below = 1 - *at.lower / at.value, above = *at.upper / at.value - 1;
  const double wider = std::max(below, above);
  if (wider <= narrow || wider <= alike * std::min(below, above)) {
    return "±" + units::format_percent((below + above) / 2);
  }
  return fmt::format("{:+.1f}% {:+.1f}%", -100 * below, 100 * above);
}

std::optional<statistics::Located> speedup_of(const PointReport& point) {
  return without_empty(point.speedup_interval, point.speedup);
}

std::optional<statistics::Located> efficiency_of(const PointReport& point) {
  return without_empty(efficiency_interval(point), point.efficiency);
}

std::string few_steps_text(const PointReport& point) {
  if (!results::has_label(point.labels, results::few_steps)) return "";
  return fmt::format(
      "few-steps: {} count{}: the time is unreliable, and so is everything derived from it",
      base::counted(point.steps, "step"), point.steps == 1 ? "s" : "");
}

std::string throughput_unit(const Curve& curve) {
  for (const PointReport& point : curve.points) {
    if (!point.throughput_unit.empty()) return escape(point.throughput_unit);
  }
  return "throughput";
}

std::string growth_text(double work_growth) {
  if (std::abs(work_growth - 1) <= 1e-9) return "";
  return fmt::format("tokens count {} times, since the model is that much larger than on one rank",
                     value_text(work_growth, Unit::prefixed));
}

bool is_known(const breakdown::BreakdownResult& breakdown, double breakdown::Breakdown::*part) {
  if (part == &breakdown::Breakdown::wait) return breakdown.wait_known;
  return part != &breakdown::Breakdown::bubble || breakdown.bubble_known;
}

std::string share_text(const breakdown::BreakdownResult& breakdown,
                       double breakdown::Breakdown::*part, const breakdown::Breakdown& parts) {
  const double seconds = parts.*part;
  const std::string share = percent(seconds / breakdown.mean->step);
  if (!is_known(breakdown, part)) return seconds == 0 ? std::string{undefined} : "≥" + share;
  // An exact zero is "0", which readers can skip, unlike a small share that rounds to "0.0%".
  if (seconds == 0) return "0";
  return part == &breakdown::Breakdown::transfer && !breakdown.wait_known ? "≤" + share : share;
}

std::string notes(const PointReport& point) {
  std::vector<std::string> all(point.labels.size());
  std::ranges::transform(point.labels, all.begin(), escape);
  if (!point.data->verified) all.emplace_back("unverified");
  if (point.data->verified == false) all.emplace_back("WRONG");
  return base::listed(all);
}

std::string excuse(const PointReport& point) {
  if (point.data->status == results::PointStatus::ok) return "";
  const std::string reason = escape(point.data->reason);
  return fmt::format("{}: {}", results::name(point.data->status),
                     reason.empty() ? "no reason was recorded" : reason);
}

std::string breakdown_bar(const breakdown::Breakdown& parts) {
  constexpr std::size_t count = 7;
  std::array<double, count> exact{};
  std::array<int, count> cells{};
  for (std::size_t i = 0; i < count; ++i) {
    exact[i] = std::max(0.0, parts.*categories()[i].seconds);
  }
  const double sum = std::reduce(exact.begin(), exact.end());
  if (!(sum > 0)) return "";
  for (std::size_t i = 0; i < count; ++i) {
    exact[i] *= bar_width / sum;
    cells[i] = static_cast<int>(exact[i]);
  }
  while (std::reduce(cells.begin(), cells.end()) < bar_width) {
    std::size_t neediest = 0;
    for (std::size_t i = 1; i < count; ++i) {
      if (exact[i] - cells[i] > exact[neediest] - cells[neediest]) neediest = i;
    }
    ++cells[neediest];
  }
  std::string bar;
  for (std::size_t i = 0; i < count; ++i) {
    for (int cell = 0; cell < cells[i]; ++cell) bar += categories()[i].glyph;
  }
  return bar;
}

std::string efficiency_bar(double efficiency) {
  constexpr std::array<std::string_view, 9> eighths{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
  constexpr std::string_view mark = "│";
  constexpr double most = bar_width + bar_beyond;
  const double length = efficiency * bar_width;
  const auto drawn = static_cast<int>(std::lround(std::clamp(length, 0.0, most) * 8));
  std::string text;
  for (int cell = 0; cell < bar_width + bar_beyond; ++cell) {
    if (cell == bar_width) text += mark;
    const int filled = std::clamp(drawn - cell * 8, 0, 8);
    if (filled == 0 && cell >= bar_width) break;
    text += eighths[static_cast<std::size_t>(filled)];
  }
  if (length > most) text += ">";
  return text;
}

std::string efficiency_heading() {
  return fmt::format("{:<{}}{:<{}}{:>{}}", "0%", bar_width / 2 - 1, "50%", bar_width / 4, "ideal│",
                     bar_width / 4 + 2);
}

bool spans_nodes(const Curve& curve) {
  return std::ranges::any_of(curve.points,
                             [](const PointReport& point) { return point.data->nodes > 1; });
}

std::string axes_text(const PointReport& point) {
  if (!point.nodes || point.nodes->nodes < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [axis, reach] : point.nodes->axes) {
    parts.push_back(fmt::format("{} {}", mesh::name(axis), mesh::name(reach)));
  }
  return base::listed(parts);
}

Facts baseline_remark(const Curve& curve) {
  if (!curve.baseline) return {{"baseline", "none: no point can serve as the baseline"}};
  std::string text = baseline_name(curve);
  if (curve.per_node) {
    text += ": speed-up counts nodes";
  } else if (*curve.baseline > 1) {
    text += fmt::format(", assumed {} times as fast as 1 rank", *curve.baseline);
  }
  if (has_unsure_baseline(curve)) {
    const std::size_t steps = baseline_point(curve)->steps;
    text += fmt::format("; only {} of its steps count{}, so every efficiency here is uncertain",
                        steps, steps == 1 ? "s" : "");
  }
  return {{"baseline", text}};
}

std::string efficiency_column(const Curve& curve) {
  return curve.baseline ? "vs " + baseline_name(curve) : std::string{"efficiency"};
}

}  // namespace isoscale::analysis::render
