// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/distinct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace isoscale::analysis {
namespace {

/// By what was measured first: a copy from before a run was gone on with may call itself complete.
bool holds_more(const FileContent& a, const FileContent& b) {
  const auto content = [](const FileContent& of) {
    return std::tie(of.ok_points, of.complete, of.points, of.ended);
  };
  return content(a) > content(b);
}

std::string said_of(const FileContent& left_out, const FileContent& kept) {
  if (left_out.file == kept.file) {
    return fmt::format("{} was given more than once; it counts once", kept.file);
  }
  return fmt::format("{} holds run {} as {} does; it counts once, as in the latter", left_out.file,
                     kept.id, kept.file);
}

}  // namespace

Distinct distinct(const std::vector<FileContent>& files) {
  Distinct result;
  std::map<std::string_view, std::size_t> place;  // in `kept`, by run
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto known = files[i].id.empty() ? place.end() : place.find(files[i].id);
    if (known == place.end()) {
      if (!files[i].id.empty()) place[files[i].id] = result.kept.size();
      result.kept.push_back(i);
      continue;
    }
    std::size_t& kept = result.kept[known->second];
    std::size_t other = i;
    if (holds_more(files[i], files[kept])) std::swap(other, kept);
    result.warnings.push_back(said_of(files[other], files[kept]));
  }
  return result;
}

RunFiles without_copies(RunFiles given) {
  std::vector<FileContent> contents;
  for (std::size_t i = 0; i < given.runs.size(); ++i) {
    const results::RunData& run = given.runs[i];
    const auto ok =
        std::ranges::count(run.points, results::PointStatus::ok, &results::PointData::status);
    contents.push_back({.id = run.id,
                        .file = given.files[i],
                        .ok_points = static_cast<std::size_t>(ok),
                        .points = run.points.size(),
                        .complete = run.complete,
                        .ended = run.ended});
  }
  Distinct which = distinct(contents);
  RunFiles kept{.runs = {}, .files = {}, .warnings = std::move(given.warnings)};
  for (const std::size_t i : which.kept) {
    kept.runs.push_back(std::move(given.runs[i]));
    kept.files.push_back(std::move(given.files[i]));
  }
  std::ranges::move(which.warnings, std::back_inserter(kept.warnings));
  return kept;
}

}  // namespace isoscale::analysis
