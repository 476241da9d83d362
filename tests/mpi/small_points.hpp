// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "workloads/registry.hpp"

/// Points whose steps take well under a millisecond.
namespace isoscale::runner {

inline workloads::Request small_request() {
  return {.model = {.name = "small",
                    .source = "test",
                    .hidden = 32,
                    .ffn = 64,
                    .heads = 8,
                    .kv_heads = 8,
                    .head_size = 4,
                    .layers = 8,
                    .sequence = 8,
                    .vocabulary = 32},
          .options = {{"microbatch", "1"}, {"microbatches", "8"}}};
}

/// The request at a mesh, and its programs.
inline std::pair<workloads::Request, program::ProgramSet> small_request_on(
    std::string_view workload, const mesh::Shape& mesh) {
  const workloads::Workload& known = workloads::find_workload(workload);
  const workloads::Request request = known.scale(small_request(), mesh, workloads::Scaling::strong);
  return {request, known.build(request)};
}

}  // namespace isoscale::runner
