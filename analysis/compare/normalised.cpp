// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/normalised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/calibration/calibrate.hpp"
#include "analysis/microbench/row.hpp"
#include "analysis/point_facts.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

/// What a rate is divided by.
struct Reference {
  double value = 0;
  std::string name;
};

/// A point of a side, and its launch whose calibration stands for it: the typical one.
struct Place {
  SideCurve* side = nullptr;
  std::size_t index = 0;
  const RunReport* run = nullptr;

  [[nodiscard]] const PointReport& point() const { return side->curve.points[index]; }
};

std::optional<Place> place_of(SideCurve* side, int ranks) {
  if (side == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < side->curve.points.size(); ++i) {
    const PointReport& point = side->curve.points[i];
    if (point.data->ranks != ranks) continue;
    for (const LaunchPoint& at : side->joined->launches[i]) {
      if (at.point->data == point.data) return Place{.side = side, .index = i, .run = at.run};
    }
  }
  return std::nullopt;
}

/// The datasheet of all GPUs of a point; null unless they are of one kind that is known.
const Datasheet* datasheet_of(const Place& at) {
  const Datasheet* common = nullptr;
  for (int rank = 0; rank < at.point().data->ranks; ++rank) {
    const auto* const facts = facts_of(at.run->data->rank_facts, *at.point().data, rank);
    const Datasheet* const of_rank = facts == nullptr ? nullptr : analysis::datasheet_of(*facts);
    if (of_rank == nullptr || (common != nullptr && of_rank != common)) return nullptr;
    common = of_rank;
  }
  return common;
}

std::optional<Reference> peak_of_datasheet(const Place& at) {
  const Datasheet* const sheet = datasheet_of(at);
  const auto peak = sheet == nullptr ? std::nullopt : sheet->peak(at.point().data->dtype);
  if (!peak) return std::nullopt;
  return Reference{.value = *peak,
                   .name = fmt::format("datasheet peak of {}, {}", sheet->gpu,
                                       units::format(units::FlopsPerSecond{*peak}))};
}

std::optional<Reference> peak_measured(const Place& at) {
  const auto* const ceiling = ceiling_of(at.run->calibration, at.point().data->dtype);
  if (ceiling == nullptr || !(ceiling->rate > 0)) return std::nullopt;
  return Reference{.value = ceiling->rate,
                   .name = fmt::format("best multiplication of the run, {}",
                                       units::format(units::FlopsPerSecond{ceiling->rate}))};
}

std::optional<Reference> link_of_datasheet(const Place& at) {
  if (at.point().data->nodes != 1) return std::nullopt;
  const Datasheet* const sheet = datasheet_of(at);
  if (sheet == nullptr || !sheet->link) return std::nullopt;
  return Reference{.value = *sheet->link,
                   .name = fmt::format("datasheet NVLink of {}, {} one way", sheet->gpu,
                                       units::format(units::BytesPerSecond{*sheet->link}))};
}

bool is_widest(const results::CalibrationCurve& curve, bool pairs, bool several_nodes) {
  if (curve.implementation != "library" || !curve.bandwidth || !(curve.bandwidth->value > 0)) {
    return false;
  }
  if (pairs) {
    return curve.op == "p2p" &&
           curve.link_class.starts_with(several_nodes ? "other node" : "same node");
  }
  return bus_factor(curve.op, curve.members).value_or(0) > 0 &&
         curve.link_class == (several_nodes ? "several nodes" : "one node");
}

std::optional<Reference> link_measured(const Place& at) {
  const bool several_nodes = at.point().data->nodes > 1;
  for (const bool pairs : {true, false}) {
    std::optional<Reference> slowest;
    for (const results::CalibrationCurve& curve : at.run->calibration.curves) {
      if (!is_widest(curve, pairs, several_nodes)) continue;
      const double factor = pairs ? 1 : *bus_factor(curve.op, curve.members);
      const double bandwidth = curve.bandwidth->value * factor;
      if (slowest && slowest->value <= bandwidth) continue;
      const std::string what =
          pairs ? curve.link_class : fmt::format("{} on {}", curve.op, curve.link_class);
      slowest = Reference{.value = bandwidth,
                          .name = fmt::format("measured, {}, {}", what,
                                              units::format(units::BytesPerSecond{bandwidth}))};
    }
    if (slowest) return slowest;
  }
  return std::nullopt;
}

Normalised over(std::optional<double> rate, const std::optional<Reference>& reference,
                std::string_view missing) {
  if (!rate) return {.value = {}, .against = "", .missing = "no such rate is known of the point"};
  if (!reference) return {.value = {}, .against = "", .missing = std::string{missing}};
  return {.value = *rate / reference->value, .against = reference->name, .missing = ""};
}

using Find = std::optional<Reference> (*)(const Place&);

/// Each place's reference: of the first kind that all have, else the first of its own.
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
  for (const LaunchPoint& launch : at.side->joined->launches[at.index]) {
    const Energy& energy = launch.point->devices.energy;
    if (energy.power && *energy.power > 0) watts.push_back(*energy.power);
    if (!energy.missing.empty()) missing = energy.missing;
  }
  const std::optional<double> power = median(watts);
  if (!power) return {.value = {}, .against = "", .missing = missing};
  const std::string of = at.point().devices.energy.of;
  return over(at.point().throughput,
              Reference{.value = *power,
                        .name = fmt::format("{}, {}", of.empty() ? "devices" : of,
                                            units::format_prefixed(*power, "W"))},
              "");
}

}  // namespace

void normalise(std::span<SideCurve* const> sides, int ranks) {
  std::vector<Place> places;
  for (SideCurve* const side : sides) {
    if (auto place = place_of(side, ranks)) places.push_back(*place);
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
            ? Normalised{.value = {}, .against = "", .missing = "one rank has no link"}
            : over(point.throughput, links[i],
                   "no datasheet is known, and the run measured no link of this class");
    side.per_watt[at.index] = per_watt(at);
  }
}

}  // namespace isoscale::analysis
