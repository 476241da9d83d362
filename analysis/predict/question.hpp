// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/run_machine.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "analysis/predict/what_if.hpp"
#include "config/command_line.hpp"
#include "mesh/request.hpp"
#include "results/run_data.hpp"
#include "simulate/machine.hpp"
#include "workloads/workload.hpp"

namespace isoscale::analysis {

/// Whether meshes are as asked for, or searched for.
enum class Meshes : std::uint8_t { given, searched };

/// What a prediction is asked, complete.
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

/// About the machine of a run, and the first of its curves that the command agrees with. The
/// workload is as the run has it, but for what the command changes. Throws base::UsageError for a
/// run without calibration or without a curve, ranks below those measured, and settings unknown.
/// `run` outlives the question.
[[nodiscard]] Question question_of(const config::PredictCommand& command,
                                   const results::RunData& run);
/// The same of the first of several launches; how much launches differ is then known.
[[nodiscard]] Question question_of(const config::PredictCommand& command,
                                   std::span<const results::RunData> launches);
/// About a machine by its data sheet. Where nothing else is said, work is that of a whole training
/// step: elementwise ops and the vocabulary are in it, and the optimizer is Adam. Throws
/// base::UsageError for a model not named and settings unknown.
[[nodiscard]] Question question_of(const config::PredictCommand& command,
                                   const simulate::Machine& sheet);

/// Takes what `other` knows of communication between nodes instead of what the run knows; `name` is
/// the other's. The interval is widened by what a sheet may miss, or by what launches of the other
/// run differ by. Throws base::UsageError where it knows nothing of that.
void use_network(const simulate::Machine& other, const std::string& name, Question& question);

/// The request at so many ranks, on the mesh asked for. Throws base::UsageError with the nearest
/// mesh where that does not divide, and with the nearest rank counts that do.
[[nodiscard]] workloads::Request request_at(const Question& question, int ranks);

}  // namespace isoscale::analysis
