// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/unlike_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/render/text.hpp"
#include "base/text.hpp"
#include "results/point_facts.hpp"

namespace isoscale::analysis {
namespace {

using Texts = std::map<std::string, std::string>;

constexpr std::string_view not_set = "not set";

bool is_of_batch(const std::string& option) {
  return option == "batch" || option == "microbatch" || option == "microbatches";
}

/// Collects the differences between two curves.
class Collector {
 public:
  Collector(const JoinedCurve& here, const JoinedCurve& there) : here_(here), there_(there) {}

  void add(std::string what, std::string here, std::string there,
           std::optional<int> ranks = std::nullopt) {
    if (here == there) return;
    found_.push_back(
        {.what = std::move(what),
         .here = {.side = "", .value = std::move(here), .files = files_of(here_, ranks)},
         .there = {.side = "", .value = std::move(there), .files = files_of(there_, ranks)},
         .ranks = ranks,
         .title = here_.curve.title});
  }

  /// Adds every entry that differs; an absent one has the value "not set".
  void add_texts(const std::string& kind, const Texts& here, const Texts& there,
                 std::optional<int> ranks = std::nullopt) {
    Texts all = here;
    all.insert(there.begin(), there.end());
    for (const auto& [name, unused] : all) {
      const std::string what = kind + " " + name;
      if (!named_.contains(what)) add(what, value(here, name), value(there, name), ranks);
      if (!ranks && value(here, name) != value(there, name)) named_.insert(what);
    }
  }

  [[nodiscard]] std::vector<Unlike> take() { return std::move(found_); }

 private:
  static std::string value(const Texts& texts, const std::string& name) {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string{not_set} : found->second;
  }

