// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison_internals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/curves_and_baselines.hpp"
#include "analysis/group_by.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::compare {
namespace {

/// Returns the files of the launches that have points on a curve; if `ranks` is given, only of
/// launches that have the point with this rank count.
std::vector<std::string> files_of(const merge::JoinedCurve& curve, std::optional<int> ranks) {
  std::vector<std::string> files;
  for (const auto& launches : curve.launches) {
    for (const merge::LaunchPoint& at : launches) {
      if (ranks && at.point->data->ranks != *ranks) continue;
      if (std::ranges::find(files, at.run->file) == files.end()) files.push_back(at.run->file);
    }
  }
  return files;
}

/// Adds to `found` the fields in which two curves differ: those of the points with `ranks` ranks,
/// or of the whole curves if `ranks` is absent. A field in which the whole curves differ is not
/// repeated for their points.
void add(const std::vector<UnlikeField>& fields, const merge::JoinedCurve& here,
         const merge::JoinedCurve& there, std::optional<int> ranks, std::vector<Unlike>& found) {
  for (const UnlikeField& at : fields) {
    const auto is_of_curve = [&at](const Unlike& known) {
      return !known.ranks && known.what == at.name;
    };
    if (ranks && std::ranges::any_of(found, is_of_curve)) continue;
    found.push_back({.what = at.name,
                     .here = {.side = "", .value = at.here, .files = files_of(here, ranks)},
                     .there = {.side = "", .value = at.there, .files = files_of(there, ranks)},
                     .ranks = ranks,
                     .title = here.curve.title});
  }
}

/// Returns the rank counts that both curves have, each with the fields in which its points differ.
std::vector<std::pair<int, std::vector<UnlikeField>>> fields_of_points(
    const merge::JoinedCurve& here, const merge::JoinedCurve& there) {
  std::vector<std::pair<int, std::vector<UnlikeField>>> all;
  for (const PointReport& a : here.curve.points) {
    const PointReport* const b = point_of(there.curve, a.data->ranks);
    if (b != nullptr) all.emplace_back(a.data->ranks, unlike_fields(*a.data, *b->data));
  }
  return all;
}

std::string end_text(const UnlikeEnd& end) {
  constexpr std::size_t most_files = 3, most_characters = 100;
  std::vector<std::string> files;
  for (const std::string& file : end.files)
    files.push_back(render::escape_up_to(file, most_characters));
  return fmt::format("{} in {} ({})", render::escape_up_to(end.value, most_characters), end.side,
                     base::listed(files, most_files));
}

/// Returns the text of a difference at these rank counts. An empty `ranks` means the whole curve.
std::string text_of(const Unlike& unlike, const std::vector<int>& ranks) {
  constexpr std::size_t most_characters = 200;
  const std::string here = unlike.here.side.empty() ? "" : end_text(unlike.here) + ", ";
  return fmt::format("{}: {}{}; {}{}", render::escape_up_to(unlike.what, most_characters), here,
                     end_text(unlike.there), render::escape_up_to(unlike.title, most_characters),
                     ranks.empty() ? "" : ": " + base::counted(ranks, "rank"));
}

/// Returns a key that two differences share if they say the same about the same two sides; their
/// files, curves and ranks may differ.
auto said_by(const Unlike& at) {
  return std::tuple{at.what, at.side, at.here.side, at.here.value, at.there.side, at.there.value};
}

void add_files(const UnlikeEnd& from, UnlikeEnd& into) {
  for (const std::string& file : from.files) {
    if (std::ranges::find(into.files, file) == into.files.end()) into.files.push_back(file);
  }
}

/// Differences that share one line of text, of one curve or of several.
struct Group {
  Unlike unlike;  ///< the first difference, with the files of all
  std::set<int> ranks{};
  std::set<std::size_t> curves{};  ///< the compared curves that differ in this way
};

/// True if the two sides differ in this setting on all compared curves that both have, and on whole
/// curves, not only at single points. False if both have only one such curve.
bool is_of_all(const Comparison& of, const Group& group) {
  const auto curves =
      static_cast<std::size_t>(std::ranges::count_if(of.curves, [&](const ComparedCurve& curve) {
        return curve.sides[group.unlike.side].has_value();
      }));
  return group.ranks.empty() && curves > 1 && group.curves.size() == curves;
}

/// Groups differences that say the same (see said_by) about one curve or about some of its points.
std::vector<Group> of_each_curve(const std::vector<Unlike>& all) {
  const auto kind = [](const Unlike& at) {
    return std::tuple{said_by(at), at.curve, at.title, at.ranks.has_value()};
  };
  std::vector<Group> groups;
  for (const auto& [unused, alike] : grouped(pointers_to(all), kind)) {
    Group& group = groups.emplace_back(Group{.unlike = *alike.front()});
    for (const Unlike* const at : alike) {
      add_files(at->here, group.unlike.here);
      add_files(at->there, group.unlike.there);
      if (at->ranks) group.ranks.insert(*at->ranks);
      if (at->curve) group.curves.insert(*at->curve);
    }
  }
  return groups;
}

/// Joins groups with the same text and ranks; a joined group's title names the curves of all.
std::vector<Group> of_several_curves(const std::vector<Group>& groups) {
  const auto kind = [](const Group& at) {
    return std::tuple{said_by(at.unlike), at.ranks, at.unlike.curve.has_value()};
  };
  std::vector<Group> joined;
  for (const auto& [unused, alike] : grouped(pointers_to(groups), kind)) {
    Group& into = joined.emplace_back(*alike.front());
    for (const Group* const at : alike | std::views::drop(1)) {
      add_files(at->unlike.here, into.unlike.here);
      add_files(at->unlike.there, into.unlike.there);
      into.unlike.title += "; " + at->unlike.title;
      into.curves.insert(at->curves.begin(), at->curves.end());
    }
  }
  return joined;
}

/// If a point has a difference in labels and one in injected faults, joins them into one, in which
/// the faults follow the labels of their side: "injected (slow-rank=1:1.5)".
std::vector<Unlike> with_injections_at_labels(const std::vector<Unlike>& all) {
  std::vector<Unlike> result;
  for (const Unlike& at : all) {
    const auto labels = std::ranges::find_if(result, [&](const Unlike& other) {
      return other.what == "labels" && other.curve == at.curve && other.title == at.title &&
             other.side == at.side && other.ranks == at.ranks &&
             other.there.files == at.there.files;
    });
    if (at.what != "injected" || labels == result.end()) {
      result.push_back(at);
      continue;
    }
    for (const auto end : {&Unlike::here, &Unlike::there}) {
      const std::string& injected = (at.*end).value;
      if (injected != "none") ((*labels).*end).value += fmt::format(" ({})", injected);
    }
  }
  return result;
}

}  // namespace

