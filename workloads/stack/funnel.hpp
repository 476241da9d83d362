// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// Whether everything goes through the first replica: strategy=funnel with more than one.
[[nodiscard]] bool funnels(const Geometry& geometry, const Request& request);
/// Whether this replica is given its weights by the first one instead of updating them.
[[nodiscard]] bool follows(const Geometry& geometry, const Request& request);

/// What torch.nn.DataParallel does with replicas (its documentation; Li et al., arXiv 2006.15704,
/// compare with it): the first one gathers all outputs, scatters their gradients, adds up the
/// gradients of the weights after backward, updates and broadcasts the weights. All on the compute
/// stream: nothing overlaps. Each coordinate along tp and pp has its own row of replicas. (Inputs
/// scatters the inputs.)
class Funnel {
 public:
  Funnel(program::Builder& builder, const Geometry& geometry, const Types& types,
         const Request& request);
  [[nodiscard]] bool is_on() const { return is_on_; }

  /// The outputs of a microbatch of all replicas to the first one.
  void gather_output(int microbatch, program::BufferId output);
  /// A new buffer with this replica's part of what the first has made of the outputs: as loss =
  /// 1/2 |Y|^2, dY is Y.
  [[nodiscard]] program::BufferId loss_gradient(int microbatch);
  /// Gradients to the first replica, bucket by bucket; nothing where the funnel is not on.
  void reduce(const Parameters& parameters);
  /// Its weights to all; nothing where the funnel is not on.
  void broadcast(const Parameters& parameters);

 private:
  void emit(program::CollectiveKind kind, const program::Slice& send,
            const program::Slice& receive);

  program::Builder& builder_;
  const Geometry& g_;
  program::DType type_;
  bool is_on_, is_root_;
  struct Output {
    program::BufferId of_all = program::no_buffer;  ///< on the first replica
    std::uint64_t count = 0;                        ///< elements of one replica's
  };
  std::map<int, Output> outputs_;  ///< by microbatch
};

}  // namespace isoscale::workloads::stack
