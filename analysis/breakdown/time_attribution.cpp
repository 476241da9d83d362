// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/time_attribution.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace isoscale::analysis::breakdown {
namespace {

using program::OpKind;
using timeline::Interval;
using units::Nanoseconds;

/// The categories that a moment of a step may belong to. If several apply, the first one counts.
/// `impossible` (spans that contradict others) comes first, so that contradictions are always seen.
/// `late` is the waiting in exchanges between pipeline stages, `wait` all other waiting.
enum class Claim : std::uint8_t { impossible, compute, copies, transfer, wait, late };

struct Segment {
  Nanoseconds begin, end;
  std::uint32_t op = 0;
  Claim claim = Claim::compute;
};

constexpr Nanoseconds never{std::numeric_limits<std::int64_t>::max()};

/// The segments of one stream, in order of time and without overlap.
using Lane = std::vector<Segment>;

Claim claim_of(OpKind kind) {
  if (program::communicates(kind)) return Claim::transfer;
  return program::computes(kind) ? Claim::compute : Claim::copies;
}

/// The lanes of a step: one for each stream that has ops, and one for intervals with contradictory
/// times, such as where an op begins before an op that it waits for has ended.
class Lanes {
 public:
  Lanes(const program::Outline& outline, const timeline::StepTrace& trace,
        std::span<const Nanoseconds> waits, bool is_folded)
      : outline_(outline), is_folded_(is_folded) {
    for (std::uint32_t op = 0; op < outline.ops.size(); ++op) {
      add(op, trace.spans[op], op < waits.size() ? waits[op] : Nanoseconds{0});
    }
    std::erase_if(lanes_, [](const Lane& lane) { return lane.empty(); });
    if (impossible_.empty()) return;
    Lane& lane = lanes_.emplace_back();
    for (const Interval& at : timeline::normalise(std::move(impossible_))) {
      lane.push_back({.begin = at.begin, .end = at.end, .claim = Claim::impossible});
    }
  }

  [[nodiscard]] const std::vector<Lane>& all() const { return lanes_; }

 private:
  void add(std::uint32_t number, const timeline::Span& span, Nanoseconds wait) {
    const program::OutlineOp& op = outline_.ops[number];
    const std::size_t stream = is_folded_ ? 0 : op.stream;
    if (lanes_.size() <= stream) lanes_.resize(stream + 1U);
    std::vector<Nanoseconds>& ended = ended_[stream];
    Nanoseconds begin = span.start;
    if (!ended.empty()) begin = std::max(begin, ended.back());
    if (!is_folded_) {
      for (const program::Wait& awaited : outline_.waits_of(op)) {
        const auto& other = ended_[awaited.stream];
        const std::size_t count = std::min<std::size_t>(awaited.count, other.size());
        if (count > 0) begin = std::max(begin, other[count - 1]);
      }
    }
    if (span.start < begin) refuse(span.start, std::min(span.end, begin));
    if (span.end < span.start) refuse(span.end, span.start);
    ended.push_back(ended.empty() ? span.end : std::max(ended.back(), span.end));
    if (begin > span.end || (begin == span.end && begin > span.start)) return;
    Lane& lane = lanes_[stream];
    const Claim claim = claim_of(op.kind);
    // An op of length 0 is kept, so that the idle time before it counts as a gap.
    const bool is_empty = begin == span.end;
    if (claim == Claim::transfer) {
      const Nanoseconds arrival = std::clamp(span.start + wait, begin, span.end);
      const Claim waiting = program::between_stages(op) ? Claim::late : Claim::wait;
      if (begin < arrival) lane.push_back({begin, arrival, number, waiting});
      begin = arrival;
    }
    if (begin < span.end || is_empty) lane.push_back({begin, span.end, number, claim});
  }

  void refuse(Nanoseconds begin, Nanoseconds end) {
    if (begin < end) impossible_.push_back({.begin = begin, .end = end});
  }

  const program::Outline& outline_;
  bool is_folded_;
  std::vector<Lane> lanes_;
  /// ended_[stream][k] is the time at which the first k + 1 ops of the stream had all ended.
  std::array<std::vector<Nanoseconds>, program::max_streams> ended_;
  std::vector<Interval> impossible_;
};

/// Goes through all lanes together by time, from each begin or end of a segment to the next.
class Sweep {
 public:
  Sweep(const std::vector<Lane>& lanes, const timeline::StepTrace& trace,
        std::vector<OpShare>& shares)
      : lanes_(lanes), step_{trace.begin, trace.end}, shares_(shares), next_(lanes.size(), 0) {}

