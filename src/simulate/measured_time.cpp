// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/op_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "simulate/layout.hpp"
#include "statistics/quantiles_and_fits.hpp"

namespace isoscale::simulate {
namespace {

using program::OpKind;

double law_of(GrowthLaw law, double size) {
  return law == GrowthLaw::proportional ? size : std::log2(size);
}

/// Returns how often each byte of a collective passes a link between ranks, up to a constant
/// factor. For parts of messages it is wire_factor(). For whole messages it is the number L of
/// levels of the tree; if each rank sends to all ranks below it at once, it is 1 + 2 + ... + L, and
/// for an all_reduce L more. A reduce_scatter by a tree also scatters the parts of the message,
/// which adds wire_factor().
double moved_factor(Moved moved, OpKind kind, double size, double members) {
  const double levels = std::log2(size), at_once = levels * (levels + 1) / 2;
  if (moved == Moved::parts) return wire_factor(kind, members);
  if (kind == OpKind::reduce_scatter) return levels + wire_factor(kind, members);
  if (moved == Moved::whole) return levels;
  return kind == OpKind::all_reduce ? levels + at_once : at_once;
}

/// Returns the ways of moving data that libraries are known to use for this kind of collective.
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

/// Returns the way of moving data that best explains the ratio of the times of the largest and the
/// smallest group, for messages so large that their bytes determine the time. If the measurements
/// do not show it, returns `untold`, or the last one in candidates() if that list does not contain
/// `untold`.
Moved moved_in(const GroupFamily& family, Moved untold) {
  // Bytes are taken to determine the time of a message that takes at least this many times as long
  // as the smallest message.
  constexpr double by_bytes = 4;
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

/// Returns the bandwidth, in bytes/s, that the largest group reaches on one link between ranks.
double wire_bandwidth(const GroupFamily& family, Moved moved) {
  const TimedCommunication& curve = *family.groups.back().curve;
  const double factor = moved_factor(moved, curve.kind, family.groups.back().size, curve.members);
  double best = curve.bandwidth.value_or(0);
  for (const SizeSeconds& at : curve.samples) best = std::max(best, at.bytes / at.seconds);
  return factor * best;
}

/// A point in a fit of the excess: the time of a group minus the time in which the links move its
/// bytes. `x` is n or log2 n for a group of size n, depending on the growth law; `y` is the excess
/// in seconds; `weight` is the point's weight in the fit.
using Excess = statistics::WeightedPoint;

struct Excesses {
  Moved moved = Moved::parts;
  double bandwidth = 0;  ///< bytes/s of one link; 0 = no data is moved
  std::vector<Excess> of_group;

  [[nodiscard]] double wire(OpKind kind, double size, double members, double bytes) const {
    return bandwidth > 0 ? moved_factor(moved, kind, size, members) * bytes / bandwidth : 0;
  }
};

/// Returns the excess at size 1. For groups on one node, size 1 is a single rank, and the excess is
/// 0. For groups over several nodes, size 1 is a group on one node. The excess is then the time of
/// this group for its smallest message, but at most `first`, the excess of the smallest group of
/// the family; 0 if the group on one node was not measured.
double excess_of_one(const GroupFamily& family, double first) {
  if (family.on_one_node == nullptr || family.on_one_node->samples.empty()) return 0;
  return std::min(first, family.on_one_node->samples.front().seconds);
}

Excesses excesses_of(const GroupFamily& family, GrowthLaw law, Moved moved, double bytes) {
  Excesses result{.moved = moved, .bandwidth = wire_bandwidth(family, moved), .of_group = {}};
  const TimedCommunication& largest = *family.groups.back().curve;
  for (const GroupFamily::Group& group : family.groups) {
    const double seconds = curve_seconds(*group.curve, bytes);
    const double wire = result.wire(largest.kind, group.size, group.curve->members, bytes);
    const double over = std::max(0.0, seconds - wire);
    result.of_group.push_back(
        {.x = law_of(law, group.size), .y = over, .weight = 1 / (seconds * seconds)});
  }
  const double first = result.of_group.front().y;
  if (family.groups.size() == 1 && family.groups.front().size > 1) {
    result.of_group.insert(result.of_group.begin(),
                           {.x = law_of(law, 1), .y = excess_of_one(family, first), .weight = 0});
  }
  return result;
}

/// Returns the slope of the excess over `x`: by weighted least squares for three points or more, by
/// the line through both for two points, 0 for fewer.
double slope_of(const std::vector<Excess>& excesses) {
  if (excesses.size() < 2) return 0;
  if (excesses.size() == 2) {
    return (excesses[1].y - excesses[0].y) / (excesses[1].x - excesses[0].x);
  }
  return statistics::weighted_line(excesses).slope;
}

/// Returns the excess at x = `law` (n or log2 n for a group of size n), interpolated linearly
/// between measured groups. Beyond the largest group it follows the fitted slope, but never
/// decreases, since larger groups are not faster.
double excess_at(const std::vector<Excess>& excesses, double law) {
  const auto above = std::ranges::lower_bound(excesses, law, {}, &Excess::x);
  if (above == excesses.end()) {
    return excesses.back().y + std::max(0.0, slope_of(excesses)) * (law - excesses.back().x);
  }
  if (above == excesses.begin()) return above->y;
  const Excess& below = *(above - 1);
  return std::lerp(below.y, above->y, (law - below.x) / (above->x - below.x));
}

/// Returns the sum, over message sizes and groups, of the squared error of the fitted line relative
/// to the time of the group. The family has at least three groups.
double misses(const GroupFamily& family, GrowthLaw law, Moved moved) {
  double sum = 0;
  for (const SizeSeconds& size : family.groups.back().curve->samples) {
    const Excesses excesses = excesses_of(family, law, moved, size.bytes);
    const auto line = statistics::weighted_line(excesses.of_group);
    for (const auto& [x, y, weight] : excesses.of_group) {
      const double off = line.intercept + line.slope * x - y;
      sum += off * off * weight;
    }
  }
  return sum;
}

/// The lower limit of the squared distance between two GEMM shapes (see distance()). The rate of
/// a shape that was not measured is the geometric mean of the rates of near shapes, with the
/// weights 1 / squared distance. The limit keeps a weight finite where the distance is 0.
constexpr double same = 1e-9;

struct Nearby {
  double distance = 0, log_rate = 0;
};

/// Returns the distance between two GEMM shapes in the plane of log(FLOP) and log(smallest of m, n,
/// k), on which the rate of a GEMM depends most.
double distance(const program::GemmShape& a, const program::GemmShape& b) {
  const auto products = [](const program::GemmShape& at) { return flop_of(at) / 2; };
  const auto least = [](const program::GemmShape& at) { return std::min({at.m, at.n, at.k}); };
  return std::hypot(std::log(products(a)) - std::log(products(b)),
                    std::log(least(a)) - std::log(least(b)));
}

/// Returns the measured sizes and times of a kind of op, in ascending order of size.
std::vector<SizeSeconds> sizes_of(const Measured& measured, OpKind kind) {
  std::vector<SizeSeconds> sizes;
  for (const TimedLocal& at : measured.locals) {
    if (at.kind == kind && at.seconds > 0)
      sizes.push_back({.bytes = at.bytes, .seconds = at.seconds});
  }
  std::ranges::sort(sizes, {}, &SizeSeconds::bytes);
  return sizes;
}

double log_size(double bytes) { return std::log(std::max(bytes, 1.0)); }

double between(const SizeSeconds& below, const SizeSeconds& above, double bytes, Straight form) {
  if (form == Straight::in_bytes) {
    const double share = (bytes - below.bytes) / (above.bytes - below.bytes);
    return std::lerp(below.seconds, above.seconds, share);
  }
  const double width = log_size(above.bytes) - log_size(below.bytes);
  const double share = width > 0 ? (log_size(bytes) - log_size(below.bytes)) / width : 1;
  return std::exp(std::lerp(std::log(below.seconds), std::log(above.seconds), share));
}

double local_among(std::span<const SizeSeconds> sizes, double bytes) {
  const auto above = std::ranges::lower_bound(sizes, bytes, {}, &SizeSeconds::bytes);
  if (above == sizes.end()) {
    const SizeSeconds& last = sizes.back();
    return last.seconds * (last.bytes > 0 ? bytes / last.bytes : 1);
  }
  if (above->bytes == bytes) return above->seconds;
  if (above == sizes.begin()) return above->seconds * (bytes / above->bytes);
  return between(*(above - 1), *above, bytes, Straight::in_logs);
}

/// Returns the law by which the time of a group that was not measured grows with the group's size.
GrowthLaw law_for(const TimedCommunication& largest) {
  if (largest.law != GrowthLaw::fitted) return largest.law;
  const bool ring = largest.kind == OpKind::all_gather || largest.kind == OpKind::reduce_scatter ||
                    largest.kind == OpKind::all_to_all;
  return ring ? GrowthLaw::proportional : GrowthLaw::logarithmic;
}

/// Returns the bytes unchanged for a group on one node. For a group over several nodes, returns the
/// bytes multiplied by the number of groups that share a node's ports and divided by that number in
/// the measurement, but not less than `bytes`. If fewer groups share the ports, nothing is gained,
/// since one rank may not be able to use all ports of its node.
double contended(const TimedCommunication& curve, const GroupPlace& place, double bytes) {
  const double more = static_cast<double>(place.sharing) / std::max(curve.sharing, 1);
  return place.nodes > 1 ? bytes * std::max(more, 1.0) : bytes;
}

/// Returns the time of a collective from measurements of its own kind; absent if there are none
/// over the same kind of link (inside a node, between nodes).
std::optional<double> of_kind(const Measured& measured, OpKind kind, double bytes,
                              const GroupPlace& place) {
  for (const TimedCommunication& at : measured.communication) {
    const bool is_group = at.kind == kind && at.members == place.members &&
                          at.nodes == place.nodes && !at.samples.empty();
    if (!is_group) continue;
    return curve_seconds(at, contended(at, place, bytes));
  }
  const GroupFamily family = family_of(measured, kind, place);
  if (family.groups.empty()) return std::nullopt;
  const TimedCommunication& largest = *family.groups.back().curve;
  const double size = place.nodes > 1 ? place.nodes : place.members;
  return grown_seconds(family, law_for(largest), measured.untold, size, place.members,
                       contended(largest, place, bytes));
}

/// Measured kinds of collectives from which the time of another kind is derived: the sum of their
/// times, multiplied by `share`.
struct StandIn {
  std::vector<OpKind> kinds;
  double share = 1;
};

/// Returns the kinds from which the time of `kind` can be derived, in order of preference. An
/// all_reduce takes as long as a reduce_scatter followed by an all_gather; each takes half of that
/// time. Collectives that move the same bytes over the same links take the same time.
std::vector<StandIn> stand_ins(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
      return {{.kinds = {OpKind::reduce_scatter, OpKind::all_gather}},
              {.kinds = {OpKind::all_gather}, .share = 2},
              {.kinds = {OpKind::reduce_scatter}, .share = 2}};
    case OpKind::reduce_scatter:
      return {{.kinds = {OpKind::all_gather}}, {.kinds = {OpKind::all_reduce}, .share = 0.5}};
    case OpKind::broadcast:
    case OpKind::reduce:
      return {{.kinds = {OpKind::all_reduce}, .share = 0.5}, {.kinds = {OpKind::all_gather}}};
    case OpKind::barrier:
      return {{.kinds = {OpKind::all_reduce}}, {.kinds = {OpKind::all_gather}}};
    default:
      return {{.kinds = {OpKind::all_gather}},
              {.kinds = {OpKind::reduce_scatter}},
              {.kinds = {OpKind::all_reduce}, .share = 0.5}};
  }
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
  GroupFamily family;
  bool any_alike = false;
  for (const TimedCommunication& at : measured.communication) {
    if (at.kind != kind || at.samples.empty() || at.members < 2) continue;
    if (across && at.nodes == 1 && at.members == place.node_members) family.on_one_node = &at;
    if ((at.nodes > 1) != across) continue;
    any_alike = any_alike || !across || at.node_members() == place.node_members;
    family.groups.push_back(
        {.size = static_cast<double>(across ? at.nodes : at.members), .curve = &at});
  }
  if (across && any_alike) {
    std::erase_if(family.groups, [&](const GroupFamily::Group& group) {
      return group.curve->node_members() != place.node_members;
    });
  }
  // If several groups have the same size, the one with the most members is kept, since it is most
  // similar to larger groups.
  std::ranges::sort(family.groups, [](const auto& a, const auto& b) {
    return std::pair{a.size, -a.curve->members} < std::pair{b.size, -b.curve->members};
  });
  const auto [last, end] = std::ranges::unique(family.groups, {}, &GroupFamily::Group::size);
  family.groups.erase(last, end);
  return family;
}

double grown_seconds(const GroupFamily& family, GrowthLaw law, Moved untold, double size,
                     double members, double bytes) {
  const Excesses excesses = excesses_of(family, law, moved_in(family, untold), bytes);
  return excesses.wire(family.groups.back().curve->kind, size, members, bytes) +
         excess_at(excesses.of_group, law_of(law, size));
}

void settle_laws(Measured& measured) {
  constexpr std::size_t least_groups = 3;
  // A law is clearly better if its errors are at most this share of the other's.
  constexpr double clearly = 0.5;
  std::map<const TimedCommunication*, GrowthLaw> laws;
  for (const TimedCommunication& at : measured.communication) {
    const GroupFamily family =
        family_of(measured, at.kind,
                  {.members = at.members, .nodes = at.nodes, .node_members = at.node_members()});
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

double curve_seconds(const TimedCommunication& curve, double bytes) {
  const SizeSeconds& first = curve.samples.front();
  const SizeSeconds& last = curve.samples.back();
  if (bytes > last.bytes) {
    if (!curve.bandwidth) return last.seconds * (last.bytes > 0 ? bytes / last.bytes : 1);
    return last.seconds + (bytes - last.bytes) / *curve.bandwidth;
  }
  if (bytes < first.bytes) {
    const double fewer = curve.bandwidth ? (first.bytes - bytes) / *curve.bandwidth : 0;
    // If the latency is unknown, time decreases at most in proportion to size.
    const double floor = curve.latency ? std::min(*curve.latency, first.seconds)
                                       : first.seconds * bytes / first.bytes;
    return std::max(first.seconds - fewer, floor);
  }
  const auto above = std::ranges::lower_bound(curve.samples, bytes, {}, &SizeSeconds::bytes);
  if (above == curve.samples.begin() || above->bytes == bytes) return above->seconds;
  return between(*(above - 1), *above, bytes, curve.between);
}

std::optional<double> measured_gemm_seconds(const Measured& measured, const program::Gemm& gemm,
                                            program::DType type) {
  constexpr std::size_t most_neighbours = 4;
  const program::GemmShape shape = shape_of(gemm);
  std::vector<Nearby> nearby;
  for (const TimedGemm& at : measured.gemms) {
    if (at.type != type || at.mode != gemm.mode || !(at.seconds > 0)) continue;
    if (at.shape == shape) return at.seconds;
    nearby.push_back({.distance = distance(at.shape, shape), .log_rate = std::log(at.rate())});
  }
  if (nearby.empty()) return std::nullopt;
  const std::size_t count = std::min(nearby.size(), most_neighbours);
  std::ranges::partial_sort(nearby, nearby.begin() + static_cast<std::ptrdiff_t>(count), {},
                            &Nearby::distance);
  double sum = 0, weights = 0;
  for (const Nearby& at : std::span{nearby}.first(count)) {
    const double weight = 1 / std::max(at.distance * at.distance, same);
    sum += weight * at.log_rate;
    weights += weight;
  }
  return flop_of(shape) / std::exp(sum / weights);
}

std::optional<double> measured_local_seconds(const Measured& measured, OpKind kind, double bytes) {
  const std::vector<SizeSeconds> sizes = sizes_of(measured, kind);
  if (!sizes.empty()) return local_among(sizes, bytes);
  const TimedLocal* nearest = nullptr;
  const auto away = [&](const TimedLocal& at) {
    return std::abs(log_size(at.bytes) - log_size(bytes));
  };
  for (const TimedLocal& at : measured.locals) {
    if (!(at.seconds > 0) || !(at.bytes > 0)) continue;
    if (nearest == nullptr || away(at) < away(*nearest)) nearest = &at;
  }
  if (nearest == nullptr) return std::nullopt;
  return nearest->seconds * bytes / nearest->bytes;
}

std::optional<double> measured_collective_seconds(const Measured& measured, OpKind kind,
                                                  double bytes, const GroupPlace& place) {
  if (place.members < 2) return 0;
  if (const auto own = of_kind(measured, kind, bytes, place)) return own;
  for (const StandIn& stand_in : stand_ins(kind)) {
    double sum = 0;
    bool known = true;
    for (const OpKind part : stand_in.kinds) {
      const auto time = of_kind(measured, part, bytes, place);
      known = known && time;
      sum += stand_in.share * time.value_or(0);
    }
    if (known) return sum;
  }
  return std::nullopt;
}

std::optional<double> measured_message_seconds(const Measured& measured, double bytes,
                                               const GroupPlace& place) {
  const TimedCommunication* found = nullptr;
  for (const TimedCommunication& at : measured.communication) {
    if (at.kind != OpKind::exchange || at.samples.empty()) continue;
    if ((at.nodes > 1) != (place.nodes > 1)) continue;
    // The curve with the fewest members is used: two members exchange one message, while more
    // members form a ring, whose messages may slow each other down.
    if (found == nullptr || at.members < found->members) found = &at;
  }
  if (found == nullptr) return std::nullopt;
  return curve_seconds(*found, contended(*found, place, bytes));
}

}  // namespace isoscale::simulate
