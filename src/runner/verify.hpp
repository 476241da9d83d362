// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.hpp"
#include "workloads/workload.hpp"

/// Whether a point computes what it should, on the machine and the mesh it is measured on.
namespace isoscale::runner {

struct Verdict {
  bool ok = false;
  std::string detail;  ///< what was compared and how close it came, or what went wrong where
  /// Of a twin that was compared: the largest Difference::relative of all ranks.
  std::optional<double> difference{};
  /// Why the executor cannot play the programs, where that is why `ok` is not; alike on all ranks.
  std::string unsupported{};
  /// The algorithms that the twin's GEMMs were played with.
  std::vector<executor::GemmChoice> gemm_choices{};
};

/// Steps of the twin that are compared: the second sees the weights that the first updated.
inline constexpr int twin_steps = 2;

/// Largest difference allowed, relative to the largest magnitude of the tensor: twice to eight
/// times the worst of all meshes of 1, 4 and 8 ranks with a covering set of options, on the host
/// that emulates narrow types: f32 1.9e-5, tf32 1.1e-3, f16 4.7e-3, bf16 3.3e-2 (on 8 stages; half
/// of that on 2), fp8 1.4e-1 (of 4 ranks). The changes of weights are compared too, so that a
/// missing update or all-reduce stands out in every precision; tests plant both.
[[nodiscard]] double tolerance(workloads::Precision precision);
/// The larger one of the type computed in and the type in which gradients travel.
[[nodiscard]] double tolerance(const workloads::Request& twin);

/// A global tensor by name, all elements in f64.
using Tensors = std::map<std::string, std::vector<double>>;

/// Plays `twin_steps` steps of the reference on this rank alone, on the host in f64.
[[nodiscard]] Tensors reference_tensors(const workloads::Workload& workload,
                                        const workloads::Request& twin,
                                        const comm::Communicator& self);

/// What each observable of a program held after setup; empty for those that setup does not write.
using Initial = std::vector<std::vector<double>>;
/// Plays setup and `twin_steps` steps.
[[nodiscard]] Initial play_twin(executor::Session& session, const program::RankProgram& program);
/// What a tensor's change since setup is called, after the tensor.
inline constexpr std::string_view change_suffix = ".change";

/// Compares what this rank holds after `twin_steps` steps of its program with the global tensors,
/// and how it changed since setup with how these did: an update that is missing is then all of the
/// difference, however little it changes weights.
/// Returns the worst relative difference, and the name where it was found.
struct Difference {
  double relative = 0;
  std::string name;
  std::size_t compared = 0;  ///< elements
};
[[nodiscard]] Difference compare(executor::Session& session, const program::RankProgram& program,
                                 const mesh::Coordinates& at, const Initial& initial,
                                 const Tensors& reference);

/// Collective over the ranks of a point: plays the twin of `request` on the point's own executor
/// and mesh, and compares outputs, gradients and updated weights with one rank's.
[[nodiscard]] Verdict verify_twin(const workloads::Workload& workload,
                                  const workloads::Request& request, executor::Executor& executor,
                                  const comm::Communicator& point);
/// The same for programs at hand, so that a test can plant an error in them.
[[nodiscard]] Verdict verify_programs(const program::ProgramSet& set,
                                      const workloads::Workload& workload,
                                      const workloads::Request& twin, executor::Executor& executor,
                                      const comm::Communicator& point);

}  // namespace isoscale::runner
