// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
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
};

/// Steps of the twin that are compared: the second sees the weights that the first updated.
inline constexpr int twin_steps = 2;

/// Largest difference allowed, relative to the largest magnitude of the tensor: some hundred
/// roundings of the type that values are stored in.
[[nodiscard]] double tolerance(workloads::Precision precision);

/// A global tensor by name, all elements in f64.
using Tensors = std::map<std::string, std::vector<double>>;

/// The request whose one rank computes what all ranks of `twin` compute together.
[[nodiscard]] workloads::Request reference_of(const workloads::Request& twin);
/// Plays `twin_steps` steps of the reference on this rank alone, on the host in f64.
[[nodiscard]] Tensors reference_tensors(const workloads::Workload& workload,
                                        const workloads::Request& twin,
                                        const comm::Communicator& self);

/// Compares what this rank holds after `twin_steps` steps of its program with the global tensors.
/// Returns the worst relative difference, and the name where it was found.
struct Difference {
  double relative = 0;
  std::string name;
  std::size_t compared = 0;  ///< elements
};
[[nodiscard]] Difference compare(executor::Session& session, const program::RankProgram& program,
                                 const mesh::Coordinates& at, const Tensors& reference);

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

/// Collective: after timing, every weight is finite and dp replicas are bit for bit the same.
[[nodiscard]] Verdict verify_weights(executor::Session& session, const program::ProgramSet& set,
                                     const comm::Communicator& point);

}  // namespace isoscale::runner
