// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>

#include "program/facts.hpp"
#include "workloads/api/workload.hpp"

/// A model whose sequence divides by much, for programs that split rows or the sequence.
namespace isoscale::workloads {

inline constexpr double row_b = 2, row_s = 64, row_h = 16, row_ffn = 64;
inline constexpr double row_heads = 8, row_kv_heads = 4, row_d = 2, row_element = 4;

/// b = 2, f32.
inline Request row_request(int layers, int microbatches, Options options = {}) {
  Request request{.model = {.name = "rows",
                            .source = "test",
                            .hidden = static_cast<int>(row_h),
                            .ffn = static_cast<int>(row_ffn),
                            .heads = static_cast<int>(row_heads),
                            .kv_heads = static_cast<int>(row_kv_heads),
                            .head_size = static_cast<int>(row_d),
                            .gated_mlp = false,
                            .layers = layers,
                            .sequence = static_cast<int>(row_s),
                            .vocabulary = 64},
                  .precision = Precision::f32,
                  .options = std::move(options)};
  request.options.try_emplace("microbatch", "2");
  request.options["microbatches"] = std::to_string(microbatches);
  return request;
}

inline program::ProgramSet build_rows(const Request& base, const mesh::Shape& mesh,
                                      Scaling scaling = Scaling::strong) {
  const Workload& hybrid = find_workload("hybrid");
  return hybrid.build(hybrid.scale(base, mesh, scaling));
}

/// What rank 0 puts on links along `axes`, by ops of `kind`.
inline double sent(const program::ProgramSet& set, mesh::AxisSet axes, program::OpKind kind) {
  double sum = 0;
  for (const program::Traffic& entry : program::facts(set.of(0), set.mesh).traffic) {
    if (entry.axes == axes && entry.kind == kind) sum += static_cast<double>(entry.sent.value());
  }
  return sum;
}

inline double peak_of(const program::ProgramSet& set, program::Role role) {
  const program::Facts facts = program::facts(set.of(0), set.mesh);
  return static_cast<double>(facts.peak_of_role[static_cast<std::size_t>(role)].value());
}

}  // namespace isoscale::workloads
