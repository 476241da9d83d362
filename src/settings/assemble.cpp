// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "settings/option_values.hpp"
#include "settings/settings_layer.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::settings {

namespace {

using workloads::Workload;

// The following functions let a user give several values to a workload option of type choice, to
// compare them in one run. Each value then gets an experiment of its own.

/// Returns the values in `text`: the parts between commas for an option of type choice; for other
/// options, the whole text as one value.
std::vector<std::string_view> given_values(const workloads::OptionSpec& spec,
                                           std::string_view text) {
  if (spec.type != workloads::OptionType::choice) return {text};
  return base::split(text, ',');
}

/// Returns one experiment for each combination of the values given to options of type choice.
std::vector<Experiment> alternatives(const Experiment& experiment,
                                     const workloads::Workload& workload) {
  std::vector<Experiment> all{experiment};
  for (const workloads::OptionSpec& spec : workload.options) {
    const auto given = experiment.base.options.find(spec.key);
    if (given == experiment.base.options.end()) continue;
    std::vector<Experiment> next;
    for (const Experiment& one : all) {
      for (const std::string_view value : given_values(spec, given->second)) {
        next.push_back(one);
        next.back().base.options.insert_or_assign(std::string{spec.key}, std::string{value});
      }
    }
    all = std::move(next);
  }
  return all;
}

constexpr std::string_view default_suite = "quick";
constexpr std::string_view default_model = "tiny";

/// The experiments of a run, each with its option values, and the values that apply to all of them.
/// An experiment's own values override those in `below`; those in `above` override its own.
struct Plan {
  std::vector<Choices> experiments;
  std::vector<const Choices*> below, above;
  std::string suite;
};

void refuse_both(const Given* one, const Given* other, std::string_view advice) {
  if (one == nullptr || other == nullptr) return;
  throw base::usage_error("{} and {} both choose what to measure; {}", one->place, other->place,
                          advice);
}

void refuse_conflicts(const Layer& file, const Layer& command_line) {
  const Given* const suite = file.shared.find("suite");
  const Given* const workload = file.shared.find("workload");
  refuse_both(command_line.shared.find("suite"), command_line.shared.find("workload"),
              "give one of them");
  refuse_both(suite, workload, "give one of them");
  if (file.experiments.empty()) return;
  const Given* const experiment = file.experiments.front().find("workload");
  for (const Given* const other : {suite, workload}) {
    refuse_both(other, experiment, "give either [[experiment]] tables or that key");
  }
  for (const char* const option : {"suite", "workload"}) {
    refuse_both(command_line.shared.find(option), experiment,
                "leave the option away, or edit the file");
  }
}

/// Returns the value of `option` in the layer (file or command line) that decides what is measured:
/// the one that names a suite, a workload or experiments, or the command line if both do. Returns
/// nullptr if neither layer does, or if the deciding layer does not give the option.
const Given* chosen(std::string_view option, const Layer& file, const Layer& command_line) {
  for (const Layer* const layer : {&command_line, &file}) {
    const bool chooses = layer->shared.find("suite") != nullptr ||
                         layer->shared.find("workload") != nullptr || !layer->experiments.empty();
    if (chooses) return layer->shared.find(option);
  }
  return nullptr;
}

/// Returns the plan of a run. If its experiments come from a suite, the suite is stored in `suite`,
/// which must outlive the plan.
Plan plan_experiments(const Layer& file, const Layer& command_line, Layer& suite) {
  if (!file.experiments.empty()) {
    return {.experiments = file.experiments,
            .below = {&file.shared},
            .above = {&command_line.shared},
            .suite = file.recorded_suite};
  }
  if (const Given* const workload = chosen("workload", file, command_line)) {
    Choices only;
    only.values.emplace("workload", *workload);
    return {.experiments = {only},
            .below = {&file.shared},
            .above = {&command_line.shared},
            .suite = ""};
  }
  const Given none{.text = std::string{default_suite}, .place = "suite"};
  const Given* const given = chosen("suite", file, command_line);
  const Given& name = given == nullptr ? none : *given;
  suite = with_place(name.place, name.text, load_suite);
  return {.experiments = suite.experiments,
          .below = {&suite.shared},
          .above = {&file.shared, &command_line.shared},
          .suite = name.text};
}

/// Stores the given values of all options with the scope `scope` in `experiment` and `run`.
void apply(const Choices& choices, Scope scope, Experiment& experiment, RunConfig& run) {
  for (const RunOption& option : run_options()) {
    const Given* const given = choices.find(option.name);
    if (given == nullptr || option.scope != scope) continue;
    if (option.name == "model" && choices.model) {
      experiment.base.model = *choices.model;
    } else {
      option.apply(given->text, experiment, run);
    }
  }
}

const workloads::OptionSpec* find_spec(const Workload& workload, std::string_view key) {
  const auto found = std::ranges::find(workload.options, key, &workloads::OptionSpec::key);
  return found == workload.options.end() ? nullptr : &*found;
}

/// Throws base::UsageError for a workload option that none of the workloads in `targets` has.
void refuse_unknown_options(const Choices& choices, const std::vector<const Workload*>& targets) {
  for (const auto& [key, given] : choices.options) {
    const auto knows = [&](const Workload* workload) {
      return find_spec(*workload, key) != nullptr;
    };
    if (std::ranges::any_of(targets, knows)) continue;
    std::vector<std::string_view> keys, names;
    for (const Workload* const workload : targets) {
      if (std::ranges::find(names, workload->name) != names.end()) continue;
      names.push_back(workload->name);
      for (const auto& spec : workload->options) keys.push_back(spec.key);
    }
    throw base::usage_error("{}: unknown option {} of {}{}; see: isoscale list options {}",
                            given.place, base::quoted(key), fmt::join(names, ", "),
                            base::did_you_mean(key, keys), names.front());
  }
}

/// True if the user chose a model, an element type, or an option of a workload that has training
/// steps. Such workloads are those that have the option `batch`.
bool chooses_steps(const Choices& choices, const std::vector<const Workload*>& targets) {
  const auto of_steps = [&](const auto& option) {
    return std::ranges::any_of(targets, [&](const Workload* workload) {
      return find_spec(*workload, option.first) != nullptr &&
             find_spec(*workload, "batch") != nullptr;
    });
  };
  return choices.find("model") != nullptr || choices.find("dtype") != nullptr ||
         std::ranges::any_of(choices.options, of_steps);
}

void apply_options(const Choices& choices, const Workload& workload, Experiment& experiment) {
  for (const auto& [key, given] : choices.options) {
    const auto* const spec = find_spec(workload, key);
    if (spec == nullptr) continue;
    try {
      for (const std::string_view value : given_values(*spec, given.text)) {
        workloads::validate(*spec, value);
      }
    } catch (const base::UsageError& error) {
      throw base::usage_error("{}: {}", given.place, error.what());
    }
    experiment.base.options.insert_or_assign(key, given.text);
  }
}

/// Throws base::UsageError if the mesh has several ranks along an axis that the workload lacks.
void refuse_foreign_axes(const Experiment& experiment, const Workload& workload,
                         const std::string& place) {
  for (const auto& [axis, extent] : experiment.mesh) {
    if (extent == 1 || workload.axes.contains(axis)) continue;
    throw base::usage_error(
        "{}: mesh {}: the workload {} does not use {}, only {}; "
        "choose workloads that use every axis of the mesh",
        place, to_text(experiment.mesh), workload.name, mesh::name(axis),
        mesh::to_string(workload.axes));
  }
}

/// Throws base::UsageError for an option that has no effect on this device, and for an option that
/// needs --soak or --dry-run but is given without it.
void refuse_idle_options(const RunConfig& run) {
  const std::string of_gpus = gpu_options_given(run), slowing = slowing_injections(run.injections);
  if (run.device == Device::host && !of_gpus.empty()) {
    throw base::usage_error(
        "{}: has a meaning only on a GPU, and the device is host; leave it out, or choose "
        "--device cuda",
        of_gpus);
  }
  if (run.device == Device::host && !run.on.empty()) {
    throw base::usage_error(
        "--on {}: a data sheet describes GPUs, and the device is host; leave one of both out",
        run.on);
  }
  if (run.device == Device::cuda && run.host_streams != HostStreams::automatic) {
    throw base::usage_error(
        "--host-streams {}: has a meaning only on the host, and the device is cuda; "
        "leave it out, or choose --device host",
        name(run.host_streams));
  }
  if (run.device == Device::cuda && !slowing.empty()) {
    throw base::usage_error(
        "--inject {}: only the host can be slowed down; choose --device host, or inject a clock",
        slowing);
  }
  for (const Injection& injection : run.injections) {
    if (run.soak || !std::holds_alternative<FlippedBits>(injection.what)) continue;
    throw base::usage_error("--inject {}: bits are flipped in the replays of --soak; give that too",
                            injection.text);
  }
  if (run.mode == Mode::dry_run) return;
  if (!run.on.empty()) {
    throw base::UsageError(
        "--on: has a meaning only with --dry-run, which it prices; a run measures the machine that "
        "it was started on");
  }
  if (run.ranks_per_node) {
    throw base::UsageError(
        "--ranks-per-node: has a meaning only with --dry-run; a run is on the nodes that the "
        "launcher chose");
  }
}

Experiment make_experiment(const std::vector<const Choices*>& layers, const Workload& workload,
                           RunConfig& run) {
  Experiment experiment;
  experiment.workload = workload.name;
  experiment.base.model = workloads::load_model(default_model);
  const Given* mesh = nullptr;
  for (const Choices* const layer : layers) {
    apply(*layer, Scope::experiment, experiment, run);
    apply_options(*layer, workload, experiment);
    if (layer->find("mesh") != nullptr) mesh = layer->find("mesh");
  }
  if (mesh != nullptr) refuse_foreign_axes(experiment, workload, mesh->place);
  return experiment;
}

/// The options that may be given with --resume.
constexpr std::array<std::string_view, 5> may_be_given{"resume", "retry", "budget", "allow",
                                                       "quiet"};

[[noreturn]] void refuse_beside_resume(std::string_view place) {
  throw base::usage_error(
      "{}: --resume takes all settings from the run file; leave this out (only --retry, "
      "--budget, --allow and --quiet may be given with it)",
      place);
}

void refuse_all_but(std::span<const std::string_view> allowed, const Choices& choices) {
  for (const auto& [name, given] : choices.values) {
    if (std::ranges::find(allowed, name) == allowed.end()) refuse_beside_resume(given.place);
  }
  for (const auto& [key, given] : choices.options) refuse_beside_resume(given.place);
}

/// Returns the configuration of a command line with --resume. Throws base::UsageError for all
/// options but --resume, --retry, --budget, --allow and --quiet, and for an experiment file that is
/// not empty: the run file already says what is measured.
RunConfig resumption(const Layer& file, const Layer& command_line) {
  refuse_all_but({}, file.shared);
  for (const Choices& experiment : file.experiments) refuse_all_but({}, experiment);
  refuse_all_but(may_be_given, command_line.shared);
  RunConfig run;
  Experiment none;
  apply(command_line.shared, Scope::run, none, run);
  return run;
}

}  // namespace

