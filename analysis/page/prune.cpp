// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/render/text.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::page {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_places = 512, most_kinds = 32, most_hosts = 8;  ///< limits for one page

/// Returns the keys of those facts in `part` ("text" or "number") that are specific to a rank (see
/// kinds_of_ranks()).
std::set<std::string> own_keys(const Json& ranks, const char* part) {
  std::set<std::string> own{"gpu_uuid", "gpu_pci", "gpu_serial", "gpu_nvlink_peers", "bound_cpus"};
  struct Seen {
    std::set<std::string> values{};
    std::size_t ranks = 0;
  };
  std::map<std::string, std::map<std::string, Seen>> by_key;  // values by key, then by host
  for (const Json& rank : ranks) {
    const std::string host = rank.at("host").get<std::string>();
    for (const auto& [key, value] : rank.at(part).items()) {
      Seen& seen = by_key[key][host];
      seen.values.insert(value.dump(-1, ' ', true, Json::error_handler_t::replace));
      ++seen.ranks;
    }
  }
  for (const auto& [key, hosts] : by_key) {
    const bool is_shared = std::ranges::any_of(
        hosts, [](const auto& at) { return at.second.values.size() < at.second.ranks; });
    const bool is_compared =
        std::ranges::any_of(hosts, [](const auto& at) { return at.second.ranks > 1; });
    if (is_compared && !is_shared) own.insert(key);
  }
  return own;
}

Json without(const Json& object, const std::set<std::string>& keys) {
  Json rest = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (!keys.contains(key)) rest[key] = value;
  }
  return rest;
}

Json kind_json(const Json& text, const Json& number, const std::vector<int>& ranks,
               const std::vector<std::string>& hosts) {
  Json named = Json::array();
  for (std::size_t i = 0; i < std::min(hosts.size(), most_hosts); ++i) named.push_back(hosts[i]);
  return {{"ranks", base::ranges_text(ranks)},         {"count", ranks.size()}, {"hosts", named},
          {"more_hosts", hosts.size() - named.size()}, {"text", text},          {"number", number}};
}

/// Returns the rank and the host of each rank (at most most_places ranks), as one array for each
/// key.
Json places_of(const Json& ranks) {
  Json places{{"rank", Json::array()}, {"host", Json::array()}};
  for (std::size_t i = 0; i < std::min(ranks.size(), most_places); ++i) {
    for (auto& [key, column] : places.items()) column.push_back(ranks[i].at(key));
  }
  return places;
}

void prune_system(Json& system, const std::string& file, PageNotes& notes) {
  const Json ranks = std::move(system["ranks"]);
  system.erase("ranks");
  Json kinds = kinds_of_ranks(ranks);
  if (kinds.size() > most_kinds) {
    notes.push_back(fmt::format("{}: its ranks are of {} kinds, the {} largest are listed", file,
                                kinds.size(), most_kinds));
    kinds.erase(kinds.begin() + most_kinds, kinds.end());
  }
  system["kinds"] = std::move(kinds);
  system["places"] = places_of(ranks);
  if (ranks.size() > most_places) {
    notes.push_back(fmt::format("{}: of its {} ranks, the places of the first {} are listed", file,
                                ranks.size(), most_places));
  }
}

/// Returns the beginning of a text (UTF-8) that is longer than longest_text, followed by the number
/// of its characters; absent if the text is short enough.
std::optional<std::string> cut(const std::string& text) {
  if (text.size() <= longest_text) return std::nullopt;
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  const auto characters = static_cast<std::size_t>(std::ranges::count_if(text, begins));
  if (characters <= longest_text && text.size() <= 4 * longest_text) return std::nullopt;
  std::size_t end = 0, count = 0;
  while (end < text.size() && end < 4 * longest_text) {
    if (begins(text[end]) && count++ == longest_text) break;
    ++end;
  }
  return fmt::format("{}… ({} characters)", text.substr(0, end), characters);
}

std::size_t cut_all(Json& data) {
  std::size_t count = 0;
  if (data.is_string()) {
    if (auto text = cut(data.get_ref<const std::string&>())) {
      data = std::move(*text);
      ++count;
    }
  } else if (data.is_array()) {
    for (Json& item : data) count += cut_all(item);
  } else if (data.is_object()) {
    bool has_long_key = false;
    for (const auto& [key, value] : data.items()) {
      count += cut_all(value);
      has_long_key = has_long_key || key.size() > longest_text;
    }
    if (!has_long_key) return count;
    Json renamed = Json::object();
    for (auto& [key, value] : data.items()) {
      const auto shorter = cut(key);
      count += shorter ? 1 : 0;
      renamed[shorter.value_or(key)] = std::move(value);
    }
    data = std::move(renamed);
  }
  return count;
}

/// Keeps the first 200 warnings of a run, since more are not readable on a page.
void prune_warnings(Json& run, PageNotes& notes) {
  constexpr std::size_t most = 200;
  Json& warnings = run["warnings"];
  if (warnings.size() <= most) return;
  notes.push_back(fmt::format("{} of {} warnings of {} are left out", warnings.size() - most,
                              warnings.size(), run.at("file").get<std::string>()));
  warnings.erase(warnings.begin() + most, warnings.end());
}

}  // namespace

Json kinds_of_ranks(const Json& ranks) {
  const std::set<std::string> own_text = own_keys(ranks, "text");
  const std::set<std::string> own_number = own_keys(ranks, "number");
  struct Kind {
    Json text, number;
    std::vector<int> ranks{};
    std::vector<std::string> hosts{};
  };
  std::vector<Kind> kinds;
  std::map<std::string, std::size_t> places;
  for (const Json& rank : ranks) {
    Json text = without(rank.at("text"), own_text), number = without(rank.at("number"), own_number);
    const auto key = Json{text, number}.dump(-1, ' ', true, Json::error_handler_t::replace);
    const auto [at, is_new] = places.try_emplace(key, kinds.size());
    if (is_new) kinds.push_back({.text = std::move(text), .number = std::move(number)});
    Kind& kind = kinds[at->second];
    kind.ranks.push_back(rank.at("rank").get<int>());
    const std::string host = rank.at("host").get<std::string>();
    if (kind.hosts.empty() || kind.hosts.back() != host) kind.hosts.push_back(host);
  }
  std::ranges::stable_sort(kinds, std::ranges::greater{},
                           [](const Kind& kind) { return kind.ranks.size(); });
  Json result = Json::array();
  for (Kind& kind : kinds) {
    std::ranges::sort(kind.hosts, render::before_naturally);
    kind.hosts.erase(std::ranges::unique(kind.hosts).begin(), kind.hosts.end());
    result.push_back(kind_json(kind.text, kind.number, kind.ranks, kind.hosts));
  }
  return result;
}

void prune_report(Json& report, PageNotes& notes) {
  for (Json& run : report["runs"]) {
    prune_system(run["system"], run.at("file").get<std::string>(), notes);
    if (run["preflight"].is_object()) run["preflight"].erase("facts");
    prune_warnings(run, notes);
    for (Json& point : run["points"]) {
      for (const char* const part :
           {"breakdown_of_rank", "traced_gemms", "communicators", "link_share", "op_time"}) {
        point.erase(part);
      }
      if (point["device_state"].is_object()) point["device_state"].erase("series");
    }
  }
}

void cut_texts(Json& data, PageNotes& notes) {
  const std::size_t count = cut_all(data);
  if (count == 0) return;
  notes.push_back(fmt::format("{} longer than {} characters {} cut", base::counted(count, "text"),
                              longest_text, count == 1 ? "is" : "are"));
}

}  // namespace isoscale::analysis::page