  const JoinedCurve& here_;
  const JoinedCurve& there_;
  std::set<std::string> named_;  ///< differences of the whole curve, not repeated for each point
  std::vector<Unlike> found_;
};

std::string device_of(const JoinedCurve& curve) {
  return curve.launches.empty() ? "" : curve.launches.front().front().run->data->device;
}

/// Removes a batch that only one side knows, since it is no difference (see are_alike).
void drop_unknown_batches(Texts& here, Texts& there) {
  std::erase_if(here,
                [&](const auto& at) { return is_of_batch(at.first) && !there.contains(at.first); });
  std::erase_if(there,
                [&](const auto& at) { return is_of_batch(at.first) && !here.contains(at.first); });
}

void add_experiment(const JoinedCurve& here, const JoinedCurve& there, Collector& into) {
  const Experiment& a = here.experiment;
  const Experiment& b = there.experiment;
  into.add("executor", device_of(here), device_of(there));
  into.add("workload", a.workload, b.workload);
  into.add("model", a.model, b.model);
  if (!a.numbers.empty() && !b.numbers.empty()) into.add_texts("model", a.numbers, b.numbers);
  into.add("dtype", a.dtype, b.dtype);
  into.add("scaling", a.scaling, b.scaling);
  into.add("placement", a.placement, b.placement);
  Texts of_a = a.options, of_b = b.options;
  drop_unknown_batches(of_a, of_b);
  into.add_texts("option", of_a, of_b);
  into.add_texts("setting", a.settings, b.settings);
}

std::string labels_text(const PointReport& point) {
  const std::vector<std::string> labels = results::unsound(point.data->labels);
  return labels.empty() ? "none" : fmt::format("{}", fmt::join(labels, ", "));
}

std::string injections_text(const PointReport& point) {
  const auto& all = point.data->injections;
  return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "));
}

void add_labels(const PointReport& a, const PointReport& b, Collector& into) {
  into.add("labels", labels_text(a), labels_text(b), a.data->ranks);
  into.add("injected", injections_text(a), injections_text(b), a.data->ranks);
}

/// Returns the work that throughput counts: "65536 tokens/s x s a step".
std::string work_text(const results::PointData& point) {
  std::string_view unit = point.throughput_unit;
  if (unit.ends_with("/s")) unit.remove_suffix(2);
  return fmt::format("{} {} a step", point.work_per_step, unit);
}

void add_points(const JoinedCurve& here, const JoinedCurve& there, Collector& into) {
  for (const PointReport& a : here.curve.points) {
    const int ranks = a.data->ranks;
    const PointReport* const b = point_of(there.curve, ranks);
    if (b == nullptr) continue;
    into.add("mesh", mesh::to_string(a.data->mesh), mesh::to_string(b->data->mesh), ranks);
    into.add("work", work_text(*a.data), work_text(*b->data), ranks);
    into.add_texts("option", a.data->options, b->data->options, ranks);
    add_labels(a, *b, into);
  }
}

std::string end_text(const UnlikeEnd& end) {
  constexpr std::size_t most_files = 3, most_characters = 100;
  std::vector<std::string> files;
  for (const std::string& file : end.files) files.push_back(escape_up_to(file, most_characters));
  return fmt::format("{} in {} ({})", escape_up_to(end.value, most_characters), end.side,
                     base::listed(files, most_files));
}

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

/// Differences with the same text, of one curve or of all.
struct Group {
  Unlike unlike;  ///< the first one, with the files of all
  std::set<int> ranks{};
};

void add(const Unlike& at, Group& into) {
  add_files(at.here, into.unlike.here);
  add_files(at.there, into.unlike.there);
  if (at.ranks) into.ranks.insert(*at.ranks);
}

/// Returns the number of compared curves that both sides of a difference have.
std::size_t curves_of(const Comparison& of, const Unlike& at) {
  return static_cast<std::size_t>(std::ranges::count_if(
      of.curves, [&](const ComparedCurve& curve) { return curve.sides[at.side].has_value(); }));
}

/// True if every curve differs in this setting as a whole.
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

/// Joins groups of several curves that have the same text and ranks, and names all of their curves.
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

/// Appends the injected faults to a label: "injected (slow-rank=1:1.5)".
void add_injections(const UnlikeEnd& injected, UnlikeEnd& into) {
  if (injected.value != "none") into.value += fmt::format(" ({})", injected.value);
}

/// Merges the differences in labels and in injected faults of a point, where it has both.
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

std::vector<std::string> files_of(const JoinedCurve& curve, std::optional<int> ranks) {
  std::vector<std::string> files;
  for (const auto& launches : curve.launches) {
    for (const LaunchPoint& at : launches) {
      if (ranks && at.point->data->ranks != *ranks) continue;
      if (std::ranges::find(files, at.run->file) == files.end()) files.push_back(at.run->file);
    }
  }
  return files;
}

std::string text_of(const Unlike& unlike) {
  return text_of(unlike, unlike.ranks ? std::vector{*unlike.ranks} : std::vector<int>{});
}

std::string text_of(const Unlike& unlike, const std::vector<int>& ranks) {
  constexpr std::size_t most_characters = 200;
  const std::string here = unlike.here.side.empty() ? "" : end_text(unlike.here) + ", ";
  return fmt::format("{}: {}{}; {}{}", escape_up_to(unlike.what, most_characters), here,
                     end_text(unlike.there), escape_up_to(unlike.title, most_characters),
                     ranks.empty() ? "" : ": " + base::counted(ranks, "rank"));
}

std::vector<Unlike> differences_between(const JoinedCurve& here, const JoinedCurve& there) {
  Collector found{here, there};
  add_experiment(here, there, found);
  add_points(here, there, found);
  return found.take();
}

std::vector<Unlike> differences_within(const JoinedCurve& here, const JoinedCurve& there) {
  if (!are_alike(here.experiment, there.experiment)) return {};
  Collector found{here, there};
  found.add_texts("machine", here.machine, there.machine);
  for (const PointReport& a : here.curve.points) {
    const PointReport* const b = point_of(there.curve, a.data->ranks);
    if (b == nullptr || a.data->mesh != b->data->mesh || a.data->options != b->data->options) {
      continue;
    }
    add_labels(a, *b, found);
  }
  return found.take();
}

std::vector<Unlike> not_verified(const JoinedCurve& curve) {
  std::vector<Unlike> found;
  const auto add = [&](const LaunchPoint& at) {
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
  for (const LeftOut& at : curve.left_out) add(at.at);
  for (const auto& launches : curve.launches) std::ranges::for_each(launches, add);
  return found;
}

std::vector<std::string> unlike_lines(const Comparison& of) {
  std::vector<Group> common, left;
  for (const Unlike& at : with_injections_at_labels(of.unlike)) {
    if (is_of_all(of, at)) {
      gather(at, common, says_the_same);
    } else {
      gather(at, left, is_of_one_curve);
    }
  }
  // Sorts by curve, even where several sides differ from the first.
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
