// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/measured_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>

namespace isoscale::simulate {
namespace {

using program::OpKind;

double law_of(GrowthLaw law, double size) {
  return law == GrowthLaw::proportional ? size : std::log2(size);
}

/// Wires' times that a collective takes for each of its bytes, but for a constant: in a tree the
/// levels; where all are handed their message at once, at each level as many as there are below.
/// What is scattered at last is deals of a whole message.
double moved_factor(Moved moved, OpKind kind, double size, double members) {
  const double levels = std::log2(size), at_once = levels * (levels + 1) / 2;
  if (moved == Moved::parts) return wire_factor(kind, members);
  if (kind == OpKind::reduce_scatter) return levels + wire_factor(kind, members);
  if (moved == Moved::whole) return levels;
  return kind == OpKind::all_reduce ? levels + at_once : at_once;
}

/// What libraries have been seen to do.
std::span<const Moved> candidates(OpKind kind) {
  static constexpr std::array all{Moved::parts, Moved::whole, Moved::whole_at_once};
  switch (kind) {
    case OpKind::all_reduce:
    case OpKind::broadcast:
      return all;
    case OpKind::reduce:
    case OpKind::reduce_scatter:
      return std::span{all}.first(2);
    default:
      return std::span{all}.first(1);
  }
}

/// The one by which the largest group takes longer than the smallest, of messages so large that
/// their bytes take the time. Where that cannot be told, `untold`.
Moved moved_in(const GroupFamily& family, Moved untold) {
  constexpr double by_bytes = 4;  // of the smallest message's time
  const GroupFamily::Group& small = family.groups.front();
  const GroupFamily::Group& large = family.groups.back();
  const OpKind kind = large.curve->kind;
  const std::span<const Moved> possible = candidates(kind);
  const Moved otherwise = std::ranges::count(possible, untold) > 0 ? untold : possible.back();
  if (possible.size() == 1) return Moved::parts;
  if (family.groups.size() < 2 || small.size < 2) return otherwise;
  const double bytes =
      std::min(small.curve->samples.back().bytes, large.curve->samples.back().bytes);
  const double seconds = curve_seconds(*small.curve, bytes);
  if (seconds < by_bytes * small.curve->samples.front().seconds) return otherwise;
  const auto off = [&](Moved moved) {
    const double expected = moved_factor(moved, kind, large.size, large.curve->members) /
                            moved_factor(moved, kind, small.size, small.curve->members);
    return std::abs(std::log(curve_seconds(*large.curve, bytes) / seconds / expected));
  };
  return *std::ranges::min_element(possible, {}, off);
}

/// Bytes/s of each wire, as the largest group has it.
double wire_bandwidth(const GroupFamily& family, Moved moved) {
  const TimedCommunication& curve = *family.groups.back().curve;
  const double factor = moved_factor(moved, curve.kind, family.groups.back().size, curve.members);
  double best = curve.bandwidth.value_or(0);
  for (const SizeSeconds& at : curve.samples) best = std::max(best, at.bytes / at.seconds);
  return factor * best;
}

/// What a group takes over the wire's time.
struct Excess {
  double law = 0, seconds = 0, weight = 0;
};

struct Excesses {
  Moved moved = Moved::parts;
  double bandwidth = 0;  ///< of a wire; 0 = nothing is moved
  std::vector<Excess> of_group;

