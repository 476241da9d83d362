// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/tensor_rows.hpp"

namespace isoscale::workloads::stack {

/// Where microbatch `microbatch`'s [sequence][sample][columns] elements sit in the global
/// [sample][sequence][whole] tensor; samples are numbered [dp][ep][microbatch][in microbatch], so
/// that the same batch has the same data however it is dealt out. The sequence is split over cp
/// and, between pairs of GEMMs that are sequence parallel, over tp. Columns are split over tp when
/// whole > columns.
[[nodiscard]] program::Shard sample_shard(const Geometry& geometry, int microbatch,
                                          std::uint64_t columns, std::uint64_t whole);
/// The same of some positions of this rank's part of the sequence, on all ranks of tp.
[[nodiscard]] program::Shard position_shard(const Geometry& geometry, int microbatch,
                                            std::uint64_t columns, std::uint64_t whole,
                                            const Positions& positions);

/// The inputs of the first stage: resident on the device, or copied there from host memory, each
/// microbatch one ahead of its use, on a stream of their own. With strategy=funnel the first
/// replica has those of all, and scatters each microbatch's just before its use.
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
  void fill(int microbatch, program::BufferId source, std::uint64_t key);
  void copy(int microbatch);
  [[nodiscard]] program::BufferId source_of(int microbatch);
  [[nodiscard]] program::BufferId scatter(int microbatch);
  [[nodiscard]] std::uint64_t source_count() const;  ///< elements of a microbatch

  program::Builder& builder_;
  const Geometry& g_;
  program::DType type_;
  program::Space space_;
  int parts_ = 1;  ///< replicas whose inputs this rank has
  bool scatters_ = false;
  std::vector<program::BufferId> sources_;  ///< one per microbatch
  std::map<int, program::BufferId> copied_;
};

}  // namespace isoscale::workloads::stack