std::string text_of(const Unlike& unlike) {
  return text_of(unlike, unlike.ranks ? std::vector{*unlike.ranks} : std::vector<int>{});
}

std::vector<Unlike> differences_between(const merge::JoinedCurve& here,
                                        const merge::JoinedCurve& there) {
  std::vector<Unlike> found;
  // Curves that are compared have common points, and thus launches.
  const std::string &a = here.launches.front().front().run->data->device,
                    &b = there.launches.front().front().run->data->device;
  if (a != b) add({{"executor", a, b}}, here, there, std::nullopt, found);
  add(unlike_fields(here.experiment, there.experiment), here, there, std::nullopt, found);
  for (const auto& [ranks, fields] : fields_of_points(here, there)) {
    add(fields, here, there, ranks, found);
  }
  return found;
}

std::vector<Unlike> differences_within(const merge::JoinedCurve& here,
                                       const merge::JoinedCurve& there) {
  if (!are_alike(here.experiment, there.experiment)) return {};
  std::vector<Unlike> found;
  add(unlike_texts("machine ", here.machine, there.machine), here, there, std::nullopt, found);
  // If the points also differ in mesh or options, the user chose them to differ.
  const auto is_unintended = [](const UnlikeField& at) {
    return at.name == "labels" || at.name == "injected";
  };
  for (const auto& [ranks, fields] : fields_of_points(here, there)) {
    if (std::ranges::all_of(fields, is_unintended)) add(fields, here, there, ranks, found);
  }
  return found;
}

std::vector<Unlike> not_verified(const merge::JoinedCurve& curve) {
  std::vector<Unlike> found;
  const auto add = [&](const merge::LaunchPoint& at) {
    if (at.point->data->verified != false) return;
    const std::string& said = at.point->data->verification;
    found.push_back({.what = "verification",
                     .here = {},
                     .there = {.side = "",
                               .value = said.empty() ? "results do not verify"
                                                     : "results do not verify, " + said,
                               .files = {at.run->file}},
                     .ranks = at.point->data->ranks,
                     .title = curve.curve.title});
  };
  for (const merge::LeftOut& at : curve.left_out) add(at.at);
  for (const auto& launches : curve.launches) std::ranges::for_each(launches, add);
  return found;
}

std::vector<std::string> unlike_lines(const Comparison& of) {
  std::vector<Group> groups = of_each_curve(with_injections_at_labels(of.unlike));
  // The differences are ordered by side. This sorts them by curve, so that those of one curve are
  // on neighbouring lines.
  std::ranges::stable_sort(groups, {}, [](const Group& at) {
    return std::pair{!at.unlike.curve, at.unlike.curve.value_or(0)};
  });
  groups = of_several_curves(groups);
  std::ranges::stable_partition(groups, [&](const Group& at) { return is_of_all(of, at); });
  std::vector<std::string> lines;
  for (Group& at : groups) {
    if (is_of_all(of, at)) at.unlike.title = fmt::format("all {} curves", at.curves.size());
    lines.push_back(text_of(at.unlike, {at.ranks.begin(), at.ranks.end()}));
  }
  return lines;
}

}  // namespace isoscale::analysis::compare
