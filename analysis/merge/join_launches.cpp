// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/merge/join_launches.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/curves_and_baselines.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis::merge {
namespace {

using results::PointData;

/// True if the ranks and mesh axes of two points lie on nodes in the same way. If it is not known
/// which node each rank is on, only the number of nodes is compared.
bool lie_alike(const PointReport& a, const PointReport& b) {
  if (!a.nodes || !b.nodes) return a.data->nodes == b.data->nodes;
  return a.nodes->nodes == b.nodes->nodes && a.nodes->fewest == b.nodes->fewest &&
         a.nodes->most == b.nodes->most && a.nodes->axes == b.nodes->axes;
}

/// Returns why two curves of one experiment and machine were not joined: the first difference
/// between points with the same ranks and the same mesh; "" if no such points differ.
std::string why_unlike(const JoinedCurve& here, const JoinedCurve& there) {
  for (const PointReport& a : here.curve.points) {
    for (const PointReport& b : there.curve.points) {
      if (a.data->ranks != b.data->ranks || a.data->mesh != b.data->mesh) continue;
      if (const std::string unlike = text_of(unlike_fields(*a.data, *b.data)); !unlike.empty()) {
        return fmt::format("{}: {}", base::counted(a.data->ranks, "rank"), unlike);
      }
      if (!lie_alike(a, b)) {
        return fmt::format("{} ranks are on {} here and on {} there, or placed differently",
                           a.data->ranks, base::counted(a.data->nodes, "node"), b.data->nodes);
      }
    }
  }
  return "";
}

/// Returns "CPU Intel Xeon 8480, MPI MPICH 4.1": the first two facts about the machine of
/// `curves[at]` in which the machines of the curves with the same base name differ.
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
    // Commas separate the facts, and the parts of a title, so a fact must have none.
    std::erase(text, ',');
    differing.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(differing, ", "));
}

std::string node_count_text(const PointReport& point) {
  return base::counted(point.data->nodes, "node");
}

/// Returns the unsound labels (such as "oversubscribed") and the injected faults of a point:
/// "injected slow-rank=3:1.2".
std::string unsound_text(const PointReport& point) {
  std::string text = fmt::format("{}", fmt::join(results::unsound(point.data->labels), "+"));
  if (!point.data->injections.empty()) {
    text += fmt::format(" {}", fmt::join(point.data->injections, "+"));
  }
  return text.empty() ? "no label" : text;
}

/// Returns "launch 2" or "launches 1, 3": the launches with points that belong to a curve, included
/// or left out. Launches are counted from 1 in the order of `reports`.
std::string launches_text(const JoinedCurve& curve, std::span<const RunReport> reports) {
  std::set<std::size_t> numbers;
  const auto add = [&](const LaunchPoint& at) {
    numbers.insert(static_cast<std::size_t>(at.run - reports.data()) + 1);
  };
  for (const auto& launches : curve.launches) std::ranges::for_each(launches, add);
  for (const LeftOut& at : curve.left_out) add(at.at);
  return fmt::format("{} {}", base::plural(numbers.size(), "launch"), fmt::join(numbers, ", "));
}

/// Fills in JoinedCurve::apart, and appends to equal titles the mesh, machine, nodes, labels or
/// launches in which the curves differ, or else "repeat 2".
void tell_curves_apart(std::vector<JoinedCurve>& curves, std::span<const RunReport> reports) {
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
      std::vector<UnlikeField> unlike = unlike_fields(curves[i].experiment, curves[j].experiment);
      const auto is_setting = [](const UnlikeField& at) { return at.name.starts_with("setting "); };
      if (i == j || !std::ranges::all_of(unlike, is_setting)) continue;
      std::ranges::move(unlike_machines(curves[i].machine, curves[j].machine),
                        std::back_inserter(unlike));
      const std::string why = unlike.empty() ? why_unlike(curves[i], curves[j]) : text_of(unlike);
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
  tell_repeats_apart(names);
  for (std::size_t i = 0; i < curves.size(); ++i) curves[i].curve.title = std::move(names[i]);
}

/// Returns why a launch's point is left out of joined curves; "" if it is included.
std::string why_left_out(const PointReport& point, Counted counted) {
  const PointData& data = *point.data;
  // Counted::all includes a point with wrong results if it has a throughput. It has one only if the
  // report was made with the option rates_of_wrong.
  const bool shown = counted == Counted::all && data.verified == false && point.throughput;
  if (shown) return "";
  if (data.status != results::PointStatus::ok) {
    return fmt::format("{}: {}", results::name(data.status),
                       data.reason.empty() ? "no reason was recorded" : data.reason);
  }
  if (data.verified == false) return "its results do not verify";
  const std::vector<std::string> labels = results::unsound(data.labels);
  if (counted == Counted::sound && !labels.empty())
    return fmt::format("{}", fmt::join(labels, ", "));
  return point.throughput && point.step_time->median > 0 ? "" : "it has no step times";
}

