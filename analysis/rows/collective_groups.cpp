// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/render/text_escape.hpp"
#include "analysis/rows/bench_tables.hpp"

namespace isoscale::analysis {
namespace {

auto names(const CollectiveGroup& group) {
  return std::tie(group.op, group.axis, group.groups, group.implementation, group.algorithm,
                  group.protocol, group.registration, group.members);
}

CollectiveGroup group_of(const results::RowData& row) {
  const auto text = [&](const char* key) { return text_of(row, key); };
  return {.op = text("op"),
          .axis = text("axis"),
          .groups = text("groups"),
          .implementation = text("implementation"),
          .algorithm = text("algorithm"),
          .protocol = text("protocol"),
          .registration = text("registration"),
          .members = number_of(row, "members").value_or(0),
          .sizes = {}};
}

/// What the two rows of a size have in common.
auto size_key(const RowReport& row) {
  const auto number = [&](const char* key) { return number_of(*row.data, key).value_or(-1); };
  return std::tuple{number("bytes"), number("count"), number("root"), text_of(*row.data, "dtype"),
                    text_of(*row.data, "reduction")};
}

const RowReport*& place_of(PlacePair& pair, const RowReport& row) {
  return text_of(*row.data, "in_place") == "yes" ? pair.in_place : pair.out_of_place;
}

}  // namespace

std::vector<CollectiveGroup> collective_groups(const BenchReport& bench) {
  std::vector<CollectiveGroup> groups;
  // Where the next row of a size goes: each table has hundreds of them, and there are many tables.
  std::map<std::pair<std::size_t, decltype(size_key(bench.rows.front()))>, std::size_t> open;
  for (const RowReport& row : bench.rows) {
    if (!is_collective(text_of(*row.data, "op"))) continue;
    CollectiveGroup wanted = group_of(*row.data);
    auto place = std::ranges::find_if(
        groups, [&](const CollectiveGroup& at) { return names(at) == names(wanted); });
    if (place == groups.end()) place = groups.insert(groups.end(), std::move(wanted));
    const std::pair key{static_cast<std::size_t>(place - groups.begin()), size_key(row)};
    const auto known = open.find(key);
    if (known != open.end() && place_of(place->sizes[known->second], row) == nullptr) {
      place_of(place->sizes[known->second], row) = &row;
    } else {
      open[key] = place->sizes.size();
      place_of(place->sizes.emplace_back(), row) = &row;
    }
  }
  return groups;
}

std::string group_title(const CollectiveGroup& group) {
  std::string text = escape(group.op);
  if (group.members > 0) text += fmt::format(" among {:.0f}", group.members);
  if (!group.axis.empty()) text += " on " + escape(group.axis);
  if (group.groups == "one") text += ", one group alone";
  if (group.groups == "all" && group.axis != "world") text += ", all groups at once";
  for (const std::string* const name : {&group.implementation, &group.algorithm, &group.protocol}) {
    if (!name->empty()) text += ", " + escape(*name);
  }
  if (!group.registration.empty()) text += ", registration " + escape(group.registration);
  return text;
}

}  // namespace isoscale::analysis
