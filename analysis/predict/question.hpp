// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/run_machine.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "analysis/report.hpp"
#include "mesh/mesh_request.hpp"
#include "results/records/run_data.hpp"
#include "settings/run_config.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

/// Builds the question that a prediction answers: the step's work, machine and rank counts.
namespace isoscale::analysis::predict {

/// True if the workload has an option with this key.
[[nodiscard]] inline bool has_option(const workloads::Workload& workload, std::string_view key) {
  return std::ranges::find(workload.options, key, &workloads::OptionSpec::key) !=
         workload.options.end();
}

/// A part of a machine that a what-if can change.
struct MachinePart {
  std::string_view name;     ///< as in --set: "link.inter"
  std::string_view meaning;  ///< "communication between nodes"
  /// Multiplies the part's speed by `factor`; for the parts "latency" and "power", multiplies the
  /// latency or the power limit. Returns false if the machine has no values for the part.
  bool (*change)(simulate::Machine& machine, double factor) = nullptr;
};
/// Returns all parts: bandwidth between nodes and inside nodes, latency of messages, speed of
/// GEMMs, power limit, and bandwidth of device memory.
[[nodiscard]] std::span<const MachinePart> machine_parts();
/// Returns the part with this name; null if there is none.
[[nodiscard]] const MachinePart* machine_part(std::string_view name);

struct Change {
  const MachinePart* part = nullptr;  ///< not owned: one of machine_parts()
  double factor = 1;
};

/// Changes of a machine that are predicted together, as one curve.
struct WhatIf {
  std::string title;  ///< "link.inter=2x"
  std::vector<Change> changes;
};

/// Parses "link.inter=2x,latency=0.5x". Throws a base::UsageError that names the accepted forms.
[[nodiscard]] WhatIf parse_what_if(std::string_view text);

/// Returns the machine after all changes, which apply to its measured values and to those of its
/// data sheet. In measured times of communication, a change of latency scales the time of an empty
/// message, and a change of bandwidth scales the rest of the time. A group over several nodes is
/// taken to use only the links between nodes. Throws base::UsageError if the machine has no values
/// for a part.
[[nodiscard]] simulate::Machine changed(const simulate::Machine& machine, const WhatIf& what_if);

/// Says whether the user gives the mesh or a search finds the fastest one.
enum class Meshes : std::uint8_t { given, searched };

/// The input of a prediction: work, machine, rank counts, what-ifs, and measurements of a run.
struct Question : Subject {
  const workloads::Workload* workload = nullptr;  ///< not owned: one of the program's workloads
  /// Model, options and precision, on a mesh of one rank.
  workloads::Request base{};
  /// The extents of the axes that all points share. If it is empty, each rank count has its default
  /// mesh, or the one that a search finds.
  mesh::Request mesh{};
  workloads::Scaling scaling = workloads::Scaling::strong;
  Meshes meshes = Meshes::given;
  std::vector<std::string> fixed{};  ///< keys of options that a search does not change
  simulate::Machine machine{};
  std::vector<int> ranks{};  ///< ascending
  Ranks each = Ranks::by_class;
  std::vector<WhatIf> what_if{};
  std::optional<int> baseline{};                    ///< rank count; absent = the smallest one
  std::optional<ModelFit> fit{};                    ///< absent for a data sheet
  const results::RunData* run = nullptr;            ///< not owned; null for a data sheet
  std::vector<const results::PointData*> points{};  ///< points of the run that `fit` was made from
  std::string model_source{};                       ///< argument of --model; "" = that of the run
};

/// Returns a question about the machine of the first of several launches (at least one), and about
/// the curve of this launch that choose_curve() chooses. The deviation between launches is computed
/// from all of them. Settings of the command replace those of the run. Throws base::UsageError for
/// a run without calibration or without a curve, for fewer ranks than were measured, and for
/// unknown settings. `launches` must outlive the question.
[[nodiscard]] Question question_of(const settings::PredictCommand& command,
                                   std::span<const results::RunData> launches);
/// Returns a question about a machine that is known by its data sheet. By default the work is a
/// whole training step, with elementwise ops, the vocabulary and Adam as the optimizer. Throws
/// base::UsageError for a workload without steps, if no model is given to a workload that needs
/// one, and for unknown settings.
[[nodiscard]] Question question_of(const settings::PredictCommand& command,
                                   const simulate::Machine& sheet);

/// Replaces the question's values for communication between nodes by those of the machine `other`;
/// `name` is the name of its file. If both machines are data sheets, the question keeps its
/// communication library (algorithms and protocols), but CollNet is used exactly if `other` has it.
/// The prediction's interval becomes wider: by the usual error of a data sheet, or by the deviation
/// between launches if `other` is a run. Throws base::UsageError if `other` has no such values.
void use_network(const simulate::Machine& other, const std::string& name, Question& question);

/// Returns the workload's request for this rank count on the question's mesh. Throws
/// base::UsageError, which names the nearest mesh and rank counts, if the work cannot be divided
/// among the ranks.
[[nodiscard]] workloads::Request request_at(const Question& question, int ranks);

/// Returns how much a command differs from a measured point: 4 for another model plus 2 for another
/// precision plus 1 for another scaling. A value that the command does not give is no difference.
[[nodiscard]] int strangeness(const settings::PredictCommand& command,
                              const results::PointData& point);

struct ChosenCurve {
  const Curve* curve = nullptr;                   ///< not owned
  std::vector<const results::PointData*> points;  ///< one or more, with times; ascending in ranks
};
/// Chooses the curve with the least strangeness() (the first of equals) among those of the
/// command's workload. Points whose times do not represent the machine (shared cores, injected
/// faults) are used only if there are no others. Adds to `warnings` the titles of the run's other
/// curves and the labels of such points. Throws base::UsageError if there is no curve.
[[nodiscard]] ChosenCurve choose_curve(const settings::PredictCommand& command,
                                       const std::vector<Curve>& curves,
                                       std::vector<std::string>& warnings);

/// Returns the experiment of the run's configuration from which `point` was planned. Throws
/// base::UsageError if the configuration has no such experiment; `source` names the run's file.
[[nodiscard]] settings::Experiment planned_experiment(const results::RunData& run,
                                                      const std::string& source,
                                                      const results::PointData& point);

}  // namespace isoscale::analysis::predict
