// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/measured_time.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace isoscale::simulate {
namespace {

using program::OpKind;

/// Of shapes; those below `same` are at one place.
constexpr double same = 1e-9;

struct Nearby {
  double distance = 0, log_rate = 0;
};

/// log FLOP and log of the smallest extent: what a rate depends on first.
double distance(const TimedGemm& at, const program::Gemm& gemm) {
  const double m = gemm.m, n = gemm.n, k = gemm.k;
  const double flop = std::log(m * n * k * gemm.batch) - std::log(at.m * at.n * at.k * at.batch);
  const double least = std::log(std::min({m, n, k})) - std::log(std::min({at.m, at.n, at.k}));
  return std::hypot(flop, least);
}

bool is_shape(const TimedGemm& at, const program::Gemm& gemm) {
  return at.m == gemm.m && at.n == gemm.n && at.k == gemm.k && at.batch == gemm.batch;
}

/// Where op bytes fall among measured sizes of a kind, ascending.
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

MeasuredTime local_among(std::span<const SizeSeconds> sizes, double bytes) {
  const auto above = std::ranges::lower_bound(sizes, bytes, {}, &SizeSeconds::bytes);
  if (above != sizes.end() && above->bytes == bytes) {
    return {.seconds = above->seconds, .basis = Basis::measured};
  }
  if (above == sizes.end()) {
    const SizeSeconds& last = sizes.back();
    const double times = last.bytes > 0 ? bytes / last.bytes : 1;
    return {.seconds = last.seconds * times, .basis = Basis::extrapolated};
  }
  if (above == sizes.begin()) {
    const double share = bytes / above->bytes;
    return {.seconds = above->seconds * share, .basis = Basis::extrapolated};
  }
  return {.seconds = between(*(above - 1), *above, bytes, Straight::in_logs),
          .basis = Basis::interpolated};
}

/// The law for groups that were not measured.
GrowthLaw law_for(const Measured& measured, const TimedCommunication& largest) {
  if (measured.growth != GrowthLaw::fitted) return measured.growth;
  if (largest.law != GrowthLaw::fitted) return largest.law;
  const bool ring = largest.kind == OpKind::all_gather || largest.kind == OpKind::reduce_scatter ||
                    largest.kind == OpKind::all_to_all;
  return ring ? GrowthLaw::proportional : GrowthLaw::logarithmic;
}

Basis basis_in(const TimedCommunication& curve, double bytes) {
  if (bytes > curve.samples.back().bytes || bytes < curve.samples.front().bytes) {
    return Basis::extrapolated;
  }
  const bool sampled =
      std::ranges::find(curve.samples, bytes, &SizeSeconds::bytes) != curve.samples.end();
  return sampled ? Basis::measured : Basis::interpolated;
}

/// As many times the bytes as groups share the ports more than the measured ones did. Fewer get no
/// more than was measured: one rank need not be able to use all ports of its node.
double contended(const TimedCommunication& curve, const GroupPlace& place, double bytes) {
  const double more = static_cast<double>(place.sharing) / std::max(curve.sharing, 1);
  return place.nodes > 1 ? bytes * std::max(more, 1.0) : bytes;
}

/// Of a kind that has groups itself.
std::optional<MeasuredTime> of_kind(const Measured& measured, OpKind kind, double bytes,
                                    const GroupPlace& place) {
  for (const TimedCommunication& at : measured.communication) {
    const bool is_group = at.kind == kind && at.members == place.members &&
                          at.nodes == place.nodes && !at.samples.empty();
    if (!is_group) continue;
    const double moved = contended(at, place, bytes);
    return MeasuredTime{.seconds = curve_seconds(at, moved), .basis = basis_in(at, moved)};
  }
  const GroupFamily family = family_of(measured, kind, place);
  if (family.groups.empty()) return std::nullopt;
  const TimedCommunication& largest = *family.groups.back().curve;
  const double size = place.nodes > 1 ? place.nodes : place.members;
  const Growth growth{.law = law_for(measured, largest), .untold = measured.untold};
  const bool inside = size >= family.groups.front().size && size <= family.groups.back().size;
  return MeasuredTime{.seconds = grown_seconds(family, growth, size, place.members,
                                               contended(largest, place, bytes)),
                      .basis = inside ? Basis::interpolated : Basis::extrapolated};
}

/// Kinds that stand for one that was not measured: the sum of their times, times `share`.
struct StandIn {
  std::vector<OpKind> kinds;
  double share = 1;
};

/// In the order of preference. An all_reduce is a reduce_scatter and an all_gather, and one of
/// these half of it; what moves the same bytes through the same wires takes the same time.
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

std::optional<double> seconds_of(const std::optional<MeasuredTime>& time) {
  return time ? std::optional{time->seconds} : std::nullopt;
}

}  // namespace

