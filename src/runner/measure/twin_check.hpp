// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.hpp"
#include "mesh/mesh.hpp"
#include "program/buffer.hpp"
#include "workloads/api/workload.hpp"

/// Checks that the programs of a point compute the right results on its machine and mesh: a small
/// version of them (the twin) is compared with one rank that computes in f64.
namespace isoscale::runner::measure {

/// The outcome of a check.
struct Verdict {
  bool ok = false;
  std::string detail;  ///< the comparison and its result, or the error and its place
  /// The largest Difference::relative of all ranks; absent if no twin was compared.
  std::optional<double> difference{};
  /// The reason why the executor cannot play the programs, the same on all ranks; "" if it can.
  std::string unsupported{};
  /// The algorithms that the twin's GEMMs were played with.
  std::vector<results::GemmChoice> gemm_choices{};
};

/// The number of steps that the twin plays. The second step uses the weights that the first has
/// updated.
inline constexpr int twin_steps = 2;

/// Returns the largest difference that is allowed, relative to the largest magnitude in the tensor.
/// It is two to nine times the worst difference found on all meshes of 1, 4 and 8 ranks, with
/// options that cover all code paths, on the host, which emulates narrow types: f32 1.9e-5, tf32
/// 1.1e-3, f16 4.7e-3, bf16 3.3e-2 (on 8 stages; half of that on 2), fp8 1.4e-1 (on 4 ranks). A
/// missing update or all-reduce exceeds the tolerance in every precision, since changes of weights
/// are compared, too; tests inject both errors.
[[nodiscard]] double tolerance(program::Precision precision);
/// Returns the larger of two tolerances: that of the type in which the twin computes, and that of
/// the type in which it sends gradients.
[[nodiscard]] double tolerance(const workloads::Request& twin);

/// Whole tensors, not shards, by name. All elements are in f64.
using Tensors = std::map<std::string, std::vector<double>>;

/// The elements of each observable after setup; empty for an observable that setup does not write.
using Initial = std::vector<std::vector<double>>;
/// Plays setup and `twin_steps` steps, and returns the elements after setup.
[[nodiscard]] Initial play_twin(executor::Session& session, const program::RankProgram& program);
/// The name of a tensor's change since setup is the tensor's name with this suffix.
inline constexpr std::string_view change_suffix = ".change";

/// The largest relative difference of a comparison, and the tensor in which it was found.
struct Difference {
  double relative = 0;
  std::string name;
  std::size_t compared = 0;  ///< elements
};
/// Compares the tensors that this rank holds after `twin_steps` steps with the reference, and also
/// their changes since setup. If an update is missing, the weights may differ little, but their
/// change differs completely.
[[nodiscard]] Difference compare(executor::Session& session, const program::RankProgram& program,
                                 const mesh::Coordinates& at, const Initial& initial,
                                 const Tensors& reference);

/// Collective over the ranks of a point: plays the twin of `request` on the point's executor and
/// mesh, and compares its outputs, gradients and updated weights with those of one rank that
/// computes in f64.
[[nodiscard]] Verdict verify_twin(const workloads::Workload& workload,
                                  const workloads::Request& request, executor::Executor& executor,
                                  const comm::Communicator& point);
/// Like verify_twin(), with given programs, so that tests can inject an error into them.
[[nodiscard]] Verdict verify_programs(const program::ProgramSet& set,
                                      const workloads::Workload& workload,
                                      const workloads::Request& twin, executor::Executor& executor,
                                      const comm::Communicator& point);

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

}  // namespace isoscale::runner::measure
