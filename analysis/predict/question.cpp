// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/curves_and_baselines.hpp"
#include "analysis/predict/forecast.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "simulate/op_time.hpp"
#include "units/quantity_text.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis::predict {
namespace {

using results::PointData;
using settings::PredictCommand;

int measured_node_ranks(const results::RunData& run) {
  std::map<int, int> ranks_of_node;
  for (const results::RankFacts& rank : run.rank_facts) ++ranks_of_node[rank.node];
  int most = 1;
  for (const auto& [node, ranks] : ranks_of_node) most = std::max(most, ranks);
  return most;
}

void require_more_ranks(const Question& question, int measured) {
  const int least = question.ranks.front();
  if (least >= measured) return;
  throw base::usage_error(
      "--ranks {}: the run already measured up to {} ranks; give {} or more, or see the measured "
      "points: isoscale report {}",
      least, measured, measured, question.source);
}

/// Sets the ranks per node to the command's `node_ranks` if given, else to `known`.
void set_node_ranks(const PredictCommand& command, int known, Question& question) {
  question.node_ranks = command.node_ranks.value_or(known);
  if (question.machine.network) question.machine.network->node_ranks = question.node_ranks;
}

void require_axes(const Question& question) {
  for (const auto& [axis, extent] : question.mesh) {
    if (extent == 1 || question.workload->axes.contains(axis)) continue;
    throw base::usage_error("--mesh {}={}: workload {} has no axis {}, only {}", mesh::name(axis),
                            extent, question.workload->name, mesh::name(axis),
                            mesh::to_string(question.workload->axes));
  }
}

void require_search(const PredictCommand& command, Question& question) {
  if (!command.best) return;
  question.meshes = Meshes::searched;
  const bool complete =
      std::ranges::all_of(std::array{mesh::Axis::tp, mesh::Axis::dp, mesh::Axis::pp},
                          [&](mesh::Axis axis) { return command.mesh.contains(axis); });
  if (complete) {
    throw base::UsageError(
        "--best with a --mesh that gives tp, dp and pp: no mesh is left to search; leave out one "
        "of the two options, or give fewer axes");
  }
  if (question.scaling == workloads::Scaling::weak) {
    throw base::UsageError(
        "--best with weak scaling: the work depends on the mesh, so meshes cannot be compared; use "
        "--scaling strong");
  }
}

using Settings = std::vector<std::pair<std::string, std::string>>;

bool is_given(const Settings& settings, std::string_view key) {
  return std::ranges::any_of(settings, [key](const auto& given) { return given.first == key; });
}

/// Two of batch, microbatch and microbatches determine the third. Removes from `options` those that
/// would contradict the user's settings.
void forget_batch(const Settings& settings, workloads::Options& options) {
  const auto forget = [&](const char* key) {
    if (!is_given(settings, key)) options.erase(key);
  };
  if (is_given(settings, "batch")) forget("microbatches");
  if (is_given(settings, "microbatch") || is_given(settings, "microbatches")) forget("batch");
}

[[noreturn]] void refuse_key(std::string_view key, const workloads::Workload& workload) {
  std::vector<std::string_view> known;
  for (const workloads::OptionSpec& spec : workload.options) known.push_back(spec.key);
  for (const MachinePart& part : machine_parts()) known.push_back(part.name);
  throw base::usage_error(
      "{} is neither an option of {} nor a part of a machine{}; see: isoscale list options {}, or "
      "change link.inter, link.intra, latency, gemm, power or memory",
      base::quoted(key), workload.name, base::did_you_mean(key, known), workload.name);
}

void set_option(const std::string& key, const std::string& value, Question& question) {
  const workloads::Workload& workload = *question.workload;
  const auto spec = std::ranges::find(workload.options, key, &workloads::OptionSpec::key);
  if (spec == workload.options.end()) refuse_key(key, workload);
  if (std::ranges::find(question.fixed, key) != question.fixed.end()) {
    throw base::usage_error("{} is given twice; give it once", base::quoted(key));
  }
  workloads::validate(*spec, value);
  question.fixed.push_back(key);
  question.base.options.insert_or_assign(key, value);
}

/// Applies --set to a question whose workload is known. Each setting of a part of the machine
/// becomes a what-if; each other setting becomes an option of the workload, which `fixed` keeps
/// from a search. Options of question.base that contradict a setting are removed: `microbatches` if
/// `batch` is set, and `batch` if `microbatch` or `microbatches` is set, unless they are set too.
/// Throws base::UsageError for an unknown key, a key that is given twice, and an invalid value.
void apply_settings(const Settings& settings, Question& question) {
  forget_batch(settings, question.base.options);
  for (const auto& [key, value] : settings) {
    try {
      // A what-if may change several parts, "link.inter=2x,latency=0.5x". The text is split at the
      // first "=", so `key` is the first part and `value` has the others.
      if (machine_part(key) != nullptr) {
        question.what_if.push_back(parse_what_if(fmt::format("{}={}", key, value)));
      } else {
        set_option(key, value, question);
      }
    } catch (const base::UsageError& error) {
      throw base::UsageError(fmt::format("--set: {}", error.what()), error.where());
    }
  }
}

/// Replaces the question's rank counts, baseline and kind of simulation by those of the command,
/// and its model, precision, scaling and options where the command gives them. Throws
/// base::UsageError for axes that the workload lacks, a search without anything to search for, and
/// wrong settings.
void apply_command(const PredictCommand& command, Question& question) {
  if (command.model) question.base.model = *command.model;
  question.model_source = command.model_source;
  if (command.precision) question.base.precision = *command.precision;
  if (command.scaling) question.scaling = *command.scaling;
  question.ranks = command.ranks;
  question.baseline = command.baseline;
  question.each = command.each_rank ? Ranks::each : Ranks::by_class;
  require_axes(question);
  require_search(command, question);
  apply_settings(command.settings, question);
}

/// Sets the batch that the model's source publishes, or 1024 samples if it publishes none, unless
/// the user's settings determine the batch. Small default batches cannot be divided among the ranks
/// of a large machine. Under weak scaling nothing is set, since the batch follows from the ranks.
/// Nothing is set either if the workload has no batch, or if the command has no model.
void assume_batch(const PredictCommand& command, Question& question) {
  constexpr int usual_batch = 1024;
  const bool is_strong =
      command.scaling.value_or(workloads::Scaling::strong) == workloads::Scaling::strong;
  const bool is_said =
      is_given(command.settings, "batch") ||
      (is_given(command.settings, "microbatch") && is_given(command.settings, "microbatches"));
  if (!has_option(*question.workload, "batch") || !is_strong || is_said || !command.model) return;
  const int published = command.model->batch;
  const int batch = published > 0 ? published : usual_batch;
  question.base.options.emplace("batch", std::to_string(batch));
  question.assumed = fmt::format(
      "batch={} ({})", batch, published > 0 ? "the model's" : "the model's source publishes none");
}

workloads::Request fitted(const Question& question, int ranks) {
  return workloads::fit(*question.workload, question.base, question.mesh, ranks, question.scaling);
}

/// Returns why the question's work cannot be planned for its smallest rank count; "" if it can.
std::string refusal_of(const Question& question) {
  try {
    (void)fitted(question, question.ranks.front());
    return "";
  } catch (const base::UsageError& error) {
    return error.what();
  }
}

/// Sets an option that the user left open. If this causes a new reason why the question's work
/// cannot be planned, removes the option again and returns false. `refusal` is the reason from
/// before the call ("" if the work can be planned); it is updated if the option stays set.
bool adopt(const std::string& key, const std::string& value, std::string& refusal,
           Question& question) {
  question.base.options.emplace(key, value);
  const std::string then = refusal_of(question);
  if (!then.empty() && then != refusal) {
    question.base.options.erase(key);
    return false;
  }
  refusal = then;
  question.assumed += fmt::format("{}{}={}", question.assumed.empty() ? "" : ", ", key, value);
  return true;
}

/// Sets options that the user left open to the values usual in training, since a data sheet has no
/// run that would determine them, or to those of the training software. An option that excludes
/// what the user asked for is left out; if it is the software's, a warning says so.
void assume_training(const PredictCommand& command, Question& question) {
  Settings usual{{"elementwise", "on"}, {"vocabulary", "on"}, {"optimizer", "adam"}};
  const auto& of_software = question.machine.software.options;
  usual.insert(usual.end(), of_software.begin(), of_software.end());
  std::erase_if(usual, [&](const auto& option) {
    return !has_option(*question.workload, option.first) ||
           is_given(command.settings, option.first);
  });
  // An option may need another one, as gather=next_step needs zero=1 or zero=2, so options that
  // were excluded are tried again after others have been set.
  std::string refusal = refusal_of(question);
  std::size_t before = 0;
  do {
    before = usual.size();
    std::erase_if(usual, [&](const auto& option) {
      return adopt(option.first, option.second, refusal, question);
    });
  } while (usual.size() < before);
  for (const auto& [key, value] : usual) {
    if (!of_software.empty() && is_given(of_software, key)) {
      question.warnings.push_back(fmt::format("{} uses {}={}, which the given options exclude",
                                              question.machine.software.name, key, value));
    }
  }
}

/// Sets the mesh if the user gave none and no search is to find it. All points get the same axes
/// apart from dp, like the points of a run's curve: those of the run's largest point or, for a data
/// sheet, those that a run with these rank counts would choose.
void keep_mesh(const PointData* largest, Question& question) {
  if (!question.mesh.empty() || question.meshes == Meshes::searched) return;
  question.mesh = workloads::curve_mesh(*question.workload, question.ranks, question.node_ranks);
  if (largest == nullptr) return;
  for (auto& [axis, extent] : question.mesh) extent = largest->mesh[axis];
}

constexpr std::string_view inside_nodes = "processor, memory and links inside nodes",
                           between_nodes = "links between nodes";

void name_parts(const std::string& source, Question& question) {
  const simulate::Software& software = question.machine.software;
  for (const std::string_view part : {inside_nodes, between_nodes}) {
    question.parts.push_back(
        {.part = std::string{part}, .from = question.source, .source = source});
  }
  if (software.name.empty()) return;
  question.parts.push_back({.part = "software", .from = software.name, .source = software.source});
}

/// Adds a warning that names the collectives and messages whose times between nodes do not follow
/// from the measurements of the run `machine`. Their times are then those of the question's data
/// sheet.
void warn_of_unmeasured(const simulate::Machine& machine, const std::string& name,
                        Question& question) {
  constexpr double any_bytes = 1e6;
  const simulate::GroupPlace place{.members = 2, .nodes = 2};
  std::vector<std::string> missing;
  for (const program::OpKind kind : {program::OpKind::all_reduce, program::OpKind::all_gather,
                                     program::OpKind::reduce_scatter}) {
    if (!simulate::measured_collective_seconds(machine.measured, kind, any_bytes, place)) {
      missing.emplace_back(program::name(kind));
    }
  }
  if (!simulate::measured_message_seconds(machine.measured, any_bytes, place)) {
    missing.emplace_back("messages");
  }
  if (missing.empty()) return;
  question.warnings.push_back(
      fmt::format("{} measured no {} between nodes: their times are those of {}", name,
                  fmt::join(missing, ", "), question.source));
}

std::string title_of(const Question& question) {
  const bool has_model = question.workload->model_use != workloads::ModelUse::none;
  return fmt::format("{}, {}{}, {} scaling", question.workload->name,
                     has_model ? question.base.model.name + ", " : "",
                     program::name(question.base.precision), workloads::name(question.scaling));
}

/// Returns "; the nearest rank counts that can be divided are 992 and 1024", the counts near
/// `ranks` that suit the mesh; "" if there is none.
std::string nearest_counts(const Question& question, int ranks) {
  const std::vector<int> near = workloads::nearest_ranks(*question.workload, question.base,
                                                         question.mesh, ranks, question.scaling);
  if (near.empty()) return "";
  return fmt::format("; the nearest rank count{} that can be divided {} {}",
                     near.size() == 1 ? "" : "s", near.size() == 1 ? "is" : "are",
                     fmt::join(near, " and "));
}

}  // namespace

