// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "analysis/predict/prediction.hpp"
#include "analysis/render/curve_tables_and_remarks.hpp"
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/table_cells.hpp"
#include "analysis/value_units.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::predict {

namespace {

using render::Json;
using render::Value;
using render::value_json;

/// Returns an interval as text: "1.64 s to 1.81 s".
std::string range(const Expected& at, Unit unit) {
  return fmt::format("{} to {}", value_text(at.lower, unit), value_text(at.upper, unit));
}

/// Returns a relative standard deviation as text, "±4.0%"; "0" if it is 0.
std::string deviation_text(double of) { return of == 0 ? "0" : "±" + value_text(of, Unit::share); }

std::string notes(const Forecast& at) {
  std::vector<std::string> notes;
  if (at.extrapolated) notes.emplace_back("extrapolated");
  if (at.fits == false) {
    notes.push_back(fmt::format("needs {} a rank", value_text(at.memory.device, Unit::bytes)));
  }
  return base::listed(notes);
}

std::vector<const Forecast*> with_waterfall(const ForecastCurve& curve) {
  std::vector<const Forecast*> found;
  for (const Forecast& at : curve.points) {
    if (at.waterfall) found.push_back(&at);
  }
  return found;
}

/// Returns the value of an option of a candidate; null if it has none.
Value option_of(const Candidate& candidate, const std::string& key) {
  const auto found = candidate.request.options.find(key);
  return found == candidate.request.options.end() ? Value() : Value(found->second);
}

/// Returns the options in which the candidates of a search differ, and always the microbatch.
std::set<std::string> telling_options(const std::vector<Candidate>& candidates) {
  std::set<std::string> keys;
  for (const Candidate& at : candidates) {
    for (const auto& [key, value] : at.request.options) keys.insert(key);
  }
  std::erase_if(keys, [&](const std::string& key) {
    const Value first = option_of(candidates.front(), key);
    return key != "microbatch" && std::ranges::all_of(candidates, [&](const Candidate& at) {
             return option_of(at, key) == first;
           });
  });
  return keys;
}

/// Returns a table of the measured points, followed by the forecasts with their intervals and the
/// sources of the intervals. Throughput is per rank so that rank counts can be compared.
render::DocumentTable forecast_table(const Prediction& prediction) {
  render::DocumentTable result{
      .columns = {{"", "ranks", Unit::count},
                  {"", "nodes", Unit::count},
                  {"", "mesh"},
                  {"", prediction.throughput_unit + "/rank", Unit::prefixed},
                  {"", "MFU", Unit::share},
                  {"", "step time", Unit::seconds},
                  {"", "90% interval"}},
      .named = 2,
      .width = render::Width::as_needed};
  const bool with_efficiency = prediction.has_efficiency();
  if (with_efficiency) {
    result.columns.push_back({"", "efficiency", Unit::share});
    result.columns.push_back({"", "90% interval"});
  }
  for (const char* const more : {"noise", "launch", "model"}) {
    result.columns.push_back({"", more, Unit::count});
  }
  result.columns.push_back({"", ""});
  const auto add = [&](std::vector<Value> row, std::string reason = "") {
    row.resize(result.columns.size());
    result.rows.push_back(std::move(row));
    result.reasons.push_back(std::move(reason));
  };
  const std::string empty;
  for (const MeasuredPoint& at : prediction.measured) {
    add({Json(at.ranks), Json(at.nodes), mesh::to_string(at.mesh),
         value_json(at.throughput / at.ranks), Value(), value_json(at.step_time), empty,
         value_json(at.efficiency), empty, empty, empty, empty, std::string{"measured"}});
  }
  for (const Forecast& at : prediction.base.points) {
    if (!at.refused.empty()) {
      add({Json(at.ranks), Json(at.nodes)}, at.refused);
      continue;
    }
    const std::optional<Expected> mfu = at.expected_mfu();
    std::vector<Value> row{Json(at.ranks),
                           Json(at.nodes),
                           mesh::to_string(at.request.mesh),
                           value_json(at.throughput_per_rank().value),
                           mfu ? value_json(mfu->value) : Value(),
                           value_json(at.step_time.value),
                           range(at.step_time, Unit::seconds)};
    if (with_efficiency) {
      const Expected& share = at.efficiency;
      row.push_back(value_json(share.value));
      row.emplace_back(share.lower == share.upper ? std::string{render::undefined}
                                                  : range(share, Unit::share));
    }
    for (const double part : {at.uncertainty.noise, at.uncertainty.launch, at.uncertainty.fit}) {
      row.emplace_back(deviation_text(part));
    }
    row.emplace_back(notes(at));
    add(std::move(row));
  }
  return result;
}

/// Adds a cell for the memory on the device, and one for that on the host if any row needs some.
template <class Row>
void add_memory(const std::vector<Row>& all, const Row& at, std::vector<render::Cell>& cells) {
  cells.push_back({"memory/rank", value_json(at.memory.device), Unit::bytes});
  if (std::ranges::none_of(all, [](const Row& row) { return row.memory.host > 0; })) return;
  cells.push_back({"on the host", value_json(at.memory.host), Unit::bytes});
}

/// Returns a table of a step's parts, memory and MFU by rank count; empty without breakdowns.
render::DocumentTable parts_table(const ForecastCurve& curve) {
  render::DocumentTable result;
  for (const Forecast& at : curve.points) {
    if (!at.breakdown) continue;
    const breakdown::Breakdown& parts = *at.breakdown;
    const auto share = [&](double of) {
      return of == 0 ? std::string{"0"} : value_text(of / parts.step, Unit::share);
    };
    std::vector<render::Cell> cells{{"ranks", Json(at.ranks)}};
    render::add_part_cells(cells, [&](auto part) { return share(parts.*part); });
    cells.push_back({"MFU", value_json(at.mfu), Unit::share});
    add_memory(curve.points, at, cells);
    cells.push_back({"where a step would go", render::breakdown_bar(parts), Unit::text});
    render::add_row(result, std::move(cells));
  }
  return result;
}

/// Returns a table of the time lost to each cause, with a column for each rank count of `curve`. If
/// `beside` is given, the column of its forecast with the same rank count follows each column.
render::DocumentTable lost_time_of(const ForecastCurve& curve,
                                   const ForecastCurve* beside = nullptr) {
  std::vector<render::LostColumn> columns;
  for (const Forecast* const at : with_waterfall(curve)) {
    columns.emplace_back(fmt::format("{} ranks", at->ranks), &*at->waterfall);
    if (beside == nullptr) continue;
    for (const Forecast* const other : with_waterfall(*beside)) {
      if (other->ranks == at->ranks) columns.emplace_back("then", &*other->waterfall);
    }
  }
  return render::lost_time_table(columns, "predicted");
}

/// Returns a table that compares a curve on a changed machine with the curve on the machine as it
/// is: throughput per rank, MFU, step time and, unless it has no meaning, efficiency.
render::DocumentTable what_if_table(const Prediction& prediction, const ForecastCurve& changed) {
  render::DocumentTable result;
  const ForecastCurve& base = prediction.base;
  for (std::size_t i = 0; i < std::min(base.points.size(), changed.points.size()); ++i) {
    const Forecast& now = base.points[i];
    const Forecast& then = changed.points[i];
    if (!now.refused.empty() || !then.refused.empty()) continue;
    const Expected rate = then.throughput_per_rank();
    std::vector<render::Cell> cells{
        {"ranks", Json(now.ranks)},
        {prediction.throughput_unit + "/rank", value_json(now.throughput_per_rank().value),
         Unit::prefixed},
        {"then", value_json(rate.value), Unit::prefixed},
        {"90% interval", range(rate, Unit::prefixed), Unit::text},
        {"faster by", value_json(now.step_time.value / then.step_time.value - 1), Unit::share},
        {"MFU", value_json(now.mfu), Unit::share},
        {"then", value_json(then.mfu), Unit::share},
        {"step time", value_json(now.step_time.value), Unit::seconds},
        {"then", value_json(then.step_time.value), Unit::seconds},
        {"90% interval", range(then.step_time, Unit::seconds), Unit::text}};
    if (prediction.has_efficiency()) {
      cells.push_back({"efficiency", value_json(now.efficiency.value), Unit::share});
      cells.push_back({"then", value_json(then.efficiency.value), Unit::share});
    }
    render::add_row(result, std::move(cells));
  }
  return result;
}

/// Returns a table of the meshes and options that a search simulated, the fastest of all first;
/// empty if there was no search.
render::DocumentTable best_table(const Prediction& prediction) {
  render::DocumentTable result;
  if (prediction.best.empty()) return result;
  result.title = fmt::format(
      "the fastest of {} meshes and options looked at, on {} ranks, and others that were simulated",
      prediction.searched, prediction.best.front().request.mesh.size());
  const std::set<std::string> keys = telling_options(prediction.best);
  for (const Candidate& at : prediction.best) {
    std::vector<render::Cell> cells{{"", Json(result.rows.size() + 1)},
                                    {"mesh", mesh::to_string(at.request.mesh), Unit::text}};
    for (const std::string& key : keys) cells.push_back({key, option_of(at, key)});
    cells.push_back({"step time", value_json(at.step_time), Unit::seconds});
    add_memory(prediction.best, at, cells);
    cells.push_back({"why it loses", at.why_not, Unit::text});
    render::add_row(result, std::move(cells));
  }
  return result;
}

render::Facts header_facts(const Prediction& prediction) {
  render::Facts facts{{"machine", render::escape(prediction.machine)},
                      {"nodes", "of " + base::counted(prediction.node_ranks, "rank")},
                      {"from", render::escape(prediction.source)}};
  if (prediction.correction) {
    facts.emplace_back("model", fmt::format("simulated step times are multiplied by {:.3f}, the "
                                            "ratio of measured to simulated ones",
                                            *prediction.correction));
  }
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) facts.emplace_back(key, render::escape(text));
  };
  add("software", prediction.software);
  add("network", prediction.network);
  std::vector<std::string> parts;
  for (const PartSource& at : prediction.parts) {
    parts.push_back(fmt::format("{}: {}", at.part, at.from));
  }
  if (!prediction.network.empty()) add("parts", fmt::format("{}", fmt::join(parts, "; ")));
  if (prediction.batch) {
    std::string work = fmt::format("batch of {:.0f} samples", *prediction.batch);
    if (prediction.tokens_per_step) {
      work += fmt::format(", {:.0f} tokens a step", *prediction.tokens_per_step);
    }
    facts.emplace_back("work", work);
  }
  add("options", prediction.options);
  if (!prediction.assumed.empty()) {
    facts.emplace_back("assumed", prediction.assumed + ", unless set otherwise with --set");
  }
  for (const std::string& warning : prediction.warnings) add("WARNING", warning);
  return facts;
}

