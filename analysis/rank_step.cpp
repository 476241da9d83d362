// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/rank_step.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "timeline/intervals.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;
using timeline::intersect;
using timeline::Interval;
using timeline::IntervalSet;
using timeline::normalise;
using timeline::subtract;
using timeline::unite;
using units::Nanoseconds;

/// What each kind of op claims, in program order and uncut.
struct Claims {
  std::vector<Interval> compute, copies, communication, transfer, wait, late;
};

Claims claims_of(const program::Outline& outline, const timeline::StepTrace& trace,
                 std::span<const Nanoseconds> last_arrival) {
  Claims claims;
  for (std::size_t op = 0; op < outline.ops.size(); ++op) {
    const OpKind kind = outline.ops[op].kind;
    const Interval span{.begin = trace.spans[op].start, .end = trace.spans[op].end};
    if (kind == OpKind::copy) {
      claims.copies.push_back(span);
    } else if (!program::communicates(kind)) {
      claims.compute.push_back(span);
    } else {
      const Nanoseconds arrival =
          op < last_arrival.size() ? std::min(last_arrival[op], span.end) : span.begin;
      auto& waiting = kind == OpKind::exchange ? claims.late : claims.wait;
      claims.communication.push_back(span);
      waiting.push_back({.begin = span.begin, .end = arrival});
      claims.transfer.push_back({.begin = std::max(span.begin, arrival), .end = span.end});
    }
  }
  return claims;
}

/// Time in which a span cannot have run: before the previous op of its stream, or an op that it
/// waits for, had ended; or because it ends before it starts.
std::vector<Interval> contradictions(const program::Outline& outline,
                                     const timeline::StepTrace& trace, Streams streams) {
  // Per stream, when its first k + 1 ops had all ended.
  std::array<std::vector<Nanoseconds>, program::max_streams> ended;
  std::vector<Interval> impossible;
  for (std::size_t op = 0; op < outline.ops.size(); ++op) {
    const auto& [number, start, end] = trace.spans[op];
    auto& own = ended[streams == Streams::folded ? 0 : outline.ops[op].stream];
    Nanoseconds earliest = own.empty() ? start : own.back();
    if (streams == Streams::as_written) {
      for (const program::Wait& wait : outline.waits_of(outline.ops[op])) {
        const auto& other = ended[wait.stream];
        const std::size_t count = std::min<std::size_t>(wait.count, other.size());
        if (count > 0) earliest = std::max(earliest, other[count - 1]);
      }
    }
    if (start < earliest) impossible.push_back({.begin = start, .end = std::min(end, earliest)});
    if (end < start) impossible.push_back({.begin = end, .end = start});
    own.push_back(own.empty() ? end : std::max(own.back(), end));
  }
  return impossible;
}

}  // namespace

RankStep split(const program::Outline& outline, const timeline::StepTrace& trace,
               std::span<const Nanoseconds> last_arrival, Streams streams) {
  Claims claims = claims_of(outline, trace, last_arrival);
  const IntervalSet step{{.begin = trace.begin, .end = trace.end}};
  const IntervalSet impossible = normalise(contradictions(outline, trace, streams));
  const IntervalSet communication =
      subtract(normalise(std::move(claims.communication)), impossible);

  // Each category takes what those above it have left; what is impossible goes to none.
  IntervalSet taken = impossible;
  const auto take = [&taken](std::vector<Interval>&& claim) {
    const IntervalSet claimed = normalise(std::move(claim));
    const Nanoseconds length = timeline::total(subtract(claimed, taken));
    taken = unite(taken, claimed);
    return length;
  };
  RankStep result;
  result.compute = take(std::move(claims.compute));
  result.copies = take(std::move(claims.copies));
  result.hidden = timeline::total(intersect(communication, subtract(taken, impossible)));
  result.transfer = take(std::move(claims.transfer));
  result.wait = take(std::move(claims.wait));
  result.late = take(std::move(claims.late));
  result.gap = timeline::total(subtract(step, taken));
  result.step = trace.end - trace.begin;
  result.unaccounted = timeline::total(intersect(impossible, step)) +
                       timeline::total(subtract(subtract(taken, step), impossible));
  return result;
}

}  // namespace isoscale::analysis
