// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace isoscale::system {

std::optional<std::string> setting(const CheckedRank& rank, const std::string& name) {
  const auto found = rank.environment.find(name);
  return found == rank.environment.end() ? std::nullopt : std::optional{found->second};
}

bool is_switched_on(const CheckedRank& rank, const std::string& name) {
  const std::optional<std::string> value = setting(rank, name);
  if (!value || value->empty()) return false;
  return std::ranges::all_of(*value, [](char c) { return c >= '0' && c <= '9'; }) &&
         value->find_first_not_of('0') != std::string::npos;
}

std::vector<std::string> parts_of_list(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view part = list.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

bool has_several_nodes(const JobFacts& job) {
  return std::ranges::any_of(
      job.ranks, [&](const CheckedRank& rank) { return rank.node != job.ranks.front().node; });
}

void find_bad_settings(Findings& findings, const JobFacts& job,
                       const std::vector<BadSetting>& settings) {
  if (!job.ranks.empty()) findings.know();
  for (const BadSetting& bad : settings) {
    const auto judge = [&](const CheckedRank& rank, const CheckedNode* node) -> std::string {
      const std::optional<std::string> value = setting(rank, bad.variable);
      if (!value || !bad.hurts(rank, node)) return {};
      return fmt::format("{}={}", bad.variable, base::printable(*value));
    };
    for_ranks(job, judge, [&](Place place, const std::string& text) {
      findings.warn(std::move(place), {.what = text, .cost = bad.cost, .fix = bad.fix});
    });
  }
}

std::string settings_of_first(const JobFacts& job, const std::vector<std::string>& variables) {
  std::string text;
  if (job.ranks.empty()) return text;
  for (const std::string& variable : variables) {
    const std::optional<std::string> value = setting(job.ranks.front(), variable);
    if (!value) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", variable, base::printable(*value));
  }
  return text;
}

}  // namespace isoscale::system