RunConfig without_experiments(const Layer& layer) {
  RunConfig run;
  Experiment none;
  apply(layer.shared, Scope::run, none, run);
  refuse_idle_options(run);
  return run;
}

RunConfig assemble(const Layer& file, const Layer& command_line) {
  for (const char* const option : {"resume", "retry"}) {
    const Given* const given = file.shared.find(option);
    if (given == nullptr) continue;
    throw base::usage_error(
        "{}: is of one launch and not of an experiment; give --{} on the command line",
        given->place, option);
  }
  if (file.gpu) throw base::UsageError("the table gpu is for built-in suites only; remove it");
  if (command_line.shared.find("resume") != nullptr) return resumption(file, command_line);
  if (command_line.shared.find("retry") != nullptr) {
    throw base::UsageError("--retry: has a meaning only with --resume");
  }
  refuse_conflicts(file, command_line);
  Layer suite;
  const Plan plan = plan_experiments(file, command_line, suite);

  RunConfig run;
  Experiment none;
  for (const Layer* const layer : {&std::as_const(suite), &file, &command_line}) {
    apply(layer->shared, Scope::run, none, run);
  }
  refuse_idle_options(run);
  run.suite = plan.suite;
  run.command_line = file.recorded_command_line;

  std::vector<const Workload*> all;
  for (const Choices& choices : plan.experiments) {
    const Given& names = *choices.find("workload");
    std::vector<const Workload*> targets;
    for (const std::string& name : parse_names(names.text)) {
      targets.push_back(&find_workload(name, names.place));
    }
    refuse_unknown_options(choices, targets);
    std::vector<const Choices*> layers = plan.below;  // later entries override earlier ones
    layers.push_back(&choices);
    layers.insert(layers.end(), plan.above.begin(), plan.above.end());
    for (const Workload* const workload : targets) {
      for (Experiment& one : alternatives(make_experiment(layers, *workload, run), *workload)) {
        run.experiments.push_back(std::move(one));
      }
    }
    all.insert(all.end(), targets.begin(), targets.end());
  }
  for (const auto* const shared : {&plan.below, &plan.above}) {
    for (const Choices* const choices : *shared) refuse_unknown_options(*choices, all);
  }
  const bool chosen = chooses_steps(file.shared, all) || chooses_steps(command_line.shared, all);
  if (!chosen) run.on_gpus = suite.gpu;
  return run;
}

}  // namespace isoscale::settings
