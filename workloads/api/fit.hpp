// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "mesh/request.hpp"
#include "workloads/api/workload.hpp"

/// Fits a workload to a number of ranks: its mesh and its batch, or a refusal that says what would
/// fit.
namespace isoscale::workloads {

/// The error that an option's number does not fit. The same call accepts the numbers that it
/// suggests.
class NumberError : public base::UsageError {
 public:
  NumberError(const std::string& why, std::string key, std::vector<long long> suggested);
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::vector<long long>& suggested() const { return suggested_; }

 private:
  std::string key_;
  std::vector<long long> suggested_;
};

/// Returns the nearest numbers below and above `number`, of at least 1, that `accepts` accepts;
/// empty if none is found within the search.
[[nodiscard]] std::vector<long long> nearest_accepted(
    long long number, const std::function<bool(long long)>& accepts);

/// Returns the axes that all meshes of a curve share if the user names none. It applies to a
/// workload that scales dp beside other axes, tp and pp, so that only dp grows along the curve.
/// These axes are those of the smallest count at which most axes are in use; tp stays within
/// `node_ranks`, the fewest ranks on a node (0: unknown). Empty for other workloads, which have a
/// natural mesh for each count. `counts` ascend.
[[nodiscard]] mesh::Request curve_mesh(const Workload& workload, std::span<const int> counts,
                                       int node_ranks);

/// Returns the rank counts nearest below and above `ranks`, up to twice its value, that fit()
/// accepts with the same mesh and options; empty if none is found.
[[nodiscard]] std::vector<int> nearest_ranks(const Workload& workload, const Request& base,
                                             const mesh::Request& wanted, int ranks,
                                             Scaling scaling);

/// Returns the request of a point on `ranks` ranks: on the mesh asked for or, if that is empty, on
/// the workload's natural one. Throws NumberError, mesh::MeshError or another base::UsageError. A
/// mesh, number of ranks or workload that the error suggests is accepted with the same options.
[[nodiscard]] Request fit(const Workload& workload, const Request& base,
                          const mesh::Request& wanted, int ranks, Scaling scaling);

}  // namespace isoscale::workloads
