// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "settings/run_config.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

/// Machines and questions with numbers that can be checked by hand.
namespace isoscale::samples {

/// Every GEMM at 1 TFLOP/s, device memory that takes no time, 8 ranks a node.
inline simulate::Machine plain_sheet() {
  using program::ComputeMode;
  using program::DType;
  simulate::MatrixRate rate{.type = DType::f32, .mode = ComputeMode::native, .peak = 1e12};
  rate.reached = {{.size = 1, .share = 1}};
  simulate::Machine machine{.name = "plain", .source = "made up"};
  machine.processor = simulate::Processor{.matrix = {rate}};
  machine.software.spread = 0.05;
  machine.memory = simulate::DeviceMemory{.capacity = 1e12, .bandwidth = 1e18};
  machine.memory->reached = {{.size = 1, .share = 1}};
  machine.network = simulate::Network{.node_ranks = 8,
                                      .inside = {.bandwidth = 1e11, .reached = 1, .latency = 1e-6},
                                      .across = {.bandwidth = 1e10, .reached = 1, .latency = 5e-6}};
  return machine;
}

/// predict SYSTEM.toml --model tiny --dtype f32 --ranks 8,16,64 --set batch=256
inline settings::PredictCommand plain_command(const char* workload = "") {
  settings::PredictCommand command;
  command.source = "plain.toml";
  command.workload = workload;
  command.model = workloads::load_model("tiny");
  command.precision = program::Precision::f32;
  command.ranks = {8, 16, 64};
  command.settings = {{"batch", "256"}};
  return command;
}

}  // namespace isoscale::samples
