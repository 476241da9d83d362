// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/compare/comparison_internals.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "analysis/microbench/microbench_report.hpp"
#include "calibration/fit_calibration.hpp"
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

}  // namespace

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

}  // namespace isoscale::analysis::compare
