// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison_internals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/catalog/run_index.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "analysis/merge/join_launches.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "base/error.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::compare {
namespace {

/// Returns the rank counts of points that both curves have, in ascending order.
std::vector<int> common_ranks(const Curve& a, const Curve& b) {
  std::vector<int> ranks;
  for (const PointReport& point : a.points) {
    if (point_of(b, point.data->ranks) != nullptr) ranks.push_back(point.data->ranks);
  }
  return ranks;
}

/// Two curves that may be compared, by their indices among the curves of their sides, and the
/// numbers that decide which pair is better.
struct Pair {
  std::size_t first = 0, other = 0;
  std::vector<Unlike> unlike;  ///< settings that differ
  std::size_t common = 0;      ///< number of points with the same rank count
  std::size_t launches = 0;    ///< launches of these points, on both sides

  /// Returns a key that orders the best pair first.
  [[nodiscard]] auto rank() const {
    return std::tuple{unlike.size(), -static_cast<std::ptrdiff_t>(common),
                      -static_cast<std::ptrdiff_t>(launches), first, other};
  }
};

std::size_t launches_at(const merge::JoinedCurve& curve, std::span<const int> ranks) {
  std::size_t count = 0;
  for (const auto& launches : curve.launches) {
    if (std::ranges::find(ranks, launches.front().point->data->ranks) != ranks.end()) {
      count += launches.size();
    }
  }
  return count;
}

std::vector<Pair> candidates(std::span<const merge::JoinedCurve> first,
                             std::span<const merge::JoinedCurve> other) {
  std::vector<Pair> all;
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = 0; j < other.size(); ++j) {
      if (first[i].experiment.workload != other[j].experiment.workload) continue;
      const std::vector<int> common = common_ranks(first[i].curve, other[j].curve);
      if (common.empty()) continue;
      all.push_back({.first = i,
                     .other = j,
                     .unlike = differences_between(first[i], other[j]),
                     .common = common.size(),
                     .launches = launches_at(first[i], common) + launches_at(other[j], common)});
    }
  }
  std::ranges::sort(all, {}, &Pair::rank);
  return all;
}

/// Pairs curves that have points with the same rank count; each curve is in at most one pair.
/// Curves with equal settings are paired first, starting with those with most points in common.
/// Then other curves of the same workload are paired, starting with those with the fewest differing
/// settings. Returns the pairs in ascending order of their index `first`.
std::vector<Pair> pair_curves(std::span<const merge::JoinedCurve> first,
                              std::span<const merge::JoinedCurve> other) {
  std::vector<bool> used_first(first.size()), used_other(other.size());
  std::vector<Pair> pairs;
  for (Pair& at : candidates(first, other)) {
    if (used_first[at.first] || used_other[at.other]) continue;
    used_first[at.first] = used_other[at.other] = true;
    pairs.push_back(std::move(at));
  }
  std::ranges::sort(pairs, {}, &Pair::first);
  return pairs;
}

std::string alphabetic_name(std::size_t side) {
  constexpr std::size_t alphabet = 26;
  return side < alphabet ? std::string(1, static_cast<char>('A' + side))
                         : fmt::format("side {}", side + 1);
}

void require_other_runs(const std::vector<std::span<const RunReport>>& sides,
                        const std::vector<std::string>& names) {
  for (std::size_t s = 0; s < sides.size(); ++s) {
    for (std::size_t t = s + 1; t < sides.size(); ++t) {
      for (const RunReport& a : sides[s]) {
        for (const RunReport& b : sides[t]) {
          const bool same_run = !a.data->id.empty() && a.data->id == b.data->id;
          if (!same_run && a.file != b.file) continue;
          throw base::UsageError(fmt::format(
              "{} (side {}) and {} (side {}) hold the same run, {}: comparing a run with itself "
              "claims nothing; give each launch to one side only",
              render::escape(a.file), names[s], render::escape(b.file), names[t],
              render::escape(a.data->id)));
        }
      }
    }
  }
}

bool has_points(const merge::JoinedCurve& curve) { return !curve.curve.points.empty(); }

/// Adds `found`, the differences between two sides, to the comparison, with the names of the sides
/// and the index of the compared curve.
void add_unlike(std::vector<Unlike> found, std::size_t here, std::size_t there,
                std::optional<std::size_t> curve, Comparison& comparison) {
  for (Unlike& at : found) {
    if (!at.here.value.empty() || !at.here.files.empty()) {
      at.here.side = comparison.sides[here].name;
    }
    at.there.side = comparison.sides[there].name;
    at.curve = curve;
    at.side = there;
    comparison.unlike.push_back(std::move(at));
  }
}

