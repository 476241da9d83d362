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

/// A workload on a number of ranks: its mesh and its batch, or a refusal that says what would fit.
namespace isoscale::workloads {

/// An option whose number does not fit. The numbers suggested are accepted by the same call.
class NumberError : public base::UsageError {
 public:
  NumberError(const std::string& why, std::string key, std::vector<long long> suggested);
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::vector<long long>& suggested() const { return suggested_; }

 private:
  std::string key_;
  std::vector<long long> suggested_;
};

/// The nearest numbers below and above `number`, of at least 1, that `accepts` takes; empty where
/// none of those looked at is taken.
[[nodiscard]] std::vector<long long> nearest_accepted(
    long long number, const std::function<bool(long long)>& accepts);

/// The axes that all meshes of a curve have in common where the user names none: of a workload that
/// is about dp beside other axes, tp and pp, so that dp alone grows along the curve. They are those
/// of the smallest count at which most axes are at work, and tp stays within `node_ranks`, the
/// fewest ranks of a node (0: unknown). Empty for other workloads, whose natural mesh is of each
/// count. `counts` ascend.
[[nodiscard]] mesh::Request curve_mesh(const Workload& workload, std::span<const int> counts,
                                       int node_ranks);

/// The rank counts nearest below and above `ranks`, up to the double of it, that fit() takes with
/// the same mesh and options; empty where none of those looked at is taken.
[[nodiscard]] std::vector<int> nearest_ranks(const Workload& workload, const Request& base,
                                             const mesh::Request& wanted, int ranks,
                                             Scaling scaling);

/// The request of a point on `ranks` ranks, on the mesh asked for or, where that is empty, on the
/// workload's natural one. Throws NumberError, mesh::MeshError or another base::UsageError. A mesh,
/// number of ranks or workload that it suggests is accepted with the same options.
[[nodiscard]] Request fit(const Workload& workload, const Request& base,
                          const mesh::Request& wanted, int ranks, Scaling scaling);

}  // namespace isoscale::workloads
