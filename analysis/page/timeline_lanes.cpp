// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"
#include "analysis/page/timeline_spans.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::page {
namespace {

using Json = nlohmann::ordered_json;
using timeline::Interval;
using units::Nanoseconds;

/// The width of a wide timeline in pixels. Times shorter than a pixel are not visible.
constexpr std::int64_t pixels = 2000;

/// The lane of one rank.
struct Lane {
  int rank = 0;
  Nanoseconds zero;  ///< the time that is drawn as 0 on the time axis
  std::vector<LaneSpan> spans{};
  LaneUse use{};  ///< the totals include spans that are left out later
};

/// The lanes of a step. Lanes of ranks whose clocks are aligned have a common time axis.
struct LaneSet {
  Nanoseconds length;
  std::vector<Lane> lanes;
  std::size_t spans_left_out = 0;
};

/// Makes the lanes of a step; a rank whose clock is not aligned has a time axis of its own, from 0.
LaneSet lanes_of(const results::PointData& point, const LaneStep& step,
                 const std::vector<int>& ranks) {
  std::vector<Nanoseconds> begins;
  for (const int rank : ranks) {
    if (breakdown::aligned(point, rank))
      begins.push_back(step.of[static_cast<std::size_t>(rank)]->begin);
  }
  std::ranges::sort(begins);
  // A rank that begins over two step lengths from the median rank gets its own time axis, too.
  const auto is_near = [&](Nanoseconds begin) {
    const Nanoseconds off = begin - begins[begins.size() / 2];
    return off <= step.length * 2 && off >= step.length * -2;
  };
  std::erase_if(begins, [&](Nanoseconds begin) { return !is_near(begin); });
  LaneSet set;
  for (const int rank : ranks) {
    const timeline::StepTrace& trace = *step.of[static_cast<std::size_t>(rank)];
    const bool fits = breakdown::aligned(point, rank) && !begins.empty() && is_near(trace.begin);
    Lane& lane =
        set.lanes.emplace_back(Lane{.rank = rank, .zero = fits ? begins.front() : trace.begin});
    set.length = std::max(set.length, trace.end - lane.zero);
  }
  for (Lane& lane : set.lanes) {
    const timeline::StepTrace& trace = *step.of[static_cast<std::size_t>(lane.rank)];
    lane.spans = spans_of(point.outline.of(lane.rank), trace,
                          {.begin = lane.zero, .end = lane.zero + set.length});
    lane.use = use_of(lane.spans, {.begin = trace.begin, .end = trace.end});
  }
  return set;
}

/// True if a rank represents a stage of a pipeline: its other mesh coordinates are 0.
bool represents_stage(const mesh::Shape& shape, int rank) {
  return shape.pp > 1 && mesh::rank_at(shape, {.pp = mesh::coordinates(shape, rank).pp}) == rank;
}

std::size_t count_spans(const std::vector<Lane>& lanes) {
  std::size_t count = 0;
  for (const Lane& lane : lanes) count += lane.spans.size();
  return count;
}

/// Divides the step into about `stretches` equal parts, and keeps for each stream and part only the
/// longest of the items that begin in it.
template <class Item>
void sample(std::vector<Item>& items, const Interval& step, std::size_t stretches) {
  const auto length = [](const Item& item) { return item.end - item.start; };
  // In a damaged file, a step may have length 0, or a lane so many streams that `stretches` is 0.
  const auto parts = static_cast<std::int64_t>(std::max<std::size_t>(1, stretches));
  const std::int64_t of_part = std::max<std::int64_t>(1, (step.end - step.begin).value() / parts);
  const auto part = [&](const Item& item) { return (item.start - step.begin).value() / of_part; };
  std::vector<Item> kept;
  for (const Item& item : items) {
    if (kept.empty() || kept.back().stream != item.stream || part(kept.back()) != part(item)) {
      kept.push_back(item);
    } else if (length(item) > length(kept.back())) {
      kept.back() = item;
    }
  }
  items = std::move(kept);
}

/// Merges neighbours of the same kind that are too close to be seen apart. If more than `most`
/// spans remain, it merges neighbours of any kind at increasing distances, and then keeps a sample.
/// Idle times below a pixel are removed, and the others sampled if they are many.
void thin_out(LaneSet& set, std::size_t most) {
  const Nanoseconds pixel = set.length / pixels;
  const auto merge = [&](Alike alike, Nanoseconds tolerance, Nanoseconds enough) {
    for (Lane& lane : set.lanes) lane.spans = merged(lane.spans, alike, tolerance, enough);
  };
  merge(Alike::same_kind, pixel, set.length);
  // The widest merged span of several kinds of ops, in pixels; longer ones would hide too much.
  constexpr std::int64_t widest = 64;
  for (std::int64_t width = 1; width <= widest && count_spans(set.lanes) > most; width *= 2) {
    merge(Alike::any_kind, pixel * width, pixel * width);
  }
  const std::size_t before = count_spans(set.lanes);
  const std::size_t each = std::max<std::size_t>(2, most / set.lanes.size());
  for (Lane& lane : set.lanes) {
    const Interval step{.begin = lane.zero, .end = lane.zero + set.length};
    std::set<int> streams;
    for (const LaneSpan& span : lane.spans) streams.insert(span.stream);
    if (before > most && !streams.empty()) sample(lane.spans, step, each / streams.size());
    std::erase_if(lane.use.idle, [&](const LaneIdle& at) { return at.end - at.start < pixel; });
    if (lane.use.idle.size() > each / 2) sample(lane.use.idle, step, each / 2);
  }
  set.spans_left_out = before - count_spans(set.lanes);
}

/// Returns the index of `name` in the list `names`; a name that is not in it is added at the end.
std::ptrdiff_t place_in(Json& names, std::string_view name) {
  const std::ptrdiff_t place = std::ranges::find(names, Json(name)) - names.begin();
  if (place == std::ssize(names)) names.push_back(name);
  return place;
}

std::string_view name_of(std::uint8_t op) {
  constexpr std::array<std::string_view, 4> of_several{"compute", "copies", "communication",
                                                       "mixed"};  // in the order of LaneOp
  return op < program::op_kind_count ? program::name(static_cast<program::OpKind>(op))
                                     : of_several[op - program::op_kind_count];
}

Json lane_json(std::span<const results::RankFacts> facts, const results::PointData& point,
               int rank) {
  const mesh::Coordinates at = mesh::coordinates(point.mesh, rank);
  const bool represents = represents_stage(point.mesh, rank);
  const program::Outline& outline = point.outline.of(rank);
  std::size_t streams = 0;
  for (const program::OutlineOp& op : outline.ops) {
    streams = std::max<std::size_t>(streams, op.stream + 1U);
  }
  Json names = Json::array();
  for (std::size_t i = 0; i < streams; ++i) {
    names.push_back(i < outline.streams.size() ? outline.streams[i] : fmt::format("stream {}", i));
  }
  const int world = world_rank(point, rank);
  return {{"rank", rank},
          {"world_rank", world},
          {"host", host_of(facts, point, rank)},
          {"label", represents ? fmt::format("stage {}", at.pp) : fmt::format("rank {}", world)},
          {"coordinates", {{"dp", at.dp}, {"tp", at.tp}, {"pp", at.pp}}},
          {"streams", names}};
}

/// Returns an object with an empty array for each name, to be filled as columns.
Json columns(std::initializer_list<const char*> names) {
  Json object = Json::object();
  for (const char* const name : names) object[name] = Json::array();
  return object;
}

void add_spans(const LaneSet& set, Json& timeline) {
  Json ops = Json::array(), phases = Json::array();
  Json spans = columns({"lane", "stream", "op", "phase", "layer", "microbatch", "start", "length"});
  std::size_t merged = 0;
  for (std::size_t lane = 0; lane < set.lanes.size(); ++lane) {
    for (const LaneSpan& span : set.lanes[lane].spans) {
      spans["lane"].push_back(lane);
      spans["stream"].push_back(span.stream);
      spans["op"].push_back(place_in(ops, name_of(span.op)));
      spans["phase"].push_back(place_in(phases, program::name(span.place.phase)));
      spans["layer"].push_back(span.place.layer);
      spans["microbatch"].push_back(span.place.microbatch);
      spans["start"].push_back((span.start - set.lanes[lane].zero).value());
      spans["length"].push_back((span.end - span.start).value());
      merged += span.merged - 1;
    }
  }
  timeline["ops"] = std::move(ops);
  timeline["phases"] = std::move(phases);
  timeline["spans"] = std::move(spans);
  timeline["merged"] = merged;
  timeline["spans_left_out"] = set.spans_left_out;
}

Json totals_json(const LaneSet& set) {
  Json totals = Json::object();
  for (const Lane& lane : set.lanes) {
    totals["step"].push_back(lane.use.step.value());
    totals["exposed"].push_back(lane.use.exposed.value());
    totals["gap"].push_back(lane.use.gap.value());
  }
  return totals;
}

/// Returns mean times over the ranks that have lanes and all analysed traced steps; null if none of
/// these ranks has a breakdown.
Json breakdown_json(const LaneSet& set, const breakdown::BreakdownResult& of) {
  breakdown::Breakdown sum;
  int count = 0;
  for (const Lane& lane : set.lanes) {
    const auto at = std::ranges::find(of.ranks, lane.rank);
    if (at == of.ranks.end()) continue;
    sum += of.of_rank[static_cast<std::size_t>(at - of.ranks.begin())];
    ++count;
  }
  if (count == 0) return nullptr;
  sum *= 1.0 / count;
  return {{"steps", of.steps},
          {"step", drawn(sum.step, 9)},
          {"transfer", drawn(sum.transfer, 9)},
          {"wait", drawn(sum.wait, 9)},
          {"bubble", drawn(sum.bubble, 9)},
          {"wait_known", of.wait_known},
          {"bubble_known", of.bubble_known}};
}

Json idle_json(const LaneSet& set) {
  Json idle = columns({"lane", "start", "length", "kind"});
  for (std::size_t lane = 0; lane < set.lanes.size(); ++lane) {
    for (const LaneIdle& at : set.lanes[lane].use.idle) {
      idle["lane"].push_back(lane);
      idle["start"].push_back((at.start - set.lanes[lane].zero).value());
      idle["length"].push_back((at.end - at.start).value());
      idle["kind"].push_back(static_cast<int>(at.kind));
    }
  }
  return idle;
}

}  // namespace

Json lanes(std::span<const results::RankFacts> facts, const PointReport& point,
           const DetailLimits& limits) {
  const results::PointData& data = *point.data;
  const std::optional<LaneStep> step = typical_traced_step(data);
  if (!step) return {};
  LaneSet set = lanes_of(data, *step, lane_ranks(point, *step, limits));
  thin_out(set, limits.spans);
  std::ranges::stable_sort(set.lanes, {}, [&](const Lane& lane) {
    return std::pair{!represents_stage(data.mesh, lane.rank), lane.rank};
  });
  Json timeline{{"step", step->step},
                {"length", drawn(units::to_seconds(set.length).value(), 9)},
                {"step_time", drawn(units::to_seconds(step->length).value(), 9)}};
  Json of_lanes = Json::array();
  for (const Lane& lane : set.lanes) of_lanes.push_back(lane_json(facts, data, lane.rank));
  timeline["lanes"] = std::move(of_lanes);
  add_spans(set, timeline);
  timeline["idle"] = idle_json(set);
  timeline["totals"] = totals_json(set);
  timeline["breakdown"] = breakdown_json(set, point.breakdown);
  timeline["left_out"] = step->traced - set.lanes.size();
  return timeline;
}

}  // namespace isoscale::analysis::page
