// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "program/program.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "simulate/op_time.hpp"
#include "simulate/simulate.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::simulate {
namespace {

/// Returns the new number of each coordinate of `axis` after equivalent ones are merged (see
/// reduced()). The coordinates that remain get the numbers 0, 1, ... in ascending order; the others
/// get the number of the coordinate that they are merged into.
std::vector<int> merged_numbers(const std::vector<std::uint64_t>& kind, const ReducedMesh& reduced,
                                mesh::Axis axis) {
  const mesh::Shape& shape = reduced.mesh;
  // columns[c] has the kinds of the ranks at coordinate c, in the order of their other coordinates.
  std::vector<std::vector<std::uint64_t>> columns(at(shape[axis]));
  for (int rank = 0; rank < shape.size(); ++rank) {
    columns[at(mesh::coordinates(shape, rank)[axis])].push_back(kind[at(reduced.rank[at(rank)])]);
  }
  std::map<std::vector<std::uint64_t>, int> known;
  std::vector<int> numbers;
  for (std::vector<std::uint64_t>& column : columns) {
    const int next = static_cast<int>(known.size());
    numbers.push_back(known.try_emplace(std::move(column), next).first->second);
  }
  return numbers;
}

/// Returns a number for each of the mesh's `ranks` ranks. Ranks have the same number if all of
/// their groups and messages are placed on the nodes in the same way (see GroupPlace).
std::vector<std::uint32_t> place_numbers(const program::OutlineSet& set, int ranks,
                                         Places& places) {
  std::set<const std::vector<GroupPlace>*> lists;
  for (const program::Outline& outline : set.outlines) {
    for (const program::OutlineOp& op : outline.ops) {
      if (program::communicates(op.kind) && op.kind != program::OpKind::exchange) {
        lists.insert(&places.of_groups(op.axes));
      }
    }
    for (const program::OutlineTransfer& transfer : outline.transfers) {
      lists.insert(&places.of_messages(transfer.axis, transfer.offset));
      lists.insert(&places.of_messages(transfer.axis, -transfer.offset));
    }
  }
  std::map<std::vector<GroupPlace>, std::uint32_t> known;
  std::vector<std::uint32_t> numbers;
  std::vector<GroupPlace> mine;
  for (int rank = 0; rank < ranks; ++rank) {
    mine.clear();
    for (const std::vector<GroupPlace>* const list : lists) mine.push_back((*list)[at(rank)]);
    const auto next = static_cast<std::uint32_t>(known.size());
    numbers.push_back(known.try_emplace(mine, next).first->second);
  }
  return numbers;
}

using timeline::Interval;
using units::Nanoseconds;

constexpr int most_rounds = 12;
/// play_classes() corrects op times for overlap in rounds. It stops when a round changes the step
/// time by less than this share.
constexpr double small_change = 1e-4;

timeline::Timeline step_of(const program::OutlineSet& set, const Costs& costs,
                           const CoarseSteady& steady) {
  std::vector<Nanoseconds> begin;
  for (const Interval& rank : steady.step) begin.push_back(rank.begin);
  return std::move(simulate(set, costs, {.begin = std::move(begin)}).front());
}

/// Returns a table of op times for each class: `costs`, lengthened where an op overlapped with ops
/// of the other kind (compute or communication) in `timeline`. This timeline was simulated with the
/// op times `played`. While the other kind runs, an op progresses at 1/f of its speed, where f is
/// its factor in `overlap`. An op that takes b seconds alone then takes t = b / (1 - s (1 - 1/f)),
/// where s is the share of t in which the other kind runs.
Costs stretched(const program::OutlineSet& set, const Costs& costs, const Costs& played,
                const timeline::Timeline& timeline, const Overlap& overlap) {
  Costs result;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const program::Outline& outline = set.of(static_cast<int>(rank));
    const timeline::StepTrace& trace = timeline.ranks[rank];
    const std::vector<Nanoseconds>& took = played.tables[played.table_of_rank[rank]];
    std::vector<Interval> computing, moving;
    for (const timeline::Span& span : trace.spans) {
      const program::OpKind kind = outline.ops[span.op].kind;
      if (program::computes(kind)) computing.push_back({span.start, span.end});
      // A rank moves no data before its last partner has arrived.
      if (program::communicates(kind)) moving.push_back({span.end - took[span.op], span.end});
    }
    computing = timeline::normalise(std::move(computing));
    moving = timeline::normalise(std::move(moving));
    std::vector<Nanoseconds> table = costs.tables[costs.table_of_rank[rank]];
    for (const timeline::Span& span : trace.spans) {
      const program::OpKind kind = outline.ops[span.op].kind;
      const bool communicates = program::communicates(kind);
      if (!communicates && !program::computes(kind)) continue;
      const Interval mine{communicates ? span.end - took[span.op] : span.start, span.end};
      const double factor = communicates ? overlap.communication : overlap.compute;
      const Nanoseconds beside = timeline::covered(communicates ? computing : moving, mine);
      if (mine.end <= mine.begin) continue;
      const double share = beside / (mine.end - mine.begin);
      table[span.op] = Nanoseconds{std::llround(static_cast<double>(table[span.op].value()) /
                                                (1 - share * (1 - 1 / factor)))};
    }
    result.table_of_rank.push_back(static_cast<std::uint32_t>(result.tables.size()));
    result.tables.push_back(std::move(table));
  }
  return result;
}

/// Replaces `costs` by the mean of `costs` and `before`. Without this, the rounds might alternate
/// between two solutions.
void move_halfway(Costs& costs, const Costs& before) {
  for (std::size_t rank = 0; rank < costs.tables.size(); ++rank) {
    const std::vector<Nanoseconds>& old = before.tables[before.table_of_rank[rank]];
    for (std::size_t op = 0; op < old.size(); ++op) {
      costs.tables[rank][op] = (costs.tables[rank][op] + old[op]) / 2;
    }
  }
}

}  // namespace

