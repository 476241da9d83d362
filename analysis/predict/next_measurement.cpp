// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "simulate/op_time.hpp"
#include "statistics/estimate.hpp"
#include "workloads/api/toml_files.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis::predict {
namespace {

using results::PointData;
using simulate::GrowthLaw;
using simulate::TimedCommunication;

/// Returns the communication times expected for a group of twice the size of the largest measured
/// one. They are the geometric means of the times under the logarithmic and the proportional law of
/// growth, because the true law may not be known.
TimedCommunication doubled(const simulate::GroupFamily& family) {
  TimedCommunication curve = *family.groups.back().curve;
  const double size = 2 * family.groups.back().size;
  const double members = 2.0 * curve.members;
  for (simulate::SizeSeconds& at : curve.samples) {
    const auto by = [&](GrowthLaw law) {
      return simulate::grown_seconds(family, law, simulate::Moved::parts, size, members, at.bytes);
    };
    at.seconds = std::sqrt(by(GrowthLaw::logarithmic) * by(GrowthLaw::proportional));
  }
  curve.members *= 2;
  if (curve.nodes > 1) curve.nodes *= 2;
  return curve;
}

/// Returns the machine as if each collective had also been measured on groups of twice the size.
/// With three or more group sizes, the added one included, the law by which its time grows with the
/// group's size counts as known (see GrowthLaw).
simulate::Machine with_larger_groups(const simulate::Machine& machine) {
  constexpr std::size_t telling = 3;
  simulate::Machine result = machine;
  std::map<std::tuple<program::OpKind, bool, int>, std::pair<TimedCommunication, bool>> added;
  for (const TimedCommunication& curve : machine.measured.communication) {
    if (curve.kind == program::OpKind::exchange || curve.members < 2) continue;
    const auto family = family_of(
        machine.measured, curve.kind,
        {.members = curve.members, .nodes = curve.nodes, .node_members = curve.node_members()});
    if (family.groups.empty()) continue;
    const bool across = curve.nodes > 1;
    added.insert_or_assign({curve.kind, across, across ? curve.node_members() : 0},
                           std::pair{doubled(family), family.groups.size() + 1 >= telling});
  }
  for (auto& [key, larger] : added) {
    const auto& [kind, across, on_node] = key;
    auto& curves = result.measured.communication;
    curves.push_back(larger.first);
    for (TimedCommunication& curve : curves) {
      const bool is_family = curve.kind == kind && (curve.nodes > 1) == across &&
                             (!across || curve.node_members() == on_node);
      if (is_family && larger.second && curve.law == GrowthLaw::fitted) {
        curve.law = GrowthLaw::logarithmic;
      }
    }
  }
  return result;
}

/// Returns the factor by which one more point reduces the fit's part of the uncertainty if the
/// point agrees with the prediction: the quantile of Student's distribution with the point, divided
/// by that without it. The degrees of freedom are the number of tested points, plus 2 for the prior
/// assumption.
double with_one_more(const ModelFit& fit) {
  constexpr double tail = 0.05, before_any = 2;
  const double freedom = before_any + fit.predicted;
  return statistics::student_quantile(tail, freedom + 1) /
         statistics::student_quantile(tail, freedom);
}

/// Returns the model files (names that end in .toml) in the comma-separated list that --model has
/// on the run's command line.
std::vector<std::string> model_files(const results::RunData& run) {
  constexpr std::string_view flag = "--model", joined = "--model=";
  const std::vector<std::string> words = base::shell_words(run.command_line);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_joined = words[i].starts_with(joined);
    if (!is_joined && (words[i] != flag || i + 1 == words.size())) continue;
    const std::string values = is_joined ? words[i].substr(joined.size()) : words[i + 1];
    for (const std::string_view value : base::split(values, ',')) {
      if (value.ends_with(".toml")) files.emplace_back(value);
    }
  }
  return files;
}

bool is_built_in(const std::string& model) {
  const std::vector<std::string> names = workloads::model_names();
  return std::ranges::find(names, model) != names.end();
}

/// Returns the model file that the run's command line names for this model: the only model file, or
/// the one that has the model's name.
std::optional<std::string> model_file(const results::RunData& run, const std::string& model) {
  const std::vector<std::string> files = model_files(run);
  if (files.size() == 1) return files.front();
  const auto found = std::ranges::find_if(
      files, [&](const std::string& file) { return std::filesystem::path{file}.stem() == model; });
  return found == files.end() ? std::nullopt : std::optional{*found};
}