  RankStep run() {
    Nanoseconds now = step_.begin;
    for (const Lane& lane : lanes_) now = std::min(now, lane.front().begin);
    while (true) {
      const Moment moment = look(now);
      if (moment.until == never) break;
      account(moment, {.begin = now, .end = moment.until});
      now = moment.until;
    }
    if (now < step_.end) unexplained({.begin = std::max(now, step_.begin), .end = step_.end});
    result_.step = step_.end - step_.begin;
    return result_;
  }

 private:
  /// The segment to which the time until the next begin or end of any segment is attributed.
  struct Moment {
    const Segment* owner = nullptr;     ///< null if nothing runs
    const Segment* upcoming = nullptr;  ///< the segment that begins next
    Nanoseconds until = never;
  };

  Moment look(Nanoseconds now) {
    Moment moment;
    Nanoseconds soonest = never;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      std::size_t& at = next_[lane];
      while (at < lanes_[lane].size() && lanes_[lane][at].end <= now) ++at;
      if (at == lanes_[lane].size()) continue;
      const Segment& segment = lanes_[lane][at];
      if (segment.begin > now) {
        soonest = std::min(soonest, segment.begin);
        // Times that contradict each other do not show which op begins next.
        if (segment.claim == Claim::impossible) continue;
        if (moment.upcoming == nullptr || segment.begin < moment.upcoming->begin) {
          moment.upcoming = &segment;
        }
        continue;
      }
      moment.until = std::min(moment.until, segment.end);
      if (moment.owner == nullptr || segment.claim < moment.owner->claim) moment.owner = &segment;
    }
    moment.until = std::min(moment.until, soonest);
    return moment;
  }

  void account(const Moment& moment, const Interval& time) {
    const Nanoseconds length = time.end - time.begin;
    if (moment.owner == nullptr) return idle(moment.upcoming, time);
    const Segment& owner = *moment.owner;
    if (owner.claim == Claim::impossible) return unexplained(time);
    last_ = owner.op;
    shares_[owner.op].*(owner.claim < Claim::wait ? &OpShare::own : &OpShare::waiting) += length;
    total(owner.claim) += length;
    if (owner.claim < Claim::transfer) note_hidden(owner.claim, time);
    result_.unaccounted += outside(time);
  }

  /// Adds the communication, and for compute also the copies, that `owner` hides during `time`.
  void note_hidden(Claim owner, const Interval& time) {
    const Nanoseconds length = time.end - time.begin;
    bool any = false, any_transfer = false, any_copy = false;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (next_[lane] == lanes_[lane].size()) continue;
      const Segment& segment = lanes_[lane][next_[lane]];
      if (segment.begin > time.begin) continue;
      any_copy = any_copy || (owner == Claim::compute && segment.claim == Claim::copies);
      if (segment.claim < Claim::transfer) continue;
      shares_[segment.op].hidden += length;
      any = true;
      if (segment.claim != Claim::transfer) continue;
      shares_[segment.op].hidden_transfer += length;
      any_transfer = true;
    }
    if (any) result_.hidden += length;
    if (any_transfer) result_.hidden_transfer += length;
    if (any_copy) result_.hidden_copies += length;
  }

  void idle(const Segment* upcoming, const Interval& time) {
    if (upcoming == nullptr) return unexplained(time);
    const Nanoseconds inside = time.end - time.begin - outside(time);
    result_.gap += inside;
    shares_[upcoming->op].gap += inside;
  }

  void unexplained(const Interval& time) {
    const Nanoseconds inside = time.end - time.begin - outside(time);
    result_.unaccounted += inside;
    if (inside > result_.largest.length) {
      result_.largest = {.begin = time.begin, .length = inside, .after = last_};
    }
  }

  [[nodiscard]] Nanoseconds outside(const Interval& time) const {
    const Nanoseconds begin = std::max(time.begin, step_.begin);
    const Nanoseconds end = std::min(time.end, step_.end);
    return time.end - time.begin - std::max(Nanoseconds{0}, end - begin);
  }

  Nanoseconds& total(Claim claim) {
    constexpr std::array totals{&RankStep::compute, &RankStep::copies, &RankStep::transfer,
                                &RankStep::wait, &RankStep::late};
    return result_.*totals[static_cast<std::size_t>(claim) - 1];
  }

  const std::vector<Lane>& lanes_;
  Interval step_;
  std::vector<OpShare>& shares_;
  std::vector<std::size_t> next_;  ///< by lane: index of the segment that runs or begins next
  std::uint32_t last_ = 0;
  RankStep result_;
};

