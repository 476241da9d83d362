// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "settings/option_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "units/quantity_text.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::settings {

void refuse_value(std::string_view text, std::string_view why) {
  throw base::usage_error("{} {}", base::quoted(text), why);
}

void require_sane(std::string_view text) {
  constexpr std::size_t longest = 16'384;
  if (text.empty()) refuse_value(text, "is empty");
  if (text.size() > longest) refuse_value(text, fmt::format("is longer than {} bytes", longest));
  if (!base::is_plain(text)) refuse_value(text, "holds a control character, or is not UTF-8 text");
}

std::uint64_t parse_number(std::string_view text, std::uint64_t least, std::uint64_t most) {
  const auto number = base::number_in<std::uint64_t>(text);
  if (!number || *number < least || *number > most) {
    refuse_value(text, fmt::format("is not a whole number from {} to {}", least, most));
  }
  return *number;
}

int parse_int(std::string_view text, int least, int most) {
  return static_cast<int>(
      parse_number(text, static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most)));
}

std::vector<std::string> parse_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view part : base::split(text, ',')) {
    if (part.empty())
      refuse_value(text, "holds an empty name: write names between commas, such as dp,tp");
    if (std::ranges::find(names, part) != names.end()) {
      refuse_value(text, fmt::format("names {} twice: give each once", base::quoted(part)));
    }
    names.emplace_back(part);
  }
  return names;
}

std::vector<int> parse_rank_counts(std::string_view text, std::string_view others) {
  constexpr int most = 1 << 24;
  std::vector<int> counts;
  for (const std::string_view part : base::split(text, ',')) {
    const auto count = base::number_in<std::uint64_t>(part);
    if (!count || *count < 1 || *count > most) {
      refuse_value(text, fmt::format("holds {}: write {}whole numbers from 1 to {} such as 1,2,4",
                                     base::quoted(part), others, most));
    }
    counts.push_back(static_cast<int>(*count));
  }
  std::ranges::sort(counts);
  const auto twice = std::ranges::adjacent_find(counts);
  if (twice != counts.end())
    refuse_value(text, fmt::format("names {} twice: give each once", *twice));
  return counts;
}

double parse_share(std::string_view text) {
  const double ratio = units::parse_ratio(text);
  if (!(ratio > 0 && ratio < 1)) refuse_value(text, "is not above 0% and below 100%");
  return ratio;
}

units::Seconds parse_time_limit(std::string_view text) {
  constexpr double most = 3'600'000;  // seconds, that is 1000 hours
  const units::Seconds time = units::parse_seconds(text);
  if (!(time.value() > 0 && time.value() <= most)) {
    refuse_value(text, "is not a time above 0 and up to 1000h");
  }
  return time;
}

units::Seconds parse_timeout(std::string_view text) {
  const units::Seconds time = units::parse_seconds(text);
  return time.value() == 0 ? time : parse_time_limit(text);
}

mesh::Request parse_mesh(std::string_view text) {
  // A mesh text with five axes and numbers of ten digits has fewer characters than this.
  constexpr std::size_t longest = 80;
  if (text.size() > longest)
    refuse_value(text, "is too long for a mesh: write for example dp=2,tp=2");
  return mesh::parse_request(text);
}

std::pair<std::string, std::string> parse_assignment(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    refuse_value(text, "is not KEY=VALUE: write for example bucket=10MiB");
  }
  return {std::string{text.substr(0, equals)}, std::string{text.substr(equals + 1)}};
}

std::filesystem::path parse_path(std::string_view text) {
  constexpr std::size_t longest = 4096;  // PATH_MAX
  if (text.size() >= longest) refuse_value(text, "is too long for a path");
  return std::filesystem::path{text};
}

std::vector<std::filesystem::path> parse_paths(std::string_view text) {
  std::vector<std::filesystem::path> files;
  for (const std::string_view part : base::split(text, ',')) {
    if (part.empty()) refuse_value(text, "has no file before or behind a comma");
    files.push_back(parse_path(part));
  }
  return files;
}

bool parse_flag(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  refuse_value(text, "is not true or false");
}

const workloads::Workload& find_workload(std::string_view name, std::string_view place) {
  std::vector<std::string_view> names;
  for (const workloads::Workload& workload : workloads::registry()) {
    if (workload.name == name) return workload;
    names.push_back(workload.name);
  }
  throw base::usage_error("{}: unknown workload {}{}; the workloads are {}", place,
                          base::quoted(name), base::did_you_mean(name, names),
                          fmt::join(names, ", "));
}

}  // namespace isoscale::settings