/// Returns the index of the compared curve whose curve of this side is `joined`; absent if none is.
std::optional<std::size_t> compared_curve(const Comparison& comparison, std::size_t side,
                                          const merge::JoinedCurve* joined) {
  for (std::size_t c = 0; c < comparison.curves.size(); ++c) {
    const auto& of_side = comparison.curves[c].sides[side];
    if (of_side && of_side->joined == joined) return c;
  }
  return std::nullopt;
}

void add_within(Comparison& comparison, std::size_t side) {
  const auto& curves = comparison.sides[side].joined.curves;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const auto of_curve = compared_curve(comparison, side, &curves[i]);
    add_unlike(not_verified(curves[i]), side, side, of_curve, comparison);
    for (std::size_t j = i + 1; j < curves.size(); ++j) {
      if (!has_points(curves[i]) || !has_points(curves[j])) continue;
      const auto curve = of_curve ? of_curve : compared_curve(comparison, side, &curves[j]);
      add_unlike(differences_within(curves[i], curves[j]), side, side, curve, comparison);
    }
  }
}

/// Adds to the comparison each curve of the first side that some other side has too, with the
/// matching curves of the other sides.
void pair_sides(Comparison& comparison) {
  const auto& first = comparison.sides.front().joined.curves;
  std::vector<std::vector<Pair>> pairs(comparison.sides.size());
  for (std::size_t s = 1; s < comparison.sides.size(); ++s) {
    pairs[s] = pair_curves(first, comparison.sides[s].joined.curves);
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    ComparedCurve curve{.title = first[i].curve.title,
                        .baseline = {},
                        .no_baseline = "",
                        .sides = std::vector<std::optional<SideCurve>>(comparison.sides.size())};
    bool found = false;
    for (std::size_t s = 1; s < comparison.sides.size(); ++s) {
      const auto pair = std::ranges::find(pairs[s], i, &Pair::first);
      if (pair == pairs[s].end()) continue;
      found = true;
      const merge::JoinedCurve& other = comparison.sides[s].joined.curves[pair->other];
      curve.sides[s] = SideCurve{.joined = &other, .curve = other.curve};
      add_unlike(pair->unlike, 0, s, comparison.curves.size(), comparison);
    }
    if (!found) continue;
    curve.sides.front() = SideCurve{.joined = &first[i], .curve = first[i].curve};
    comparison.curves.push_back(std::move(curve));
  }
}

/// Lists the curves and points of side `here` that side `there` does not have.
void add_only(Comparison& comparison, std::size_t here, std::size_t there) {
  for (const merge::JoinedCurve& joined : comparison.sides[here].joined.curves) {
    if (!has_points(joined)) continue;
    const auto curve = compared_curve(comparison, here, &joined);
    const std::string absent = "not measured on " + comparison.sides[there].name;
    const std::string apart =
        joined.apart.empty() ? absent : "not joined with " + joined.apart.front();
    if (!curve || !comparison.curves[*curve].sides[there]) {
      comparison.only.push_back(
          {.side = here, .title = joined.curve.title, .ranks = {}, .reason = apart});
      continue;
    }
    const SideCurve& other = *comparison.curves[*curve].sides[there];
    for (const PointReport& point : joined.curve.points) {
      const int ranks = point.data->ranks;
      if (point_of(other.curve, ranks) != nullptr) continue;
      std::string reason = absent;
      for (const merge::LeftOut& at : other.joined->left_out) {
        if (at.at.point->data->ranks != ranks) continue;
        reason = fmt::format("left out on {}: {}", comparison.sides[there].name, at.reason);
      }
      comparison.only.push_back(
          {.side = here, .title = joined.curve.title, .ranks = {ranks}, .reason = reason});
    }
  }
}

void require_common(const Comparison& comparison) {
  for (std::size_t s = 1; s < comparison.sides.size(); ++s) {
    const auto has = [s](const ComparedCurve& curve) { return curve.sides[s].has_value(); };
    if (std::ranges::any_of(comparison.curves, has)) continue;
    const auto titles = [&](std::size_t side) {
      std::set<std::string> all;
      for (const merge::JoinedCurve& at : comparison.sides[side].joined.curves) {
        std::vector<int> ranks;
        for (const PointReport& point : at.curve.points) ranks.push_back(point.data->ranks);
        std::string which = fmt::format("ranks {}", fmt::join(ranks, ", "));
        if (ranks.empty()) which = "no point that counts";
        if (ranks.empty() && !at.left_out.empty()) {
          which += ": " + render::escape(at.left_out.front().reason);
        }
        all.insert(fmt::format("{} ({})", render::escape(at.curve.title), which));
      }
      return all.empty() ? std::string{"no curve"} : fmt::format("{}", fmt::join(all, "; "));
    };
    throw base::UsageError(fmt::format(
        "{} and {} have no point in common, so there is nothing to compare: {} has {}; {} has {}",
        comparison.sides[0].name, comparison.sides[s].name, comparison.sides[0].name, titles(0),
        comparison.sides[s].name, titles(s)));
  }
}

