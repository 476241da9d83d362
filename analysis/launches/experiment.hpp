// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What all points of a curve have in common. The seed is no part of it.
struct Experiment {
  std::string workload, model, dtype, scaling, placement;
  /// Without those that scaling itself changes; of a skipped point without any of the batch, since
  /// it may have been skipped before these were known.
  std::map<std::string, std::string> options;
  /// The model's numbers at the mesh of one rank; empty where the point was skipped, since it then
  /// has no mesh.
  std::map<std::string, std::string> numbers;
  /// What the launch was told for all points (see settings.hpp); empty until launches are compared.
  std::map<std::string, std::string> settings{};
};

[[nodiscard]] Experiment experiment_of(const results::PointData& point);

/// Whether points of both may stand on one curve. Numbers of a model and batches that are
/// not known are like any.
[[nodiscard]] bool are_alike(const Experiment& a, const Experiment& b);

/// 16 hexadecimal digits that are the same for the same experiment on the same kind of device
/// ("host", "cuda"), on every machine (FNV-1a, 64 bits).
[[nodiscard]] std::string fingerprint(const Experiment& experiment, std::string_view device);

/// "dp, tiny, f32, strong scaling, packed" of each, with the options and numbers that tell it from
/// others that would else have the same title.
[[nodiscard]] std::vector<std::string> titles(const std::vector<Experiment>& experiments);

}  // namespace isoscale::analysis
