// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.hpp"
#include "mesh/mesh.hpp"
#include "program/buffer.hpp"
#include "workloads/api/workload.hpp"

/// Checks on the machine and mesh of a point that it computes what it should: a small twin of its
/// programs must agree with one rank that computes in f64.
namespace isoscale::runner {

/// The outcome of a check.
struct Verdict {
  bool ok = false;
  std::string detail;  ///< what was compared and how close it came, or what went wrong where
  /// The largest Difference::relative of all ranks, if a twin was compared.
  std::optional<double> difference{};
  /// Says why the executor cannot play the programs, if `ok` is false for that; alike on all ranks.
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

/// The elements of each observable of a program after setup; empty for those that setup does not
/// write.
using Initial = std::vector<std::vector<double>>;
/// Plays setup and `twin_steps` steps.
[[nodiscard]] Initial play_twin(executor::Session& session, const program::RankProgram& program);
/// The suffix that names a tensor's change since setup.
inline constexpr std::string_view change_suffix = ".change";

/// The worst relative difference of a comparison, and the tensor where it was found.
struct Difference {
  double relative = 0;
  std::string name;
  std::size_t compared = 0;  ///< elements
};
/// Compares what this rank holds after `twin_steps` steps of its program with the global tensors,
/// and how it changed since setup with how these did: an update that is missing is then all of the
/// difference, however little it changes weights.
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

/// Raw elements of a floating type as f64. Throws base::Error for a type that is not one.
[[nodiscard]] std::vector<double> to_doubles(std::span<const std::byte> raw, program::DType type);

/// Calls visit(local, global) with the indices of each element of a shard.
template <class Visit>
void for_each_element(const program::Shard& shard, const mesh::Coordinates& at,
                      const Visit& visit) {
  const std::uint64_t first = shard.first(at);
  for (std::uint64_t i = 0; i < shard.extents[0]; ++i) {
    for (std::uint64_t j = 0; j < shard.extents[1]; ++j) {
      for (std::uint64_t k = 0; k < shard.extents[2]; ++k) {
        visit(i * shard.local[0] + j * shard.local[1] + k * shard.local[2],
              first + i * shard.global[0] + j * shard.global[1] + k * shard.global[2]);
      }
    }
  }
}

}  // namespace isoscale::runner
