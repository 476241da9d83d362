// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/summary_findings_and_index.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::render {
namespace {

constexpr double visible = 0.005;  ///< smaller shares of the step are not shown

struct CurveRow {
  const Curve* curve = nullptr;
  const PointReport* point = nullptr;  ///< null: no point was measured
  std::string name{};
  std::size_t launches = 0;  ///< launches that the point joins; 0 for a point of one launch
  const PointReport* baseline = nullptr;

  [[nodiscard]] bool is_baseline() const { return point != nullptr && point == baseline; }
};

bool has_efficiency(const CurveRow& row) {
  return row.point != nullptr && !row.is_baseline() && row.point->efficiency;
}

/// Returns the two largest shares as text, without those that are below `visible`: "GEMMs 4.1%, dp
/// transfer 3.2%".
std::string largest_two(std::vector<std::pair<std::string, double>> shares) {
  std::erase_if(shares, [](const auto& at) { return !(at.second >= visible); });
  std::ranges::stable_sort(shares, std::ranges::greater{}, &std::pair<std::string, double>::second);
  shares.resize(std::min<std::size_t>(shares.size(), 2));
  std::vector<std::string> words;
  for (const auto& [name, share] : shares) words.push_back(name + " " + percent(share));
  return base::listed(words);
}

/// Returns the two largest parts of the point's own step other than computation, as text: "own
/// step: transfer 4.1%, wait 3.2%"; "" if there are none. This text is shown where lost time cannot
/// be given by cause: at a baseline, on a curve without one, or if the causes do not add up to the
/// loss.
std::string own_step_text(const PointReport& point) {
  if (!point.breakdown.mean) return "";
  std::vector<std::pair<std::string, double>> shares;
  for (const Category& category : categories()) {
    if (category.seconds == &breakdown::Breakdown::compute) continue;
    shares.emplace_back(category.name,
                        *point.breakdown.mean.*category.seconds / point.breakdown.mean->step);
  }
  const std::string text = largest_two(std::move(shares));
  return text.empty() ? "" : "own step: " + text;
}

/// Returns the two largest causes of the time that the step lost relative to the baseline, as
/// shares of the step. If the causes do not add up to the loss, it returns own_step_text() instead,
/// and adds the difference between traced and untraced steps: in front if it is a loss, behind if
/// it is a gain. It also adds this difference if it is large compared with the causes, since it
/// then makes them doubtful.
std::string lost_text(const PointReport& point) {
  const efficiency::Waterfall& waterfall = *point.causes.waterfall;
  std::vector<std::pair<std::string, double>> shares;
  double untraced = 0, largest = 0;
  for (const efficiency::LostTime& lost : waterfall.lost) {
    const double share = lost.seconds / waterfall.measured;
    if (lost.cause == "untraced") {
      untraced = share;
      continue;
    }
    shares.emplace_back(lost.cause, share);
    largest = std::max(largest, share);
  }
  const std::string causes =
      waterfall.explains ? largest_two(std::move(shares)) : own_step_text(point);
  const bool is_small = std::abs(untraced) < std::max(2 * visible, largest / 2);
  if (waterfall.explains && is_small) return causes.empty() ? "nothing" : causes;
  const std::string differ = "unexplained " + percent(untraced);
  if (untraced < 0) return (causes.empty() ? "nothing" : causes) + ", " + differ;
  return causes.empty() ? differ : differ + ", " + causes;
}

Value lost_most(const CurveRow& row) {
  if (row.point == nullptr) {
    const auto& points = row.curve->points;
    return value_json(points.empty() ? "" : "not measured: " + excuse(points.front()));
  }
  if (row.point->causes.waterfall) return value_json(lost_text(*row.point));
  return value_json(row.is_baseline() || row.baseline == nullptr ? own_step_text(*row.point) : "");
}

/// Returns the labels of the point, "WRONG" if its results are wrong, and, if it has an efficiency,
/// the labels of its baseline, which make this efficiency doubtful.
Value notes_of(const CurveRow& row) {
  std::vector<std::string> all;
  if (row.point != nullptr) {
    all = row.point->labels;
    if (row.point->data->verified == false) all.emplace_back("WRONG");
  }
  if (has_efficiency(row)) {
    for (const std::string& label : row.baseline->labels) {
      const auto same = std::ranges::find(all, label);
      if (same == all.end()) {
        all.push_back("baseline " + label);
      } else {
        *same += " (baseline too)";
      }
    }
  }
  return value_json(base::listed(all));
}

constexpr std::array<Metric<CurveRow>, 8> curve_metrics{{
    {"curve", "curve", Unit::text, member<&CurveRow::name>, "what was scaled"},
    {"ranks", "ranks", Unit::count,
     [](const CurveRow& row) {
       return row.point == nullptr ? Value() : Value(row.point->data->ranks);
     },
     "the largest rank count without a label"},
    {"launches", "launches", Unit::count,
     [](const CurveRow& row) { return row.launches == 0 ? Value() : Value(row.launches); },
     "runs that the point was measured in", 0, Keep::if_it_fits},
    {"efficiency", "efficiency", Unit::share,
     [](const CurveRow& row) {
       const bool is_compared = row.point != nullptr && !row.is_baseline();
       return is_compared ? value_json(efficiency_of(*row.point)) : Value();
     },
     "throughput per rank relative to the baseline's, with its 95% interval"},
    {"baseline", "vs", Unit::text,
     [](const CurveRow& row) {
       return value_json(has_efficiency(row) ? baseline_name(*row.curve) : "");
     },
     "the rank count that efficiency is relative to"},
    {"step_time", "step time", Unit::seconds,
     [](const CurveRow& row) {
       return row.point == nullptr ? Value() : value_json(row.point->step_time);
     },
     "median of the slowest rank, with its 95% interval", 0, Keep::without_interval},
    {"lost", "lost most, of the step", Unit::text, lost_most,
     "the two largest causes of lost time, as shares of the step"},
    {"note", "note", Unit::text, notes_of, "labels of the point, which make its numbers doubtful"},
}};

/// Returns the parts of a title, between its commas.
std::vector<std::string> parts_of(const std::string& title) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= title.size();) {
    const std::size_t end = std::min(title.find(", ", begin), title.size());
    parts.push_back(title.substr(begin, end - begin));
    begin = end + 2;
  }
  return parts;
}