/// Returns the file that model_to_write() asks the user to write: the model's name with ".toml", or
/// another name if the run's command line names such a file, which may be its experiment file.
std::string file_to_write(const results::RunData& run, const std::string& model) {
  std::string file = model + ".toml";
  const std::vector<std::string> words = base::shell_words(run.command_line);
  const bool is_taken = std::ranges::any_of(words, [&](const std::string& word) {
    return std::filesystem::path{word}.filename() == file;
  });
  return is_taken ? model + "-model.toml" : file;
}

/// Returns the argument of --model that selects a run's model, quoted for a shell: a built-in name,
/// the file that the run's command line named, or the file that model_to_write() asks the user to
/// write.
std::string model_argument(const results::RunData& run, const std::string& model) {
  if (is_built_in(model)) return model;
  const std::vector<std::string> words{model_file(run, model).value_or(file_to_write(run, model))};
  return base::shell_quoted(words);
}

/// Returns " --set KEY=VALUE" for each option that differs from its default. The option with the
/// key `follows` is left out, since other options determine it.
template <class Options>
std::string set_arguments(const workloads::Workload& workload, const Options& options,
                          std::string_view follows) {
  std::string text;
  for (const workloads::OptionSpec& spec : workload.options) {
    const auto given = options.find(std::string{spec.key});
    const bool is_default = given == options.end() || given->second == spec.default_value;
    if (is_default || spec.key == follows) continue;
    text += fmt::format(" --set {}={}", spec.key, given->second);
  }
  return text;
}

/// Returns the options with which `isoscale run` repeats the measurement of `point`, without those
/// that command() adds: workload, device, dtype and ranks.
std::string settings_of(const results::RunData& run, const PointData& point) {
  const workloads::Workload& workload = workloads::find_workload(point.workload);
  std::string text;
  if (!point.model_shape.empty()) text += " --model " + model_argument(run, point.model);
  if (point.scaling == "weak") text += " --scaling weak";
  if (point.placement == "spread") text += " --placement spread";
  mesh::Shape others = point.mesh;
  others.dp = 1;
  if (others.size() > 1) text += " --mesh " + mesh::to_string(others);
  // Two of batch, microbatch and microbatches determine the third. The one that changes along the
  // curve is left out.
  return text +
         set_arguments(workload, point.options, point.scaling == "weak" ? "batch" : "microbatches");
}

/// Returns the command that measures collectives and the points of `fit` again, and one more point
/// if `ranks` is more than they have. `more` has further options.
std::string command(const results::RunData& run, const PointData& point, const ModelFit& fit,
                    int ranks, std::string_view more = "") {
  std::vector<int> counts;
  for (const MeasuredPoint& measured : fit.points) counts.push_back(measured.ranks);
  if (ranks > fit.most_ranks) counts.push_back(ranks);
  return fmt::format(
      "mpirun -np {} isoscale run --workload {},calibrate --device {} --dtype {}{} --ranks {}{}",
      ranks, point.workload, run.device, point.dtype, settings_of(run, point),
      fmt::join(counts, ","), more);
}

/// Returns the proposal to measure the run again with a point and collectives on twice as many
/// ranks, and the uncertainty that would remain. A prediction takes points and collectives from one
/// file, so the command measures all of them. Absent if the prediction asks for fewer ranks, and if
/// the run has a point on that many ranks that was left out because ranks shared cores: a new one
/// would be left out for the same reason.
std::optional<std::pair<NextMeasurement, Uncertainty>> larger_one(const results::RunData& run,
                                                                  const PointData& point,
                                                                  const ModelFit& fit,
                                                                  const simulate::Machine& machine,
                                                                  const Forecast& forecast) {
  const int twice = 2 * fit.most_ranks;
  const auto has = [&](std::string_view workload) {
    return std::ranges::any_of(run.points, [&](const PointData& at) {
      return at.ranks == twice && at.workload == workload && at.status == results::PointStatus::ok;
    });
  };
  if (twice > forecast.ranks || has(point.workload)) return std::nullopt;
  ModelFit larger{.known = fit.known, .most_ranks = twice, .drift = fit.drift};
  larger.known.fit *= with_one_more(fit);
  FitParts then = fit_parts(larger, machine, forecast);  // its `law` is replaced below
  const bool has_groups = has("calibrate");
  then.law = fit_parts(fit, has_groups ? machine : with_larger_groups(machine), forecast).law;
  return std::pair{NextMeasurement{.what = fmt::format("the run on {} ranks", twice),
                                   .command = command(run, point, fit, twice)},
                   uncertainty_with(fit, then)};
}

}  // namespace

