// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/unlike_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/compare/unlike.hpp"

namespace isoscale::analysis {
namespace {

bool says_the_same(const Unlike& a, const Unlike& b) {
  return a.what == b.what && a.side == b.side && a.here.side == b.here.side &&
         a.here.value == b.here.value && a.there.side == b.there.side &&
         a.there.value == b.there.value;
}

void add_files(const UnlikeEnd& from, UnlikeEnd& into) {
  for (const std::string& file : from.files) {
    if (std::ranges::find(into.files, file) == into.files.end()) into.files.push_back(file);
  }
}

/// Differences that read alike, of one curve or of all.
struct Group {
  Unlike unlike;  ///< the first, with the files of all
  std::set<int> ranks{};
};

void add(const Unlike& at, Group& into) {
  add_files(at.here, into.unlike.here);
  add_files(at.there, into.unlike.there);
  if (at.ranks) into.ranks.insert(*at.ranks);
}

/// Compared curves that both ends of a difference have.
std::size_t curves_of(const Comparison& of, const Unlike& at) {
  return static_cast<std::size_t>(std::ranges::count_if(
      of.curves, [&](const ComparedCurve& curve) { return curve.sides[at.side].has_value(); }));
}

/// Whether every curve differs in this as a whole.
bool is_of_all(const Comparison& of, const Unlike& at) {
  std::set<std::size_t> curves;
  for (const Unlike& other : of.unlike) {
    if (says_the_same(at, other) && other.curve && !other.ranks) curves.insert(*other.curve);
  }
  return !at.ranks && at.curve && curves.size() > 1 && curves.size() == curves_of(of, at);
}

template <class Same>
void gather(const Unlike& at, std::vector<Group>& groups, const Same& same) {
  const auto known =
      std::ranges::find_if(groups, [&](const Group& group) { return same(group.unlike, at); });
  if (known != groups.end()) return add(at, *known);
  groups.push_back({.unlike = at});
  add(at, groups.back());
}

bool is_of_one_curve(const Unlike& a, const Unlike& b) {
  return says_the_same(a, b) && a.curve == b.curve && a.title == b.title &&
         a.ranks.has_value() == b.ranks.has_value();
}

/// Joins what reads the same of several curves at the same ranks, and names them all.
std::vector<Group> of_several_curves(const std::vector<Group>& groups) {
  std::vector<Group> joined;
  for (const Group& at : groups) {
    const auto known = std::ranges::find_if(joined, [&](const Group& other) {
      return says_the_same(at.unlike, other.unlike) && at.ranks == other.ranks &&
             at.unlike.curve.has_value() == other.unlike.curve.has_value();
    });
    if (known == joined.end()) {
      joined.push_back(at);
    } else {
      add_files(at.unlike.here, known->unlike.here);
      add_files(at.unlike.there, known->unlike.there);
      known->unlike.title += "; " + at.unlike.title;
    }
  }
  return joined;
}

/// "injected (slow-rank=1:1.5)": a label with what was injected.
void add_injections(const UnlikeEnd& injected, UnlikeEnd& into) {
  if (injected.value != "none") into.value += fmt::format(" ({})", injected.value);
}

/// The differences with labels and injections of a point as one, where it has both.
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
    add_injections(at.here, labels->here);
    add_injections(at.there, labels->there);
  }
  return result;
}

}  // namespace

std::vector<std::string> unlike_lines(const Comparison& of) {
  std::vector<Group> common, left;
  for (const Unlike& at : with_injections_at_labels(of.unlike)) {
    if (is_of_all(of, at)) {
      gather(at, common, says_the_same);
    } else {
      gather(at, left, is_of_one_curve);
    }
  }
  // Curve by curve, also where several sides differ from the first.
  std::ranges::stable_sort(left, {}, [](const Group& at) {
    return std::pair{!at.unlike.curve, at.unlike.curve.value_or(0)};
  });
  std::vector<std::string> lines;
  for (Group& group : common) {
    group.unlike.title = fmt::format("all {} curves", curves_of(of, group.unlike));
    lines.push_back(text_of(group.unlike));
  }
  for (const Group& group : of_several_curves(left)) {
    lines.push_back(text_of(group.unlike, {group.ranks.begin(), group.ranks.end()}));
  }
  return lines;
}

}  // namespace isoscale::analysis
