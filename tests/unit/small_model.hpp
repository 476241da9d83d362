// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "workloads/api/workload.hpp"

/// A request for programs so small that thousands are built in seconds.
namespace isoscale::workloads {

/// h = 16, s = 4, b = 2.
inline Request small(int layers, int microbatches, const Options& options = {}) {
  Request request{.model = {.name = "small",
                            .source = "test",
                            .hidden = 16,
                            .ffn = 64,
                            .heads = 8,
                            .kv_heads = 8,
                            .head_size = 2,
                            .gated_mlp = false,
                            .layers = layers,
                            .sequence = 4,
                            .vocabulary = 32},
                  .precision = Precision::f32,
                  .options = options};
  request.options["microbatch"] = "2";
  request.options["microbatches"] = std::to_string(microbatches);
  return request;
}

}  // namespace isoscale::workloads
