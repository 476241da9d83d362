// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "mesh/mesh_request.hpp"
#include "runner/measure/reference_check.hpp"
#include "tests/support/options.hpp"
#include "tests/unit/matchers.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

/// Twins that GPUs play, real ones and stand-ins: meshes x precisions, options taking turns.
namespace isoscale::gpu_twins {

using program::Precision;

/// Divides by 2, 4 and 8 along every axis, also in units of 16 elements.
inline workloads::Model model() {
  return workloads::test_model(
      "hidden=128 ffn=256 heads=8 head_size=16 layers=8 sequence=16 vocabulary=128");
}

inline std::vector<mesh::Shape> meshes(int ranks) {
  std::vector<mesh::Shape> all{{.dp = ranks}, {.tp = ranks}, {.pp = ranks}};
  if (ranks == 4) all.insert(all.end(), {{.tp = 2, .dp = 2}, {.dp = 2, .pp = 2}});
  if (ranks == 8) all.push_back({.tp = 2, .dp = 2, .pp = 2});
  return all;
}

/// Returns nothing when the mesh does not divide the model.
inline std::optional<workloads::Request> request_of(const mesh::Shape& mesh, Precision precision,
                                                    workloads::Options options) {
  workloads::Request base{.model = model(), .precision = precision, .options = std::move(options)};
  base.options.insert({{"microbatch", "2"}, {"microbatches", "8"}});
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  if (mesh::violation(mesh, hybrid.limits(base, workloads::Scaling::strong))) return std::nullopt;
  return hybrid.scale(base, mesh, workloads::Scaling::strong);
}

inline constexpr std::array precisions{Precision::f64, Precision::f32,  Precision::tf32,
                                       Precision::f16, Precision::bf16, Precision::fp8};

/// Sets of options that take turns.
inline std::vector<workloads::Options> option_sets() {
  return {{{"schedule", "1f1b"}, {"tp_output", "gather"}, {"input", "pinned"}},
          {{"schedule", "gpipe"}, {"input", "pageable"}, {"optimizer", "adam"}},
          {{"vocabulary", "on"}, {"input", "pinned"}, {"overlap", "off"}},
          {{"schedule", "gpipe"}, {"tp_output", "gather"}},
          {{"optimizer", "adam"}, {"vocabulary", "on"}}};
}

/// Requests in fp8 whose rows travel over tp in parts, each of which is cast when it arrives.
inline std::vector<workloads::Request> fp8_rows(int ranks) {
  std::vector<workloads::Request> requests;
  for (const char* const options :
       {"sequence_parallel=on ring=on", "sequence_parallel=on chunks=2", "chunks=4"}) {
    for (const char* const weights : {"zero=0", "offload=weights"}) {
      workloads::Options all = workloads::options_of(options);
      all.merge(workloads::options_of(weights));
      all.merge(workloads::options_of("microbatch=16"));
      const auto request = request_of({.tp = ranks}, Precision::fp8, std::move(all));
      if (request) requests.push_back(*request);
    }
  }
  return requests;
}

/// Collective.
inline void expect_equal_to_one_rank(const comm::Communicator& world, executor::Executor& executor,
                                     const workloads::Request& request) {
  const runner::measure::Verdict verdict =
      runner::measure::verify_twin(workloads::find_workload("hybrid"), request, executor, world);
  EXPECT_TRUE(verdict.ok) << mesh::to_string(request.mesh) << " "
                          << program::name(request.precision) << workloads::text_of(request.options)
                          << ": " << verdict.detail;
}

}  // namespace isoscale::gpu_twins
