// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <string>

#include "analysis/predict/prediction_render.hpp"
#include "analysis/predict/prediction_tables.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/text.hpp"

namespace isoscale::analysis {
namespace {

std::string header_text(const Prediction& prediction) {
  Facts facts{{"machine", escape(prediction.machine)},
              {"nodes", fmt::format("of {} rank{}", prediction.node_ranks,
                                    prediction.node_ranks == 1 ? "" : "s")},
              {"from", escape(prediction.source)}};
  if (prediction.correction) {
    facts.emplace_back("model", fmt::format("simulated step times are multiplied by {:.3f}, which "
                                            "is what measured ones are of them",
                                            *prediction.correction));
  }
  if (!prediction.network.empty()) facts.emplace_back("network", escape(prediction.network));
  if (prediction.batch) {
    std::string work = fmt::format("batch of {:.0f} samples", *prediction.batch);
    if (prediction.tokens_per_step) {
      work += fmt::format(", {:.0f} tokens a step", *prediction.tokens_per_step);
    }
    facts.emplace_back("work", work);
  }
  if (!prediction.options.empty()) facts.emplace_back("options", escape(prediction.options));
  if (!prediction.assumed.empty()) {
    facts.emplace_back("assumed", prediction.assumed + ", where --set says nothing else");
  }
  for (const std::string& warning : prediction.warnings) {
    facts.emplace_back("WARNING", escape(warning));
  }
  return lines(facts);
}

std::string bare(const TitledTable& part) { return table(part.columns, part.rows); }

std::string what_if_text(const Prediction& prediction, const ForecastCurve& curve) {
  std::string text = heading("if " + escape(curve.title));
  text += bare(what_if_table(prediction, curve));
  if (const auto lost = lost_time_table(prediction.base, &curve)) text += "\n" + titled(*lost);
  return text;
}

std::string base_text(const Prediction& prediction) {
  std::string text = heading(escape(prediction.title + ", " + prediction.base.title));
  text += bare(forecast_table(prediction));
  if (const auto parts = parts_table(prediction.base)) text += "\n" + bare(*parts);
  if (const auto lost = lost_time_table(prediction.base)) text += "\n" + titled(*lost);
  Facts facts;
  for (const std::string& sentence : prediction.limits) facts.emplace_back("limit", sentence);
  if (prediction.next) {
    facts.emplace_back(
        "next",
        fmt::format("measure this next: {}; the {}'s interval narrows from {} to {}: {}",
                    escape(prediction.next->what),
                    prediction.has_efficiency() ? "efficiency" : "throughput",
                    percent(prediction.next->width_now), percent(prediction.next->width_then),
                    escape(prediction.next->command)));
  }
  return facts.empty() ? text : text + "\n" + lines(facts);
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
  for (const Category& category : categories()) {
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
    text += "\n" + titled(*best) + lines({{"run it", escape(prediction.command)}});
  }
  for (const ForecastCurve& curve : prediction.what_if) text += what_if_text(prediction, curve);
  return text + key(prediction);
}

}  // namespace isoscale::analysis
