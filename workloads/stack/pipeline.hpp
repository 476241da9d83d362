// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "mesh/request.hpp"
#include "workloads/stack/schedule.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// The pipeline that a request asks for. A mesh without stages has one chunk: nothing is passed on.
[[nodiscard]] Pipeline pipeline_of(const Request& request);

/// What pp must divide.
[[nodiscard]] std::vector<mesh::Constraint> pipeline_limits(const Request& base);
/// Throws base::UsageError, with the numbers and the nearest that works, when the schedule does not
/// go with the microbatches, or the stages with the layers.
void require_pipeline(const Request& scaled);

/// Of a twin: the option stage_layers, at most two layers in a stage and uneven where the real ones
/// are, and the layers of the model that go with it.
[[nodiscard]] std::string small_stage_layers(const Request& request);
[[nodiscard]] int small_layers(const Request& request);

}  // namespace isoscale::workloads::stack