std::string model_to_write(const Question& question) {
  const workloads::Model& model = question.base.model;
  if (question.run == nullptr || !question.model_source.empty() || is_built_in(model.name) ||
      question.workload->model_use == workloads::ModelUse::none ||
      model_file(*question.run, model.name)) {
    return "";
  }
  std::string keys = workloads::to_toml(model);
  while (keys.ends_with('\n')) keys.pop_back();
  return fmt::format(
      "the run's command line names no file of the model {0}; before the command write its keys "
      "into {1}, one a line: {2}",
      model.name, file_to_write(*question.run, model.name),
      fmt::join(base::split(keys, '\n'), "; "));
}

std::string command_of(const Question& question, const workloads::Request& request) {
  const workloads::Workload& workload = *question.workload;
  const std::string device = question.run == nullptr ? "" : " --device " + question.run->device;
  std::string text =
      fmt::format("mpirun -np {} isoscale run --workload {}{} --dtype {}", request.mesh.size(),
                  workload.name, device, program::name(request.precision));
  if (workload.model_use != workloads::ModelUse::none) {
    std::string model = request.model.name;
    if (!question.model_source.empty()) {
      model = base::shell_quoted(std::vector{question.model_source});
    } else if (question.run != nullptr) {
      model = model_argument(*question.run, model);
    }
    text += " --model " + model;
  }
  text += fmt::format(" --ranks {} --mesh {}", request.mesh.size(), mesh::to_string(request.mesh));
  // The number of microbatches follows from batch and microbatch, so it is not given.
  return text + set_arguments(workload, request.options, "microbatches");
}

double total(const Uncertainty& uncertainty) {
  return std::hypot(uncertainty.noise, uncertainty.launch, uncertainty.fit);
}

double interval_width(double efficiency, const Uncertainty& uncertainty) {
  return 2 * efficiency * std::sinh(interval_90 * total(uncertainty));
}

std::vector<NextMeasurement> next_measurements(const results::RunData& run,
                                               const std::vector<const PointData*>& points,
                                               const ModelFit& fit,
                                               const simulate::Machine& machine,
                                               const Forecast& forecast) {
  if (points.empty()) return {};
  const PointData& smallest = *points.front();
  const FitParts parts = fit_parts(fit, machine, forecast);
  const Uncertainty now = uncertainty_with(fit, parts);
  std::vector<std::pair<NextMeasurement, Uncertainty>> found;
  if (auto larger = larger_one(run, smallest, fit, machine, forecast)) {
    found.push_back(std::move(*larger));
  }
  const auto again = [&](std::string_view more) {
    return command(run, smallest, fit, fit.most_ranks, more);
  };
  Uncertainty of_two = now;
  of_two.launch /= std::sqrt(2.0);
  found.push_back({{.what = "another launch of the same", .command = again("")}, of_two});

  // A measurement four times as long leaves this share of the variance.
  constexpr double quarter = 0.25;
  const double of_medians = fit.median_error * fit.median_error * (1 - quarter);
  FitParts longer = parts;
  longer.steps = std::sqrt(std::max(0.0, parts.steps * parts.steps - of_medians));
  found.push_back(
      {{.what = "the same for four times as long", .command = again(" --max-time 120s")},
       uncertainty_with(fit, longer)});
  const double efficiency = forecast.efficiency.value > 0 ? forecast.efficiency.value : 1;
  std::vector<NextMeasurement> result;
  for (auto& [measurement, then] : found) {
    measurement.width_now = interval_width(efficiency, now);
    measurement.width_then = interval_width(efficiency, then);
    result.push_back(std::move(measurement));
  }
  std::ranges::stable_sort(result, {}, &NextMeasurement::width_then);
  return result;
}

}  // namespace isoscale::analysis::predict