/// Returns, for each factor by which tokens count in the throughput, a sentence with its ranks.
render::Facts growth_facts(const Prediction& prediction) {
  std::map<double, std::vector<int>> ranks;
  for (const MeasuredPoint& at : prediction.measured) ranks[at.work_growth].push_back(at.ranks);
  for (const Forecast& at : prediction.base.points) ranks[at.work_growth].push_back(at.ranks);
  render::Facts facts;
  for (const auto& [growth, counts] : ranks) {
    const std::string text = render::growth_text(growth);
    if (text.empty()) continue;
    facts.emplace_back("scaled", fmt::format("{}: {}", base::counted(counts, "rank"), text));
  }
  return facts;
}

/// Returns the sentences on scaled tokens and on the limits of the curve, and one on the next
/// measurement if there is one.
render::Facts curve_facts(const Prediction& prediction) {
  render::Facts facts = growth_facts(prediction);
  for (const std::string& sentence : prediction.limits) facts.emplace_back("limit", sentence);
  if (prediction.next) {
    facts.emplace_back(
        "next",
        fmt::format("measure this next: {}; this narrows the interval of the {} from {} to {}: {}",
                    render::escape(prediction.next->what),
                    prediction.has_efficiency() ? "efficiency" : "throughput",
                    render::percent(prediction.next->width_now),
                    render::percent(prediction.next->width_then),
                    render::escape(prediction.next->command)));
  }
  return facts;
}

