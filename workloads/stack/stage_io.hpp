// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/parameters.hpp"
#include "workloads/stack/pipeline.hpp"
#include "workloads/stack/sequence_parallel.hpp"

namespace isoscale::workloads::stack {

/// Returns the places of microbatch `microbatch`'s [sequence][sample][columns] elements in the
/// global [sample][sequence][whole] tensor. Samples are numbered [dp][ep][microbatch][in
/// microbatch], so that a batch has the same data however it is distributed. The sequence is split
/// over cp and, between pairs of GEMMs that are sequence parallel, over tp. Columns are split over
/// tp if whole > columns.
[[nodiscard]] program::Shard sample_shard(const Geometry& geometry, int microbatch,
                                          std::uint64_t columns, std::uint64_t whole);
/// Returns those of some positions of this rank's part of the sequence, on all ranks of tp.
[[nodiscard]] program::Shard position_shard(const Geometry& geometry, int microbatch,
                                            std::uint64_t columns, std::uint64_t whole,
                                            const Positions& positions);

/// The inputs of the first stage. They are resident on the device, or copied there from host
/// memory, each microbatch one ahead of its use, on a stream of their own. With strategy=funnel the
/// first replica has the inputs of all replicas, and scatters each microbatch's just before its
/// use.
class Inputs {
 public:
  /// Allocates the inputs and fills them in the setup section; does nothing on later stages.
  Inputs(program::Builder& builder, const Geometry& geometry, const Types& types,
         const Request& request);

  /// Returns the input of a microbatch, ready for the ops that follow; called once for each, in
  /// order.
  [[nodiscard]] program::BufferId take(int microbatch);
  /// Called after the microbatch's backward.
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

/// Hands activations and their gradients from stage to stage: [tokens, hidden]. They are sent
/// whole, or each rank of tp sends its block of rows, and the receivers gather them (Narayanan et
/// al., arXiv 2104.04473, section 4.1).
class HandOvers {
 public:
  HandOvers(program::Builder& builder, const Geometry& geometry, const Types& types);

  /// Takes the result of an action for a neighbour. The hand-over that names it sends it and then
  /// releases it.
  void leave(const Action& made, program::BufferId buffer);
  /// Writes one exchange with a neighbour.
  void write(const HandOver& message);
  /// Returns what a hand-over received for this action; the caller releases it.
  [[nodiscard]] program::BufferId take(const Action& awaited);

 private:
  using Key = std::tuple<Pass, int, int>;
  static Key key(const Action& action) { return {action.pass, action.microbatch, action.chunk}; }
  [[nodiscard]] program::BufferId allocate(std::uint64_t count, program::Role role, int microbatch);
  /// Gathers the rows of all ranks of tp from this rank's.
  [[nodiscard]] program::BufferId gather(program::BufferId part, const Action& awaited);
  [[nodiscard]] program::Role role_of(const Action& awaited) const;

  program::Builder& builder_;
  const Geometry& g_;
  program::DType type_;
  std::map<Key, program::BufferId> made_, received_;
};

/// True if everything goes through the first replica: strategy=funnel with more than one.
[[nodiscard]] bool funnels(const Geometry& geometry, const Request& request);
/// True if this replica receives its weights from the first one instead of updating them.
[[nodiscard]] bool follows(const Geometry& geometry, const Request& request);

/// Trains replicas as torch.nn.DataParallel does (its documentation; Li et al., arXiv 2006.15704,
/// compare with it): the first replica gathers all outputs, scatters their gradients, adds up the
/// gradients of the weights after backward, updates and broadcasts the weights. All of it is on the
/// compute stream: nothing overlaps. Each coordinate along tp and pp has its own row of replicas.
/// (Inputs scatters the inputs.)
class Funnel {
 public:
  Funnel(program::Builder& builder, const Geometry& geometry, const Types& types,
         const Request& request);
  [[nodiscard]] bool is_on() const { return is_on_; }

  /// Gathers the outputs of a microbatch of all replicas on the first one.
  void gather_output(int microbatch, program::BufferId output);
  /// Returns a new buffer with this replica's part of the gradient that the first one made from the
  /// outputs: as loss = 1/2 |Y|^2, dY is Y.
  [[nodiscard]] program::BufferId loss_gradient(int microbatch);
  /// Reduces gradients to the first replica, bucket by bucket; does nothing if the funnel is off.
  void reduce(const Parameters& parameters);
  /// Broadcasts the first replica's weights to all; does nothing if the funnel is off.
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