/// Shortens "weak scaling" to "weak", which is clear enough in a table.
std::string without_noun(const std::string& part) {
  const std::size_t noun = part.find(" scaling");
  return noun == std::string::npos ? part : part.substr(0, noun);
}

/// Names each row after the workload, which is the first part of its curve's title, and the parts
/// that are not in all titles; returns the other parts, which are in all titles.
std::string name_rows(std::vector<CurveRow>& rows) {
  std::map<std::string, std::size_t> counts;
  for (const CurveRow& row : rows) {
    const std::vector<std::string> parts = parts_of(row.curve->title);
    for (const std::string& part : std::set<std::string>{parts.begin() + 1, parts.end()}) {
      ++counts[part];
    }
  }
  std::vector<std::string> common;
  for (CurveRow& row : rows) {
    const std::vector<std::string> parts = parts_of(row.curve->title);
    std::vector<std::string> own{parts.front()};
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const bool shared = counts[parts[i]] == rows.size();
      if (!shared) own.push_back(without_noun(parts[i]));
      if (shared && &row == &rows.front()) common.push_back(parts[i]);
    }
    row.name = base::listed(own);
  }
  return base::listed(common);
}

CurveRow row_of(const Curve& curve) {
  return {.curve = &curve, .point = telling_point(curve), .baseline = baseline_point(curve)};
}

std::vector<CurveRow> rows_of(const merge::Report& report) {
  std::vector<CurveRow> rows;
  if (report.runs.size() == 1) {
    for (const Curve& curve : report.runs.front().curves) rows.push_back(row_of(curve));
    return rows;
  }
  for (const merge::JoinedCurve& joined : report.joined.curves) {
    rows.push_back(row_of(joined.curve));
    if (rows.back().point == nullptr) continue;
    const auto place = static_cast<std::size_t>(rows.back().point - joined.curve.points.data());
    rows.back().launches = joined.launches[place].size();
  }
  return rows;
}

