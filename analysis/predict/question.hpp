// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/run_machine.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "analysis/report.hpp"
#include "config/command_line.hpp"
#include "mesh/request.hpp"
#include "results/run_data.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

/// The question that a prediction answers: which work, on which machine, at which ranks.
namespace isoscale::analysis {

/// The parts of a machine that can be asked about: bandwidth between nodes and inside them, the
/// time that a message takes however small, the speed of GEMMs, and that of device memory.
enum class MachinePart : std::uint8_t { link_inter, link_intra, latency, gemm, memory };
/// The part's name as in --set: "link.inter".
[[nodiscard]] std::string_view name(MachinePart part);
[[nodiscard]] bool is_machine_part(std::string_view key);

struct Change {
  MachinePart part = MachinePart::gemm;
  double factor = 1;  ///< of speed; of latency, of time
  bool operator==(const Change&) const = default;
};

/// Changes that are made together.
struct WhatIf {
  std::string title;  ///< "link.inter=2x"
  std::vector<Change> changes;
};

/// "link.inter=2x,latency=0.5x". Throws base::UsageError with what would be accepted.
[[nodiscard]] WhatIf parse_what_if(std::string_view text);

/// The machine after all changes, where it is measured and where its sheet speaks. Of measured
/// communication, the time of a message of no size changes with latency and the rest with the
/// bandwidth of the links that it crosses; a group over several nodes counts as crossing the links
/// between nodes alone. Throws base::UsageError where the machine says nothing of a part.
[[nodiscard]] simulate::Machine changed(const simulate::Machine& machine, const WhatIf& what_if);

/// Meshes are as asked for, or searched for.
enum class Meshes : std::uint8_t { given, searched };

/// A complete question.
struct Question {
  std::string source{};                           ///< file
  std::string title{};                            ///< of the curve
  const workloads::Workload* workload = nullptr;  ///< not owned: of the registry
  workloads::Request base{};                      ///< at the mesh of one rank
  mesh::Request mesh{};  ///< of all points; empty = each count's natural mesh, or searched for
  workloads::Scaling scaling = workloads::Scaling::strong;
  Meshes meshes = Meshes::given;
  std::vector<std::string> fixed{};  ///< options that a search leaves as they are
  simulate::Machine machine{};
  int node_ranks = 1;
  std::vector<int> ranks{};  ///< ascending
  Ranks each = Ranks::by_class;
  std::vector<WhatIf> what_if{};
  std::optional<int> baseline{};                    ///< absent = first predicted
  std::optional<ModelFit> fit{};                    ///< of a run
  const results::RunData* run = nullptr;            ///< not owned; null of a data sheet
  std::vector<const results::PointData*> points{};  ///< of the run, that `fit` is of
  /// The measured points of this very work, ascending in ranks: what efficiency may refer to.
  std::vector<MeasuredPoint> measured{};
  std::string assumed{};  ///< options of a data sheet's work that nobody named, "vocabulary=on"
  std::string network{};  ///< which numbers between nodes are from elsewhere, a sentence; "" = none
  std::string model_source{};  ///< what --model needs to name the model; "" = the run says
  std::vector<std::string> warnings{};
};

/// A question about the machine of a run, and the first of its curves that the command agrees with.
/// The workload is as the run has it, but for what the command changes. Throws base::UsageError for
/// a run without calibration or without a curve, ranks below those measured, and settings unknown.
/// `run` outlives the question.
[[nodiscard]] Question question_of(const config::PredictCommand& command,
                                   const results::RunData& run);
/// The same of the first of several launches; how much launches differ is then known.
[[nodiscard]] Question question_of(const config::PredictCommand& command,
                                   std::span<const results::RunData> launches);
/// A question about a machine by its data sheet. Where nothing else is said, work is that of a
/// whole training step: elementwise ops and the vocabulary are in it, and the optimizer is Adam.
/// Throws base::UsageError for a model not named and settings unknown.
[[nodiscard]] Question question_of(const config::PredictCommand& command,
                                   const simulate::Machine& sheet);

/// Takes what `other` knows of communication between nodes instead of what the run knows; `name` is
/// the other's. The interval is widened by what a sheet may miss, or by what launches of the other
/// run differ by. Throws base::UsageError where it knows nothing of that.
void use_network(const simulate::Machine& other, const std::string& name, Question& question);

/// The request at so many ranks, on the mesh asked for. Throws base::UsageError with the nearest
/// mesh where that does not divide, and with the nearest rank counts that do.
[[nodiscard]] workloads::Request request_at(const Question& question, int ranks);

/// The distance from what a command names to what a point measured: 0 where it names nothing else.
[[nodiscard]] int strangeness(const config::PredictCommand& command,
                              const results::PointData& point);

struct ChosenCurve {
  const Curve* curve = nullptr;                   ///< not owned
  std::vector<const results::PointData*> points;  ///< with a time; ascending in ranks, at least one
};
/// The first curve that the command agrees with, or that differs least from what it names. Points
/// whose times are not the machine's own count only where there are no others. Says in `warnings`
/// what else the run has, and what is wrong with the points. Throws base::UsageError when there is
/// no curve.
[[nodiscard]] ChosenCurve choose_curve(const config::PredictCommand& command,
                                       const std::vector<Curve>& curves,
                                       std::vector<std::string>& warnings);

/// The experiment that `point` was planned from. Throws base::UsageError where the run does not
/// say; `source` names its file.
[[nodiscard]] config::Experiment planned_experiment(const results::RunData& run,
                                                    const std::string& source,
                                                    const results::PointData& point);

}  // namespace isoscale::analysis
