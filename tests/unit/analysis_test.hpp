// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/efficiency/pop_factors_and_losses.hpp"
#include "analysis/render/render.hpp"
#include "report_samples.hpp"
#include "series.hpp"
#include "words.hpp"

/// The tests of the analysis and of its predictions include this header instead of the standard
/// library, GoogleTest and the samples, and find the names of these and the report of a run here.
namespace isoscale::analysis {

using mesh::Axis;
using mesh::AxisSet;
using namespace samples;  // NOLINT: they are written for these tests
using nlohmann::json;
using testing::DoubleNear;
using testing::Eq;
using testing::Field;
using units::Nanoseconds;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

/// A report of one run, which it keeps.
struct OneRun {
  results::RunData run;
  RunReport made;
  explicit OneRun(results::RunData of, const std::string& file = "a.h5")
      : run(std::move(of)), made(make_report(run, file, {})) {}
  OneRun(const OneRun&) = delete;
  OneRun& operator=(const OneRun&) = delete;
  [[nodiscard]] merge::Report report() const { return {.runs = {&made, 1}}; }
  /// Point number `i` of the first curve.
  [[nodiscard]] const PointReport& point(std::size_t i) const {
    return made.curves.at(0).points.at(i);
  }
};

/// `render` is one of render_text, render_json and their like.
inline std::string rendered(const results::RunData& run,
                            std::string (*render)(const merge::Report&),
                            const std::string& file = "a.h5") {
  return render(OneRun{run, file}.report());
}

/// The one run of the JSON report.
inline json json_of(const results::RunData& run) {
  return json::parse(rendered(run, render::render_json))["runs"][0];
}

/// The first curve and its first point, which refer to `run`.
inline Curve curve_of(const results::RunData& run, const ReportOptions& options = {}) {
  return make_report(run, "a.h5", options).curves.at(0);
}
inline PointReport point_of(const results::RunData& run, const ReportOptions& options = {}) {
  return curve_of(run, options).points.at(0);
}

inline double sum_of(const efficiency::StepCosts& costs) {
  double sum = costs.gemm + costs.other_compute + costs.copies + costs.bubble + costs.waiting +
               costs.gap + costs.other;
  for (const auto& [axes, seconds] : costs.transfer) sum += seconds;
  return sum;
}

inline std::vector<int> rank_counts(const Curve& curve) {
  return mapped(curve.points, [](const PointReport& point) { return point.data->ranks; });
}

/// Expects the members of `part` in `whole`, however deep; numbers to 1e-9 of their size.
inline void expect_holds(const json& whole, const json& part, const std::string& at = "") {
  if (part.is_object() && whole.is_object() && !part.empty()) {
    for (const auto& [key, value] : part.items()) {
      EXPECT_TRUE(whole.contains(key)) << at << '/' << key;
      if (whole.contains(key)) expect_holds(whole[key], value, fmt::format("{}/{}", at, key));
    }
  } else if (part.is_array() && whole.is_array()) {
    ASSERT_EQ(whole.size(), part.size()) << at;
    for (std::size_t i = 0; i < part.size(); ++i) {
      expect_holds(whole[i], part[i], at + '/' + std::to_string(i));
    }
  } else if (part.is_number_float() && whole.is_number()) {
    const double wanted = part.get<double>();
    EXPECT_NEAR(whole.get<double>(), wanted, 1e-9 * std::abs(wanted)) << at;
  } else {
    EXPECT_EQ(whole, part) << at;
  }
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// A reader of RFC 4180 written from its grammar.
inline std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows{{""}};
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside) {
      if (text[i] != '"') {
        rows.back().back() += text[i];
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        rows.back().back() += text[++i];
      } else {
        inside = false;
      }
    } else if (text[i] == '"') {
      EXPECT_EQ(rows.back().back(), "") << "a quote inside a cell that is not quoted";
      inside = true;
    } else if (text[i] == ',') {
      rows.back().emplace_back();
    } else if (text[i] == '\n') {
      rows.push_back({""});
    } else {
      rows.back().back() += text[i];
    }
  }
  EXPECT_EQ(rows.back(), std::vector<std::string>{""}) << "the last line does not end";
  rows.pop_back();
  return rows;
}

}  // namespace isoscale::analysis