Question question_of(const PredictCommand& command, std::span<const results::RunData> launches) {
  const results::RunData& run = launches.front();
  Question question;
  question.source = command.source.string();
  question.machine = run_machine(run);
  name_parts("measured", question);
  question.machine.noise.launch = launch_deviation(launches);
  if (launches.size() > 1 && question.machine.noise.launch == assumed_launch_deviation) {
    question.warnings.emplace_back(
        "the launches have no point in common, so how much launches differ is assumed");
  }
  const ReportOptions options{.baseline = command.baseline};
  const RunReport report = make_report(run, question.source, options);
  const ChosenCurve chosen = choose_curve(command, report.curves, question.warnings);
  const PointData& largest = *chosen.points.back();

  question.workload = &workloads::find_workload(largest.workload);
  const settings::Experiment experiment = planned_experiment(run, question.source, largest);
  question.base = experiment.base;
  question.scaling = experiment.scaling;
  question.mesh = command.mesh.empty() ? experiment.mesh : command.mesh;
  // The axis dp is not kept, because it takes the additional ranks.
  if (command.mesh.empty()) question.mesh.erase(mesh::Axis::dp);
  apply_command(command, question);
  require_more_ranks(question, largest.ranks);
  set_node_ranks(command, measured_node_ranks(run), question);
  keep_mesh(&largest, question);

  question.fit = fit_model(run, chosen.points, question.machine);
  question.run = &run;
  question.points = chosen.points;
  // A setting of the batch or the microbatches changes the work of a step.
  const bool same_work =
      strangeness(command, largest) == 0 &&
      std::ranges::none_of(std::array{"batch", "microbatch", "microbatches"},
                           [&](const char* key) { return is_given(command.settings, key); });
  if (same_work) {
    question.measured = question.fit->points;
    for (MeasuredPoint& at : question.measured) {
      const PointReport* const reported = point_of(*chosen.curve, at.ranks);
      if (reported == nullptr) continue;
      at.efficiency = reported->efficiency;
      at.work_growth = reported->work_growth;
    }
    // The baseline of the run's report is not among these points if they were chosen without it,
    // because its ranks shared cores or faults were injected into it.
    const auto baseline =
        std::ranges::find(question.measured, chosen.curve->baseline, &MeasuredPoint::ranks);
    if (baseline != question.measured.end()) question.baseline = baseline->ranks;
  }
  question.title = title_of(question);
  return question;
}