double curve_seconds(const TimedCommunication& curve, double bytes) {
  const SizeSeconds& first = curve.samples.front();
  const SizeSeconds& last = curve.samples.back();
  if (bytes > last.bytes) {
    if (!curve.bandwidth) return last.seconds * (last.bytes > 0 ? bytes / last.bytes : 1);
    return last.seconds + (bytes - last.bytes) / *curve.bandwidth;
  }
  if (bytes < first.bytes) {
    const double fewer = curve.bandwidth ? (first.bytes - bytes) / *curve.bandwidth : 0;
    // Without a latency in sight: at least in proportion.
    const double floor = curve.latency ? std::min(*curve.latency, first.seconds)
                                       : first.seconds * bytes / first.bytes;
    return std::max(first.seconds - fewer, floor);
  }
  const auto above = std::ranges::lower_bound(curve.samples, bytes, {}, &SizeSeconds::bytes);
  if (above == curve.samples.begin() || above->bytes == bytes) return above->seconds;
  return between(*(above - 1), *above, bytes, curve.between);
}

std::optional<MeasuredTime> measured_gemm(const Measured& measured, const program::Gemm& gemm,
                                          program::DType type) {
  constexpr std::size_t most_neighbours = 4;
  std::vector<Nearby> nearby;
  for (const TimedGemm& at : measured.gemms) {
    if (at.type != type || at.mode != gemm.mode || !(at.seconds > 0)) continue;
    if (is_shape(at, gemm)) return MeasuredTime{.seconds = at.seconds, .basis = Basis::measured};
    nearby.push_back({.distance = distance(at, gemm),
                      .log_rate = std::log(2 * at.m * at.n * at.k * at.batch / at.seconds)});
  }
  if (nearby.empty()) return std::nullopt;
  const std::size_t count = std::min(nearby.size(), most_neighbours);
  std::ranges::partial_sort(nearby, nearby.begin() + static_cast<std::ptrdiff_t>(count), {},
                            &Nearby::distance);
  double sum = 0, weights = 0;
  for (const Nearby& at : std::span{nearby}.first(count)) {
    // Shapes at the very place speak for it alone.
    const double weight = 1 / std::max(at.distance * at.distance, same);
    sum += weight * at.log_rate;
    weights += weight;
  }
  const double flop = 2.0 * gemm.m * gemm.n * gemm.k * gemm.batch;
  return MeasuredTime{.seconds = flop / std::exp(sum / weights), .basis = Basis::interpolated};
}

std::optional<MeasuredTime> measured_local(const Measured& measured, OpKind kind, double bytes) {
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
  return MeasuredTime{.seconds = nearest->seconds * bytes / nearest->bytes,
                      .basis = Basis::derived};
}

std::optional<MeasuredTime> measured_collective(const Measured& measured, OpKind kind, double bytes,
                                                const GroupPlace& place) {
  if (place.members < 2) return MeasuredTime{};
  if (const auto own = of_kind(measured, kind, bytes, place)) return own;
  for (const StandIn& stand_in : stand_ins(kind)) {
    MeasuredTime sum{.seconds = 0, .basis = Basis::derived};
    bool known = true;
    for (const OpKind part : stand_in.kinds) {
      const auto time = of_kind(measured, part, bytes, place);
      known = known && time;
      if (time) sum.seconds += stand_in.share * time->seconds;
    }
    if (known) return sum;
  }
  return std::nullopt;
}

std::optional<MeasuredTime> measured_message(const Measured& measured, double bytes,
                                             const GroupPlace& place) {
  const TimedCommunication* found = nullptr;
  for (const TimedCommunication& at : measured.communication) {
    if (at.kind != OpKind::exchange || at.samples.empty()) continue;
    if ((at.nodes > 1) != (place.nodes > 1)) continue;
    // Two members are a message; more are a ring of them, which may get in each other's way.
    if (found == nullptr || at.members < found->members) found = &at;
  }
  if (found == nullptr) return std::nullopt;
  const double moved = contended(*found, place, bytes);
  return MeasuredTime{.seconds = curve_seconds(*found, moved), .basis = basis_in(*found, moved)};
}

std::optional<double> measured_gemm_seconds(const Measured& measured, const program::Gemm& gemm,
                                            program::DType type) {
  return seconds_of(measured_gemm(measured, gemm, type));
}

std::optional<double> measured_local_seconds(const Measured& measured, OpKind kind, double bytes) {
  return seconds_of(measured_local(measured, kind, bytes));
}

std::optional<double> measured_collective_seconds(const Measured& measured, OpKind kind,
                                                  double bytes, const GroupPlace& place) {
  return seconds_of(measured_collective(measured, kind, bytes, place));
}

std::optional<double> measured_message_seconds(const Measured& measured, double bytes,
                                               const GroupPlace& place) {
  return seconds_of(measured_message(measured, bytes, place));
}

}  // namespace isoscale::simulate
