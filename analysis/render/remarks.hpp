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
namespace isoscale::analysis::render {

/// Collects sentences about points by key, and merges equal sentences about several points into one
/// line: "2, 4 ranks: ...".
class Sentences {
 public:
  /// The sentences are appended in the order of these keys.
  explicit Sentences(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  void add(const std::string& key, const PointReport& point, const std::string& sentence) {
    if (sentence.empty()) return;
    const auto known = std::ranges::find_if(
        said_, [&](const Said& at) { return at.key == key && at.sentence == sentence; });
    if (known == said_.end()) {
      said_.push_back({key, sentence, {point.data->ranks}});
    } else {
      known->ranks.push_back(point.data->ranks);
    }
  }
  void append_to(Facts& facts) const {
    for (const std::string& key : keys_) {
      for (const Said& at : said_) {
        if (at.key != key) continue;
        facts.emplace_back(key,
                           fmt::format("{}: {}", base::counted(at.ranks, "rank"), at.sentence));
      }
    }
  }

 private:
  struct Said {
    std::string key, sentence;
    std::vector<int> ranks;
  };
  std::vector<std::string> keys_;
  std::vector<Said> said_;
};

/// Returns the lines below a curve, which explain its labels and gaps.
[[nodiscard]] Facts remarks(const Curve& curve);
/// Returns the reasons why points were skipped if all points of the curve were; otherwise empty.
[[nodiscard]] Facts all_skipped(const Curve& curve);
/// Returns the lines about causes of lost time: named causes of the points, fitted scaling laws,
/// and the causes that could not be separated.
[[nodiscard]] Facts cause_remarks(const Curve& curve);

/// Returns the lines below the tables of a micro-benchmark: labels, failures, slow pairs.
[[nodiscard]] Facts bench_remarks(const PointReport& point);

}  // namespace isoscale::analysis::render