/// The points of launches that are to be joined to one curve: the input of join_curve().
struct Gathered {
  Experiment experiment;
  Machine machine;
  std::map<int, std::vector<LaunchPoint>> points{};  ///< by rank count
  std::vector<LeftOut> left_out{};
};

/// Says how well the points of a launch's curve match those gathered so far for a joined curve.
struct Fit {
  bool possible = true;
  int same_points = 0;
  /// The smallest number of mesh axes in which a point of the launch differs from a gathered point.
  int axes = std::numeric_limits<int>::max();

  [[nodiscard]] bool is_better_than(const Fit& other) const {
    if (same_points != other.same_points) return same_points > other.same_points;
    return axes < other.axes;
  }
};

int axes_between(const mesh::Shape& a, const mesh::Shape& b) {
  return static_cast<int>(std::ranges::count_if(
      mesh::all_axes, [&](const mesh::Axis axis) { return a[axis] != b[axis]; }));
}

Fit fit_of(const Gathered& into, std::span<const LaunchPoint> points) {
  Fit fit;
  for (const LaunchPoint& point : points) {
    for (const auto& [ranks, launches] : into.points) {
      const LaunchPoint& known = launches.front();
      fit.axes = std::min(fit.axes, axes_between(known.point->data->mesh, point.point->data->mesh));
      if (ranks != point.point->data->ranks) continue;
      // If one launch measured the same point twice, the second one goes to another curve.
      const bool again =
          std::ranges::find(launches, point.run, &LaunchPoint::run) != launches.end();
      if (again || !unlike_fields(*known.point->data, *point.point->data).empty() ||
          !lie_alike(*known.point, *point.point)) {
        fit.possible = false;
      }
      ++fit.same_points;
    }
  }
  return fit;
}

Gathered& home_of(std::vector<Gathered>& all, const Gathered& curve,
                  std::span<const LaunchPoint> points) {
  Gathered* best = nullptr;
  Fit best_fit;
  for (Gathered& at : all) {
    if (at.machine != curve.machine || !are_alike(at.experiment, curve.experiment)) continue;
    const Fit fit = fit_of(at, points);
    if (!fit.possible || (best != nullptr && !fit.is_better_than(best_fit))) continue;
    best = &at;
    best_fit = fit;
  }
  return best == nullptr ? all.emplace_back(curve) : *best;
}

void gather(const RunReport& run, const Curve& curve, Counted counting,
            std::vector<Gathered>& all) {
  std::vector<LaunchPoint> counted;
  std::vector<LeftOut> left_out;
  for (const PointReport& point : curve.points) {
    const LaunchPoint at{.run = &run, .point = &point};
    if (std::string reason = why_left_out(point, counting); !reason.empty()) {
      left_out.push_back({.at = at, .reason = std::move(reason)});
    } else {
      counted.push_back(at);
    }
  }
  Gathered empty{.experiment = experiment_of(curve), .machine = machine_of(*run.data)};
  empty.experiment.settings = settings_of(*run.data);
  Gathered& into = home_of(all, empty, counted);
  // The sizes of the model are still unknown if all points so far were skipped.
  if (into.experiment.numbers.empty()) into.experiment = empty.experiment;
  for (const LaunchPoint& point : counted) into.points[point.point->data->ranks].push_back(point);
  for (LeftOut& point : left_out) into.left_out.push_back(std::move(point));
}

/// If some launches of a rank count have enough steps, leaves out those labelled few-steps.
void leave_out_few_steps(Gathered& from) {
  const auto is_few = [](const LaunchPoint& at) {
    return results::has_label(at.point->labels, results::few_steps);
  };
  for (auto& [ranks, launches] : from.points) {
    if (std::ranges::all_of(launches, is_few)) continue;
    for (const LaunchPoint& at : launches) {
      if (!is_few(at)) continue;
      from.left_out.push_back({.at = at,
                               .reason = fmt::format("few-steps: {} of the {} that it takes",
                                                     at.point->steps, results::fewest_steps)});
    }
    std::erase_if(launches, is_few);
  }
}

