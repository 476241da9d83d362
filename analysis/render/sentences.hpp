// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/render/cells.hpp"
#include "analysis/report.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {

/// "2, 4, 8 ranks"
inline std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", fmt::join(ranks, ", "),
                     base::plural(ranks.size() == 1 ? ranks.front() : 2, "rank"));
}

/// Sentences of points, those that say the same joined: "2, 4 ranks: ...".
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
      facts.emplace_back(key, fmt::format("{}: {}", ranks_text(ranks), sentence));
    }
  }

 private:
  std::vector<std::pair<std::vector<int>, std::string>> said_;
};

}  // namespace isoscale::analysis
