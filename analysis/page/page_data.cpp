// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page_data.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/page/budget.hpp"
#include "analysis/page/detail_limits.hpp"
#include "analysis/page/point_details.hpp"
#include "analysis/page/prune.hpp"
#include "analysis/page/shrink_report.hpp"
#include "analysis/render/render_json.hpp"
#include "base/build_info.hpp"

namespace isoscale::analysis {

using Json = nlohmann::ordered_json;

Json page_data(const Report& report, std::size_t most_bytes) {
  PageNotes notes;
  Json pruned = report_json(report);
  prune_report(pruned, DetailLimits{}.devices, notes);
  cut_texts(pruned, notes);
  // Pictures get what the report leaves: two thirds, if what few look at can go, and a third at
  // least.
  constexpr std::size_t reserved = 20'000;  // for notes, and what stands around all
  const std::size_t room = most_bytes - std::min(most_bytes, reserved);
  ease_report(pruned, room / 3, notes);
  shrink_report(pruned, room - room / 3, notes);
  const std::size_t bytes = page_bytes(pruned);
  Json details = fitting_details(detailed_points(report), room - std::min(room, bytes), notes);
  cut_texts(details, notes);
  Json data{{"kind", "report"},
            {"isoscale_version", base::build_info().version},
            {"report", std::move(pruned)},
            {"details", std::move(details)},
            {"notes", notes}};
  PageNotes of_notes;
  cut_texts(data["notes"], of_notes);
  return data;
}

}  // namespace isoscale::analysis
