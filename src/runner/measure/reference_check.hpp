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
#include "program/dtypes_and_buffers.hpp"
#include "workloads/api/workload.hpp"

/// Checks that a point's programs compute right results on its machine and mesh. It plays a twin, a
/// small version of the point, and compares its results with those of one rank in f64.
namespace isoscale::runner::measure {

/// The outcome of a check of results.
struct Verdict {
  bool ok = false;
  /// The comparison that was made and its result, or the error and where it occurred.
  std::string detail;
  /// The largest difference that any rank found, relative to the largest magnitude in the tensor;
  /// absent if no twin was compared, or if some element of a tensor is missing on all ranks.
  std::optional<double> difference{};
  /// "" if the executor can play the programs. If it cannot on some rank, all ranks have a reason:
  /// their own or, if they have none, that of another rank.
  std::string unsupported{};
  /// The GEMM algorithms that the executor chose for the twin; empty unless the twin passed.
  std::vector<results::GemmChoice> gemm_choices{};
};

/// The number of steps that the twin plays; the second uses the weights that the first updated.
inline constexpr int twin_steps = 2;

/// Returns the largest difference that is allowed between the twin and the reference, relative to
/// the largest magnitude in the tensor. Except in f64, it is two to nine times the worst difference
/// that was measured: f32 1.9e-5, tf32 1.1e-3, f16 4.7e-3, bf16 3.3e-2 (on 8 pipeline stages; half
/// of that on 2), fp8 1.4e-1 (on 4 ranks). These were measured on all meshes of 1, 4 and 8 ranks,
/// with options that cover all code paths, on the host executor with emulated narrow types. A
/// missing update or all-reduce exceeds the tolerance in every precision, since changes of weights
/// are compared, too; tests inject both errors.
[[nodiscard]] double tolerance(program::Precision precision);
/// Returns the larger of two tolerances: for the type in which the twin computes, and for the type
/// in which it communicates gradients. In f16 and bf16, errors grow with the square root of the
/// number of layers and, where tp reduces, of ranks along tp: bf16 with ring all-reduces by 8 ranks
/// has 3.9e-2 on 8 layers, 1.1e-1 on 48 and 2.0e-1 on 96 (emulated). For such twins the tolerance
/// grows alike, up to 0.5.
[[nodiscard]] double tolerance(const workloads::Request& twin);

/// Whole tensors (not the shards of one rank) by name. All elements are f64.
using Tensors = std::map<std::string, std::vector<double>>;

/// For each observable (tensor to compare), its elements on this rank after the setup section;
/// empty if setup does not write it.
using Initial = std::vector<std::vector<double>>;
/// Plays the setup section and `twin_steps` steps; returns the elements as they were after setup.
[[nodiscard]] Initial play_twin(executor::Session& session, const program::RankProgram& program);
/// The suffix in the name of a tensor that is the change of another tensor since setup.
inline constexpr std::string_view change_suffix = ".change";

/// The largest relative difference of a comparison, and the tensor in which it was found.
struct Difference {
  double relative = 0;
  std::string name;
  std::size_t compared = 0;  ///< number of elements that were compared
};
/// Compares the tensors that this rank holds after `twin_steps` steps with the reference, and also
/// their changes since setup: if an update is missing, weights may differ only a little, but their
/// change differs completely. The rounding of a stored f32 weight in each step is no difference of
/// its change. `at` has this rank's coordinates in the mesh.
[[nodiscard]] Difference compare(executor::Session& session, const program::RankProgram& program,
                                 const mesh::Coordinates& at, const Initial& initial,
                                 const Tensors& reference);

/// Collective over the ranks of a point: plays the twin of `request` with the point's executor and
/// mesh, and compares its results with those of one rank that computes in f64. The results of
/// training are outputs, gradients and updated weights; those of a service are outputs and its
/// cache. Narrow types round more than some errors change: without the gradients of one of 32
/// replicas, the sum differs by 3%, which bf16 may. So a twin with a larger tolerance than that of
/// f32 is played in f32, too, with f32's tolerance: on the same mesh, with the same schedule and
/// options but grad_dtype. There are no casts, and the same bytes are in a bucket.
[[nodiscard]] Verdict verify_twin(const workloads::Workload& workload,
                                  const workloads::Request& request, executor::Executor& executor,
                                  const comm::Communicator& point);
/// Does the same as verify_twin() with the programs `set`, into which tests can inject an error.
[[nodiscard]] Verdict verify_programs(const program::ProgramSet& set,
                                      const workloads::Workload& workload,
                                      const workloads::Request& twin, executor::Executor& executor,
                                      const comm::Communicator& point);

/// Calls visit(local, global) for each element of a shard, with its index in the shard and its
/// index in the whole tensor.
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
