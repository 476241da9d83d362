// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/render/text.hpp"
#include "analysis/report.hpp"
#include "base/text.hpp"

/// Remarks are the lines below the tables of a report, each with a key and a sentence; all text is
/// escaped.
namespace isoscale::analysis {

/// Collects sentences about points and joins equal ones: "2, 4 ranks: ...".
class Sentences {
 public:
  void add(const PointReport& point, const std::string& sentence) {
    if (sentence.empty()) return;
    const auto known =
        std::ranges::find(said_, sentence, [](const auto& entry) { return entry.second; });
    if (known == said_.end()) {
      said_.push_back({{point.data->ranks}, sentence});
    } else {
      known->first.push_back(point.data->ranks);
    }
  }
  void append_to(Facts& facts, const std::string& key) const {
    for (const auto& [ranks, sentence] : said_) {
      facts.emplace_back(key, fmt::format("{}: {}", base::counted(ranks, "rank"), sentence));
    }
  }

 private:
  std::vector<std::pair<std::vector<int>, std::string>> said_;
};

/// Returns the lines below a curve, which explain its labels and gaps.
[[nodiscard]] Facts remarks(const Curve& curve);
/// Returns why each point was skipped, if the curve has no other points; otherwise empty.
[[nodiscard]] Facts all_skipped(const Curve& curve);
/// Returns the lines about causes: named causes of the points, laws, and what could not be
/// separated.
[[nodiscard]] Facts cause_remarks(const Curve& curve);

/// Returns the lines below the tables of a micro-benchmark: labels, failures, slow pairs.
[[nodiscard]] Facts bench_remarks(const PointReport& point);

}  // namespace isoscale::analysis