Question question_of(const PredictCommand& command, const simulate::Machine& sheet) {
  Question question;
  question.source = command.source.string();
  question.machine = sheet;
  if (sheet.software.spread == 0) {
    question.machine.software.spread = unknown_software_error;
    question.warnings.push_back(fmt::format(
        "{}, so the interval includes an error of {} for it",
        sheet.software.name.empty()
            ? "the data sheet names no software profile (--software)"
            : fmt::format("no measured step supports the software profile {}", sheet.software.name),
        units::format_percent(unknown_software_error)));
  }
  name_parts(sheet.source, question);
  question.workload =
      &workloads::find_workload(command.workload.empty() ? "hybrid" : command.workload);
  if (question.workload->is_bench()) {
    throw base::usage_error(
        "--workload {}: it measures parts of a machine and has no step to predict; choose one that "
        "trains, such as hybrid",
        question.workload->name);
  }
  if (!command.model && question.workload->model_use != workloads::ModelUse::none) {
    throw base::usage_error("a data sheet has no model; choose one with --model: {}",
                            fmt::join(workloads::model_names(), ", "));
  }
  question.base.precision = program::Precision::bf16;
  question.base.trainer = sheet.software.attention.empty() ? workloads::Trainer::separate_attention
                                                           : workloads::Trainer::fused_attention;
  question.mesh = command.mesh;
  assume_batch(command, question);
  apply_command(command, question);
  set_node_ranks(command, sheet.network ? sheet.network->node_ranks : 1, question);
  keep_mesh(nullptr, question);
  assume_training(command, question);
  question.title = title_of(question);
  return question;
}

