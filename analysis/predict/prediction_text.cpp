// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/text.hpp"
#include "analysis/render/text_and_markdown.hpp"
#include "units/text.hpp"

namespace isoscale::analysis::predict {

namespace {

std::string seconds(double time) { return units::format(units::Seconds{time}); }

std::string count(double value) {
  std::string text = units::format_count(value, "");
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string bytes(double amount) {
  return units::format(units::Bytes{static_cast<std::uint64_t>(std::max(0.0, amount))});
}

/// Returns "61.2% to 75.3%".
std::string range(const Expected& at) {
  if (at.lower == at.upper) return std::string{render::undefined};
  return fmt::format("{} to {}", render::percent(at.lower), render::percent(at.upper));
}

/// Returns a relative standard deviation; "0" if there is no deviation.
std::string deviation(double of) { return of == 0 ? "0" : "±" + render::percent(of); }

std::string notes(const Forecast& at) {
  std::vector<std::string> notes;
  if (at.extrapolated) notes.emplace_back("extrapolated");
  if (at.fits == false) notes.push_back(fmt::format("needs {} a rank", bytes(at.memory_per_rank)));
  std::string text;
  for (const std::string& note : notes) text += (text.empty() ? "" : ", ") + note;
  return text;
}

/// Returns "1.64 s to 1.81 s".
std::string seconds_range(const Expected& at) {
  return fmt::format("{} to {}", seconds(at.lower), seconds(at.upper));
}

/// Returns the row of a measured point. Its throughput is per rank, so that machines and rank
/// counts can be compared.
render::Row measured_row(const MeasuredPoint& at) {
  return {.cells = {std::to_string(at.ranks), std::to_string(at.nodes), mesh::to_string(at.mesh),
                    count(at.throughput / at.ranks), std::string{render::undefined},
                    seconds(at.step_time), "", render::percent(at.efficiency), "", "", "", "",
                    "measured"},
          .tail = ""};
}

render::Row forecast_row(const Forecast& at, bool with_efficiency) {
  if (!at.refused.empty()) {
    return {.cells = {std::to_string(at.ranks), std::to_string(at.nodes)},
            .tail = render::escape(at.refused)};
  }
  const std::optional<Expected> mfu = at.expected_mfu();
  render::Row row{.cells = {std::to_string(at.ranks), std::to_string(at.nodes),
                            mesh::to_string(at.request.mesh), count(at.throughput_per_rank().value),
                            mfu ? render::percent(mfu->value) : std::string{render::undefined},
                            seconds(at.step_time.value), seconds_range(at.step_time)},
                  .tail = ""};
  if (with_efficiency) {
    row.cells.insert(row.cells.end(), {render::percent(at.efficiency.value), range(at.efficiency)});
  }
  row.cells.insert(row.cells.end(),
                   {deviation(at.uncertainty.noise), deviation(at.uncertainty.launch),
                    deviation(at.uncertainty.fit), notes(at)});
  return row;
}

std::vector<const Forecast*> with_waterfall(const ForecastCurve& curve) {
  std::vector<const Forecast*> found;
  for (const Forecast& at : curve.points) {
    if (at.waterfall) found.push_back(&at);
  }
  return found;
}

/// Returns the loss as a share of the predicted step; "0" where nothing is lost.
std::string loss_cell(const efficiency::Waterfall& waterfall, const std::string& cause) {
  const auto lost = std::ranges::find(waterfall.lost, cause, &efficiency::LostTime::cause);
  if (lost == waterfall.lost.end() || lost->seconds == 0) return "0";
  return render::percent(lost->seconds / waterfall.measured);
}

/// Returns the causes of all points, in order, without causes that cost no time at any point.
std::vector<std::string> causes_of(const std::vector<const Forecast*>& points) {
  std::vector<std::string> causes;
  for (const Forecast* const point : points) {
    auto next = causes.begin();
    for (const efficiency::LostTime& lost : point->waterfall->lost) {
      const auto known = std::ranges::find(causes, lost.cause);
      next = known == causes.end() ? causes.insert(next, lost.cause) : known;
      ++next;
    }
  }
  std::erase_if(causes, [&](const std::string& cause) {
    return std::ranges::all_of(points, [&](const Forecast* point) {
      const auto& all = point->waterfall->lost;
      const auto lost = std::ranges::find(all, cause, &efficiency::LostTime::cause);
      return lost == all.end() || lost->seconds == 0;
    });
  });
  return causes;
}

/// Returns the options in which candidates differ, and the microbatch, which is always shown.
std::vector<std::string> telling_options(const std::vector<Candidate>& candidates) {
  std::vector<std::string> keys;
  for (const Candidate& at : candidates) {
    for (const auto& [key, value] : at.request.options) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  std::ranges::sort(keys);
  std::erase_if(keys, [&](const std::string& key) {
    if (key == "microbatch") return false;
    const auto& of_first = candidates.front().request.options;
    const auto first = of_first.find(key);
    return std::ranges::all_of(candidates, [&](const Candidate& at) {
      const auto found = at.request.options.find(key);
      const bool has = found != at.request.options.end();
      return has == (first != of_first.end()) && (!has || found->second == first->second);
    });
  });
  return keys;
}

/// Returns a table of the measured points, then the forecasts with their intervals and the sources
/// of the intervals.
render::TitledTable forecast_table(const Prediction& prediction) {
  render::TitledTable result{.title = "",
                             .columns = {{"ranks"},
                                         {"nodes"},
                                         {"mesh", render::Align::left},
                                         {render::escape(prediction.throughput_unit) + "/rank"},
                                         {"MFU"},
                                         {"step time"},
                                         {"90% interval", render::Align::left}},
                             .rows = {}};
  const bool with_efficiency = prediction.has_efficiency();
  if (with_efficiency) {
    result.columns.push_back({"efficiency"});
    result.columns.push_back({"90% interval", render::Align::left});
  }
  for (const char* const more : {"noise", "launch", "model"}) result.columns.push_back({more});
  result.columns.push_back({"", render::Align::left});
  for (const MeasuredPoint& at : prediction.measured) result.rows.push_back(measured_row(at));
  for (const Forecast& at : prediction.base.points) {
    result.rows.push_back(forecast_row(at, with_efficiency));
  }
  return result;
}

/// Returns a table of a step's parts, memory and MFU; absent where no breakdown is known.
std::optional<render::TitledTable> parts_table(const ForecastCurve& curve) {
  render::TitledTable result{.title = "where a step would go", .columns = {{"ranks"}}, .rows = {}};
  for (const render::Category& category : render::categories()) {
    result.columns.push_back({fmt::format("{} {}", category.glyph, category.name)});
  }
  for (const char* const more : {"hidden", "MFU", "memory/rank"}) result.columns.push_back({more});
  result.columns.push_back({"where a step would go", render::Align::left});
  for (const Forecast& at : curve.points) {
    if (!at.breakdown) continue;
    const breakdown::Breakdown& parts = *at.breakdown;
    const auto share = [&](double of) { return of == 0 ? "0" : render::percent(of / parts.step); };
    render::Row row{.cells = {std::to_string(at.ranks)}, .tail = ""};
    for (const render::Category& category : render::categories()) {
      row.cells.push_back(share(parts.*category.seconds));
    }
    row.cells.push_back(share(parts.hidden_communication));
    row.cells.push_back(render::percent(at.mfu));
    row.cells.push_back(bytes(at.memory_per_rank));
    row.cells.push_back(render::breakdown_bar(parts));
    result.rows.push_back(std::move(row));
  }
  if (result.rows.empty()) return std::nullopt;
  return result;
}

/// Returns a table of the cost of each cause, with a column for each rank count. If `beside` is
/// given, each of its columns stands next to that of `curve`. Absent if no point has a waterfall.
std::optional<render::TitledTable> lost_time_table(const ForecastCurve& curve,
                                                   const ForecastCurve* beside = nullptr) {
  std::vector<const Forecast*> points;
  render::TitledTable result{.title = "lost time, from ideal to predicted, share of the step",
                             .columns = {{"", render::Align::left}},
                             .rows = {}};
  for (const Forecast* const at : with_waterfall(curve)) {
    points.push_back(at);
    result.columns.push_back({fmt::format("{} ranks", at->ranks)});
    if (beside == nullptr) continue;
    for (const Forecast* const other : with_waterfall(*beside)) {
      if (other->ranks != at->ranks) continue;
      points.push_back(other);
      result.columns.push_back({"then"});
    }
  }
  if (points.empty()) return std::nullopt;
  const auto row = [&](const std::string& name, const auto& cell) {
    render::Row cells{.cells = {name}, .tail = ""};
    for (const Forecast* const at : points) cells.cells.push_back(cell(*at->waterfall));
    result.rows.push_back(std::move(cells));
  };
  row("ideal step", [](const efficiency::Waterfall& at) { return seconds(at.ideal); });
  for (const std::string& cause : causes_of(points)) {
    row("  " + cause, [&](const efficiency::Waterfall& at) { return loss_cell(at, cause); });
  }
  row("  all lost",
      [](const efficiency::Waterfall& at) { return render::percent(1 - at.ideal / at.measured); });
  row("predicted step", [](const efficiency::Waterfall& at) { return seconds(at.measured); });
  return result;
}

/// Returns a table of a curve on a changed machine next to the base, starting with rate per rank,
/// MFU and step time.
render::TitledTable what_if_table(const Prediction& prediction, const ForecastCurve& changed) {
  const bool with_efficiency = prediction.has_efficiency();
  render::TitledTable result{.title = "",
                             .columns = {{"ranks"},
                                         {render::escape(prediction.throughput_unit) + "/rank"},
                                         {"then"},
                                         {"90% interval", render::Align::left},
                                         {"faster by"},
                                         {"MFU"},
                                         {"then"},
                                         {"step time"},
                                         {"then"},
                                         {"90% interval", render::Align::left}},
                             .rows = {}};
  if (with_efficiency) {
    for (const char* const heading : {"efficiency", "then"}) result.columns.push_back({heading});
  }
  const auto mfu = [](const Forecast& at) { return render::percent(at.mfu); };
  const ForecastCurve& base = prediction.base;
  for (std::size_t i = 0; i < std::min(base.points.size(), changed.points.size()); ++i) {
    const Forecast& now = base.points[i];
    const Forecast& then = changed.points[i];
    if (!now.refused.empty() || !then.refused.empty()) continue;
    const Expected rate = then.throughput_per_rank();
    render::Row row{
        .cells = {std::to_string(now.ranks), count(now.throughput_per_rank().value),
                  count(rate.value), fmt::format("{} to {}", count(rate.lower), count(rate.upper)),
                  render::percent(now.step_time.value / then.step_time.value - 1), mfu(now),
                  mfu(then), seconds(now.step_time.value), seconds(then.step_time.value),
                  seconds_range(then.step_time)},
        .tail = ""};
    if (with_efficiency) {
      row.cells.push_back(render::percent(now.efficiency.value));
      row.cells.push_back(render::percent(then.efficiency.value));
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

/// Returns a table of the best candidates of a search; absent without a search.
std::optional<render::TitledTable> best_table(const Prediction& prediction) {
  if (prediction.best.empty()) return std::nullopt;
  const std::vector<std::string> keys = telling_options(prediction.best);
  render::TitledTable result{
      .title = fmt::format("the best of {} meshes and options looked at, on {} ranks",
                           prediction.searched, prediction.best.front().request.mesh.size()),
      .columns = {{""}, {"mesh", render::Align::left}},
      .rows = {}};
  for (const std::string& key : keys) result.columns.push_back({key});
  for (const char* const more : {"step time", "memory/rank"}) result.columns.push_back({more});
  result.columns.push_back({"why it loses", render::Align::left});
  for (std::size_t i = 0; i < prediction.best.size(); ++i) {
    const Candidate& at = prediction.best[i];
    render::Row row{.cells = {std::to_string(i + 1), mesh::to_string(at.request.mesh)}, .tail = ""};
    for (const std::string& key : keys) {
      const auto found = at.request.options.find(key);
      row.cells.push_back(found == at.request.options.end() ? std::string{render::undefined}
                                                            : render::escape(found->second));
    }
    row.cells.insert(row.cells.end(), {seconds(at.step_time), bytes(at.memory_per_rank),
                                       render::escape(at.why_not)});
    result.rows.push_back(std::move(row));
  }
  return result;
}

std::string header_text(const Prediction& prediction) {
  render::Facts facts{{"machine", render::escape(prediction.machine)},
                      {"nodes", fmt::format("of {} rank{}", prediction.node_ranks,
                                            prediction.node_ranks == 1 ? "" : "s")},
                      {"from", render::escape(prediction.source)}};
  if (prediction.correction) {
    facts.emplace_back("model", fmt::format("simulated step times are multiplied by {:.3f}, which "
                                            "is what measured ones are of them",
                                            *prediction.correction));
  }
  if (!prediction.network.empty())
    facts.emplace_back("network", render::escape(prediction.network));
  if (prediction.batch) {
    std::string work = fmt::format("batch of {:.0f} samples", *prediction.batch);
    if (prediction.tokens_per_step) {
      work += fmt::format(", {:.0f} tokens a step", *prediction.tokens_per_step);
    }
    facts.emplace_back("work", work);
  }
  if (!prediction.options.empty())
    facts.emplace_back("options", render::escape(prediction.options));
  if (!prediction.assumed.empty()) {
    facts.emplace_back("assumed", prediction.assumed + ", where --set says nothing else");
  }
  for (const std::string& warning : prediction.warnings) {
    facts.emplace_back("WARNING", render::escape(warning));
  }
  return render::lines(facts);
}

std::string bare(const render::TitledTable& part) { return render::table(part.columns, part.rows); }

std::string what_if_text(const Prediction& prediction, const ForecastCurve& curve) {
  std::string text = render::heading("if " + render::escape(curve.title));
  text += bare(what_if_table(prediction, curve));
  if (const auto lost = lost_time_table(prediction.base, &curve))
    text += "\n" + render::titled(*lost);
  return text;
}

std::string base_text(const Prediction& prediction) {
  std::string text =
      render::heading(render::escape(prediction.title + ", " + prediction.base.title));
  text += bare(forecast_table(prediction));
  if (const auto parts = parts_table(prediction.base)) text += "\n" + bare(*parts);
  if (const auto lost = lost_time_table(prediction.base)) text += "\n" + render::titled(*lost);
  render::Facts facts;
  for (const std::string& sentence : prediction.limits) facts.emplace_back("limit", sentence);
  if (prediction.next) {
    facts.emplace_back(
        "next", fmt::format("measure this next: {}; the {}'s interval narrows from {} to {}: {}",
                            render::escape(prediction.next->what),
                            prediction.has_efficiency() ? "efficiency" : "throughput",
                            render::percent(prediction.next->width_now),
                            render::percent(prediction.next->width_then),
                            render::escape(prediction.next->command)));
  }
  return facts.empty() ? text : text + "\n" + render::lines(facts);
}

std::string key(const Prediction& prediction) {
  std::string text = fmt::format(
      "\n90% interval: the interval that holds the number before it nine times in ten.\n"
      "MFU: share of the peak that the model's GEMMs use.{}\n"
      "noise, launch, model: relative standard deviations that make the interval: from step to "
      "step, from launch\n"
      "to launch, and of what the model misses of what is known and of its extrapolation.\n",
      prediction.has_efficiency() && prediction.baseline
          ? fmt::format(" Efficiency: throughput per rank relative to {} rank{}.",
                        *prediction.baseline, *prediction.baseline == 1 ? "" : "s")
          : "");
  text += "Where a step would go: shares of it, mean over ranks, each moment counted once:\n";
  for (const render::Category& category : render::categories()) {
    text += fmt::format("  {} {:<9} {}\n", category.glyph, category.name, category.meaning);
  }
  text += "    hidden    communication behind computation and copies (part of these)\n";
  if (!lost_time_table(prediction.base)) return text;
  text += "Lost time: what a cause adds to the step beyond the baseline's share of it";
  text += prediction.measured.empty()
              ? ".\n"
              : "; beyond the model: what\nthe model misses of the measured baseline.\n";
  return text;
}

}  // namespace

std::string render_text(const Prediction& prediction) {
  std::string text = "Isoscale, a prediction\n" + header_text(prediction) + base_text(prediction);
  if (const auto best = best_table(prediction)) {
    text += "\n" + render::titled(*best) +
            render::lines({{"run it", render::escape(prediction.command)}});
  }
  for (const ForecastCurve& curve : prediction.what_if) text += what_if_text(prediction, curve);
  return text + key(prediction);
}

}  // namespace isoscale::analysis::predict
