// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "analysis/compare/differences.hpp"
#include "analysis/compare/gate.hpp"
#include "analysis/compare/machines.hpp"
#include "analysis/compare/normalised.hpp"
#include "analysis/compare/overall.hpp"
#include "analysis/compare/sides.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

void add_differences(Comparison& comparison) {
  for (std::size_t c = 0; c < comparison.curves.size(); ++c) {
    const ComparedCurve& curve = comparison.curves[c];
    const SideCurve& first = *curve.sides.front();
    for (std::size_t s = 1; s < curve.sides.size(); ++s) {
      if (!curve.sides[s]) continue;
      for (const PointReport& point : curve.sides[s]->curve.points) {
        const int ranks = point.data->ranks;
        const PointLaunches of_first = point_launches(first, ranks, curve.baseline);
        if (of_first.point == nullptr) continue;
        Difference at =
            difference_between(of_first, point_launches(*curve.sides[s], ranks, curve.baseline));
        at.curve = c;
        at.side = s;
        comparison.differences.push_back(std::move(at));
      }
    }
  }
}

void normalise_all(Comparison& comparison) {
  for (ComparedCurve& curve : comparison.curves) {
    std::vector<SideCurve*> sides;
    std::set<int> ranks;
    for (auto& side : curve.sides) {
      sides.push_back(side ? &*side : nullptr);
      if (!side) continue;
      for (const PointReport& point : side->curve.points) ranks.insert(point.data->ranks);
    }
    for (const int of : ranks) normalise(sides, of);
  }
}

/// A run that was killed or ran out of time may lack its last and largest points.
void add_partial_runs(Comparison& comparison) {
  for (const Side& side : comparison.sides) {
    const auto partial =
        std::ranges::count_if(side.runs, [](const RunReport& run) { return !run.data->complete; });
    if (partial == 0) continue;
    comparison.warnings.push_back(
        fmt::format("{} of {} runs of {} did not finish", partial, side.runs.size(), side.name));
  }
}

void add_gate_warnings(Comparison& comparison) {
  const Gate& gate = *comparison.gate;
  const auto say = [&](std::size_t count, const std::string& what) {
    if (count == 0) return;
    comparison.warnings.push_back(
        fmt::format("the gate cannot decide at {}: {}", base::counted(count, "point"), what));
  };
  say(gate.too_noisy, "launches differ too much; measure more launches");
  say(gate.one_launch,
      fmt::format("fewer than {} launches on a side; measure more", least_launches));
  if (gate.absent > 0) {
    comparison.warnings.push_back(fmt::format(
        "{} of the points and curves of {} could not be tested: another side has no result there",
        gate.absent, comparison.sides.front().name));
  }
}

}  // namespace

std::string_view name(Verdict verdict) {
  constexpr std::array<std::string_view, 7> names{
      "regression", "passed", "too noisy to tell",  "one launch",
      "slower",     "faster", "no difference shown"};
  return names[static_cast<std::size_t>(verdict)];
}

Comparison compare(const std::vector<std::span<const RunReport>>& sides,
                   const CompareOptions& options) {
  Comparison comparison;
  comparison.sides = join_sides(sides, options.names);
  set_side_by_side(comparison, options);
  comparison.machines = machine_differences(comparison.curves, comparison.sides);
  comparison.refused =
      !comparison.unlike.empty() && options.unlikes == CompareOptions::Unlikes::refuse;
  normalise_all(comparison);
  if (comparison.refused) return comparison;
  add_differences(comparison);
  comparison.overall = overall(comparison);
  add_partial_runs(comparison);
  if (options.gate) {
    comparison.gate = pass_through_gate(comparison.differences, *options.gate, options.untold);
    for (const OnlyOn& only : comparison.only) {
      if (only.side == 0) comparison.gate->absent += std::max<std::size_t>(1, only.ranks.size());
    }
    add_gate_warnings(comparison);
  }
  return comparison;
}

const Difference* difference_of(const Comparison& comparison, std::size_t curve, std::size_t side,
                                int ranks) {
  const auto found = std::ranges::find_if(comparison.differences, [&](const Difference& at) {
    return at.curve == curve && at.side == side && at.ranks == ranks;
  });
  return found == comparison.differences.end() ? nullptr : &*found;
}

std::vector<std::string> marks_of(const Comparison& comparison, std::size_t curve, std::size_t side,
                                  int ranks) {
  std::vector<std::string> marks;
  for (const Unlike& at : comparison.unlike) {
    if (at.curve != curve || (side != 0 && at.side != side && at.side != 0)) continue;
    if (at.ranks && *at.ranks != ranks) continue;
    if (std::ranges::find(marks, at.what) == marks.end()) marks.push_back(at.what);
  }
  return marks;
}

}  // namespace isoscale::analysis
