// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/apart.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "analysis/curves.hpp"
#include "analysis/labels.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

/// How many ranks a point has on its nodes, as far as that is known.
bool lie_alike(const PointReport& a, const PointReport& b) {
  if (!a.nodes || !b.nodes) return a.data->nodes == b.data->nodes;
  return a.nodes->nodes == b.nodes->nodes && a.nodes->fewest == b.nodes->fewest &&
         a.nodes->most == b.nodes->most && a.nodes->axes == b.nodes->axes;
}

/// Whether what says that times are not the machine's is the same.
bool is_labelled_alike(const PointReport& a, const PointReport& b) {
  return unsound(a.data->labels) == unsound(b.data->labels) &&
         a.data->injections == b.data->injections;
}

/// What keeps two curves on one machine apart, "" where nothing but their meshes.
std::string why_unlike(const JoinedCurve& here, const JoinedCurve& there) {
  for (const PointReport& a : here.curve.points) {
    for (const PointReport& b : there.curve.points) {
      if (a.data->ranks != b.data->ranks || a.data->mesh != b.data->mesh) continue;
      if (a.data->options != b.data->options) {
        return fmt::format("microbatches of {} ranks differ", a.data->ranks);
      }
      if (!is_labelled_alike(a, b)) {
        return fmt::format("labels of {} ranks, or what was injected there, differ", a.data->ranks);
      }
      if (!lie_alike(a, b)) {
        return fmt::format("{} ranks lie on {} here, on {} there, or in another way", a.data->ranks,
                           base::counted(a.data->nodes, "node"), b.data->nodes);
      }
    }
  }
  return "";
}

bool are_alike_but_for_settings(const JoinedCurve& here, const JoinedCurve& there) {
  Experiment as_there = here.experiment;
  as_there.settings = there.experiment.settings;
  return are_alike(as_there, there.experiment);
}

/// "CPU Intel Xeon 8480, MPI MPICH 4.1": of the first few entries in which machines of `curves`
/// that have the same base name differ, those of `curves[at]`.
std::string machine_text(const std::vector<JoinedCurve>& curves,
                         const std::vector<std::string>& bases, std::size_t at) {
  constexpr std::size_t most = 2;
  std::map<std::string, std::set<std::string>> values;
  const auto value_of = [](const JoinedCurve& curve, const std::string& name) {
    const auto found = curve.machine.find(name);
    return found == curve.machine.end() ? std::string{"unset"} : found->second;
  };
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (bases[i] != bases[at]) continue;
    for (const auto& [name, value] : curves[i].machine) values[name];
  }
  std::vector<std::string> differing;
  for (auto& [name, seen] : values) {
    for (std::size_t i = 0; i < curves.size(); ++i) {
      if (bases[i] == bases[at]) seen.insert(value_of(curves[i], name));
    }
    if (seen.size() < 2 || differing.size() == most) continue;
    std::string text = name + " " + value_of(curves[at], name);
    // A title's parts have commas between them.
    std::erase(text, ',');
    differing.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(differing, ", "));
}

/// "2 nodes".
std::string node_count_text(const PointReport& point) {
  return base::counted(point.data->nodes, "node");
}

/// "injected slow-rank=3:1.2".
std::string unsound_text(const PointReport& point) {
  std::string text = fmt::format("{}", fmt::join(unsound(point.data->labels), "+"));
  if (!point.data->injections.empty()) {
    text += fmt::format(" {}", fmt::join(point.data->injections, "+"));
  }
  return text.empty() ? "no label" : text;
}

/// In what two launches were told or ran on something else, "" where in nothing.
std::string told_and_ran_on(const JoinedCurve& here, const JoinedCurve& there) {
  const std::string told = differences(here.experiment.settings, there.experiment.settings);
  const std::string machines = differences(here.machine, there.machine);
  return told + (told.empty() || machines.empty() ? "" : "; ") + machines;
}

}  // namespace

bool is_same_point(const PointReport& a, const PointReport& b) {
  return a.data->mesh == b.data->mesh && a.data->options == b.data->options && lie_alike(a, b) &&
         is_labelled_alike(a, b);
}

std::string launches_text(const JoinedCurve& curve, std::span<const RunReport> reports) {
  std::set<std::size_t> numbers;
  const auto add = [&](const LaunchPoint& at) {
    numbers.insert(static_cast<std::size_t>(at.run - reports.data()) + 1);
  };
  for (const auto& launches : curve.launches) std::ranges::for_each(launches, add);
  for (const LeftOut& at : curve.left_out) add(at.at);
  return fmt::format("{} {}", base::plural(numbers.size(), "launch"), fmt::join(numbers, ", "));
}

void tell_apart(std::vector<JoinedCurve>& curves, std::span<const RunReport> reports) {
  std::vector<std::string> bases, launches, machines;
  std::vector<const Curve*> named;
  for (const JoinedCurve& curve : curves) {
    bases.push_back(curve.curve.title);
    launches.push_back(launches_text(curve, reports));
    named.push_back(&curve.curve);
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    machines.push_back(machine_text(curves, bases, i));
    for (std::size_t j = 0; j < curves.size(); ++j) {
      if (i == j || !are_alike_but_for_settings(curves[i], curves[j])) continue;
      const std::string told = told_and_ran_on(curves[i], curves[j]);
      const std::string why = told.empty() ? why_unlike(curves[i], curves[j]) : told;
      if (why.empty()) continue;
      curves[i].apart.push_back(launches[j] + ": " + why);
    }
  }
  std::vector<std::string> names = bases;
  tell_meshes_apart(names, named);
  tell_apart(names, bases, machines);
  tell_apart(names, bases, named, node_count_text);
  tell_apart(names, bases, named, unsound_text);
  tell_apart(names, bases, launches);
  for (std::size_t i = 0; i < curves.size(); ++i) curves[i].curve.title = std::move(names[i]);
}

}  // namespace isoscale::analysis
