// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::stack {

/// Where microbatch `microbatch`'s [sequence][sample][columns] elements sit in the global
/// [sample][sequence][whole] tensor; samples are numbered [dp][microbatch][in microbatch], so that
/// the same batch has the same data however it is dealt out. Columns are split over tp when whole >
/// columns.
[[nodiscard]] program::Shard sample_shard(const Geometry& geometry, int microbatch,
                                          std::uint64_t columns, std::uint64_t whole);

/// The inputs of the first stage: resident on the device, or copied there from host memory, each
/// microbatch one ahead of its use, on a stream of their own.
class Inputs {
 public:
  /// Allocates and fills in the setup section; does nothing on later stages.
  Inputs(program::Builder& builder, const Geometry& geometry, const Types& types,
         const Request& request);

  /// The input of a microbatch, ready for the ops that follow; called once each, in order.
  [[nodiscard]] program::BufferId take(int microbatch);
  /// After the microbatch's backward.
  void give_back(program::BufferId input);

 private:
  void copy(int microbatch);

  program::Builder& builder_;
  const Geometry& g_;
  program::DType type_;
  program::Space space_;
  std::vector<program::BufferId> sources_;  ///< one per microbatch
  std::map<int, program::BufferId> copied_;
};

}  // namespace isoscale::workloads::stack
