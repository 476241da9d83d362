// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "analysis/catalog/run_index.hpp"
#include "analysis/compare/comparison_internals.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::compare {
namespace {

using Runs = std::span<const RunReport>;

/// The characters that every output shows unchanged.
constexpr std::string_view plain =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-+@";

/// True if the name has 1 to 24 characters, all of which every output shows unchanged.
bool is_handy(const std::string& name) {
  constexpr std::size_t longest = 24;
  return !name.empty() && name.size() <= longest &&
         name.find_first_not_of(plain) == std::string::npos;
}

std::string common_beginning(const std::vector<std::string>& texts) {
  std::string common = texts.front();
  for (const std::string& text : texts) {
    const auto ends = std::ranges::mismatch(common, text);
    common.erase(ends.in1, common.end());
  }
  return common;
}

/// Removes digits and the characters "-_. " from the end of a name: "node-03" becomes "node".
std::string without_number(const std::string& text) {
  const std::size_t last = text.find_last_not_of("0123456789-_. ");
  return text.substr(0, last == std::string::npos ? 0 : last + 1);
}

std::string of_files(Runs runs) {
  std::vector<std::string> stems;
  for (const RunReport& run : runs)
    stems.push_back(std::filesystem::path{run.file}.stem().string());
  return stems.size() == 1 ? stems.front() : without_number(common_beginning(stems));
}

/// Returns the name of the files' folder, without its path; "" if the names of folders differ.
std::string of_folders(Runs runs) {
  std::set<std::string> folders;
  for (const RunReport& run : runs) {
    folders.insert(std::filesystem::path{run.file}.parent_path().filename().string());
  }
  return folders.size() == 1 ? *folders.begin() : "";
}

std::string hosts_of(const catalog::IndexRun& run) {
  if (run.hosts.size() == 1) return run.hosts.front();
  return run.hosts.empty() ? std::string{} : without_number(common_beginning(run.hosts));
}

/// Returns the text that `text`, a function or a member, gives for all runs; "" if runs differ.
template <auto text>
std::string only(Runs runs) {
  std::set<std::string> all;
  for (const RunReport& run : runs) all.insert(std::invoke(text, catalog::index_run(run)));
  return all.size() == 1 ? *all.begin() : "";
}

/// For the name of each fact about a machine: its values in the curves of each side.
using Values = std::map<std::string, std::vector<std::set<std::string>>>;

/// Adds to `found` the facts in which sides differ. Sides without a value are not considered.
void add_differing(const Values& all, std::vector<MachineDifference>& found) {
  for (const auto& [name, values] : all) {
    MachineDifference at{.name = name, .values = {}};
    std::set<std::string> seen;
    for (const auto& of_side : values) {
      at.values.push_back(fmt::format("{}", fmt::join(of_side, " | ")));
      if (!of_side.empty()) seen.insert(at.values.back());
    }
    if (seen.size() > 1) found.push_back(std::move(at));
  }
}

/// Returns the differences between the machines of the compared curves: the entries of machine_of()
/// and, for points with the same rank count, the ranks per node and whether several streams were
/// run as one. A comparison is about machines, so it is never refused because of these differences.
std::vector<MachineDifference> machine_differences(const std::vector<ComparedCurve>& curves,
                                                   const std::vector<Side>& sides) {
  Values machines, points;
  const auto values = [&](Values& of, const std::string& name, std::size_t side) -> auto& {
    of[name].resize(sides.size());
    return of[name][side];
  };
  for (const ComparedCurve& curve : curves) {
    for (std::size_t side = 0; side < sides.size(); ++side) {
      if (!curve.sides[side]) continue;
      for (const auto& [name, value] : curve.sides[side]->joined->machine) {
        values(machines, name, side).insert(value);
      }
      for (const PointReport& point : curve.sides[side]->curve.points) {
        const std::string ranks = base::counted(point.data->ranks, "rank");
        values(points, "nodes x ranks on each, of " + ranks, side).insert(nodes_text(point));
        values(points, "streams of " + ranks, side)
            .insert(point.data->folded ? "played as one" : "as asked for");
      }
    }
  }
  for (auto& [name, of_sides] : machines) {
    for (auto& of_side : of_sides) {
      if (of_side.empty()) of_side.insert(bears_on_times(name) ? "unset" : "unknown");
    }
  }
  std::vector<MachineDifference> found;
  add_differing(machines, found);
  add_differing(points, found);
  return found;
}

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

/// Warns of partial runs: a run that was killed or ran out of time may lack its largest points.
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

std::vector<std::string> default_names(const std::vector<Runs>& sides) {
  using catalog::IndexRun;
  for (const auto name_of :
       {of_files, of_folders, only<&IndexRun::gpu>, only<&IndexRun::cpu>, only<hosts_of>}) {
    std::vector<std::string> names;
    for (const Runs& runs : sides) names.push_back(name_of(runs));
    const std::set<std::string> distinct{names.begin(), names.end()};
    if (distinct.size() == names.size() && std::ranges::all_of(names, is_handy)) return names;
  }
  return {};
}

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
  comparison.refused = !comparison.unlike.empty() && !options.anyway;
  normalise_all(comparison);
  if (comparison.refused) return comparison;
  add_differences(comparison);
  comparison.overall = overall(comparison);
  add_partial_runs(comparison);
  if (options.gate) {
    comparison.gate = pass_through_gate(comparison.differences, *options.gate);
    comparison.gate->strict = options.strict;
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

}  // namespace isoscale::analysis::compare