mesh::AxisSet axes_of_messages(const program::OutlineSet& set) {
  mesh::AxisSet axes;
  for (const program::Outline& outline : set.outlines) {
    for (const program::OutlineTransfer& transfer : outline.transfers) {
      axes |= transfer.axis;
    }
  }
  return axes;
}

ReducedMesh reduced(const mesh::Shape& shape, const std::vector<std::uint64_t>& kind,
                    const std::function<bool(mesh::Axis, int kept)>& may_merge) {
  ReducedMesh result{.mesh = shape, .rank = {}, .place = {}};
  for (int rank = 0; rank < shape.size(); ++rank) {
    result.rank.push_back(rank);
    result.place.push_back(static_cast<std::uint32_t>(rank));
  }
  for (const mesh::Axis axis : mesh::all_axes) {
    const mesh::Shape before = result.mesh;
    if (before[axis] == 1) continue;
    const std::vector<int> number = merged_numbers(kind, result, axis);
    const int extent = 1 + *std::max_element(number.begin(), number.end());
    if (extent == before[axis] || !may_merge(axis, extent)) continue;
    result.mesh[axis] = extent;
    std::vector<std::uint32_t> place(at(before.size()));
    std::vector<int> rank_kept(at(result.mesh.size()), -1);
    for (int rank = 0; rank < before.size(); ++rank) {
      mesh::Coordinates merged = mesh::coordinates(before, rank);
      merged[axis] = number[at(merged[axis])];
      const int to = mesh::rank_at(result.mesh, merged);
      place[at(rank)] = static_cast<std::uint32_t>(to);
      if (rank_kept[at(to)] < 0) rank_kept[at(to)] = result.rank[at(rank)];
    }
    for (std::uint32_t& of : result.place) of = place[of];
    result.rank = std::move(rank_kept);
  }
  return result;
}

Classes classes_of(const program::ProgramSet& set) {
  program::OutlineSet outline = program::outline(set, program::Section::step);
  const mesh::AxisSet messages = axes_of_messages(outline);
  ReducedMesh mesh =
      reduced(set.mesh, {set.program_of_rank.begin(), set.program_of_rank.end()},
              [&](mesh::Axis axis, int kept) { return kept == 1 || !messages.contains(axis); });
  Classes classes{.outline = std::move(outline),
                  .rank = std::move(mesh.rank),
                  .class_of_rank = std::move(mesh.place)};
  classes.outline.mesh = mesh.mesh;
  classes.outline.outline_of_rank.clear();
  for (const int rank : classes.rank) {
    classes.outline.outline_of_rank.push_back(set.program_of_rank[at(rank)]);
  }
  return classes;
}

Costs class_costs(const Classes& classes, const program::ProgramSet& set, const Machine& machine,
                  const Layout& layout) {
  Places places{set.mesh, layout};
  const std::vector<std::uint32_t> numbers =
      place_numbers(classes.outline, set.mesh.size(), places);
  // For each class, maps a number from place_numbers() to the first rank of the class that has it.
  // Op times are computed for this rank only, since they are the same for all ranks of the class
  // with this number.
  std::vector<std::map<std::uint32_t, int>> standing_for(classes.rank.size());
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    standing_for[classes.class_of_rank[at(rank)]].try_emplace(numbers[at(rank)], rank);
  }
  Costs costs;
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t> table_of;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<units::Nanoseconds>> times;
  for (std::size_t c = 0; c < classes.rank.size(); ++c) {
    const std::uint32_t program = classes.outline.outline_of_rank[c];
    std::pair<std::uint32_t, std::vector<std::uint32_t>> key{program, {}};
    for (const auto& [place, rank] : standing_for[c]) key.second.push_back(place);
    const auto next = static_cast<std::uint32_t>(costs.tables.size());
    const auto [entry, is_new] = table_of.try_emplace(std::move(key), next);
    costs.table_of_rank.push_back(entry->second);
    if (!is_new) continue;
    std::vector<units::Nanoseconds>& table = costs.tables.emplace_back();
    for (const auto& [place, rank] : standing_for[c]) {
      auto [found, unknown] = times.try_emplace({program, place});
      if (unknown) found->second = op_times(machine, set.programs[program], places, rank);
      table.resize(found->second.size());
      for (std::size_t op = 0; op < table.size(); ++op) {
        table[op] = std::max(table[op], found->second[op]);
      }
    }
  }
  return costs;
}

ClassStep play_classes(const Classes& classes, const Costs& costs, const Overlap& overlap,
                       Record record) {
  const program::OutlineSet& set = classes.outline;
  ClassStep step{.costs = costs};
  const Coarsener coarse{set.mesh, set.outlines};
  const auto settled = [&](const Costs& times) {
    return settle(coarse.set(set.mesh, set.outline_of_rank, times));
  };
  CoarseSteady steady = settled(costs);
  if (overlap.compute != 1 || overlap.communication != 1) {
    for (int round = 0; round < most_rounds; ++round) {
      const timeline::Timeline timeline = step_of(set, step.costs, steady);
      Costs next = stretched(set, costs, step.costs, timeline, overlap);
      if (round > 1) move_halfway(next, step.costs);
      step.costs = std::move(next);
      const double before = steady.period;
      steady = settled(step.costs);
      const double change = before > 0 ? std::abs(steady.period - before) / before : 0;
      if (change < small_change) break;
    }
  }
  step.seconds = steady.period * 1e-9;
  if (record == Record::spans) step.timeline = step_of(set, step.costs, steady);
  return step;
}

}  // namespace isoscale::simulate
