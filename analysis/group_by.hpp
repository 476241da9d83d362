// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

/// Sorts the items of lists into groups. Groups have pointers to items; the lists own the items.
namespace isoscale::analysis {

/// Returns pointers to the items of a list.
template <class Items>
[[nodiscard]] auto pointers_to(const Items& items) {
  std::vector<const std::ranges::range_value_t<Items>*> pointers;
  for (const auto& item : items) pointers.push_back(&item);
  return pointers;
}

/// Returns pairs of a key and the items that have this key. The groups, and the items in each
/// group, are in the order of their first occurrence in `items`.
template <class Item, class KeyOf>
[[nodiscard]] auto grouped(const std::vector<const Item*>& items, const KeyOf& key_of) {
  using Key = std::decay_t<std::invoke_result_t<KeyOf, const Item&>>;
  std::vector<std::pair<Key, std::vector<const Item*>>> groups;
  for (const Item* const item : items) {
    Key key = std::invoke(key_of, *item);
    auto group = std::ranges::find(groups, key, [](const auto& at) { return at.first; });
    if (group == groups.end()) group = groups.insert(group, {std::move(key), {}});
    group->second.push_back(item);
  }
  return groups;
}

}  // namespace isoscale::analysis
