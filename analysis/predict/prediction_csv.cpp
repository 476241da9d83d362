// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include "analysis/predict/prediction_render.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/text.hpp"

namespace isoscale::analysis {
namespace {

std::string options_text(const workloads::Options& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    text += (text.empty() ? "" : " ") + key + "=" + value;
  }
  return text;
}

/// Where nothing could be predicted there are no numbers.
class Cells {
 public:
  explicit Cells(const Forecast& at) : known_(at.refused.empty()) {}

  void text(std::string_view column, std::string_view value) {
    cells_.emplace_back(column, text_cell(value));
  }
  void number(std::string_view column, std::optional<double> value) {
    cells_.emplace_back(column, known_ ? number_cell(value) : "");
  }
  void count(std::string_view column, int value) {
    cells_.emplace_back(column, std::to_string(value));
  }
  [[nodiscard]] std::vector<CsvCell> take() { return std::move(cells_); }

 private:
  bool known_;
  std::vector<CsvCell> cells_;
};

void add_expected(Cells& cells, const std::array<std::string_view, 3>& columns,
                  const Expected& value) {
  cells.number(columns[0], value.value);
  cells.number(columns[1], value.lower);
  cells.number(columns[2], value.upper);
}

void add_breakdown(Cells& cells, const Forecast& at) {
  for (const Category& category : categories()) {
    cells.number(category.name,
                 at.breakdown ? std::optional{(*at.breakdown).*category.seconds} : std::nullopt);
  }
  cells.number("hidden_communication",
               at.breakdown ? std::optional{at.breakdown->hidden_communication} : std::nullopt);
}

std::vector<CsvCell> cells_of(const Prediction& prediction, const ForecastCurve& curve,
                              const Forecast& at) {
  Cells cells{at};
  cells.text("source", prediction.source);
  cells.text("machine", prediction.machine);
  cells.text("curve", curve.title);
  cells.text("title", prediction.title);
  cells.count("ranks", at.ranks);
  cells.count("nodes", at.nodes);
  cells.text("refused", at.refused);
  cells.text("mesh", at.refused.empty() ? mesh::to_string(at.request.mesh) : "");
  cells.text("options", options_text(at.request.options));
  add_expected(cells, {"step_time", "step_time_lower", "step_time_upper"}, at.step_time);
  add_expected(cells, {"throughput", "throughput_lower", "throughput_upper"}, at.throughput);
  cells.text("throughput_unit", prediction.throughput_unit);
  add_expected(cells, {"speedup", "speedup_lower", "speedup_upper"}, at.speedup);
  add_expected(cells, {"efficiency", "efficiency_lower", "efficiency_upper"}, at.efficiency);
  cells.number("noise", at.uncertainty.noise);
  cells.number("launch", at.uncertainty.launch);
  cells.number("fit", at.uncertainty.fit);
  cells.text("extrapolated", at.extrapolated ? "yes" : "no");
  cells.number("simulated", at.simulated);
  cells.number("delay", at.delay);
  cells.number("memory_per_rank", at.memory_per_rank);
  cells.text("fits", !at.fits ? "" : *at.fits ? "yes" : "no");
  cells.number("mfu", at.mfu);
  add_breakdown(cells, at);
  cells.number("ideal", at.waterfall ? std::optional{at.waterfall->ideal} : std::nullopt);
  cells.text("limit", at.limit);
  return cells.take();
}

}  // namespace

std::string render_csv(const Prediction& prediction) {
  // The heading comes from a point without values.
  std::string text = csv_heading(cells_of({}, {}, {}));
  const auto add = [&](const ForecastCurve& curve) {
    for (const Forecast& at : curve.points) text += csv_values(cells_of(prediction, curve, at));
  };
  add(prediction.base);
  for (const ForecastCurve& curve : prediction.what_if) add(curve);
  return text;
}

}  // namespace isoscale::analysis