  [[nodiscard]] double wire(OpKind kind, double size, double members, double bytes) const {
    return bandwidth > 0 ? moved_factor(moved, kind, size, members) * bytes / bandwidth : 0;
  }
};

/// What groups of one take on top: nothing alone; across nodes, what their members on one node do
/// for the smallest message.
double excess_of_one(const GroupFamily& family, double first) {
  if (family.on_one_node == nullptr || family.on_one_node->samples.empty()) return 0;
  return std::min(first, family.on_one_node->samples.front().seconds);
}

Excesses excesses_of(const GroupFamily& family, GrowthLaw law, Moved moved, double bytes) {
  Excesses result;
  result.moved = moved;
  const TimedCommunication& largest = *family.groups.back().curve;
  result.bandwidth = wire_bandwidth(family, result.moved);
  for (const GroupFamily::Group& group : family.groups) {
    const double seconds = curve_seconds(*group.curve, bytes);
    const double wire = result.wire(largest.kind, group.size, group.curve->members, bytes);
    const double over = std::max(0.0, seconds - wire);
    result.of_group.push_back(
        {.law = law_of(law, group.size), .seconds = over, .weight = 1 / (seconds * seconds)});
  }
  const double first = result.of_group.front().seconds;
  if (family.groups.size() == 1 && family.groups.front().size > 1) {
    result.of_group.insert(
        result.of_group.begin(),
        {.law = law_of(law, 1), .seconds = excess_of_one(family, first), .weight = 0});
  }
  return result;
}

/// Slope of the weighted least squares line; of two places, between them.
double slope_of(const std::vector<Excess>& excesses) {
  if (excesses.size() < 2) return 0;
  if (excesses.size() == 2) {
    return (excesses[1].seconds - excesses[0].seconds) / (excesses[1].law - excesses[0].law);
  }
  double weights = 0, x_mean = 0, y_mean = 0;
  for (const Excess& at : excesses) {
    weights += at.weight;
    x_mean += at.weight * at.law;
    y_mean += at.weight * at.seconds;
  }
  x_mean /= weights;
  y_mean /= weights;
  double covariance = 0, variance = 0;
  for (const Excess& at : excesses) {
    covariance += at.weight * (at.law - x_mean) * (at.seconds - y_mean);
    variance += at.weight * (at.law - x_mean) * (at.law - x_mean);
  }
  return variance > 0 ? covariance / variance : 0;
}

/// Between measured groups straight over the law, beyond the largest along the fitted slope: no
/// group is faster for being larger.
double excess_at(const std::vector<Excess>& excesses, double law) {
  const auto above = std::ranges::lower_bound(excesses, law, {}, &Excess::law);
  if (above == excesses.end()) {
    return excesses.back().seconds +
           std::max(0.0, slope_of(excesses)) * (law - excesses.back().law);
  }
  if (above == excesses.begin()) return above->seconds;
  const Excess& below = *(above - 1);
  const double share = (law - below.law) / (above->law - below.law);
  return std::lerp(below.seconds, above->seconds, share);
}

/// Sum over sizes and groups of squared misses of the fitted line, relative to the time.
double misses(const GroupFamily& family, GrowthLaw law, Moved moved) {
  double sum = 0;
  for (const SizeSeconds& size : family.groups.back().curve->samples) {
    const Excesses excesses = excesses_of(family, law, moved, size.bytes);
    const double slope = slope_of(excesses.of_group);
    double weights = 0, x_mean = 0, y_mean = 0;
    for (const Excess& at : excesses.of_group) {
      weights += at.weight;
      x_mean += at.weight * at.law;
      y_mean += at.weight * at.seconds;
    }
    for (const Excess& at : excesses.of_group) {
      const double off = (y_mean + slope * (at.law * weights - x_mean)) / weights - at.seconds;
      sum += off * off * at.weight;
    }
  }
  return sum;
}

}  // namespace

double wire_factor(OpKind kind, double members) {
  switch (kind) {
    case OpKind::all_reduce:
      return 2 * (members - 1) / members;
    case OpKind::reduce_scatter:
    case OpKind::all_gather:
    case OpKind::all_to_all:
    case OpKind::gather:
    case OpKind::scatter:
      return (members - 1) / members;
    default:
      return 1;
  }
}

GroupFamily family_of(const Measured& measured, OpKind kind, const GroupPlace& place) {
  const bool across = place.nodes > 1;
  const auto on_node = [](const TimedCommunication& at) {
    return (at.members + at.nodes - 1) / std::max(at.nodes, 1);
  };
  GroupFamily family;
  bool any_alike = false;
  for (const TimedCommunication& at : measured.communication) {
    if (at.kind != kind || at.samples.empty() || at.members < 2) continue;
    if (across && at.nodes == 1 && at.members == place.node_members) family.on_one_node = &at;
    if ((at.nodes > 1) != across) continue;
    any_alike = any_alike || !across || on_node(at) == place.node_members;
    family.groups.push_back(
        {.size = static_cast<double>(across ? at.nodes : at.members), .curve = &at});
  }
  if (across && any_alike) {
    std::erase_if(family.groups, [&](const GroupFamily::Group& group) {
      return on_node(*group.curve) != place.node_members;
    });
  }
  // Of one size the group of most members: it is closest to larger ones.
  std::ranges::sort(family.groups, [](const auto& a, const auto& b) {
    return std::pair{a.size, -a.curve->members} < std::pair{b.size, -b.curve->members};
  });
  const auto [last, end] = std::ranges::unique(family.groups, {}, &GroupFamily::Group::size);
  family.groups.erase(last, end);
  return family;
}

double grown_seconds(const GroupFamily& family, const Growth& growth, double size, double members,
                     double bytes) {
  const Excesses excesses = excesses_of(family, growth.law, moved_in(family, growth.untold), bytes);
  return excesses.wire(family.groups.back().curve->kind, size, members, bytes) +
         excess_at(excesses.of_group, law_of(growth.law, size));
}

void settle_laws(Measured& measured) {
  constexpr std::size_t least_groups = 3;
  constexpr double clearly = 0.5;  // of the other law's misses
  std::map<const TimedCommunication*, GrowthLaw> laws;
  for (const TimedCommunication& at : measured.communication) {
    const int on_node = (at.members + at.nodes - 1) / std::max(at.nodes, 1);
    const GroupFamily family = family_of(
        measured, at.kind, {.members = at.members, .nodes = at.nodes, .node_members = on_node});
    if (family.groups.size() < least_groups) continue;
    const Moved moved = moved_in(family, measured.untold);
    const double logarithmic = misses(family, GrowthLaw::logarithmic, moved);
    const double proportional = misses(family, GrowthLaw::proportional, moved);
    if (logarithmic <= clearly * proportional) laws[&at] = GrowthLaw::logarithmic;
    if (proportional <= clearly * logarithmic) laws[&at] = GrowthLaw::proportional;
  }
  for (TimedCommunication& at : measured.communication) {
    const auto found = laws.find(&at);
    at.law = found == laws.end() ? GrowthLaw::fitted : found->second;
  }
}

}  // namespace isoscale::simulate
