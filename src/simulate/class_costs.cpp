// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "simulate/at.hpp"
#include "simulate/classes.hpp"
#include "simulate/op_time.hpp"

namespace isoscale::simulate {
namespace {

/// How one rank communicates: the distinct groups and messages of its program.
struct Ways {
  std::set<mesh::AxisSet> groups;
  std::set<std::pair<mesh::Axis, int>> messages;  ///< sent, by offset
};

Ways ways_of(const program::OutlineSet& set) {
  Ways ways;
  for (const program::Outline& outline : set.outlines) {
    for (const program::OutlineOp& op : outline.ops) {
      if (program::communicates(op.kind) && op.kind != program::OpKind::exchange) {
        ways.groups.insert(op.axes);
      }
    }
    for (const program::OutlineTransfer& transfer : outline.transfers) {
      ways.messages.insert({transfer.axis, transfer.offset});
      ways.messages.insert({transfer.axis, -transfer.offset});
    }
  }
  return ways;
}

/// Gives equal places equal numbers, and joins them to the numbers that ranks have so far.
class PlaceNumbers {
 public:
  explicit PlaceNumbers(std::size_t ranks) : number_(ranks) {}

  void join(const std::vector<GroupPlace>& places) {
    std::vector<GroupPlace> distinct;
    std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> joined;
    for (std::size_t rank = 0; rank < number_.size(); ++rank) {
      std::size_t place = 0;
      while (place < distinct.size() && !(distinct[place] == places[rank])) ++place;
      if (place == distinct.size()) distinct.push_back(places[rank]);
      const auto next = static_cast<std::uint32_t>(joined.size());
      number_[rank] = joined.try_emplace({number_[rank], place}, next).first->second;
    }
  }
  [[nodiscard]] const std::vector<std::uint32_t>& numbers() const { return number_; }

 private:
  std::vector<std::uint32_t> number_;
};

/// Per rank of the mesh a number; ranks with the same one see the network alike.
std::vector<std::uint32_t> place_numbers(const program::OutlineSet& set, const mesh::Shape& shape,
                                         const Layout& layout) {
  PlaceNumbers numbers{at(shape.size())};
  const Ways ways = ways_of(set);
  for (const mesh::AxisSet axes : ways.groups) numbers.join(places_of(shape, layout, axes));
  for (const auto& [axis, offset] : ways.messages) {
    numbers.join(places_of_messages(shape, layout, axis, offset));
  }
  return numbers.numbers();
}

}  // namespace

Costs class_costs(const Classes& classes, const program::ProgramSet& set, program::Section section,
                  const Machine& machine, const Layout& layout) {
  const std::vector<std::uint32_t> places = place_numbers(classes.outline, set.mesh, layout);
  // Of each class, a rank for each of the ways that its ranks lie on the nodes.
  std::vector<std::map<std::uint32_t, int>> standing_for(classes.rank.size());
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    standing_for[classes.class_of_rank[at(rank)]].try_emplace(places[at(rank)], rank);
  }
  Costs costs;
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t> table_of;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<units::Nanoseconds>> times;
  for (std::size_t c = 0; c < classes.rank.size(); ++c) {
    const std::uint32_t program = classes.program[c];
    std::pair<std::uint32_t, std::vector<std::uint32_t>> key{program, {}};
    for (const auto& [place, rank] : standing_for[c]) key.second.push_back(place);
    const auto next = static_cast<std::uint32_t>(costs.tables.size());
    const auto [entry, is_new] = table_of.try_emplace(std::move(key), next);
    costs.table_of_rank.push_back(entry->second);
    if (!is_new) continue;
    std::vector<units::Nanoseconds>& table = costs.tables.emplace_back();
    for (const auto& [place, rank] : standing_for[c]) {
      auto [found, unknown] = times.try_emplace({program, place});
      if (unknown) {
        found->second = op_times(machine, set.programs[program], section, set.mesh, layout, rank);
      }
      table.resize(found->second.size());
      for (std::size_t op = 0; op < table.size(); ++op) {
        table[op] = std::max(table[op], found->second[op]);
      }
    }
  }
  return costs;
}

}  // namespace isoscale::simulate
