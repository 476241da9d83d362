// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/rows/overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t fewest_plays = 6;  ///< fewer give no interval
constexpr double widest_of_a_share = 1;  ///< an interval wider than 0 to 100% leaves nothing out

/// The three parts that were timed without tracing.
struct Alone {
  std::optional<Estimate> gemm, communication, together;
};

/// A pair while its rows are read.
struct Gathered {
  OverlapReport report;
  Alone times;
  std::string few_plays;  ///< "together 3, gemm 5"
};

bool has_time(const RowReport& row) {
  return row.data->status == results::PointStatus::ok && row.time &&
         row.data->times.size() >= fewest_plays;
}

void add_part(Gathered& into, const RowReport& row) {
  OverlapReport& report = into.report;
  const results::RowData& data = *row.data;
  fill_in(report.collective, text_of(data, "collective"));
  fill_in(report.dtype, text_of(data, "dtype"));
  fill_in(report.bytes, number_of(data, "bytes"));
  fill_in(report.m, number_of(data, "m"));
  fill_in(report.n, number_of(data, "n"));
  fill_in(report.k, number_of(data, "k"));
  const std::string part = text_of(data, "part");
  if (data.status != results::PointStatus::ok) {
    fill_in(report.failure,
            fmt::format("{} {}: {}", part, results::name(data.status), data.reason));
  } else if (data.times.size() < fewest_plays) {
    into.few_plays +=
        fmt::format("{}{} {}", into.few_plays.empty() ? "" : ", ", part, data.times.size());
  }
  if (!has_time(row)) return;
  const double time = row.time->median;
  if (part == "gemm") into.times.gemm = row.time;
  if (part == "collective") into.times.communication = row.time;
  if (part == "together") into.times.together = row.time;
  // Held as times until both are known.
  if (part == "gemm together") report.gemm_slowdown = time;
  if (part == "collective together") report.communication_slowdown = time;
  if (part == "gemm traced") report.gemm_traced = time;
  if (part == "collective traced") report.communication_traced = time;
}

double hidden_share(double gemm, double communication, double together) {
  return (gemm + communication - together) / std::min(gemm, communication);
}

/// The share at the three medians. Each side of its interval is how far the share moves when one of
/// the times goes to an end of its own interval, in quadrature over the three.
std::optional<Located> hidden_of(const Alone& times) {
  if (!times.gemm || !times.communication || !times.together) return std::nullopt;
  const std::array all{&*times.gemm, &*times.communication, &*times.together};
  std::array<double, 3> medians{};
  std::ranges::transform(all, medians.begin(), &Estimate::median);
  if (!(std::min(medians[0], medians[1]) > 0)) return std::nullopt;
  const auto share_at = [](const std::array<double, 3>& at) {
    return hidden_share(at[0], at[1], at[2]);
  };
  Located share{.value = share_at(medians)};
  double below = 0, above = 0;
  for (std::size_t part = 0; part < all.size(); ++part) {
    if (!all[part]->lower || !all[part]->upper || !(*all[part]->lower > 0)) return share;
    double down = 0, up = 0;
    for (const double end : {*all[part]->lower, *all[part]->upper}) {
      auto moved = medians;
      moved[part] = end;
      down = std::max(down, share.value - share_at(moved));
      up = std::max(up, share_at(moved) - share.value);
    }
    below = std::hypot(below, down);
    above = std::hypot(above, up);
  }
  share.lower = share.value - below;
  share.upper = share.value + above;
  return share;
}

std::string why_unknown(const OverlapReport& report, const std::string& few_plays) {
  if (!few_plays.empty()) {
    return fmt::format("fewer than {} plays ({}): raise --max-time", fewest_plays, few_plays);
  }
  if (!report.hidden || report.hidden_known) return "";
  if (!report.hidden->lower) {
    return "hidden has no interval, as plays depend on those before them: raise --max-time";
  }
  return fmt::format("hidden is not known, its 95% interval is {} to {}: raise --max-time",
                     units::format_percent(*report.hidden->lower),
                     units::format_percent(*report.hidden->upper));
}

void conclude(Gathered& gathered) {
  OverlapReport& report = gathered.report;
  const auto median_of = [](const std::optional<Estimate>& time) {
    return time ? std::optional{time->median} : std::nullopt;
  };
  report.gemm = median_of(gathered.times.gemm);
  report.communication = median_of(gathered.times.communication);
  report.together = median_of(gathered.times.together);
  const auto against = [](std::optional<double> beside, std::optional<double> alone) {
    return beside && alone && *alone > 0 ? std::optional{*beside / *alone} : std::nullopt;
  };
  // Like against like: what a stream does beside another is known from traced plays.
  report.gemm_slowdown = against(report.gemm_slowdown, report.gemm_traced);
  report.communication_slowdown =
      against(report.communication_slowdown, report.communication_traced);
  report.hidden = hidden_of(gathered.times);
  report.hidden_known = report.hidden && report.hidden->lower &&
                        *report.hidden->upper - *report.hidden->lower <= widest_of_a_share;
  report.why_unknown = why_unknown(report, gathered.few_plays);
}

}  // namespace

std::vector<OverlapReport> merge_overlaps(std::span<const RowReport> rows) {
  std::vector<Gathered> pairs;
  for (const RowReport& row : rows) {
    if (text_of(*row.data, "op") != "overlap") continue;
    const std::string pair = text_of(*row.data, "pair");
    auto place = std::ranges::find_if(
        pairs, [&pair](const Gathered& known) { return known.report.pair == pair; });
    if (place == pairs.end()) {
      place = pairs.insert(place, Gathered{});
      place->report.pair = pair;
    }
    add_part(*place, row);
  }
  std::vector<OverlapReport> reports;
  for (Gathered& pair : pairs) {
    conclude(pair);
    reports.push_back(std::move(pair.report));
  }
  return reports;
}

}  // namespace isoscale::analysis