/// Returns a sentence on the best and the worst efficiency: "Efficiency on 4 ranks against 1 rank:
/// 92.5% at best (dp), 48.1% at worst (tp)."
std::string efficiency_sentence(const std::vector<const CurveRow*>& rows) {
  const auto efficiency = [](const CurveRow* row) { return *row->point->efficiency; };
  const CurveRow& best = **std::ranges::max_element(rows, {}, efficiency);
  const CurveRow& worst = **std::ranges::min_element(rows, {}, efficiency);
  std::set<int> ranks;
  std::set<std::string> baselines;
  for (const CurveRow* const row : rows) {
    ranks.insert(row->point->data->ranks);
    baselines.insert(baseline_name(*row->curve));
  }
  const bool together = ranks.size() == 1;
  const auto name = [&](const CurveRow& row) {
    return together
               ? row.name
               : fmt::format("{}, {}", row.name, base::counted(row.point->data->ranks, "rank"));
  };
  std::string text = "Efficiency";
  if (together) text += " on " + base::counted(*ranks.begin(), "rank");
  if (baselines.size() == 1) text += " against " + *baselines.begin();
  text += fmt::format(": {}", percent(best.point->efficiency));
  if (&best == &worst) return text + fmt::format(" ({}).", name(best));
  return text + fmt::format(" at best ({}), {} at worst ({}).", name(best),
                            percent(worst.point->efficiency), name(worst));
}

std::string sentence_of(const std::vector<CurveRow>& rows) {
  std::vector<const CurveRow*> sound;
  bool any = false;
  for (const CurveRow& row : rows) {
    if (!has_efficiency(row)) continue;
    any = true;
    if (results::is_scaling_result(row.point->labels)) sound.push_back(&row);
  }
  if (rows.empty()) return "";
  if (!sound.empty()) return efficiency_sentence(sound);
  if (any) {
    return "No scaling result: in every point above the baseline ranks shared cores or a GPU, or "
           "faults were injected.";
  }
  return "No efficiency: no curve has times on two rank counts.";
}

/// Returns the table of the rows. If all efficiencies are against the same baseline, the heading of
/// their column names it, and the column of baselines is left out.
DocumentTable table_of_rows(const std::vector<CurveRow>& rows) {
  std::set<std::string> baselines;
  for (const CurveRow& row : rows) {
    if (has_efficiency(row)) baselines.insert(baseline_name(*row.curve));
  }
  const bool is_common = baselines.size() == 1;
  DocumentTable table =
      table_of<CurveRow>(curve_metrics, pointers_to(rows),
                         is_common ? "curve ranks launches efficiency step_time lost note" : "");
  table.width = Width::of_page;
  for (DocumentColumn& column : table.columns) {
    if (column.key == "efficiency" && is_common) column.heading += " vs " + *baselines.begin();
  }
  return table;
}

}  // namespace

std::vector<Note> curve_legend() { return legend_of(Metrics<CurveRow>{curve_metrics}); }

CurvesSummary summarise_curves(const merge::Report& report) {
  std::vector<CurveRow> rows = rows_of(report);
  CurvesSummary summary;
  summary.common = name_rows(rows);
  const auto lacks_elementwise = [](const CurveRow& row) {
    return row.point != nullptr && option_of(*row.point->data, "elementwise") == "off";
  };
  if (!rows.empty() && std::ranges::all_of(rows, lacks_elementwise)) {
    summary.common += summary.common.empty() ? "" : ", ";
    summary.common += "GEMMs and communication only";
  }
  for (const CurveRow& row : rows) summary.names[row.curve->title] = row.name;
  summary.sentence = sentence_of(rows);
  summary.left_out = rows.size() - std::min(rows.size(), most_summary_rows);
  rows.resize(rows.size() - summary.left_out);
  summary.table = table_of_rows(rows);
  return summary;
}

}  // namespace isoscale::analysis::render