/// Returns the point that joins several launches (see JoinedCurve::curve). `most_of_launch` is the
/// largest number of ranks per node over all launches of the curve.
PointReport join_point(std::span<const LaunchPoint> launches, int most_of_launch,
                       std::span<const RunReport> reports) {
  std::vector<double> medians;
  for (const LaunchPoint& at : launches) medians.push_back(at.point->step_time->median);
  const std::optional<statistics::Estimate> time = statistics::over_launches(medians);
  const auto typical = std::ranges::min_element(
      medians, {}, [&](double median) { return std::abs(median - time->median); });
  const LaunchPoint& at_typical = launches[static_cast<std::size_t>(typical - medians.begin())];
  PointReport joined = *at_typical.point;
  joined.launch = static_cast<std::size_t>(at_typical.run - reports.data()) + 1;
  joined.step_time = time;
  joined.steps = 0;
  for (const LaunchPoint& at : launches) {
    joined.steps += at.point->steps;
    const bool few = results::has_label(at.point->labels, results::few_steps);
    if (few && !results::has_label(joined.labels, results::few_steps))
      joined.labels.emplace_back(results::few_steps);
  }
  joined.throughput = joined.data->work_per_step / time->median;
  if (joined.flop_per_step) {
    joined.flops_per_rank = *joined.flop_per_step / joined.data->ranks / time->median;
  }
  // The copied values are relative to the baseline of the typical launch. They are computed again
  // for the joined curve.
  joined.speedup.reset();
  joined.efficiency.reset();
  joined.speedup_interval.reset();
  joined.causes.pop = efficiency::pop(*joined.data, joined.breakdown, std::nullopt);
  joined.causes.waterfall.reset();
  joined.causes.serial_fraction.reset();
  // A point does not fill its nodes if another launch had more ranks per node.
  if (joined.nodes) {
    joined.nodes->fills_node = joined.nodes->fills_node && joined.nodes->most == most_of_launch;
  }
  return joined;
}

JoinedCurve join_curve(Gathered from, const ReportOptions& options,
                       std::span<const RunReport> reports, Counted counted) {
  if (counted == Counted::sound) leave_out_few_steps(from);
  int most_of_launch = 0;
  for (const auto& [ranks, launches] : from.points) {
    for (const LaunchPoint& at : launches) {
      if (at.point->nodes) {
        most_of_launch = std::max(most_of_launch, at.point->nodes->most_of_launch);
      }
    }
  }
  JoinedCurve joined;
  const auto device =
      from.points.empty() ? from.left_out.front().at : from.points.begin()->second.front();
  joined.fingerprint = fingerprint(from.experiment, device.run->data->device);
  for (auto& [ranks, launches] : from.points) {
    joined.curve.points.push_back(join_point(launches, most_of_launch, reports));
    joined.launches.push_back(std::move(launches));
  }
  set_throughput_unit(joined.curve);
  set_against_baseline(joined.curve, options);
  joined.experiment = std::move(from.experiment);
  joined.machine = std::move(from.machine);
  joined.left_out = std::move(from.left_out);
  return joined;
}

}  // namespace

std::optional<double> spread_of(const PointReport& joined) {
  const std::optional<statistics::Estimate>& launches = joined.step_time;
  if (!launches || launches->samples < 2) return std::nullopt;
  return (launches->maximum - launches->minimum) / launches->median;
}

Joined join(std::span<const RunReport> reports, const ReportOptions& options, Counted counted) {
  std::vector<Gathered> all;
  for (const RunReport& report : reports) {
    for (const Curve& curve : report.curves) gather(report, curve, counted, all);
  }
  std::vector<Experiment> experiments;
  for (const Gathered& at : all) experiments.push_back(at.experiment);
  Joined joined;
  for (Gathered& at : all)
    joined.curves.push_back(join_curve(std::move(at), options, reports, counted));
  const std::vector<std::string> names = titles(experiments);
  for (std::size_t i = 0; i < names.size(); ++i) joined.curves[i].curve.title = names[i];
  tell_curves_apart(joined.curves, reports);
  return joined;
}

std::optional<JoinedPlace> place_of(const Joined& joined, const PointReport& point) {
  for (const JoinedCurve& curve : joined.curves) {
    for (const LeftOut& at : curve.left_out) {
      if (at.at.point == &point) return JoinedPlace{.curve = &curve, .left_out = at.reason};
    }
    for (std::size_t i = 0; i < curve.launches.size(); ++i) {
      if (std::ranges::find(curve.launches[i], &point, &LaunchPoint::point) ==
          curve.launches[i].end()) {
        continue;
      }
      return JoinedPlace{
          .curve = &curve, .joined = &curve.curve.points[i], .launches = curve.launches[i].size()};
    }
  }
  return std::nullopt;
}

}  // namespace isoscale::analysis::merge
