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

/// Checks, on the machine and mesh of a point, that its programs compute the right results: a small
/// twin of them must agree with one rank that computes in f64.
namespace isoscale::runner {

/// The outcome of a check.
struct Verdict {
  bool ok = false;
  std::string detail;  ///< the comparison and its result, or the error and its place
  /// The largest Difference::relative of all ranks, if a twin was compared.
  std::optional<double> difference{};
  /// The reason why the executor cannot play the programs, if that is why `ok` is false; the same
  /// on all ranks.
  std::string unsupported{};
  /// The algorithms that the twin's GEMMs were played with.
  std::vector<executor::GemmChoice> gemm_choices{};
};

/// The steps of the twin that are compared. The second step uses the weights that the first
/// updated.
inline constexpr int twin_steps = 2;

/// Returns the largest difference allowed, relative to the largest magnitude of the tensor. It is
/// two to eight times the worst difference of all meshes of 1, 4 and 8 ranks with a covering set of
/// options, on the host that emulates narrow types: f32 1.9e-5, tf32 1.1e-3, f16 4.7e-3, bf16
/// 3.3e-2 (on 8 stages; half of that on 2), fp8 1.4e-1 (of 4 ranks). Changes of weights are
/// compared too, so that a missing update or all-reduce stands out in every precision; tests inject
/// both.
[[nodiscard]] double tolerance(workloads::Precision precision);
/// Returns the larger tolerance of two types: the one computed in, and the one that gradients are
/// sent in.
[[nodiscard]] double tolerance(const workloads::Request& twin);

/// Global tensors by name, all elements in f64.
using Tensors = std::map<std::string, std::vector<double>>;

/// The elements of each observable of a program after setup; empty for those that setup does not
/// write.
using Initial = std::vector<std::vector<double>>;
/// Plays setup and `twin_steps` steps.
[[nodiscard]] Initial play_twin(executor::Session& session, const program::RankProgram& program);
/// The suffix of the name of a tensor's change since setup.
inline constexpr std::string_view change_suffix = ".change";

/// The worst relative difference of a comparison, and the tensor where it was found.
struct Difference {
  double relative = 0;
  std::string name;
  std::size_t compared = 0;  ///< elements
};
/// Compares the tensors that this rank holds after `twin_steps` steps with the global tensors, and
/// also the changes of both since setup. If an update is missing, the whole change differs, however
/// little it changes the weights.
[[nodiscard]] Difference compare(executor::Session& session, const program::RankProgram& program,
                                 const mesh::Coordinates& at, const Initial& initial,
                                 const Tensors& reference);

/// Collective over the ranks of a point: plays the twin of `request` on the point's own executor
/// and mesh, and compares outputs, gradients and updated weights with one rank's.
[[nodiscard]] Verdict verify_twin(const workloads::Workload& workload,
                                  const workloads::Request& request, executor::Executor& executor,
                                  const comm::Communicator& point);
/// Verifies given programs, so that a test can inject an error into them.
[[nodiscard]] Verdict verify_programs(const program::ProgramSet& set,
                                      const workloads::Workload& workload,
                                      const workloads::Request& twin, executor::Executor& executor,
                                      const comm::Communicator& point);

/// Converts raw elements of a floating type to f64. Throws base::Error for other types.
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