void use_network(const simulate::Machine& other, const std::string& name, Question& question) {
  const auto crosses = [](const simulate::TimedCommunication& curve) { return curve.nodes > 1; };
  simulate::Machine& machine = question.machine;
  const bool is_of_sheet = !question.fit;
  std::erase_if(machine.measured.communication, crosses);
  if (is_of_sheet && machine.network) {
    if (other.network) {
      machine.network->across = other.network->across;
      machine.network->ports_per_rank = other.network->ports_per_rank;
      machine.network->tiers = other.network->tiers;
      machine.network->collnet = other.network->collnet;
      // Switches between nodes reduce (CollNet) exactly if those of the other network do.
      std::vector<simulate::Algorithm>& algorithms = machine.network->algorithms;
      std::erase(algorithms, simulate::Algorithm::collnet);
      if (machine.network->collnet) algorithms.push_back(simulate::Algorithm::collnet);
    } else {
      machine.measured.untold = other.measured.untold;
    }
  } else {
    machine.network = other.network;
    if (machine.network) machine.network->node_ranks = question.node_ranks;
  }
  int on_node = 0;
  for (const simulate::TimedCommunication& curve : other.measured.communication) {
    if (!crosses(curve)) continue;
    machine.measured.communication.push_back(curve);
    on_node = std::max(on_node, curve.node_members());
  }
  if (on_node == 0 && !other.network) {
    throw base::usage_error(
        "--network {}: it measured nothing between nodes; give a run on several nodes or a data "
        "sheet (isoscale list systems)",
        name);
  }
  if (!other.network && on_node != question.node_ranks) {
    question.warnings.push_back(fmt::format(
        "{} measured between nodes with {} on each, but nodes here have {}: its times "
        "between nodes are used unchanged, although other numbers of ranks share a node's links",
        name, base::counted(on_node, "rank"), question.node_ranks));
  }
  simulate::settle_laws(machine.measured);
  if (is_of_sheet && !other.network) warn_of_unmeasured(machine, name, question);
  const double error = other.network ? sheet_error : other.noise.launch;
  double& known = is_of_sheet ? machine.software.spread : question.fit->known.fit;
  known = std::hypot(known, error);
  question.network = fmt::format(
      "between nodes as {} ({}) {}, which adds an error of {} to the interval; all else as {} {}",
      name, other.name, other.network ? "says" : "measured", units::format_percent(error),
      question.source, is_of_sheet ? "says" : "measured");
  const auto part = std::ranges::find(question.parts, between_nodes, &PartSource::part);
  part->from = name;
  part->source = other.network ? other.source : "measured";
}

workloads::Request request_at(const Question& question, int ranks) {
  try {
    return fitted(question, ranks);
  } catch (const base::UsageError& error) {
    const auto* const of_mesh = dynamic_cast<const mesh::MeshError*>(&error);
    // If no mesh fits this rank count, the error text already names the nearest rank counts.
    const bool names_counts = of_mesh != nullptr && !of_mesh->nearest();
    throw base::UsageError(
        fmt::format("{} on {}: {}{}", question.workload->name, base::counted(ranks, "rank"),
                    error.what(), names_counts ? "" : nearest_counts(question, ranks)),
        error.where());
  }
}

}  // namespace isoscale::analysis::predict