/// True if all sides that have the curve have this rank count and the options allow it as a
/// baseline.
bool may_be_baseline(const ComparedCurve& curve, int ranks, const CompareOptions& options) {
  return std::ranges::all_of(curve.sides, [&](const std::optional<SideCurve>& side) {
    if (!side) return true;
    const PointReport* const point = point_of(side->curve, ranks);
    if (point == nullptr) return false;
    if (options.whole_node) return point->nodes && point->nodes->fills_node;
    return !options.baseline || ranks == *options.baseline;
  });
}

std::optional<int> baseline_of(const ComparedCurve& curve, const CompareOptions& options) {
  std::vector<BaselineCandidate> candidates;
  for (const PointReport& point : curve.sides.front()->curve.points) {
    const int ranks = point.data->ranks;
    if (!may_be_baseline(curve, ranks, options)) continue;
    const auto shares = [ranks](const std::optional<SideCurve>& side) {
      return side && results::shares_hardware(point_of(side->curve, ranks)->labels);
    };
    candidates.push_back(
        {.ranks = ranks, .shares_hardware = std::ranges::any_of(curve.sides, shares)});
  }
  return baseline_ranks(candidates);
}

/// Recomputes a curve's speed-ups and efficiencies relative to the baseline that all sides share,
/// with `ranks` ranks. If `ranks` is absent, the curve gets no baseline.
void rebase(Curve& curve, std::optional<int> ranks) {
  curve.baseline.reset();
  curve.per_node = false;
  for (PointReport& point : curve.points) {
    point.speedup.reset();
    point.efficiency.reset();
    point.speedup_interval.reset();
    point.causes.waterfall.reset();
    point.causes.serial_fraction.reset();
  }
  if (ranks) set_against_baseline(curve, {.baseline = ranks, .whole_node = false});
}

std::string why_no_baseline(const CompareOptions& options) {
  if (options.whole_node) return "no rank count fills a whole node on all sides";
  if (options.baseline) {
    return fmt::format("{} ranks were not measured on all sides", *options.baseline);
  }
  return "no rank count was measured on all sides";
}

void set_baselines(Comparison& comparison, const CompareOptions& options) {
  bool found = false;
  for (ComparedCurve& curve : comparison.curves) {
    curve.baseline = baseline_of(curve, options);
    if (!curve.baseline) curve.no_baseline = why_no_baseline(options);
    found = found || curve.baseline.has_value();
    for (auto& side : curve.sides) {
      if (side) rebase(side->curve, curve.baseline);
    }
  }
  if (found || (!options.baseline && !options.whole_node)) return;
  throw base::UsageError(
      fmt::format("--baseline {}: {}",
                  options.whole_node ? std::string{"node"} : std::to_string(*options.baseline),
                  why_no_baseline(options)));
}

}  // namespace

std::vector<std::string> machine_names(const Side& side) {
  std::vector<catalog::IndexRun> runs;
  for (const RunReport& run : side.runs) runs.push_back(catalog::index_run(run));
  std::vector<std::string> names;
  for (const catalog::IndexMachine& at : catalog::make_index(std::move(runs)).machines) {
    if (std::ranges::find(names, at.name) == names.end()) names.push_back(at.name);
  }
  return names;
}

std::vector<Side> join_sides(const std::vector<std::span<const RunReport>>& sides,
                             const std::vector<std::string>& names) {
  std::vector<std::string> named = names;
  while (named.size() < sides.size()) named.push_back(alphabetic_name(named.size()));
  require_other_runs(sides, named);
  std::vector<Side> joined;
  for (std::size_t s = 0; s < sides.size(); ++s) {
    joined.push_back({.name = std::move(named[s]),
                      .runs = sides[s],
                      .joined = merge::join(sides[s], {}, merge::Counted::all)});
  }
  return joined;
}

void set_side_by_side(Comparison& comparison, const CompareOptions& options) {
  pair_sides(comparison);
  require_common(comparison);
  for (std::size_t s = 0; s < comparison.sides.size(); ++s) add_within(comparison, s);
  for (std::size_t s = 1; s < comparison.sides.size(); ++s) {
    add_only(comparison, 0, s);
    add_only(comparison, s, 0);
  }
  set_baselines(comparison, options);
}

}  // namespace isoscale::analysis::compare