/// Returns the times of a communication op by category, for the sums of PlaceSums.
Breakdown communication_parts(const program::OutlineOp& op, const OpShare& share,
                              double bubble_share) {
  Breakdown result;
  result.gap = seconds(share.gap);
  result.transfer = seconds(share.own);
  result.wait = seconds(share.waiting);
  result.hidden_communication = seconds(share.hidden);
  result.hidden_transfer = seconds(share.hidden_transfer);
  if (program::between_stages(op)) {
    result.bubble = result.wait * bubble_share;
    result.wait -= result.bubble;
  }
  result.step = result.transfer + result.wait + result.bubble + result.gap;
  return result;
}

bool has_time(const Breakdown& parts) { return parts.step > 0 || parts.hidden_communication > 0; }

}  // namespace

RankStep split(const program::Outline& outline, const timeline::StepTrace& trace,
               std::span<const Nanoseconds> waits, bool is_folded, std::vector<OpShare>& shares) {
  shares.assign(outline.ops.size(), {});
  const Lanes lanes{outline, trace, waits, is_folded};
  return Sweep{lanes.all(), trace, shares}.run();
}

Layers::Layers(const program::OutlineSet& set) {
  std::map<int, std::uint32_t> slot_of;
  for (const program::Outline& outline : set.outlines) {
    auto& slots = slots_.emplace_back();
    slots.reserve(outline.ops.size());
    for (const program::OutlineOp& op : outline.ops) {
      const auto [place, added] =
          slot_of.try_emplace(op.place.layer, static_cast<std::uint32_t>(names_.size()));
      if (added) names_.push_back(op.place.layer);
      slots.push_back(place->second);
    }
  }
}

PlaceSums::PlaceSums(const Layers& layers)
    : layer_names_(&layers.names()), layers_(layers.names().size()) {}

void PlaceSums::add(const program::Outline& outline, std::span<const std::uint32_t> layer_slots,
                    std::span<const OpShare> shares, double bubble_share) {
  for (std::size_t op = 0; op < shares.size(); ++op) {
    const program::OutlineOp& at = outline.ops[op];
    Breakdown& phase = phases_[static_cast<std::size_t>(at.place.phase)];
    Breakdown& layer = layers_[layer_slots[op]];
    if (program::communicates(at.kind)) {
      const Breakdown parts = communication_parts(at, shares[op], bubble_share);
      for (Breakdown* const sum : {&phase, &layer, &axes_[at.axes.bits() % axes_count]}) {
        *sum += parts;
      }
      continue;
    }
    // Most ops do not communicate. For speed, only the categories that they can have are added.
    const auto busy = program::computes(at.kind) ? &Breakdown::compute : &Breakdown::copies;
    const double own = seconds(shares[op].own), gap = seconds(shares[op].gap);
    for (Breakdown* const sum : {&phase, &layer}) {
      sum->*busy += own;
      sum->gap += gap;
      sum->step += own + gap;
    }
  }
}

void PlaceSums::add(const PlaceSums& more) {
  for (std::size_t i = 0; i < phases_.size(); ++i) phases_[i] += more.phases_[i];
  for (std::size_t i = 0; i < axes_.size(); ++i) axes_[i] += more.axes_[i];
  for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i] += more.layers_[i];
}

void PlaceSums::write(double count, const mesh::Shape& mesh, BreakdownResult& result) const {
  const auto put = [count](auto& map, auto key, Breakdown parts) {
    if (!has_time(parts)) return;
    parts *= 1 / count;
    map[key] += parts;
  };
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    put(result.by_phase, static_cast<program::Phase>(i), phases_[i]);
  }
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto axes = mesh::AxisSet::from_bits(static_cast<std::uint8_t>(i));
    put(result.by_axes, mesh::varying(mesh, axes), axes_[i]);
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    put(result.by_layer, (*layer_names_)[i], layers_[i]);
  }
}

}  // namespace isoscale::analysis::breakdown
