// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/compare/comparison_internals.hpp"
#include "analysis/curves.hpp"
#include "analysis/microbench/microbench_report.hpp"
#include "base/text.hpp"
#include "calibration/calibration.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::compare {
namespace {

/// The number that a rate is divided by, such as a GPU's peak.
struct Reference {
  double value = 0;
  std::string name;
};

/// A side's point, with the run of its typical launch (whose step time is nearest to the median
/// over launches). The GPUs and the calibration of this run give the reference values.
struct Place {
  SideCurve* side = nullptr;
  std::size_t index = 0;
  const RunReport* run = nullptr;

  [[nodiscard]] const PointReport& point() const { return side->curve.points[index]; }
};

/// Returns a reference whose name ends with its value: "datasheet peak of H200, 989 TFLOP/s".
std::optional<Reference> reference(std::optional<double> value, Unit unit,
                                   const std::string& what) {
  if (!value) return std::nullopt;
  return Reference{.value = *value, .name = what + ", " + value_text(*value, unit)};
}

std::optional<Place> place_of(SideCurve& side, int ranks) {
  for (std::size_t i = 0; i < side.curve.points.size(); ++i) {
    const PointReport& point = side.curve.points[i];
    if (point.data->ranks != ranks) continue;
    for (const merge::LaunchPoint& at : side.joined->launches[i]) {
      if (at.point->data == point.data) return Place{.side = &side, .index = i, .run = at.run};
    }
  }
  return std::nullopt;
}

/// Returns the datasheet of a point's GPUs; null if there is none, or if they are of several types.
const microbench::Datasheet* datasheet_of(const Place& at) {
  return microbench::common_datasheet(at.run->data->rank_facts, *at.point().data, {});
}

std::optional<Reference> peak_of_datasheet(const Place& at) {
  const microbench::Datasheet* const sheet = datasheet_of(at);
  if (sheet == nullptr) return std::nullopt;
  return reference(sheet->peak(at.point().data->dtype), Unit::flop_rate,
                   fmt::format("datasheet peak of {}", sheet->gpu));
}

std::optional<Reference> peak_measured(const Place& at) {
  const auto* const ceiling = calibration::ceiling_of(at.run->calibration, at.point().data->dtype);
  if (ceiling == nullptr || !(ceiling->rate > 0)) return std::nullopt;
  return reference(ceiling->rate, Unit::flop_rate, "best multiplication of the run");
}

std::optional<Reference> link_of_datasheet(const Place& at) {
  const microbench::Datasheet* const sheet = datasheet_of(at);
  if (at.point().data->nodes != 1 || sheet == nullptr) return std::nullopt;
  auto link =
      reference(sheet->link, Unit::bandwidth, fmt::format("datasheet NVLink of {}", sheet->gpu));
  if (link) link->name += " one way";
  return link;
}

bool is_widest(const results::CalibrationCurve& curve, bool pairs, bool several_nodes) {
  if (curve.implementation != "library" || !curve.bandwidth || !(curve.bandwidth->value > 0)) {
    return false;
  }
  if (pairs) {
    return curve.op == "p2p" &&
           curve.link_class.starts_with(several_nodes ? "other node" : "same node");
  }
  return microbench::bus_factor(curve.op, curve.members).value_or(0) > 0 &&
         curve.link_class == (several_nodes ? "several nodes" : "one node");
}

std::optional<Reference> link_measured(const Place& at) {
  const bool several_nodes = at.point().data->nodes > 1;
  for (const bool pairs : {true, false}) {
    std::optional<Reference> slowest;
    for (const results::CalibrationCurve& curve : at.run->calibration.curves) {
      if (!is_widest(curve, pairs, several_nodes)) continue;
      const double factor = pairs ? 1 : *microbench::bus_factor(curve.op, curve.members);
      const double bandwidth = curve.bandwidth->value * factor;
      if (slowest && slowest->value <= bandwidth) continue;
      const std::string what =
          pairs ? curve.link_class : fmt::format("{} on {}", curve.op, curve.link_class);
      slowest = reference(bandwidth, Unit::bandwidth, "measured, " + what);
    }
    if (slowest) return slowest;
  }
  return std::nullopt;
}

Normalised over(std::optional<double> rate, const std::optional<Reference>& reference,
                std::string_view missing) {
  if (!rate) return {.missing = "no such rate is known of the point"};
  if (!reference) return {.missing = std::string{missing}};
  return {.value = *rate / reference->value, .against = reference->name};
}

using Find = std::optional<Reference> (*)(const Place&);

/// Returns for each point the figure that its rate is divided by. All figures are of kind `best` if
/// all points have this kind, else of kind `other` if all have that. If neither holds, each point
/// gets `best` if it has it, else `other`.
std::vector<std::optional<Reference>> references(const std::vector<Place>& places, Find best,
                                                 Find other) {
  for (const Find find : {best, other}) {
    std::vector<std::optional<Reference>> found;
    for (const Place& at : places) found.push_back(find(at));
    if (std::ranges::all_of(found, [](const auto& at) { return at.has_value(); })) return found;
  }
  std::vector<std::optional<Reference>> found;
  for (const Place& at : places) {
    auto reference = best(at);
    found.push_back(reference ? std::move(reference) : other(at));
  }
  return found;
}

Normalised per_watt(const Place& at) {
  std::vector<double> watts;
  std::string missing = "nothing sampled the devices' power";
  for (const merge::LaunchPoint& launch : at.side->joined->launches[at.index]) {
    const devices::Energy& energy = launch.point->devices.energy;
    if (energy.power && *energy.power > 0) watts.push_back(*energy.power);
    if (!energy.missing.empty()) missing = energy.missing;
  }
  const std::optional<double> power = statistics::median(watts);
  if (!power) return {.missing = missing};
  const std::string of = at.point().devices.energy.of;
  return over(at.point().throughput, reference(power, Unit::watts, of.empty() ? "devices" : of),
              "");
}

/// Fills in of_peak, per_link and per_watt of the points with this rank count. The rates of all
/// sides are divided by the same kind of figure if all sides have it:
/// - peak: the datasheet's value of the GPU for the element type, else the run's fastest measured
///   matrix multiplication
/// - link: for points on one node the bandwidth of NVLink in one direction by the GPU's datasheet.
///   Otherwise the slowest bandwidth that the run's calibration measured: between nodes for points
///   on several nodes, within one node for others; of pairs of ranks if they were measured, else
///   busbw of collectives.
/// - watt: the median over launches of the power of the computing devices
void normalise(ComparedCurve& curve, int ranks) {
  std::vector<Place> places;
  for (auto& side : curve.sides) {
    const auto place = side ? place_of(*side, ranks) : std::nullopt;
    if (place) places.push_back(*place);
  }
  const auto peaks = references(places, peak_of_datasheet, peak_measured);
  const auto links = references(places, link_of_datasheet, link_measured);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& at = places[i];
    SideCurve& side = *at.side;
    for (auto* const all : {&side.of_peak, &side.per_link, &side.per_watt}) {
      all->resize(side.curve.points.size());
    }
    const PointReport& point = at.point();
    side.of_peak[at.index] =
        over(point.flops_per_rank, peaks[i],
             "no datasheet is known, and the run measured no multiplication of this type");
    side.per_link[at.index] =
        point.data->ranks == 1
            ? Normalised{.missing = "one rank has no link"}
            : over(point.throughput, links[i],
                   "no datasheet is known, and the run measured no link of this class");
    side.per_watt[at.index] = per_watt(at);
  }
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
  for (auto& [name, values] : machines) {
    for (auto& of_side : values) {
      if (of_side.empty()) of_side.insert(bears_on_times(name) ? "unset" : "unknown");
    }
  }
  std::vector<MachineDifference> found;
  add_differing(machines, found);
  add_differing(points, found);
  return found;
}

void normalise_all(Comparison& comparison) {
  for (ComparedCurve& curve : comparison.curves) {
    std::set<int> ranks;
    for (const auto& side : curve.sides) {
      if (!side) continue;
      for (const PointReport& point : side->curve.points) ranks.insert(point.data->ranks);
    }
    for (const int of : ranks) normalise(curve, of);
  }
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

/// Warns of files that were damaged or changed: their numbers may be anything.
void add_altered_files(Comparison& comparison) {
  for (const Side& side : comparison.sides) {
    for (const RunReport& run : side.runs) {
      for (const std::string& sentence : run.data->altered) {
        comparison.warnings.push_back(fmt::format("side {}: {}", side.name, sentence));
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
  add_altered_files(comparison);
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