/// Adds explanations of the columns and terms, one paragraph for each line of text.
void append_key(render::Document& document, const Prediction& prediction) {
  const auto line = [&](std::string text) {
    document.emplace_back(render::Paragraph{std::move(text), render::Lines::one});
  };
  document.emplace_back(render::Heading{""});
  line("90% interval: the true value is expected inside it nine times in ten.");
  if (prediction.ceiling) {
    line(fmt::format("MFU: share of {} that the model's GEMMs reach.", prediction.ceiling->what));
    line(
        "The products of attention count in full, although a fused causal kernel computes half of "
        "them.");
  }
  if (prediction.has_efficiency() && prediction.baseline) {
    line(fmt::format("Efficiency: throughput per rank relative to {}.",
                     base::counted(*prediction.baseline, "rank")));
  }
  line(
      "noise, launch, model: relative standard deviations behind the interval: between steps, "
      "between launches,");
  line("and of the model, by its errors at known points and by extrapolation.");
  line("Where a step would go: shares of it, mean over ranks, each moment counted once:");
  for (const render::Category& category : render::categories()) {
    line(fmt::format("  {} {:<9} {}", category.glyph, category.name, category.meaning));
  }
  line("    hidden    communication behind computation and copies (part of these)");
  line("    moves     the part of hidden in which data moves; the rest waits for partners");
  if (with_waterfall(prediction.base).empty()) return;
  const std::string lost = "Lost time: what a cause adds to the step, compared with the baseline";
  if (prediction.measured.empty()) return line(lost + ".");
  line(lost + "; beyond the model: the");
  line("difference between model and measurement at the baseline.");
}

}  // namespace

std::string render_text(const Prediction& prediction) {
  using render::append;
  render::Document document{render::Heading{"Isoscale, a prediction"}};
  append(document, header_facts(prediction));
  document.emplace_back(
      render::Heading{prediction.title + ", " + prediction.base.title, render::Underline::yes});
  append(document, forecast_table(prediction));
  append(document, parts_table(prediction.base));
  append(document, lost_time_of(prediction.base));
  append(document, curve_facts(prediction));
  if (!prediction.best.empty()) {
    append(document, best_table(prediction));
    document.emplace_back(render::Paragraph{fmt::format("  {:8} {}", "run it", prediction.command),
                                            render::Lines::one});
  }
  for (const ForecastCurve& curve : prediction.what_if) {
    document.emplace_back(render::Heading{"if " + curve.title, render::Underline::yes});
    append(document, what_if_table(prediction, curve));
    append(document, lost_time_of(prediction.base, &curve));
  }
  append_key(document, prediction);
  return render::to_text(document, std::numeric_limits<std::size_t>::max());
}

}  // namespace isoscale::analysis::predict
