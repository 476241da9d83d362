// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/render/render.hpp"
#include "analysis/report.hpp"

/// The report of one run in one call, for tests that ask it one thing.
namespace isoscale::analysis {

/// `render` is one of render_text, render_json and their like.
inline std::string rendered(const results::RunData& run,
                            std::string (*render)(const merge::Report&),
                            const std::string& file = "a.h5") {
  const RunReport report = make_report(run, file, {});
  return render({{&report, 1}});
}

/// The one run of the JSON report.
inline nlohmann::json json_of(const results::RunData& run) {
  return nlohmann::json::parse(rendered(run, render::render_json))["runs"][0];
}

/// The first curve and its first point, which refer to `run`.
inline Curve curve_of(const results::RunData& run, const ReportOptions& options = {}) {
  return make_report(run, "a.h5", options).curves.at(0);
}
inline PointReport point_of(const results::RunData& run, const ReportOptions& options = {}) {
  return curve_of(run, options).points.at(0);
}

/// Expects the members of `part` in `whole`, however deep; numbers to 1e-9 of their size.
inline void expect_holds(const nlohmann::json& whole, const nlohmann::json& part,
                         const std::string& at = "") {
  if (part.is_object() && whole.is_object() && !part.empty()) {
    for (const auto& [key, value] : part.items()) {
      EXPECT_TRUE(whole.contains(key)) << at << '/' << key;
      if (whole.contains(key)) expect_holds(whole[key], value, at + '/' + key);
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

}  // namespace isoscale::analysis
